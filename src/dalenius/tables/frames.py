"""Data frames as a source: Arrow, whatever narwhals knows (pandas, polars, …), and PySpark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.errors import SourceError
from dalenius.sql import connect_shared, register_frame
from dalenius.tables.types import check_types, plain_table

COUNTED = b"dalenius.counted"
"""Of a table's metadata: the name of the column that counts the rows of a person."""
GATHERED = b"dalenius.gathered"
"""The names of the columns that are values of people, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameSource:
    """A data frame: Arrow, or whatever narwhals knows (pandas, polars, …)."""

    name: str
    table: pa.Table = field(repr=False)
    """Not shown: a notebook shows a policy, and is saved and shared with what it shows."""
    counted: str | None = None
    """The column that says how many rows a person had, where several were made one."""
    gathered: tuple[str, ...] = field(default=(), repr=False)
    """The columns whose names are sensitive cells, of several rows made one: no message lists them."""
    is_slow: bool = field(default=False, init=False)
    is_shared: bool = field(default=False, init=False)

    @classmethod
    def open(
        cls, frame: Any, name: str = "the data frame", missing: Sequence[str] | None = None
    ) -> FrameSource:
        """Take the frame as an Arrow table, without its index, categories or metadata."""
        given = _to_arrow(frame)
        told = given.schema.metadata or {}
        counted, gathered = told.get(COUNTED), json.loads(told.get(GATHERED, b"[]"))
        table = plain_table(given, name)
        with connect_shared() as connection:
            connection.register("frame", table)
            checked = check_types(connection, name, "frame", missing)
            selected = checked.select("frame")
            if selected != "frame":
                table = connection.sql(f"SELECT * FROM {selected}").to_arrow_table()
        return cls(
            name=name,
            table=table,
            counted=counted.decode() if counted else None,
            gathered=tuple(gathered),
        )

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(self.table.column_names)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The frame, registered under a name of its own."""
        return register_frame(connection, self.table)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SparkFrameSource:
    """A PySpark data frame, which stays where it is unless one machine is to publish it."""

    name: str
    frame: Any
    column_names: tuple[str, ...]
    is_slow: bool = field(default=False, init=False)
    is_shared: bool = field(default=False, init=False)

    @classmethod
    def open(cls, frame: Any) -> SparkFrameSource:
        """Take the frame as it is; nothing is computed."""
        return cls(name="the data frame", frame=frame, column_names=tuple(frame.columns))

    @staticmethod
    def fits(frame: Any) -> bool:
        """Whether it is one, asked without loading pyspark."""
        return any(base.__module__.startswith("pyspark.sql") for base in type(frame).__mro__)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The whole frame, brought to this machine."""
        return FrameSource.open(self.frame).scan(connection)


def _to_arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    import narwhals as nw  # not before there is a frame: most tables are files

    try:
        native = nw.from_native(frame)
    except TypeError as error:
        raise SourceError(
            f"source of type {type(frame).__name__} is not a table",
            hint="give a path, or a pandas, polars or Arrow table",
        ) from error
    except nw.exceptions.DuplicateError as error:
        raise SourceError("the data frame has two columns of one name", hint="rename one of them") from error
    if native.implementation.is_pandas():
        return _from_pandas(frame)
    return native.collect().to_arrow() if isinstance(native, nw.LazyFrame) else native.to_arrow()


def _from_pandas(frame: Any) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError) as error:  # its text may quote a cell, or say too little
        raise SourceError(
            f"the data frame cannot be read ({type(error).__name__}): a column holds cells of several types",
            hint="give every column one type, e.g. with frame.astype",
        ) from error
