"""The tasks of the Celery checks. Run by a worker of its own process, configured through the environment."""

import os
import time

from celery import Celery

# Each check imports this anew, with its own environment.
app = Celery(
    "checks", broker=os.environ["AMQP_URL"], backend=os.environ["CELERY_BACKEND"], set_as_current=False
)
app.conf.update(
    task_default_queue=os.environ["CELERY_QUEUE"],
    task_acks_late=True,
    task_queue_max_priority=10,
    task_default_priority=0,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
    result_expires=60,
)


def note(line):
    """Adds a line to the journal that the check reads."""
    with open(os.environ["CELERY_JOURNAL"], "a", encoding="utf-8") as journal:
        journal.write(f"{line}\n")


@app.task(shared=False)
def add(left, right):
    return left + right


@app.task(shared=False)
def total(numbers):
    return sum(numbers)


@app.task(shared=False, bind=True, max_retries=5)
def succeeds_at_the_third_attempt(self):
    note(f"attempt {self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=0.2)
    return self.request.retries


@app.task(shared=False)
def sleep(seconds):
    note("asleep")
    time.sleep(seconds)
    note("awake")


@app.task(shared=False)
def say(word):
    note(word)
