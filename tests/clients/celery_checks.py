"""What a broker must do for Celery: results, late acknowledgements, retries, priorities and chords, over AMQP alone."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from suite import URL, check, equal, main, unique

HERE = Path(__file__).parent


class Site:
    """An app with a queue of its own, and workers for it that end with the site."""

    def __init__(self, directory, backend):
        self.journal = Path(directory) / "journal"
        self.environment = {
            "AMQP_URL": URL,
            "CELERY_BACKEND": backend,
            "CELERY_QUEUE": unique("celery"),
            "CELERY_JOURNAL": str(self.journal),
        }
        os.environ.update(self.environment)
        sys.modules.pop("celery_app", None)
        import celery_app

        self.tasks = celery_app
        self.workers = []

    def start_worker(self):
        """A worker that runs one task at a time."""
        arguments = ["worker", "--pool", "solo", "--loglevel", "ERROR", "--hostname", unique("worker")]
        command = [sys.executable, "-m", "celery", "--app", "celery_app", *arguments]
        environment = {**os.environ, **self.environment, "PYTHONPATH": str(HERE), "PYTHONWARNINGS": "ignore"}
        worker = subprocess.Popen(command, cwd=HERE, env=environment, stdout=subprocess.DEVNULL)
        self.workers.append(worker)
        return worker

    def lines(self):
        return self.journal.read_text(encoding="utf-8").splitlines() if self.journal.exists() else []

    def wait_for(self, *lines):
        """Waits until the journal has exactly these lines; the check's own time limit ends a wait in vain."""
        while self.lines() != list(lines):
            time.sleep(0.05)

    def end(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        with self.tasks.app.connection_for_write() as connection:
            connection.default_channel.queue_delete(self.environment["CELERY_QUEUE"])
        self.tasks.app.close()


@contextlib.contextmanager
def site(backend="rpc://"):
    directory = tempfile.mkdtemp()
    opened = Site(directory, backend.format(directory=directory))
    try:
        yield opened
    finally:
        opened.end()
        shutil.rmtree(directory)


@check(60)
def results_come_back_over_the_broker():
    with site() as opened:
        opened.start_worker()
        results = [opened.tasks.add.delay(number, number) for number in range(20)]
        equal([result.get(timeout=30) for result in results], [2 * number for number in range(20)], "results")


@check(60)
def a_retry_waits_for_its_time_and_starts_again():
    with site() as opened:
        opened.start_worker()
        equal(opened.tasks.succeeds_at_the_third_attempt.delay().get(timeout=30), 2, "retries")
        equal(opened.lines(), ["attempt 0", "attempt 1", "attempt 2"], "attempts")


@check(60)
def a_task_that_is_acknowledged_late_outlives_its_worker():
    with site() as opened:
        worker = opened.start_worker()
        opened.tasks.sleep.delay(2)
        opened.wait_for("asleep")
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        opened.start_worker()
        opened.wait_for("asleep", "asleep", "awake")


@check(60)
def urgent_tasks_go_first():
    with site() as opened:
        for word, priority in (("low", 1), ("high", 9), ("middle", 5), ("high too", 9)):
            opened.tasks.say.apply_async((word,), priority=priority)
        opened.start_worker()
        opened.wait_for("high", "high too", "middle", "low")


@check(60)
def a_chord_goes_on_once_all_its_tasks_are_done():
    from celery import chord

    with site("file://{directory}") as opened:
        opened.start_worker()
        tasks = opened.tasks
        header = [tasks.add.s(number, number) for number in range(10)]
        equal(chord(header)(tasks.total.s()).get(timeout=45), 90, "total")


if __name__ == "__main__":
    main()
