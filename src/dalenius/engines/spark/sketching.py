"""The sketch by which a ledger knows people again, of a table whose pieces are on many machines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from dalenius.engines.spark.errors import guard, spark_errors
from dalenius.engines.spark.source import RELATION, Preparation, SparkSource, spark_schema, travels
from dalenius.mechanisms.base import Batches
from dalenius.sql import connect
from dalenius.tables.sketch import Sketch
from dalenius.tables.sketching.kept import SketchedColumn, choose_combinations
from dalenius.tables.sketching.pieces import (
    PIECE,
    Pieces,
    count_values,
    describe_columns,
    find_numbers,
    merge_sums,
    merge_values,
    sum_cells,
    without_numberings,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchTask:
    """What is kept of a partition."""

    preparation: Preparation
    sketch: Callable[[Batches], Pieces] = field(repr=False)

    def run(self, batches: Batches) -> Batches:
        """The rows of the source, not recoded."""
        return self.sketch(self.preparation.batches(batches))


def sketch_source(source: SparkSource, n_rows: int, key: bytes) -> Sketch | None:
    """A sketch of all columns of the source; None where none of them tells people apart.

    Columns of types that do not travel through Spark are left out.
    """
    names = [
        name for name in source.columns if source.files is not None or travels(source.schema.field(name))
    ]
    described = describe_columns(_prepare(source, names).schema)
    columns, limits = merge_values(
        _collect(source, described, partial(count_values, columns=described)), described, n_rows
    )
    unique = [i for i, column in enumerate(columns) if column.is_unique]
    several = [column for column in columns if column.n_different > 1 and not column.is_unique]
    if unique:
        asked = [columns[i] for i in unique]
        numbers = partial(find_numbers, columns=asked, limits=limits[unique])
        several += without_numberings(_collect(source, asked, numbers), asked, n_rows)
    kept, chosen = choose_combinations([column for column in columns if column in several])
    if not chosen:
        return None
    sums = partial(sum_cells, columns=kept, chosen=chosen, key=key)
    return merge_sums(_collect(source, kept, sums), len(kept), chosen, n_rows)


def _prepare(source: SparkSource, names: Sequence[str]) -> Preparation:
    """The source's columns in their types, as they are."""
    if source.typed is None:
        return source.unprepared(names)
    types, select = source.types(names), f"FROM {source.relation(names)}"
    with connect() as connection:
        connection.register(RELATION, types.empty_table())
        schema = connection.sql(select).to_arrow_table().schema
    return Preparation(source=types, select=select, schema=schema, files=source.files)


def _collect(
    source: SparkSource, columns: Sequence[SketchedColumn], sketch: Callable[[Batches], Pieces]
) -> pa.Table:
    names = [column.name for column in columns]
    task = SketchTask(preparation=_prepare(source, names), sketch=sketch)
    with spark_errors():
        return source.read(names).mapInArrow(guard(task.run), spark_schema(PIECE)).toArrow()
