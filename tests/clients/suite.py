"""Runs named checks one after the other, each bounded in time, and reports one line per check.

Owns the report format and the time limits; knows no AMQP client library.
"""

import asyncio
import inspect
import os
import signal
import sys
import traceback
import uuid
from urllib.parse import unquote, urlparse

URL = os.environ.get("AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/%2f")
VHOST = unquote(urlparse(URL).path[1:]) or "/"

_checks = []


def check(seconds=10, planned=None):
    """Registers the decorated function, plain or async, as a check that may take that many seconds.

    One that is `planned` needs a feature that is still to come: it is reported as skipped unless asked for by name.
    """

    def register(function):
        _checks.append((function, seconds, planned))
        return function

    return register


def unique(word):
    """A name no other run uses, so that checks share no state on the broker."""
    return f"check.{word}.{uuid.uuid4().hex[:12]}"


def equal(actual, expected, what="value"):
    """Fails the running check unless both are the same."""
    if actual != expected:
        raise AssertionError(f"{what} is {actual!r}, expected {expected!r}")


def _on_alarm(_signal, _frame):
    raise TimeoutError("took too long")


async def _bounded(function, seconds):
    await asyncio.wait_for(function(), seconds)


def _run_one(function, seconds):
    if inspect.iscoroutinefunction(function):
        asyncio.run(_bounded(function, seconds))
        return
    signal.alarm(seconds)
    try:
        function()
    finally:
        signal.alarm(0)


def main():
    """Runs the registered checks, or only those whose names are arguments, and exits."""
    signal.signal(signal.SIGALRM, _on_alarm)
    wanted = set(sys.argv[1:])
    passed = failed = 0
    for function, seconds, planned in _checks:
        name = function.__name__
        if wanted and name not in wanted:
            continue
        if planned and not wanted:
            print(f"skip {name}: {planned} is still to come", flush=True)
            continue
        try:
            _run_one(function, seconds)
        except Exception as error:  # a check may fail in any way its library can
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
            if os.environ.get("CHECK_TRACE"):
                traceback.print_exc()
        else:
            passed += 1
            print(f"ok {name}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed or not passed else 0)
