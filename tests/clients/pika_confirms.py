"""Publisher confirms through pika's asynchronous adapter."""

import pika
from pika import exceptions

from suite import URL, check, equal, unique


class AsyncConfirms:
    """Publishes on a SelectConnection as soon as confirms are on, and closes once all are answered."""

    def __init__(self, count):
        self.count, self.outstanding, self.nacked, self.error = count, set(), 0, None
        self.connection = pika.SelectConnection(
            pika.URLParameters(URL),
            on_open_callback=lambda c: c.channel(on_open_callback=self.on_channel),
            on_open_error_callback=lambda _c, error: self.stop(error),
            on_close_callback=lambda _c, reason: self.stop(reason),
        )

    def stop(self, reason):
        self.error = reason
        self.connection.ioloop.stop()

    def on_channel(self, ch):
        self.channel = ch
        ch.queue_declare(unique("async"), exclusive=True, callback=self.on_queue)

    def on_queue(self, frame):
        self.queue = frame.method.queue
        self.channel.confirm_delivery(ack_nack_callback=self.on_answer, callback=self.on_confirms)

    def on_confirms(self, _frame):
        for tag in range(1, self.count + 1):
            self.outstanding.add(tag)
            self.channel.basic_publish("", self.queue, b"%d" % tag, pika.BasicProperties(delivery_mode=2))

    def on_answer(self, frame):
        tag = frame.method.delivery_tag
        answered = {n for n in self.outstanding if n <= tag} if frame.method.multiple else {tag}
        if not answered <= self.outstanding:
            raise AssertionError(f"confirm of {tag}, which is not outstanding")
        if isinstance(frame.method, pika.spec.Basic.Nack):
            self.nacked += len(answered)
        self.outstanding -= answered
        if not self.outstanding:
            self.connection.close()


@check()
def asynchronous_publishes_are_each_confirmed_once():
    run = AsyncConfirms(1000)
    run.connection.ioloop.start()
    equal(type(run.error), exceptions.ConnectionClosedByClient, f"end of the connection ({run.error!r})")
    equal((len(run.outstanding), run.nacked), (0, 0), "unanswered and refused publishes")
