"""The closed-off database that evaluates expressions on the values of published columns.

It cannot read or write files, load extensions, see Python variables or change its settings; it holds the
auxiliary tables and, while an expression is evaluated, the values it is evaluated on. Nothing else.

How a question is to be answered.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa

from dalenius.errors import QueryError
from dalenius.question.names import ROW
from dalenius.sql import hide_progress, identifier

if TYPE_CHECKING:  # most questions need no database, and to load and open one is a fifth of a small question
    import duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one call of `ask` may use."""

    seconds: float = 60.0
    memory: str = "2GB"


class Deadline:
    """When a question must be answered by."""

    def __init__(self, limits: Limits) -> None:
        self.seconds = limits.seconds
        self._end = time.monotonic() + limits.seconds

    def check(self) -> None:
        """Raise if time is up."""
        if time.monotonic() > self._end:
            raise self.error()

    def remaining(self) -> float:
        """Seconds left."""
        return max(self._end - time.monotonic(), 0.0)

    def error(self) -> QueryError:
        """What is raised when time is up."""
        return QueryError(
            f"the question took longer than {self.seconds:g} seconds and was stopped",
            hint="ask for less at once, or raise the time limit",
        )


class Database:
    """A locked DuckDB connection, opened when something is first evaluated."""

    def __init__(self, tables: Mapping[str, pa.Table], limits: Limits) -> None:
        for name in tables:
            if name.startswith("__"):
                raise QueryError(f"an auxiliary table cannot be called {name!r}", hint="rename it")
        self._tables, self._memory = tables, limits.memory
        self._lock = threading.Lock()  # a connection serves one question at a time

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        import duckdb

        connection = duckdb.connect(config={"enable_external_access": "false"})
        for setting in (
            "autoinstall_known_extensions = false",
            "autoload_known_extensions = false",
            "python_enable_replacements = false",
            "max_temp_directory_size = '0KB'",
            f"memory_limit = '{self._memory}'",
        ):
            connection.execute(f"SET {setting}")
        hide_progress(connection)
        for name, table in self._tables.items():
            connection.register(name, table)
        connection.execute("SET lock_configuration = true")
        return connection

    def select(self, expressions: list[str], rows: pa.Table, deadline: Deadline) -> pa.Table:
        """Evaluate expressions over rows (named `__row`), in the order of the rows' column `__id`."""
        listed = ", ".join(f"({sql}) AS c{i}" for i, sql in enumerate(expressions))
        query = f"SELECT {ROW}.__id AS __id, {listed} FROM {identifier(ROW)} ORDER BY 1"
        return self.run(query, {ROW: rows}, deadline)

    def finish(self, clauses: str, rows: pa.Table, deadline: Deadline) -> list[int]:
        """The `__id` of the rows that HAVING, ORDER BY and LIMIT leave, in their order."""
        found = self.run(f"SELECT __id FROM __result {clauses}", {"__result": rows}, deadline)
        return [int(number) for number in found.column(0).to_pylist()]

    def run(
        self,
        query: str,
        tables: Mapping[str, pa.Table],
        deadline: Deadline,
        refuse: Callable[[duckdb.Error], QueryError] | None = None,
    ) -> pa.Table:
        """Run a query on these tables; what DuckDB cannot evaluate is refused."""
        import duckdb

        with self._lock, self._registered(tables), self._interrupted_at(deadline):
            try:
                return self._connection.sql(query).to_arrow_table()
            except duckdb.InterruptException as error:
                raise deadline.error() from error
            except duckdb.OutOfMemoryException as error:
                raise QueryError("the question needs more memory than it is allowed") from error
            except duckdb.Error as error:
                raise (refuse or _refuse)(error) from error

    @contextmanager
    def _registered(self, tables: Mapping[str, pa.Table]) -> Iterator[None]:
        for name, rows in tables.items():
            self._connection.register(name, rows)
        try:
            yield
        finally:
            for name in tables:
                self._connection.unregister(name)

    @contextmanager
    def _interrupted_at(self, deadline: Deadline) -> Iterator[None]:
        deadline.check()
        timer = threading.Timer(deadline.remaining(), self._connection.interrupt)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # DuckDB complains on stderr of a thread that still holds it when the process ends


def _refuse(error: duckdb.Error) -> QueryError:
    import duckdb

    first_line = str(error).splitlines()[0].removeprefix("Binder Error: ")
    hint = None
    if isinstance(error, duckdb.ConversionException):
        hint = "a text is compared with a text, in single quotes: zip = '01234'"
    elif "Cannot compare values of type DATE" in first_line or "of type TIMESTAMP" in first_line:
        hint = "a day is compared with a day: born < DATE '1950-01-01', or year(born) < 1950"
    elif "Cannot compare values of type VARCHAR" in first_line:
        hint = (
            "ranges and other texts are named: age IN ('18-29', '30-44'); GROUP BY age shows which there are"
        )
    return QueryError(f"DuckDB cannot evaluate the question: {first_line}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """How to answer."""

    estimator: str = ""
    """None named: the mechanism's default."""
    confidence: float = 0.95
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    consistent: bool = False
    differences: bool = False
    independence: bool = False
    limits: Limits = field(default_factory=Limits)


class Remembered:
    """What expressions were worth on a release's values, by their text: the latest ones."""

    def __init__(self, most: int = 4096, most_bytes: int = 64 << 20) -> None:
        self.most, self.most_bytes = most, most_bytes
        self._found: OrderedDict[str, pa.ChunkedArray] = OrderedDict()
        self._n_bytes = 0

    def get(self, text: str) -> pa.ChunkedArray | None:
        """What an expression was worth, if that is known still."""
        found = self._found.get(text)
        if found is not None:
            self._found.move_to_end(text)
        return found

    def keep(self, text: str, found: pa.ChunkedArray) -> None:
        """Know this from now on, if it was not known."""
        if self._found.setdefault(text, found) is found:
            self._n_bytes += found.nbytes

    def forget_oldest(self) -> None:
        """Forget what was not needed for longest, as far as it is too much."""
        while self._found and (len(self._found) > self.most or self._n_bytes > self.most_bytes):
            self._n_bytes -= self._found.popitem(last=False)[1].nbytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workspace:
    """Where the expressions of questions are evaluated, and until when."""

    database: Database
    deadline: Deadline
    remembered: Remembered = field(default_factory=Remembered)
