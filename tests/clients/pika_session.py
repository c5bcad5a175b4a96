"""How the pika checks talk to the broker: connections that close themselves, queues that go away."""

import contextlib
import logging

import pika

from suite import URL, unique

logging.getLogger("pika").setLevel(logging.CRITICAL)


@contextlib.contextmanager
def connection(**changes):
    parameters = pika.URLParameters(URL)
    parameters.blocked_connection_timeout = 10
    for name, value in changes.items():
        setattr(parameters, name, value)
    opened = pika.BlockingConnection(parameters)
    try:
        yield opened
    finally:
        if opened.is_open:
            opened.close()


@contextlib.contextmanager
def channel():
    with connection() as opened:
        yield opened.channel()


def exclusive_queue(ch, word="queue", **arguments):
    return ch.queue_declare(unique(word), exclusive=True, arguments=arguments or None).method.queue


def exchange(ch, kind):
    """An exchange that goes away with its last binding."""
    name = unique(kind)
    ch.exchange_declare(name, exchange_type=kind, auto_delete=True)
    return name


def publish(ch, queue, *bodies, properties=None):
    for body in bodies:
        ch.basic_publish("", queue, body, properties)


def pump(ch, done):
    """Handles the connection's events until `done()`; the check's own time limit ends a wait in vain."""
    while not done():
        ch.connection.process_data_events(time_limit=0.1)


def drain(ch, queue):
    """Takes and acknowledges everything that is ready, and returns the bodies."""
    bodies = []
    while True:
        method, _, body = ch.basic_get(queue)
        if method is None:
            return bodies
        ch.basic_ack(method.delivery_tag)
        bodies.append(body)


def ready(ch, queue):
    return ch.queue_declare(queue, passive=True).method.message_count
