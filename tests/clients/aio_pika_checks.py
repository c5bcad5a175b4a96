"""What a broker must do for aio-pika, asyncio's client, and for a thousand connections at once."""

import asyncio
import contextlib
import logging
from datetime import datetime, timezone
from decimal import Decimal

import aio_pika
import aiormq
from aio_pika import DeliveryMode, ExchangeType, Message
from aiormq import exceptions

from suite import URL, VHOST, check, equal, main, unique

for logger in ("aio_pika", "aiormq", "asyncio"):
    logging.getLogger(logger).setLevel(logging.CRITICAL)


@contextlib.asynccontextmanager
async def channel(confirms=True):
    """A channel of a connection of its own; with confirms, a returned message raises at its publish."""
    async with await aio_pika.connect(URL) as connection:
        yield await connection.channel(publisher_confirms=confirms, on_return_raises=confirms)


async def exclusive_queue(ch, word="queue", **options):
    return await ch.declare_queue(unique(word), exclusive=True, **options)


async def publish(ch, queue, *bodies):
    for body in bodies:
        await ch.default_exchange.publish(Message(body), queue.name, mandatory=True)


async def drain(queue):
    bodies = []
    while message := await queue.get(fail=False):
        await message.ack()
        bodies.append(message.body)
    return bodies


async def ready(ch, queue):
    return (await ch.declare_queue(queue.name, passive=True)).declaration_result.message_count


@check()
async def declare_bind_publish_get():
    async with channel() as ch:
        source = await ch.declare_exchange(unique("direct"), ExchangeType.DIRECT, auto_delete=True)
        queue = await exclusive_queue(ch)
        await queue.bind(source, "red")
        confirmation = await source.publish(Message(b"kept", delivery_mode=DeliveryMode.PERSISTENT), "red")
        equal(type(confirmation).__name__, "Ack", "answer to the publish")
        await source.publish(Message(b"dropped"), "blue", mandatory=False)
        message = await queue.get()
        equal((message.body, message.redelivered, message.routing_key), (b"kept", False, "red"))
        await message.ack()
        equal(await queue.get(fail=False), None, "second get")


@check()
async def mandatory_unroutable_message_is_returned_then_acknowledged():
    async with channel() as ch:
        try:
            await ch.default_exchange.publish(Message(b"lost"), unique("nowhere"), mandatory=True)
        except exceptions.PublishError as error:
            delivery = error.message.delivery
            equal((delivery.reply_code, delivery.reply_text, error.message.body), (312, "NO_ROUTE", b"lost"))
        else:
            raise AssertionError("nothing was returned")
        await publish(ch, await exclusive_queue(ch), b"the channel still works")


@check()
async def prefetch_bounds_unacknowledged_deliveries():
    async with channel() as ch:
        queue, got = await exclusive_queue(ch), asyncio.Queue()
        await publish(ch, queue, *[b"%d" % n for n in range(10)])
        await ch.set_qos(prefetch_count=3)
        await queue.consume(got.put)
        first = [await got.get() for _ in range(3)]
        equal((await ready(ch, queue), got.qsize()), (7, 0), "ready, delivered beyond the prefetch")
        await first[0].ack()
        await got.get()
        equal((await ready(ch, queue), got.qsize()), (6, 0), "after one acknowledgement")


@check()
async def nack_returns_a_message_to_its_place():
    async with channel() as ch:
        queue = await exclusive_queue(ch)
        await publish(ch, queue, b"1", b"2")
        await (await queue.get()).nack(requeue=True)
        seen = [await queue.get(), await queue.get()]
        equal([(m.redelivered, m.body) for m in seen], [(True, b"1"), (False, b"2")])
        await seen[0].reject(requeue=False)
        await seen[1].ack()
        equal(await ready(ch, queue), 0, "ready")


@check()
async def recover_redelivers_unacknowledged_messages():
    async with channel() as ch:
        queue = await exclusive_queue(ch)
        await publish(ch, queue, b"1")
        await queue.get()
        await (await ch.get_underlay_channel()).basic_recover(requeue=True)
        message = await queue.get()
        equal((message.redelivered, message.body), (True, b"1"))


@check()
async def topic_patterns_route():
    async with channel() as ch:
        source = await ch.declare_exchange(unique("topic"), ExchangeType.TOPIC, auto_delete=True)
        one, many = await exclusive_queue(ch), await exclusive_queue(ch)
        await one.bind(source, "logs.*")
        await many.bind(source, "logs.#")
        for key in ("logs", "logs.a", "logs.a.b", "other.a"):
            await source.publish(Message(key.encode()), key, mandatory=False)
        equal((await drain(one), await drain(many)), ([b"logs.a"], [b"logs", b"logs.a", b"logs.a.b"]))


@check()
async def headers_match_all_and_any():
    async with channel() as ch:
        source = await ch.declare_exchange(unique("headers"), ExchangeType.HEADERS, auto_delete=True)
        every, some = await exclusive_queue(ch), await exclusive_queue(ch)
        await every.bind(source, "", arguments={"x-match": "all", "a": 1, "b": "x"})
        await some.bind(source, "", arguments={"x-match": "any", "a": 1, "b": "x"})
        for body, headers in ((b"both", {"a": 1, "b": "x"}), (b"one", {"a": 1}), (b"none", {"a": 2})):
            await source.publish(Message(body, headers=headers), "", mandatory=False)
        equal((await drain(every), await drain(some)), ([b"both"], [b"both", b"one"]))


@check()
async def exchange_binds_to_exchange():
    async with channel() as ch:
        source = await ch.declare_exchange(unique("source"), ExchangeType.FANOUT, auto_delete=True)
        target = await ch.declare_exchange(unique("target"), ExchangeType.FANOUT, auto_delete=True)
        queue = await exclusive_queue(ch)
        await queue.bind(target)
        await target.bind(source)
        await source.publish(Message(b"through"), "")
        equal(await drain(queue), [b"through"])
        await target.unbind(source)


@check()
async def exclusive_queue_is_locked_to_its_connection():
    async with channel() as ch, channel() as other:
        queue = await exclusive_queue(ch)
        try:
            await other.declare_queue(queue.name, passive=True)
        except exceptions.ChannelLockedResource as error:
            start = f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue.name}'"
            equal(str(error.args[0]).startswith(start), True, str(error))
        else:
            raise AssertionError("another connection could declare it")


@check()
async def passive_declare_of_the_missing_closes_only_the_channel():
    async with await aio_pika.connect(URL) as connection:
        ch, other, name = await connection.channel(), await connection.channel(), unique("missing")
        try:
            await ch.declare_queue(name, passive=True)
        except exceptions.ChannelNotFoundEntity as error:
            equal(error.args[0], f"NOT_FOUND - no queue '{name}' in vhost '{VHOST}'", "reply text")
        else:
            raise AssertionError("it was found")
        await publish(other, await exclusive_queue(other), b"still open")


@check()
async def redeclare_with_another_flag_is_refused():
    async with channel() as ch, channel() as other:
        queue = await ch.declare_queue(unique("flag"), durable=True, auto_delete=False)
        try:
            await other.declare_queue(queue.name, durable=True, auto_delete=True)
        except exceptions.ChannelPreconditionFailed as error:
            text = (
                f"PRECONDITION_FAILED - inequivalent arg 'auto_delete' for queue '{queue.name}' "
                f"in vhost '{VHOST}': received 'true' but current is 'false'"
            )
            equal(error.args[0], text, "reply text")
        else:
            raise AssertionError("it was accepted")
        finally:
            await queue.delete()


@check()
async def robust_connection_comes_back_after_a_hard_error():
    connection = await aio_pika.connect_robust(URL, reconnect_interval=0.1)
    async with connection:
        back = asyncio.Event()
        connection.reconnect_callbacks.add(lambda *_: back.set())
        ch = await connection.channel()
        queue, got = await exclusive_queue(ch), asyncio.Queue()
        await queue.consume(got.put, no_ack=True)
        raw = await connection.transport.connection.channel()
        with contextlib.suppress(Exception):  # aiormq says this in several ways, by who notices first
            await raw.basic_publish(b"x", exchange="", routing_key="x", immediate=True)
        await back.wait()
        await publish(ch, queue, b"after")
        equal((await got.get()).body, b"after", "message to the restored consumer")


@check()
async def bodies_of_any_size_come_back_whole():
    async with channel() as ch:
        queue = await exclusive_queue(ch)
        for size in (0, 1, 131_064, 131_065, 1 << 20):
            body = bytes(n % 251 for n in range(size))
            await publish(ch, queue, body)
            equal(await drain(queue) == [body], True, f"body of {size} bytes")


@check()
async def properties_and_every_header_type_round_trip():
    headers = {
        "true": True,
        "int": -5,
        "long": 1 << 40,
        "float": 1.5,
        "decimal": Decimal("3.14"),
        "string": "größe",
        "time": datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        "void": None,
        "array": [1, "two", [True, None]],
        "table": {"nested": {"deep": "er"}},
    }
    sent = Message(
        b"x",
        headers=headers,
        content_type="text/plain",
        content_encoding="utf-8",
        delivery_mode=DeliveryMode.PERSISTENT,
        priority=5,
        correlation_id="c",
        reply_to="r",
        expiration=60,
        message_id="m",
        timestamp=datetime(2024, 1, 2, 3, 4, 5, tzinfo=timezone.utc),
        type="t",
        app_id="a",
    )
    async with channel() as ch:
        queue = await exclusive_queue(ch)
        await ch.default_exchange.publish(sent, queue.name)
        got = await queue.get()
        delivered = got.info()
        for name, value in sent.info().items():
            if value is not None:
                equal(delivered[name], value, name)


@check()
async def transaction_commits_and_rolls_back():
    async with channel(confirms=False) as tx, channel() as other:
        queue = await tx.declare_queue(unique("tx"), auto_delete=True)
        async with tx.transaction():
            await publish(tx, queue, b"done")
            equal(await ready(other, queue), 0, "ready before the commit")
        equal(await ready(other, queue), 1, "ready after the commit")
        transaction = tx.transaction()
        await transaction.select()
        await publish(tx, queue, b"undone")
        await transaction.rollback()
        equal(await ready(other, queue), 1, "ready after the rollback")
        await queue.delete(if_unused=False, if_empty=False)


@check()
async def consumer_is_told_when_its_queue_is_deleted():
    async with channel() as ch, channel() as other:
        queue, cancelled = await ch.declare_queue(unique("gone"), auto_delete=True), asyncio.Queue()
        raw = await ch.get_underlay_channel()
        raw.on_consumer_cancel_callbacks.add(lambda *args: cancelled.put_nowait(args))
        await queue.consume(lambda _message: None)
        await other.queue_delete(queue.name)
        await cancelled.get()


@check(20)
async def idle_connection_survives_on_heartbeats():
    async with await aio_pika.connect(URL, heartbeat=1) as connection:
        ch = await connection.channel()
        await asyncio.sleep(4)
        await publish(ch, await exclusive_queue(ch), b"still here")


@check(90)
async def a_thousand_connections_work_at_once():
    gate = asyncio.Semaphore(50)

    async def connect():
        async with gate:
            return await aiormq.connect(URL)

    connections = await asyncio.gather(*[connect() for _ in range(1000)])
    try:
        home = await connections[0].channel()
        queue = (await home.queue_declare(unique("many"), auto_delete=True)).queue

        async def publish_one(connection):
            async with gate:
                ch = await connection.channel()
                await ch.basic_publish(b"x", exchange="", routing_key=queue, mandatory=True)

        await asyncio.gather(*[publish_one(connection) for connection in connections])
        equal((await home.queue_delete(queue)).message_count, 1000, "messages, one from each connection")
    finally:
        await asyncio.gather(*[connection.close() for connection in connections], return_exceptions=True)


if __name__ == "__main__":
    main()
