"""The workers of a service, and the requests that wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dalenius.web.worker import Ended, Handle, Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """What one request may use, and how many may wait."""

    seconds: float = 30.0
    megabytes: int = 2048
    workers: int = 2
    waiting: int = 32


class Busy(Exception):  # noqa: N818  (it is the state of the server)
    """As many requests wait as may."""


class Pool:
    """Some workers, and the requests that wait for one."""

    def __init__(self, releases: Sequence[Path], allowed: Allowed) -> None:
        self._paths, self._allowed = [str(path) for path in releases], allowed
        self._free: asyncio.LifoQueue[Worker | None] = asyncio.LifoQueue()  # a warm worker first
        self.waiting = 0
        self.busy = 0
        self.ended = 0

    def start(self) -> None:
        """Start the workers' processes, which get ready by themselves."""
        for _ in range(self._allowed.workers):
            self._free.put_nowait(self._new_worker())

    def _new_worker(self) -> Worker:
        seconds, megabytes = self._allowed.seconds, self._allowed.megabytes
        prepare = partial(_get_ready, self._paths, seconds, megabytes)
        return Worker(prepare, seconds=seconds, megabytes=megabytes)

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
                worker = await asyncio.to_thread(self._new_worker)
            reply: list[dict[str, Any]] = await asyncio.to_thread(worker.call, request)
            return reply
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


def _get_ready(paths: Sequence[str], seconds: float, megabytes: int) -> Handle:
    """In the worker's process, which loads here what answering needs."""
    from dalenius.web.answering import answer_all

    return partial(answer_all, paths, seconds=seconds, megabytes=megabytes)
