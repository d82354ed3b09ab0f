"""A process that answers one request after the other, each within its time and memory.

A question can be made that takes as long and as much memory as one likes. So questions are answered in
processes of their own: one that takes too long is ended with its process, one that wants too much memory
fails alone, and the server goes on with a new process. Messages between them are JSON: nothing that a
question did to its process is run by the server.
"""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from dalenius.question.limits import GRACE, LOOK_EVERY, resident

Handle = Callable[[Any], Any]
"""What the process does with a request: JSON in, JSON out."""
Prepare = Callable[[], Handle]
"""What it does first, by itself: load what requests need."""


class Ended(Exception):  # noqa: N818
    """The process of a request was ended; `reason` says why."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class Worker:
    """The process."""

    def __init__(self, prepare: Prepare, *, seconds: float, megabytes: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
        self._ours, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, prepare), daemon=True)
        self.process.start()
        theirs.close()
        self._seconds, self._megabytes = seconds, megabytes

    def call(self, request: Any) -> Any:
        """The worker's reply; raises Ended, after which the worker is of no more use."""
        memory = self._megabytes * 2**20 + resident(self.process.pid)
        end = time.monotonic() + self._seconds * (1 + GRACE)
        try:
            self._ours.send_bytes(json.dumps(request).encode())
            while not self._ours.poll(LOOK_EVERY):
                if time.monotonic() > end:
                    raise self._too_long()
                if resident(self.process.pid) > memory:
                    raise self._too_much()
            return json.loads(self._ours.recv_bytes())
        except (EOFError, OSError, ValueError) as error:  # it fell over its own limit
            raise self._too_much() from error

    def _too_long(self) -> Ended:
        return self._stop_because("time", f"the question took longer than {self._seconds:g} seconds")

    def _too_much(self) -> Ended:
        return self._stop_because(
            "memory", f"the question needs more than the {self._megabytes} MB that it is allowed"
        )

    def _stop_because(self, kind: str, reason: str) -> Ended:
        self.stop()
        return Ended(kind, reason)

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self._ours.close()


def _work(connection: Connection, prepare: Prepare) -> None:
    """What the process does, until the server closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends the workers
    handle = prepare()
    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            return
        reply = json.dumps(handle(request)).encode()
        with suppress(BrokenPipeError):  # the server was killed meanwhile
            connection.send_bytes(reply)
