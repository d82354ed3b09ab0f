"""Questions to a database on a connection of their own, answered while the first one is used."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Any, TypeVar

import duckdb

T = TypeVar("T")

_SECONDS_BETWEEN_LOOKS = 0.05


class Beside:
    """A second connection to a database, and a thread that works on it; what is left at the end is dropped.

    It does not see what is registered on the first connection.

    >>> with duckdb.connect() as connection, Beside(connection) as beside:
    ...     answer = beside.start(lambda second: second.sql("SELECT 6 * 7").fetchall())
    ...     print(answer.result())
    [(42,)]
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection.cursor()
        self._worker = ThreadPoolExecutor(1)
        self._started: list[Future[Any]] = []

    def start(self, work: Callable[[duckdb.DuckDBPyConnection], T]) -> Future[T]:
        """Do this after what was started before."""
        answer = self._worker.submit(work, self._connection)
        self._started.append(answer)
        return answer

    def __enter__(self) -> Beside:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        running = [answer for answer in self._started if not answer.cancel()]
        # who presses Ctrl-C does not wait for answers; a question that is about to be asked is stopped too
        while wait(running, timeout=0).not_done:
            self._connection.interrupt()
            wait(running, timeout=_SECONDS_BETWEEN_LOOKS)
        self._worker.shutdown()
        self._connection.close()
