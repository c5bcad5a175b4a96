"""What a broker must refuse pika, with which code and text, and what must go on working afterwards."""

import pika
from pika import exceptions

from pika_session import channel, connection, drain, exclusive_queue, publish
from suite import VHOST, check, equal, unique


def expect_channel_closed(code, text, action):
    """The broker must close the channel, and only the channel, with exactly this code and text."""
    with connection() as opened:
        ch, witness = opened.channel(), opened.channel()
        try:
            action(ch)
        except exceptions.ChannelClosedByBroker as closed:
            equal((closed.reply_code, closed.reply_text), (code, text), "channel close")
        else:
            raise AssertionError(f"the channel stayed open, expected {code} {text}")
        equal(exclusive_queue(witness) != "", True, "other channel works")


def expect_connection_closed(code, text, action):
    """The broker must close the connection with exactly this; a new connection must work at once."""
    with connection() as opened:
        try:
            action(opened)
            opened.process_data_events(time_limit=5)
        except exceptions.ConnectionClosedByBroker as closed:
            equal((closed.reply_code, closed.reply_text), (code, text), "connection close")
        else:
            raise AssertionError(f"the connection stayed open, expected {code} {text}")
    with channel() as ch:
        queue = exclusive_queue(ch)
        publish(ch, queue, b"after")
        equal(drain(ch, queue), [b"after"], "bodies after reconnecting")


@check()
def exclusive_queue_is_locked_to_its_connection():
    with channel() as ch:
        queue = exclusive_queue(ch)
        text = (
            f"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '{queue}' in vhost '{VHOST}'. "
            "It could be originally declared on another connection or the exclusive property value "
            "does not match that of the original declaration."
        )
        expect_channel_closed(405, text, lambda other: other.basic_get(queue))
        expect_channel_closed(405, text, lambda other: other.queue_declare(queue, passive=True))
    missing = f"NOT_FOUND - no queue '{queue}' in vhost '{VHOST}'"
    expect_channel_closed(404, missing, lambda other: other.queue_declare(queue, passive=True))


@check()
def passive_declare_of_the_missing_closes_the_channel():
    name = unique("missing")
    expect_channel_closed(
        404, f"NOT_FOUND - no queue '{name}' in vhost '{VHOST}'", lambda ch: ch.queue_declare(name, passive=True)
    )
    expect_channel_closed(
        404, f"NOT_FOUND - no exchange '{name}' in vhost '{VHOST}'", lambda ch: ch.exchange_declare(name, passive=True)
    )


@check()
def redeclare_with_another_flag_closes_the_channel():
    name = unique("redeclared")
    with channel() as ch:
        ch.queue_declare(name, durable=True)
        ch.exchange_declare(name, exchange_type="direct")
        try:
            expect_channel_closed(
                406,
                f"PRECONDITION_FAILED - inequivalent arg 'durable' for queue '{name}' in vhost '{VHOST}': "
                "received 'false' but current is 'true'",
                lambda other: other.queue_declare(name, durable=False),
            )
            expect_channel_closed(
                406,
                f"PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue '{name}' in vhost '{VHOST}': "
                "received the value '100' of type 'signedint' but current is none",
                lambda other: other.queue_declare(name, durable=True, arguments={"x-message-ttl": 100}),
            )
            expect_channel_closed(
                406,
                f"PRECONDITION_FAILED - inequivalent arg 'type' for exchange '{name}' in vhost '{VHOST}': "
                "received 'fanout' but current is 'direct'",
                lambda other: other.exchange_declare(name, exchange_type="fanout"),
            )
        finally:
            ch.queue_delete(name)
            ch.exchange_delete(name)


@check()
def soft_errors_have_their_exact_texts():
    name = unique("text")
    vhost = f"in vhost '{VHOST}'"
    cases = [
        (404, f"NOT_FOUND - no queue '{name}' {vhost}", lambda ch: ch.basic_get(name)),
        (404, f"NOT_FOUND - no exchange '{name}' {vhost}", lambda ch: ch.queue_bind(exclusive_queue(ch), name, "k")),
        (406, "PRECONDITION_FAILED - unknown delivery tag 7", lambda ch: (ch.basic_ack(7), exclusive_queue(ch))),
        (
            403,
            "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'",
            lambda ch: ch.queue_declare("amq.mine"),
        ),
        (
            403,
            "ACCESS_REFUSED - operation not permitted on the default exchange",
            lambda ch: ch.queue_bind(exclusive_queue(ch), "", "k"),
        ),
        (406, "PRECONDITION_FAILED - channel is not transactional", lambda ch: ch.tx_commit()),
    ]
    for code, text, action in cases:
        expect_channel_closed(code, text, action)


@check()
def publish_to_a_missing_exchange_closes_the_channel_later():
    name = unique("missing")

    def action(ch):
        ch.basic_publish(name, "key", b"x")
        exclusive_queue(ch)

    expect_channel_closed(404, f"NOT_FOUND - no exchange '{name}' in vhost '{VHOST}'", action)


@check()
def delete_if_unused_or_empty_is_refused():
    with channel() as ch:
        queue = ch.queue_declare(unique("used")).method.queue
        publish(ch, queue, b"x")
        ch.basic_get(exclusive_queue(ch))  # a round trip: the publish has been handled
        try:
            text = f"PRECONDITION_FAILED - queue '{queue}' in vhost '{VHOST}' not empty"
            expect_channel_closed(406, text, lambda other: other.queue_delete(queue, if_empty=True))
            ch.basic_consume(queue, lambda *_: None)
            text = f"PRECONDITION_FAILED - queue '{queue}' in vhost '{VHOST}' in use"
            expect_channel_closed(406, text, lambda other: other.queue_delete(queue, if_unused=True))
        finally:
            ch.queue_delete(queue)


@check()
def exclusive_consumer_keeps_others_out():
    with channel() as ch:
        queue = ch.queue_declare(unique("alone"), auto_delete=True).method.queue
        ch.basic_consume(queue, lambda *_: None, exclusive=True)
        text = f"ACCESS_REFUSED - queue '{queue}' in vhost '{VHOST}' in exclusive use"
        expect_channel_closed(403, text, lambda other: other.basic_consume(queue, lambda *_: None))


@check()
def auto_delete_queue_goes_with_its_last_consumer():
    with channel() as ch:
        queue = ch.queue_declare(unique("brief"), auto_delete=True).method.queue
        ch.basic_cancel(ch.basic_consume(queue, lambda *_: None))
        text = f"NOT_FOUND - no queue '{queue}' in vhost '{VHOST}'"
        expect_channel_closed(404, text, lambda other: other.queue_declare(queue, passive=True))


@check()
def hard_error_closes_the_connection_and_a_new_one_works():
    def prefetch_size(opened):
        opened.channel().basic_qos(prefetch_size=1)

    def open_twice(opened):
        opened.channel()._impl._send_method(pika.spec.Channel.Open())

    expect_connection_closed(540, "NOT_IMPLEMENTED - prefetch_size!=0 (1)", prefetch_size)
    expect_connection_closed(504, "CHANNEL_ERROR - second 'channel.open' seen", open_twice)


@check()
def consumer_tag_reuse_is_a_hard_error():
    def reuse(opened):
        ch = opened.channel()
        queue = exclusive_queue(ch)
        ch.basic_consume(queue, lambda *_: None, consumer_tag="mine")
        consume = pika.spec.Basic.Consume(queue=queue, consumer_tag="mine", arguments={})
        ch._impl._send_method(consume)  # pika itself refuses to say this twice

    expect_connection_closed(530, "NOT_ALLOWED - attempt to reuse consumer tag 'mine'", reuse)


@check()
def unknown_exchange_type_is_refused():
    with connection() as opened:
        properties = opened._impl.server_properties
        is_old = properties["product"] == "RabbitMQ" and properties["version"] < "3.13"
    if is_old:
        text = "COMMAND_INVALID - unknown exchange type 'no-such-type'"
        expect_connection_closed(503, text, lambda c: c.channel().exchange_declare("x", "no-such-type"))
    else:
        text = "PRECONDITION_FAILED - unknown exchange type 'no-such-type'"
        expect_channel_closed(406, text, lambda ch: ch.exchange_declare("x", "no-such-type"))


@check()
def wrong_password_is_refused_with_403():
    try:
        with connection(credentials=pika.PlainCredentials("guest", "not the password")):
            pass
    except exceptions.ProbableAuthenticationError as error:
        text = str(error)
        equal("(403) 'ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN." in text, True, text)
    else:
        raise AssertionError("the login was accepted")


@check()
def missing_vhost_is_refused_with_530():
    try:
        with connection(virtual_host="no such vhost"):
            pass
    except exceptions.ProbableAccessDeniedError as error:
        equal("(530) 'NOT_ALLOWED - vhost no such vhost not found'" in str(error), True, str(error))
    else:
        raise AssertionError("the vhost was accepted")


@check()
def transactions_and_confirms_exclude_each_other():
    def tx_then_confirm(ch):
        ch.tx_select()
        ch.confirm_delivery()

    def confirm_then_tx(ch):
        ch.confirm_delivery()
        ch.tx_select()

    expect_channel_closed(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode", tx_then_confirm)
    expect_channel_closed(406, "PRECONDITION_FAILED - cannot switch from confirm to tx mode", confirm_then_tx)
