"""A table that this machine reads: counted by DuckDB."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from operator import add
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.engines.local.source import LocalSource
from dalenius.engines.local.writing import LocalWriter, SortedCodes, sort_rows
from dalenius.engines.preparing import (
    digest_people,
    earlier_sums,
    fingerprint_of,
    fingerprint_of_cells,
    is_known_by_counts,
    joined_sums,
    record_sums,
    selection,
    texts_of,
    write_plain,
)
from dalenius.errors import InternalError
from dalenius.mechanisms.base import Coding, Counting, PublishedTable
from dalenius.policy import Policy
from dalenius.prefetch import map_parallel
from dalenius.release.manifest import TableEntry
from dalenius.sql import count, identifier, identifiers, one_row
from dalenius.tables.histogram import Histogram, count_values
from dalenius.tables.sketch import Sketch
from dalenius.tables.sketching.records import TextColumn, join_texts
from dalenius.tables.sketching.whole import column_sums, sketch_rows, sum_counted
from dalenius.tables.uniqueness import MOST_STUDIED, Rarity, Uniqueness, count_rare, study_uniqueness

_MANY_CELLS = 2**20
"""So many are put together to texts of records faster from codes than by DuckDB …"""
_VALUES_TIMES = 16
"""… where there are so many for every value, whose text is laid out first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalScan:
    """An opened table on this machine."""

    source: LocalSource
    spill: Path | None
    _expected: dict[bytes, Future[str]] = field(default_factory=dict, init=False)
    _sketched: dict[bytes, Future[Sketch | None]] = field(default_factory=dict, init=False)
    _counted: dict[tuple[str, ...], Histogram] = field(default_factory=dict, init=False)
    _kept: dict[Coding, SortedCodes] = field(default_factory=dict, init=False)

    @property
    def schema(self) -> pa.Schema:
        """Types of the published columns, after recoding."""
        return self.source.schema

    @property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return self.source.connection

    @property
    def _select(self) -> str:
        return self.source.select

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        """How often each combination of cells of these columns occurs."""
        if columns not in self._counted:
            self._counted[columns] = count_values(self._connection, f"({self._select})", columns)
        return self._counted[columns]

    def n_rows(self) -> int:
        """How many records there are."""
        return self.source.n_rows

    def n_different(self, coding: Coding) -> int:
        """How many different records there are; different ones have different codes."""
        if self.spill is not None:
            return self._codes(coding, self.spill).n_different
        # planning writes nothing, not even codes
        return count(
            self._connection, f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({self.source.coded_select()}))"
        )

    def most_copies(self) -> int:
        """How often the most frequent record occurs."""
        return count(
            self._connection,
            f"SELECT max(n) FROM (SELECT count(*) AS n FROM ({self.source.coded_select()}) "
            f"GROUP BY {identifiers(self.schema.names)})",
        )

    def active_values(self, column: str) -> pa.Array:
        """The different values of a column in ascending order, NULL last."""
        return self.source.columns().different_values(self._connection, self._select, column)

    def find_values(self, column: str, values: pa.Array) -> tuple[int, int]:
        """How many records have one of the values in the column, and the number of the first, from 1."""
        self._connection.register("sought", pa.table({"v": values}))
        n_found, first = one_row(
            self._connection,
            f"SELECT count(*), coalesce(min(n), 0) FROM (SELECT {identifier(column)} AS c, row_number() "
            f"OVER () AS n FROM ({self._select})) SEMI JOIN sought ON c IS NOT DISTINCT FROM v",
        )
        self._connection.unregister("sought")
        return int(n_found), int(first)

    def tally(self, counting: Counting) -> pa.Table:
        """The counts of all batches of records added up: columns `key` and `n`, each key once."""
        keys = counts = np.zeros(0, dtype=np.int64)
        for batch in map(counting, self.source.batches()):
            keys, place = np.unique(np.concatenate([keys, batch.column("key")]), return_inverse=True)
            together = np.zeros(len(keys), dtype=np.int64)
            np.add.at(together, place.ravel(), np.concatenate([counts, batch.column("n")]))
            counts = together
        return pa.table({"key": keys, "n": counts})

    def sample(self, columns: Sequence[str], n_rows: int) -> pa.Table:
        """Columns of about so many records, chosen at random, or of all if there are not more."""
        return self.source.sample(columns, n_rows)

    def count_repeated(self, *columns: str) -> tuple[int, int]:
        """How many different cells of columns of the source stand in several rows, and in how many."""
        plain = ", ".join(map(self._plain, columns))
        counted = (
            f"SELECT count(*) AS n FROM {self.source.relation} WHERE {_all_there(columns)} GROUP BY {plain}"
        )
        found = f"SELECT count(*), coalesce(sum(n), 0)::BIGINT FROM ({counted}) WHERE n > 1"
        cells, rows = one_row(self._connection, found)
        return cells, rows

    def sample_cells(self, cells: Sequence[str], columns: Sequence[str], n_rows: int) -> pa.Table:
        """All rows of some cells of columns of the source, about so many, with other columns beside them."""
        select = selection(self.source.recode, self.source.relation, (*cells, *columns))
        plain, one_in = [*map(self._plain, cells)], max(1, self.n_rows() // n_rows)
        said = ", ".join(f"{one} AS {identifier(name)}" for one, name in zip(plain, cells, strict=True))
        query = (
            f"SELECT {said}, {identifiers(columns)} FROM ({select}) "
            f"WHERE {_all_there(cells)} AND hash({', '.join(plain)}) % {one_in} = 0"
        )
        return self._connection.sql(query).to_arrow_table()

    def _plain(self, column: str) -> str:
        """SQL for a cell of the source, texts as one would say them."""
        name = identifier(column)
        described = f"DESCRIBE SELECT {name} FROM {self.source.relation}"
        is_text = self._connection.execute(described).fetchall()[0][1] == "VARCHAR"
        return write_plain(name) if is_text else name

    def count_rare(self, columns: Sequence[str], few: int) -> Rarity:
        """How many people are among fewer than `few` with their cells of some published columns."""
        return count_rare(self._connection, f"({self._select})", columns, few)

    def uniqueness(
        self, columns: Sequence[str], few: int, fixed: Sequence[str], *, seek: bool = False
    ) -> Uniqueness:
        """The same, and why, and what would help; of very many people, how many alone."""
        if self.n_rows() > MOST_STUDIED:
            found = self.count_rare(columns, few)
            return Uniqueness.counted(columns, self.n_rows(), few, found)
        relation = f"({self._select})"
        return study_uniqueness(self._connection, relation, columns, few=few, fixed=fixed, seek=seek)

    def expect_fingerprint(self, key: bytes) -> None:
        """Start on fingerprint and sketch, and on what else has to be known before records are read."""
        background = self.source.background
        if background is not None:
            self.source.find_columns_early(background)  # some plans ask for values
            self._expected[key] = background.start(partial(self._fingerprint, key))
            self._sketched[key] = background.start(partial(self._sketch, key))

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the records that does not depend on their order."""
        expected = self._expected.get(key)
        return self._fingerprint(key, self._connection) if expected is None else expected.result()

    def _fingerprint(self, key: bytes, connection: duckdb.DuckDBPyConnection) -> str:
        names, n_rows = self.schema.names, self.source.n_rows
        if not is_known_by_counts(n_rows):
            joined = self._join_records(key, connection) if self._can_be_joined() else None
            sums = joined or one_row(connection, record_sums(key, names, f"({self._select})"))
            return fingerprint_of(key, self.schema, sums)
        found = sum_counted(self.source.held(connection), self.source.as_they_are, key)
        described = connection.execute(f"DESCRIBE {self._select}").fetchall()
        others = {name: kind for name, kind, *_ in described if name not in found}
        if others:
            more = one_row(connection, column_sums(others, f"({self._select})", key))
            found |= zip(others, more, strict=True)
        return fingerprint_of_cells(key, self.schema, n_rows, [found[name] for name in names])

    def earlier_fingerprint(self, key: bytes) -> str:
        """The same as an earlier version made it."""
        asked = earlier_sums(key, self.schema.names, f"({self._select})", self.source.n_rows)
        return fingerprint_of(key, self.schema, one_row(self._connection, asked))

    def _can_be_joined(self) -> bool:
        """Whether records have many cells, all of them of few values as they are in the source."""
        names, listed = self.schema.names, self.source.columns().listed
        n_cells = self.source.n_rows * len(names)
        return (
            n_cells >= _MANY_CELLS
            and set(names) <= set(listed) & set(self.source.as_they_are)
            and _VALUES_TIMES * sum(len(listed[name]) for name in names) <= n_cells
        )

    def _join_records(self, key: bytes, connection: duckdb.DuckDBPyConnection) -> list[int]:
        """The sums of `record_sums`, from the codes that are held for the sketch."""
        held = self.source.held(connection)
        texts = _write_values(connection, {name: held.cells[name] for name in self.schema.names})
        columns = [TextColumn(texts=texts[name], codes=held.held[name]) for name in self.schema.names]
        sums = [0, 0, 0]
        for records in join_texts(key.hex().encode(), columns, b"\x1f"):
            connection.register("joined", pa.table({"v": records}))
            sums = [*map(add, sums, one_row(connection, joined_sums("joined")))]
        connection.unregister("joined")
        return sums

    def record_fingerprint(self, key: bytes) -> str:
        """The same of whole records, however many there are."""
        asked = record_sums(key, self.schema.names, f"({self._select})")
        return fingerprint_of(key, self.schema, one_row(self._connection, asked))

    def people(self, policy: Policy, key: bytes) -> pa.Table:
        """Of every record, in order: keyed digests of its person and of person and value, and the value."""
        return self._connection.sql(digest_people(policy, self.source.relation, key)).to_arrow_table()

    def sketch(self, key: bytes) -> Sketch | None:
        """By which its people are known again; of all columns of the source, before they are recoded."""
        expected = self._sketched.get(key)
        return self._sketch(key, self._connection) if expected is None else expected.result()

    def _sketch(self, key: bytes, connection: duckdb.DuckDBPyConnection) -> Sketch | None:
        return sketch_rows(self.source.held(connection), key)

    def write(self, tables: Sequence[PublishedTable], folder: Path) -> list[TableEntry]:
        """Write each table as a Parquet file into the folder, in its order."""
        if self.spill is None:
            raise InternalError("a table opened for planning cannot be written")
        spill = self.spill
        # what the ledgers may still ask for is kept
        expected, sketched = self._expected.values(), self._sketched.values()
        is_last = all(one.done() for one in expected) and all(one.done() for one in sketched)
        writer = LocalWriter(
            n_rows=self.source.n_rows,
            batches=self.source.last_batches if is_last else self.source.batches,
            codes=lambda coding: self._codes(coding, spill),
            staging=spill,
        )
        return writer.write(tables, folder)

    def _codes(self, coding: Coding, spill: Path) -> SortedCodes:
        """The codes, sorted when they are needed first."""
        if coding not in self._kept:
            folder = spill / f"codes{len(self._kept)}"
            folder.mkdir()
            codes = map_parallel(coding.encode, self.source.batches())
            ascending = sort_rows(codes, coding.names, coding.bits, self.source.n_rows, folder)
            self._kept[coding] = SortedCodes.write(ascending, folder / "codes.arrow")
        return self._kept[coding]


def _write_values(
    connection: duckdb.DuckDBPyConnection, values: dict[str, pa.Array]
) -> dict[str, list[bytes]]:
    """By column the texts of its values, and last that of NULL; asked once for each type."""
    by_type: dict[pa.DataType, dict[str, pa.Array]] = {}
    for name, cells in values.items():
        own = _as_wide(cells)
        by_type.setdefault(own.type, {})[name] = pa.concat_arrays([own, pa.nulls(1, own.type)])
    found: dict[str, list[bytes]] = {}
    for lists in by_type.values():
        connection.register("listed", pa.table({"v": pa.concat_arrays([*lists.values()])}))
        texts = iter(connection.execute(texts_of("listed")).fetchall())
        connection.unregister("listed")
        found |= {name: [next(texts)[0].encode() for _ in cells] for name, cells in lists.items()}
    return found


def _all_there(columns: Sequence[str]) -> str:
    """SQL: none of the columns is NULL."""
    return " AND ".join(f"{identifier(name)} IS NOT NULL" for name in columns)


def _as_wide(cells: pa.Array) -> pa.Array:
    """Whole numbers of any width in the widest, in which their texts are the same."""
    return cells.cast(pa.int64()) if pa.types.is_signed_integer(cells.type) else cells
