"""What a broker must do for kombu, and for py-amqp beneath it, which Celery stands on."""

import contextlib
import socket
from datetime import datetime
from decimal import Decimal

import amqp
from kombu import Connection, Consumer, Exchange, Producer, Queue, binding
from kombu.pools import producers
from kombu.simple import SimpleQueue

from suite import URL, VHOST, check, equal, main, unique


@contextlib.contextmanager
def connection(**options):
    with Connection(URL, transport_options={"confirm_publish": True}, **options) as opened:
        opened.connect()
        yield opened


@contextlib.contextmanager
def channel():
    """A py-amqp channel in confirm mode."""
    with connection() as opened:
        yield opened.channel()


def exclusive_queue(ch, word="queue", **arguments):
    return ch.queue_declare(unique(word), exclusive=True, durable=False, arguments=arguments or None).queue


def publish(ch, queue, *bodies, **properties):
    for body in bodies:
        ch.basic_publish(amqp.Message(body, **properties), "", queue)


def drain(ch, queue):
    bodies = []
    while message := ch.basic_get(queue):
        ch.basic_ack(message.delivery_tag)
        bodies.append(message.body)
    return bodies


def ready(ch, queue):
    return ch.queue_declare(queue, passive=True).message_count


def pump(ch, done):
    while not done():
        with contextlib.suppress(socket.timeout):
            ch.connection.drain_events(timeout=0.1)


def refused(kind, text, action):
    """`action` must be refused with py-amqp's exception for the reply code, and with exactly this text."""
    try:
        action()
    except kind as error:
        equal(error.reply_text, text, "reply text")
    else:
        raise AssertionError(f"accepted, expected {text}")


@check()
def producer_and_consumer_exchange_messages():
    with connection() as opened:
        name = unique("kombu")
        exchange = Exchange(name, "topic", durable=False, auto_delete=True)
        queue = Queue(name, [binding(exchange, "a.#"), binding(exchange, "b")], durable=False, auto_delete=True)
        got = []

        def on_message(body, message):
            message.ack()
            got.append((body, message.delivery_info["routing_key"]))

        with Consumer(opened, queue, callbacks=[on_message], accept=["json"], prefetch_count=2):
            producer = Producer(opened.channel(), exchange, serializer="json", compression="zlib")
            for number, key in enumerate(("a", "a.b.c", "b", "c")):
                producer.publish({"number": number}, routing_key=key)
            while len(got) < 3:
                opened.drain_events(timeout=5)
        equal(got, [({"number": 0}, "a"), ({"number": 1}, "a.b.c"), ({"number": 2}, "b")])


@check()
def simple_queue_works_through_pooled_producers():
    with connection() as opened:
        name = unique("simple")
        with producers[opened].acquire(block=True) as producer:
            queue = Queue(name, Exchange(name, "direct", durable=False, auto_delete=True), name, expires=30)
            producer.publish("hello", exchange=queue.exchange, routing_key=name, declare=[queue], retry=True)
        simple = SimpleQueue(opened, queue)
        message = simple.get(timeout=5)
        message.ack()
        equal(message.payload, "hello")
        simple.close()
        queue(opened.channel()).delete()


@check()
def publish_is_confirmed_and_get_takes_it():
    with channel() as ch:
        queue = exclusive_queue(ch)
        ch.basic_publish_confirm(amqp.Message(b"x", delivery_mode=2), "", queue)
        message = ch.basic_get(queue)
        equal((message.body, message.delivery_info["redelivered"]), (b"x", False))
        equal(ch.basic_get(queue), None, "second get")


@check()
def mandatory_unroutable_message_is_returned():
    with channel() as ch:
        returned = []
        ch.events["basic_return"].add(lambda *args: returned.append(args))
        key = unique("nowhere")
        ch.basic_publish_confirm(amqp.Message(b"lost"), "", key, mandatory=True)
        ((error, exchange, routing_key, message),) = returned
        equal((error.reply_code, error.reply_text), (312, "NO_ROUTE"))
        equal((exchange, routing_key, message.body), ("", key, b"lost"))


@check()
def prefetch_bounds_unacknowledged_deliveries():
    with channel() as ch:
        queue, tags = exclusive_queue(ch), []
        publish(ch, queue, *[b"x"] * 10)
        ch.basic_qos(0, 3, False)
        ch.basic_consume(queue, callback=lambda message: tags.append(message.delivery_tag))
        pump(ch, lambda: len(tags) == 3)
        equal((ready(ch, queue), len(tags)), (7, 3), "ready and delivered")
        ch.basic_ack(3, multiple=True)
        pump(ch, lambda: len(tags) == 6)
        equal((ready(ch, queue), len(tags)), (4, 6), "ready and delivered")


@check()
def requeued_message_returns_to_its_place():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"1", b"2")
        ch.basic_reject(ch.basic_get(queue).delivery_tag, requeue=True)
        seen = [ch.basic_get(queue) for _ in range(2)]
        equal([(m.delivery_info["redelivered"], m.body) for m in seen], [(True, b"1"), (False, b"2")])


@check()
def recover_redelivers_unacknowledged_messages():
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"1")
        ch.basic_get(queue)
        ch.basic_recover(requeue=True)
        message = ch.basic_get(queue)
        equal((message.delivery_info["redelivered"], message.body), (True, b"1"))
        ch.basic_recover_async(requeue=True)
        equal(drain(ch, queue), [b"1"])


@check()
def headers_match_all_and_any():
    with channel() as ch:
        name = unique("headers")
        ch.exchange_declare(name, "headers", auto_delete=True)
        every, some = exclusive_queue(ch), exclusive_queue(ch)
        ch.queue_bind(every, name, arguments={"x-match": "all", "a": 1, "b": "x"})
        ch.queue_bind(some, name, arguments={"x-match": "any", "a": 1, "b": "x"})
        for body, headers in ((b"both", {"a": 1, "b": "x"}), (b"one", {"a": 1}), (b"none", {"a": 2})):
            ch.basic_publish(amqp.Message(body, application_headers=headers), name)
        equal((drain(ch, every), drain(ch, some)), ([b"both"], [b"both", b"one"]))


@check()
def exchange_binds_to_exchange():
    with channel() as ch:
        source, target = unique("source"), unique("target")
        ch.exchange_declare(source, "direct", auto_delete=True)
        ch.exchange_declare(target, "fanout", auto_delete=True)
        queue = exclusive_queue(ch)
        ch.queue_bind(queue, target)
        ch.exchange_bind(target, source, "key")
        ch.basic_publish(amqp.Message(b"through"), source, "key")
        equal(drain(ch, queue), [b"through"])
        ch.exchange_unbind(target, source, "key")


@check()
def exclusive_queue_is_locked_to_its_connection():
    with channel() as ch, channel() as other:
        queue = exclusive_queue(ch)
        text = (
            f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '{VHOST}'. "
            "It could be originally declared on another connection or the exclusive property value "
            "does not match that of the original declaration."
        )
        refused(amqp.ResourceLocked, text, lambda: other.queue_purge(queue))


@check()
def soft_errors_close_only_the_channel():
    with connection() as opened:
        name, witness = unique("soft"), opened.channel()
        queue = witness.queue_declare(name, durable=False, auto_delete=True).queue
        missing = f"NOT_FOUND - no queue '{name}.missing' in vhost '{VHOST}'"
        refused(amqp.NotFound, missing, lambda: opened.channel().queue_declare(name + ".missing", passive=True))
        inequivalent = (
            f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{name}' in vhost '{VHOST}': "
            "received 'true' but current is 'false'"
        )
        refused(amqp.PreconditionFailed, inequivalent, lambda: opened.channel().queue_declare(name, durable=True))
        publish(witness, queue, b"x")
        equal(drain(witness, queue), [b"x"], "bodies through the other channel")
        witness.queue_delete(queue)


@check()
def connection_recovers_after_a_hard_error():
    with connection() as opened:
        text = "NOT_IMPLEMENTED - prefetch_size!=0 (1)"
        refused(amqp.AMQPNotImplementedError, text, lambda: opened.channel().basic_qos(1, 0, False))
        opened.close()
        opened.ensure_connection(max_retries=3)
        ch = opened.channel()
        queue = exclusive_queue(ch)
        publish(ch, queue, b"after")
        equal(drain(ch, queue), [b"after"])


@check()
def bodies_of_any_size_come_back_whole():
    with channel() as ch:
        queue = exclusive_queue(ch)
        for size in (0, 1, 131_064, 131_065, 1 << 20):
            body = bytes(n % 251 for n in range(size))
            publish(ch, queue, body)
            (got,) = drain(ch, queue)
            equal((got or b"") == body, True, f"body of {size} bytes")  # py-amqp reads no body as an empty str


@check()
def properties_and_every_header_type_round_trip():
    sent = {
        "content_type": "text/plain",
        "content_encoding": "utf-8",
        "delivery_mode": 2,
        "priority": 5,
        "correlation_id": "c",
        "reply_to": "r",
        "expiration": "60000",
        "message_id": "m",
        "timestamp": 1_700_000_000,
        "type": "t",
        "app_id": "a",
        "application_headers": {
            "true": True,
            "int": -5,
            "long": 1 << 40,
            "double": 1.5,
            "decimal": Decimal("3.14"),
            "string": "größe",
            "time": datetime(2024, 1, 2, 3, 4, 5),
            "void": None,
            "array": [1, "two", [True, None]],
            "table": {"nested": {"deep": "er"}},
        },
    }
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, "x", **sent)
        equal(ch.basic_get(queue).properties, sent, "properties")


@check()
def transaction_commits_and_rolls_back():
    with Connection(URL) as opened:
        tx, observer = opened.channel(), opened.channel()
        queue = exclusive_queue(observer)
        tx.tx_select()
        publish(tx, queue, b"undone")
        tx.tx_rollback()
        publish(tx, queue, b"done")
        equal(ready(observer, queue), 0, "ready before the commit")
        tx.tx_commit()
        equal(drain(observer, queue), [b"done"])


@check()
def consumer_is_told_when_its_queue_is_deleted():
    with connection() as opened:
        ch, other, cancelled = opened.channel(), opened.channel(), []
        queue = exclusive_queue(ch)
        ch.basic_consume(queue, consumer_tag="mine", callback=lambda _message: None, on_cancel=cancelled.append)
        other.queue_delete(queue)
        pump(ch, lambda: cancelled)
        equal(cancelled, ["mine"])


@check(20)
def idle_connection_survives_on_heartbeats():
    with connection(heartbeat=2) as opened:
        ch = opened.channel()
        for _ in range(12):
            with contextlib.suppress(socket.timeout):
                opened.drain_events(timeout=0.5)
            opened.heartbeat_check(rate=2)
        queue = exclusive_queue(ch)
        publish(ch, queue, b"still here")
        equal(drain(ch, queue), [b"still here"])


if __name__ == "__main__":
    main()
