"""Questions to the release, answered in a process that keeps it open; the pages go on meanwhile."""

from __future__ import annotations

import threading
from functools import partial

from dalenius.errors import QueryError
from dalenius.release.folder import StoredRelease
from dalenius.studio.tasks import Task
from dalenius.web.worker import Ended, Handle, Worker

SECONDS, MEGABYTES = 600, 4096
"""What one question may take; who waits can cancel it before."""
_LOOK_EVERY = 0.05


class Asker:
    """One process for one release: that of another release, or of another draft, takes its place."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._of: tuple[str, str] | None = None

    def answer(self, task: Task, stored: StoredRelease, sql: str) -> list[str]:
        """The answer as blocks of a page, one question after the other.

        Raises:
            QueryError: it was cancelled, or took too long or too much memory.
        """
        task.tell("waiting for another question", 0, None)
        while not self._lock.acquire(timeout=_LOOK_EVERY):
            if task.cancelled:
                raise QueryError("the question was cancelled")
        try:
            return self._answer(task, stored, sql)
        except Ended as ended:
            self._worker = None
            if task.cancelled:
                raise QueryError("the question was cancelled") from ended
            raise QueryError(ended.reason, hint="ask for less at once") from ended
        finally:
            task.process = None  # which may be answering the next one
            self._lock.release()

    def _answer(self, task: Task, stored: StoredRelease, sql: str) -> list[str]:
        worker = self._worker_of(stored)
        task.process = worker.process
        if task.cancelled:  # before there was anything to stop
            worker.stop()
            raise Ended("cancelled", "cancelled")
        task.tell("opening the release", 0, None)
        worker.call(None)
        task.tell("asking", 0, None)
        answered: list[str] = worker.call(sql)
        return answered

    def _worker_of(self, stored: StoredRelease) -> Worker:
        wanted = (str(stored.path), str(stored.manifest.id))
        if self._worker is None or self._of != wanted:
            self.close()
            prepare = partial(_get_ready, str(stored.path))
            self._worker, self._of = Worker(prepare, seconds=SECONDS, megabytes=MEGABYTES), wanted
        return self._worker

    def close(self) -> None:
        """End the process."""
        if self._worker is not None:
            self._worker.stop()
            self._worker = None


def _get_ready(path: str) -> Handle:
    """In the process, which loads here what answering needs."""
    from dalenius.web.answering import answer_one, open_first
    from dalenius.web.asking import answer_blocks
    from dalenius.web.page import pack

    def handle(sql: str | None) -> list[str]:
        if sql is None:
            open_first(path)
            return []
        told = answer_one(path, sql, seconds=SECONDS, megabytes=MEGABYTES)
        return pack(answer_blocks(sql, told))

    return handle
