"""Processes that answer questions, each within its time and memory.

A question can be made that takes as long and as much memory as one likes. So questions are answered in
processes of their own: one that takes too long is ended with its process, one that wants too much memory
fails alone, and the server goes on with a new process. Messages between them are JSON: nothing that a
question did to its process is run by the server.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dalenius.question.limits import GRACE, LOOK_EVERY, resident


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What one request may use, and how many may wait."""

    seconds: float = 30.0
    megabytes: int = 2048
    workers: int = 2
    waiting: int = 32


class Busy(Exception):  # noqa: N818  (it is the state of the server)
    """As many requests wait as may."""


class Ended(Exception):  # noqa: N818
    """The process of a request was ended; `reason` says why."""

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason


class Worker:
    """A process that answers one request after the other."""

    def __init__(self, releases: Sequence[Path], allowed: Allowed) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
        self._ours, theirs = context.Pipe()
        arguments = (theirs, [str(path) for path in releases], allowed)
        self._process = context.Process(target=_work, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._allowed = allowed

    def call(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The worker's reply; raises Ended, after which the worker is of no more use."""
        memory = self._allowed.megabytes * 2**20 + resident(self._process.pid)
        end = time.monotonic() + self._allowed.seconds * (1 + GRACE)
        try:
            self._ours.send_bytes(json.dumps(request).encode())
            while not self._ours.poll(LOOK_EVERY):
                if time.monotonic() > end:
                    raise self._too_long()
                if resident(self._process.pid) > memory:
                    raise self._too_much()
            reply: list[dict[str, Any]] = json.loads(self._ours.recv_bytes())
        except (EOFError, OSError, ValueError) as error:  # it fell over its own limit
            raise self._too_much() from error
        return reply

    def _too_long(self) -> Ended:
        return self._stopped("time", f"the question took longer than {self._allowed.seconds:g} seconds")

    def _too_much(self) -> Ended:
        return self._stopped(
            "memory", f"the question needs more than the {self._allowed.megabytes} MB that it is allowed"
        )

    def _stopped(self, kind: str, reason: str) -> Ended:
        self.stop()
        return Ended(kind, reason)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._ours.close()


class Pool:
    """Some workers, and the requests that wait for one."""

    def __init__(self, releases: Sequence[Path], allowed: Allowed) -> None:
        self._releases, self._allowed = tuple(releases), allowed
        self._free: asyncio.LifoQueue[Worker | None] = asyncio.LifoQueue()  # a warm worker first
        self.waiting = 0
        self.busy = 0
        self.ended = 0

    def start(self) -> None:
        """Start the workers' processes, which get ready by themselves."""
        for _ in range(self._allowed.workers):
            self._free.put_nowait(Worker(self._releases, self._allowed))

    async def call(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The reply to a request, when a worker is free.

        Raises:
            Busy: as many requests wait as may.
            Ended: it took too long, or too much memory.
        """
        if self.waiting >= self._allowed.waiting:
            raise Busy
        self.waiting += 1
        try:
            worker = await self._free.get()
        finally:
            self.waiting -= 1
        self.busy += 1
        # A client that goes away leaves its question behind: the worker comes back when it is done.
        return await asyncio.shield(asyncio.ensure_future(self._answer(worker, request)))

    async def _answer(self, worker: Worker | None, request: dict[str, Any]) -> list[dict[str, Any]]:
        try:
            if worker is None:
                worker = await asyncio.to_thread(Worker, self._releases, self._allowed)
            return await asyncio.to_thread(worker.call, request)
        except Ended:
            self.ended += 1
            worker = None
            raise
        finally:
            self.busy -= 1
            self._free.put_nowait(worker)

    def close(self) -> None:
        """End the workers that wait for requests."""
        while not self._free.empty():
            worker = self._free.get_nowait()
            if worker is not None:
                worker.stop()


def _work(connection: Connection, paths: Sequence[str], allowed: Allowed) -> None:
    """What a worker's process does, until the server closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends the workers
    from dalenius.serve.answering import answer_all

    while True:
        try:
            request = json.loads(connection.recv_bytes())
        except EOFError:
            return
        connection.send_bytes(
            json.dumps(answer_all(paths, request, allowed.seconds, allowed.megabytes)).encode()
        )
