"""What a broker must do for pika: this file has what goes well, its neighbours refusals and confirms."""

from datetime import datetime, timezone
from decimal import Decimal

import pika
from pika import exceptions
from pika.exchange_type import ExchangeType

import pika_confirms  # noqa: F401  registers its checks
import pika_refusals  # noqa: F401  registers its checks
from pika_session import channel, connection, drain, exchange, exclusive_queue, publish, pump, ready
from suite import URL, check, equal, main, unique


@check()
def declare_bind_publish_get():
    with channel() as ch:
        source, queue = exchange(ch, ExchangeType.direct), exclusive_queue(ch)
        ch.queue_bind(queue, source, "red")
        ch.basic_publish(source, "red", b"kept")
        ch.basic_publish(source, "blue", b"dropped")
        method, properties, body = ch.basic_get(queue)
        equal((body, method.redelivered, method.exchange, method.routing_key), (b"kept", False, source, "red"))
        equal(method.message_count, 0, "messages left")
        ch.queue_unbind(queue, source, "red")


@check()
def server_names_a_queue():
    with channel() as ch:
        name = ch.queue_declare("", exclusive=True).method.queue
        equal((name.startswith("amq.gen-"), len(name)), (True, 30), "server-named queue")
        ch.basic_publish("", name, b"x")
        equal(drain(ch, name), [b"x"])


@check()
def get_from_an_empty_queue_is_empty():
    with channel() as ch:
        equal(ch.basic_get(exclusive_queue(ch)), (None, None, None))


@check()
def publish_is_confirmed():
    with channel() as ch:
        queue = exclusive_queue(ch)
        ch.confirm_delivery()
        for number in range(100):
            ch.basic_publish("", queue, str(number).encode(), pika.BasicProperties(delivery_mode=2))
        equal(ready(ch, queue), 100, "ready messages")


@check()
def mandatory_unroutable_message_is_returned_then_acknowledged():
    with channel() as ch:
        ch.confirm_delivery()
        key = unique("nowhere")
        try:
            ch.basic_publish("", key, b"lost", pika.BasicProperties(message_id="m1"), mandatory=True)
        except exceptions.UnroutableError as error:
            (returned,) = error.messages
            method = returned.method
            equal((method.reply_code, method.reply_text), (312, "NO_ROUTE"), "return")
            equal((method.exchange, method.routing_key), ("", key), "return address")
            equal((returned.body, returned.properties.message_id), (b"lost", "m1"), "returned message")
        else:
            raise AssertionError("nothing was returned")
        ch.basic_publish("", key, b"not mandatory")


@check()
def unroutable_message_without_mandatory_is_acknowledged():
    with channel() as ch:
        ch.confirm_delivery()
        ch.basic_publish("amq.direct", unique("nowhere"), b"x")


@check()
def prefetch_bounds_unacknowledged_deliveries():
    with channel() as ch:
        queue, tags = exclusive_queue(ch), []
        publish(ch, queue, *[b"%d" % n for n in range(10)])
        ch.basic_qos(prefetch_count=3)
        ch.basic_consume(queue, lambda _ch, method, _properties, _body: tags.append(method.delivery_tag))
        pump(ch, lambda: len(tags) == 3)
        equal((ready(ch, queue), tags), (7, [1, 2, 3]), "ready and delivered")
        ch.basic_ack(1)
        pump(ch, lambda: len(tags) == 4)
        equal(ready(ch, queue), 6, "ready after one acknowledgement")
        ch.basic_ack(4, multiple=True)
        pump(ch, lambda: len(tags) == 7)
        equal(ready(ch, queue), 3, "ready after acknowledging up to the fourth")


@check()
def global_prefetch_is_shared_by_the_consumers_of_a_channel():
    with channel() as ch:
        queue, other, tags = exclusive_queue(ch), exclusive_queue(ch), []
        publish(ch, queue, b"1", b"2", b"3")
        publish(ch, other, b"1", b"2", b"3")
        ch.basic_qos(prefetch_count=2, global_qos=True)
        for name in (queue, other):
            ch.basic_consume(name, lambda _ch, method, _properties, _body: tags.append(method.delivery_tag))
        pump(ch, lambda: len(tags) == 2)
        equal(ready(ch, queue) + ready(ch, other), 4, "ready in both queues")


@check()
def deliveries_take_turns_among_consumers():
    with channel() as ch:
        queue, counts = exclusive_queue(ch), {"a": 0, "b": 0}

        def count(_ch, method, _properties, _body):
            counts[method.consumer_tag] += 1

        for tag in counts:
            ch.basic_consume(queue, count, consumer_tag=tag, auto_ack=True)
        publish(ch, queue, *[b"x"] * 10)
        pump(ch, lambda: sum(counts.values()) == 10)
        equal(counts, {"a": 5, "b": 5}, "share of each consumer")


@check()
def nack_returns_a_message_to_its_place():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"1", b"2", b"3")
        first, second = ch.basic_get(queue)[0], ch.basic_get(queue)[0]
        ch.basic_nack(second.delivery_tag, requeue=True)
        ch.basic_nack(first.delivery_tag, requeue=True)
        seen = [ch.basic_get(queue) for _ in range(3)]
        equal([(m.redelivered, body) for m, _, body in seen], [(True, b"1"), (True, b"2"), (False, b"3")])


@check()
def reject_drops_or_requeues():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"1", b"2")
        ch.basic_reject(ch.basic_get(queue)[0].delivery_tag, requeue=False)
        ch.basic_reject(ch.basic_get(queue)[0].delivery_tag, requeue=True)
        method, _, body = ch.basic_get(queue)
        equal((body, method.redelivered), (b"2", True))


@check()
def closing_a_channel_requeues_what_it_had():
    with connection() as opened:
        first, second = opened.channel(), opened.channel()
        queue = exclusive_queue(first)
        publish(first, queue, b"1", b"2")
        first.basic_get(queue)
        first.close()
        method, _, body = second.basic_get(queue)
        equal((body, method.redelivered), (b"1", True))


@check()
def recover_redelivers_unacknowledged_messages():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"1", b"2")
        ch.basic_get(queue), ch.basic_get(queue)
        ch.basic_recover(requeue=True)
        seen = [ch.basic_get(queue) for _ in range(2)]
        equal([(m.redelivered, body) for m, _, body in seen], [(True, b"1"), (True, b"2")])


@check()
def topic_patterns_route():
    with channel() as ch:
        source = exchange(ch, ExchangeType.topic)
        expected = {
            "#": ["a", "a.b", "a.b.c", "x.b", ""],
            "a.*": ["a.b"],
            "a.#": ["a", "a.b", "a.b.c"],
            "*.b.#": ["a.b", "a.b.c", "x.b"],
            "#.c": ["a.b.c"],
            "a.b": ["a.b"],
        }
        queues = {pattern: exclusive_queue(ch) for pattern in expected}
        for pattern, queue in queues.items():
            ch.queue_bind(queue, source, pattern)
        for key in ("a", "a.b", "a.b.c", "x.b", ""):
            ch.basic_publish(source, key, key.encode())
        got = {pattern: [body.decode() for body in drain(ch, queue)] for pattern, queue in queues.items()}
        equal(got, expected, "routed keys")


@check()
def headers_match_all_and_any():
    with channel() as ch:
        source = exchange(ch, ExchangeType.headers)
        every, some = exclusive_queue(ch), exclusive_queue(ch)
        ch.queue_bind(every, source, "", {"x-match": "all", "colour": "red", "size": 1})
        ch.queue_bind(some, source, "", {"x-match": "any", "colour": "red", "size": 1})
        for body, headers in (
            (b"both", {"colour": "red", "size": 1, "more": True}),
            (b"one", {"colour": "red", "size": 2}),
            (b"none", {"colour": "blue"}),
        ):
            ch.basic_publish(source, "", body, pika.BasicProperties(headers=headers))
        equal((drain(ch, every), drain(ch, some)), ([b"both"], [b"both", b"one"]), "all and any")


@check()
def fanout_copies_to_every_queue_once():
    with channel() as ch:
        source, first, second = exchange(ch, ExchangeType.fanout), exclusive_queue(ch), exclusive_queue(ch)
        ch.queue_bind(first, source, "one")
        ch.queue_bind(first, source, "two")
        ch.queue_bind(second, source)
        ch.basic_publish(source, "anything", b"x")
        equal((drain(ch, first), drain(ch, second)), ([b"x"], [b"x"]))


@check()
def exchange_binds_to_exchange():
    with channel() as ch:
        source, target = exchange(ch, ExchangeType.topic), exchange(ch, ExchangeType.fanout)
        queue = exclusive_queue(ch)
        ch.queue_bind(queue, target)
        ch.exchange_bind(target, source, "a.#")
        ch.basic_publish(source, "a.b", b"through")
        ch.exchange_unbind(target, source, "a.#")
        equal(drain(ch, queue), [b"through"])


@check()
def purge_and_delete_report_counts():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"1", b"2")
        equal(ch.queue_purge(queue).method.message_count, 2, "purged")
        publish(ch, queue, b"3")
        equal(ch.queue_delete(queue).method.message_count, 1, "deleted with")
        equal(ch.queue_delete(queue).method.message_count, 0, "deleted again with")


@check()
def bodies_of_any_size_come_back_whole():
    with channel() as ch:
        queue = exclusive_queue(ch)
        frame = 131_072 - 8
        for size in (0, 1, frame - 1, frame, frame + 1, 1 << 20):
            body = bytes(n % 251 for n in range(size))
            publish(ch, queue, body)
            equal(drain(ch, queue) == [body], True, f"body of {size} bytes")


@check()
def properties_and_every_header_type_round_trip():
    sent = pika.BasicProperties(
        content_type="text/plain",
        content_encoding="utf-8",
        delivery_mode=2,
        priority=5,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_700_000_000,
        type="t",
        user_id=pika.URLParameters(URL).credentials.username,
        app_id="a",
        headers={
            "true": True,
            "int": -5,
            "long": 1 << 40,
            "decimal": Decimal("3.14"),
            "string": "größe",
            "bytes": b"\x00\xff",
            "time": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
            "void": None,
            "array": [1, "two", [True, None]],
            "table": {"nested": {"deep": "er"}},
        },
    )
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"x", properties=sent)
        _, got, _ = ch.basic_get(queue)
        for name, value in vars(sent).items():
            equal(getattr(got, name), value, name)


@check()
def message_without_properties_has_none():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"x")
        _, got, _ = ch.basic_get(queue)
        equal(set(vars(got).values()), {None}, "property values")


@check(60)
def one_connection_holds_2047_channels():
    with connection() as opened:
        channels = [opened.channel() for _ in range(2047)]
        equal(channels[-1].channel_number, 2047, "last channel number")
        queue = exclusive_queue(channels[0])
        publish(channels[1], queue, b"first")
        publish(channels[-1], queue, b"last")
        channels[1].close(), channels[-1].close()
        equal(sorted(drain(channels[0], queue)), [b"first", b"last"])


@check()
def transaction_commits_and_rolls_back():
    with connection() as opened:
        tx, observer = opened.channel(), opened.channel()
        queue = exclusive_queue(observer)
        tx.tx_select()
        publish(tx, queue, b"undone")
        tx.tx_rollback()
        publish(tx, queue, b"done")
        equal(ready(observer, queue), 0, "ready before the commit")
        tx.tx_commit()
        equal(ready(observer, queue), 1, "ready after the commit")
        method, _, body = tx.basic_get(queue)
        equal(body, b"done")
        tx.basic_ack(method.delivery_tag)
        tx.tx_rollback()
        tx.basic_ack(method.delivery_tag)  # the rollback made it outstanding again
        tx.tx_commit()
        tx.close()
        equal(ready(observer, queue), 0, "ready after the acknowledgement was committed")


@check()
def consumer_is_told_when_its_queue_is_deleted():
    with connection() as opened:
        ch, other = opened.channel(), opened.channel()
        queue, cancelled = exclusive_queue(ch), []
        ch.add_on_cancel_callback(lambda frame: cancelled.append(frame.method.consumer_tag))
        tag = ch.basic_consume(queue, lambda *_: None)
        other.queue_delete(queue)
        pump(ch, lambda: cancelled)
        equal(cancelled, [tag], "cancelled consumers")


@check()
def message_expires_in_its_queue():
    with channel() as ch:
        queue = exclusive_queue(ch, **{"x-message-ttl": 50})
        publish(ch, queue, b"x")
        pump(ch, lambda: ready(ch, queue) == 0)


@check()
def rejected_message_is_dead_lettered():
    with channel() as ch:
        dead = exclusive_queue(ch, "dead")
        queue = exclusive_queue(ch, **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead})
        publish(ch, queue, b"x")
        ch.basic_reject(ch.basic_get(queue)[0].delivery_tag, requeue=False)
        pump(ch, lambda: ready(ch, dead) == 1)
        _, properties, body = ch.basic_get(dead)
        (death,) = properties.headers["x-death"]
        equal((body, death["reason"], death["queue"], death["count"]), (b"x", "rejected", queue, 1))
        equal((death["exchange"], death["routing-keys"]), ("", [queue]), "where it came from")
        equal(properties.headers["x-first-death-queue"], queue, "first death")


@check()
def max_length_drops_the_oldest():
    with channel() as ch:
        queue = exclusive_queue(ch, **{"x-max-length": 2})
        publish(ch, queue, b"1", b"2", b"3")
        equal(drain(ch, queue), [b"2", b"3"])


@check()
def reject_publish_nacks_the_message_over_the_limit():
    with channel() as ch:
        queue = exclusive_queue(ch, **{"x-max-length": 1, "x-overflow": "reject-publish"})
        ch.confirm_delivery()
        publish(ch, queue, b"1")
        try:
            publish(ch, queue, b"2")
        except exceptions.NackError:
            equal(drain(ch, queue), [b"1"])
        else:
            raise AssertionError("the second message was confirmed")


@check()
def higher_priority_is_delivered_first():
    with channel() as ch:
        queue = exclusive_queue(ch, **{"x-max-priority": 5})
        for priority in (1, 5, 3):
            publish(ch, queue, b"%d" % priority, properties=pika.BasicProperties(priority=priority))
        equal(drain(ch, queue), [b"5", b"3", b"1"])


@check()
def direct_reply_to_answers_a_request():
    with channel() as ch:
        requests, replies = exclusive_queue(ch), []
        ch.basic_consume("amq.rabbitmq.reply-to", lambda _c, _m, _p, body: replies.append(body), auto_ack=True)
        publish(ch, requests, b"ping", properties=pika.BasicProperties(reply_to="amq.rabbitmq.reply-to"))
        _, properties, body = ch.basic_get(requests, auto_ack=True)
        equal(properties.reply_to.startswith("amq.rabbitmq.reply-to."), True, properties.reply_to)
        ch.basic_publish("", properties.reply_to, body + b" pong")
        pump(ch, lambda: replies)
        equal(replies, [b"ping pong"])


@check(20)
def requests_are_answered_directly_across_connections():
    with connection() as asking, connection() as answering:
        client, server = asking.channel(), answering.channel()
        requests, replies = server.queue_declare("", exclusive=False, auto_delete=True).method.queue, {}

        def answer(ch, method, properties, body):
            own = pika.BasicProperties(correlation_id=properties.correlation_id)
            ch.basic_publish("", properties.reply_to, body.upper(), own)
            ch.basic_ack(method.delivery_tag)

        def note(_ch, _method, properties, body):
            replies[properties.correlation_id] = body

        server.basic_consume(requests, answer)
        client.basic_consume("amq.rabbitmq.reply-to", note, auto_ack=True)
        for number in range(100):
            own = pika.BasicProperties(reply_to="amq.rabbitmq.reply-to", correlation_id=str(number))
            client.basic_publish("", requests, b"n%d" % number, own)
        while len(replies) < 100:
            answering.process_data_events(time_limit=0.05)
            asking.process_data_events(time_limit=0.05)
        equal(replies, {str(number): b"N%d" % number for number in range(100)}, "replies")


@check(20)
def idle_connection_survives_on_heartbeats():
    with connection(heartbeat=1) as opened:
        ch = opened.channel()
        opened.sleep(4)
        publish(ch, exclusive_queue(ch), b"still here")


if __name__ == "__main__":
    main()
