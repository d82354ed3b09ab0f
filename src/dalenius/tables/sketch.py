"""A keyed sketch of a table: a few kilobytes by which its people are known again in another table.

Cells are known by what they say, not by their column's name, place or type: 5, 5.0 and "5" are one cell. A
cell becomes a keyed number, a combination of columns the sum of its cells' numbers, so that the order of
columns does not matter. Of some combinations (all columns, all but one, pairs of the most distinctive ones)
the sketch keeps the smallest sums and how often each occurs: a sample of records that two tables about the
same people share, whatever else was changed in one of them.

Whether two tables are about the same people is decided from their sketches, without assuming what people are
like. Take a combination of cells that occurs t times in both tables together. If the tables are of different
people, each of the t is in the first table by the toss of a coin, however common the combination is and
however its columns go together. If they are of the same people, it is not: it is in both tables equally
often, up to what was changed. So unlikely evenness is the sign, and columns that many tables share, such as
age and sex, are none. What is tested is the dispersion of the counts; its chance is bounded (Chernoff), not
approximated.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import duckdb
import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.sql import identifier, one_row
from dalenius.tables.steps import NUMERIC_TYPES

_KEPT_OF_WHOLE, _KEPT = 128, 64
"""How many sums are kept of whole records, and of every other combination."""
_MOST_COLUMNS = 100
_MOST_LEFT_OUT = 10
_DISTINCTIVE = 5
"""So many columns are kept in pairs."""
_NEARLY_ALL = 0.8
"""A column of so many different values may have no value twice."""
_BITS = 48
_MASK = 2**_BITS - 1
_BYTES = _BITS // 8
_CANDIDATES = 4096
"""Of a large table about so many rows, those of the smallest sums, are counted first."""
_FEW_VALUES = 20
"""A column with fewer is known by itself to nobody."""
_ENUMERATED = 0.15
"""Numbers that fill so much of their range are a numbering: other tables begin at 1 too."""
_STEPS = (86400, 3600, 1000, 900, 300, 100, 60, 10, 5)
"""In what a numbering, or times of measurement, may be counted."""
_WHOLE_NUMBERS = ("INTEGER", "BIGINT")
_SAME_TEXT = 10**14
"""Up to here a whole number and a floating one are written alike, but for `.0`."""
_LOOKED_AT = 20_000
"""So many cells tell whether a column is a numbering."""
_PART = 16
"""Of a large table this part of a column's values tells whether they are all different."""
_KEY_LETTERS = 16
"""Of the key before each cell, so that most cells are one block of MD5; the sketch is hidden by all of it."""
_VERSION = 2
_HEAD = struct.Struct("<BQH")
_SET = struct.Struct("<HBBB")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combination:
    """What is kept of one combination of columns: the smallest keyed sums and how often each occurs."""

    width: int
    """How many columns."""
    whole: bool
    """Whether it is all columns of the table."""
    complete: bool
    """Whether all sums are kept, not only the smallest."""
    sums: Ints
    counts: Ints

    @property
    def limit(self) -> int:
        """Up to here every sum of the table is known."""
        return _MASK if self.complete else int(self.sums[-1])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sketch:
    """A table as a ledger remembers it."""

    n_rows: int
    combinations: tuple[Combination, ...]

    def pack(self, key: bytes) -> bytes:
        """As bytes, of which nothing can be read without the key."""
        parts = [_HEAD.pack(_VERSION, self.n_rows, len(self.combinations))]
        for one in self.combinations:
            size = next(size for size in (1, 2, 4, 8) if int(one.counts.max()) < 256**size)
            parts.append(_SET.pack(one.width, one.whole * 2 + one.complete, len(one.sums), size))
            parts.append(one.sums.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :_BYTES].tobytes())
            parts.append(one.counts.astype(f"<u{size}").tobytes())
        nonce = hashlib.sha256(b"".join([key, *parts])).digest()[:16]
        return nonce + _hide(b"".join(parts), key, nonce)

    @classmethod
    def unpack(cls, packed: bytes, key: bytes) -> Sketch:
        """The sketch that was packed under the key."""
        content = _hide(packed[16:], key, packed[:16])
        _, n_rows, n_combinations = _HEAD.unpack_from(content)
        place, found = _HEAD.size, []
        for _ in range(n_combinations):
            width, flags, n_sums, size = _SET.unpack_from(content, place)
            place += _SET.size
            raw = np.frombuffer(content, np.uint8, n_sums * _BYTES, place).reshape(-1, _BYTES)
            sums = np.zeros((n_sums, 8), np.uint8)
            sums[:, :_BYTES] = raw
            place += n_sums * _BYTES
            counts = np.frombuffer(content, f"<u{size}", n_sums, place).astype(np.int64)
            place += n_sums * size
            found.append(
                Combination(
                    width=width,
                    whole=bool(flags & 2),
                    complete=bool(flags & 1),
                    sums=sums.view("<u8").ravel().astype(np.int64),
                    counts=counts,
                )
            )
        return cls(n_rows=n_rows, combinations=tuple(found))


def _hide(content: bytes, key: bytes, nonce: bytes) -> bytes:
    """Exclusive or with a stream that only the key gives; twice is as before."""
    stream = hashlib.shake_256(key + nonce).digest(len(content))
    return bytes(np.frombuffer(content, np.uint8) ^ np.frombuffer(stream, np.uint8))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    name: str
    kind: str
    """Its type in SQL."""
    n_different: int
    is_unique: bool


def sketch_table(
    connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str], key: bytes
) -> Sketch | None:
    """A sketch of some columns of a relation; None where none of them tells people apart."""
    n_rows, columns = _find_columns(connection, relation, names)
    columns = sorted(columns, key=lambda column: -column.n_different)[:_MOST_COLUMNS]
    chosen = _choose(columns)
    if not chosen:
        return None
    _hash_cells(connection, relation, columns, key, n_rows)
    found = [_smallest(connection, places, len(columns), n_rows) for places in chosen]
    connection.execute("DROP TABLE sketched")
    return Sketch(n_rows=n_rows, combinations=tuple(found))


def _find_columns(
    connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str]
) -> tuple[int, list[_Column]]:
    """The columns that have several values and are no numbering."""
    quoted = [identifier(name) for name in names]
    counts = ", ".join(f"approx_count_distinct({name})" for name in quoted)
    n_rows, *n_different = one_row(connection, f"SELECT count(*), {counts} FROM {relation}")
    described = connection.execute(f"DESCRIBE SELECT {', '.join(quoted)} FROM {relation}").fetchall()
    found = []
    for name, (_, kind, *_), about in zip(names, described, n_different, strict=True):
        different, is_unique = about, False
        if about > _NEARLY_ALL * n_rows:
            is_unique = _is_unique(connection, relation, identifier(name), n_rows)
            different = n_rows if is_unique else min(about, n_rows - 1)
        if different < 2 or (is_unique and _is_numbering(connection, relation, name, kind, n_rows)):
            continue
        found.append(_Column(name=name, kind=kind, n_different=different, is_unique=is_unique))
    return n_rows, found


def _is_unique(connection: duckdb.DuckDBPyConnection, relation: str, cell: str, n_rows: int) -> bool:
    """Whether no cell of a column occurs twice, nor is NULL; in a large table, of a part of its values."""
    # all copies of a value are in the part, or none
    part = f"WHERE {cell} IS NULL OR hash({cell}) % {_PART} = 0" if n_rows > _PART * _LOOKED_AT else ""
    n, different = one_row(connection, f"SELECT count(*), count(DISTINCT {cell}) FROM {relation} {part}")
    return bool(n == different)


def _canonical(name: str, kind: str) -> str:
    """SQL for what a cell says, the same in every type that can say it."""
    if kind == "BOOLEAN":
        number = f"{name}::INTEGER::DOUBLE::VARCHAR"
    elif kind == "VARCHAR":
        said = f"lower(CASE WHEN {name} LIKE ' %' OR {name} LIKE '% ' THEN trim({name}) ELSE {name} END)"
        # what begins with a letter is no number, and need not be tried
        number = (
            f"coalesce(CASE WHEN ascii({name}) < 58 THEN try_cast({name} AS DOUBLE)::VARCHAR END, "
            f"CASE {said} WHEN 'true' THEN '1.0' WHEN 'false' THEN '0.0' ELSE {said} END)"
        )
    elif kind.startswith(("DATE", "TIMESTAMP")):
        number = f"replace({name}::VARCHAR, ' 00:00:00', '')"
    elif kind in _WHOLE_NUMBERS:  # as a floating number would be written, in a third of the time
        number = (
            f"CASE WHEN {name} BETWEEN -{_SAME_TEXT} AND {_SAME_TEXT} THEN {name}::VARCHAR || '.0' "
            f"ELSE {name}::DOUBLE::VARCHAR END"
        )
    elif _is_number(kind):
        number = f"{name}::DOUBLE::VARCHAR"
    else:
        number = f"{name}::VARCHAR"
    return f"coalesce({number}, '')"


def _is_number(kind: str) -> bool:
    return kind.startswith(NUMERIC_TYPES) and not kind.endswith("]")  # lists of numbers are none


def _is_numbering(
    connection: duckdb.DuckDBPyConnection, relation: str, name: str, kind: str, n_rows: int
) -> bool:
    """Whether the different cells of a column are consecutive numbers or times, or nearly.

    Of many a random choice is looked at: a numbering fills its range, and what does not is far from it.
    """
    if kind.startswith(("DATE", "TIMESTAMP")):
        number = "epoch(c::TIMESTAMP)::DOUBLE"
    elif _is_number(kind):
        number = "abs(c::DOUBLE)"
    else:
        number = "try_cast(regexp_replace(c::VARCHAR, '[^0-9.]', '', 'g') AS DOUBLE)"
    steps = ", ".join(f"min(x % {step}) = max(x % {step})" for step in _STEPS)
    chosen = f"SELECT {identifier(name)} AS c FROM {relation}"
    if n_rows > 2 * _LOOKED_AT:
        chosen = f"FROM ({chosen}) USING SAMPLE {100 * _LOOKED_AT / n_rows:f} PERCENT (bernoulli)"
    n_looked, n, whole, ends, *even = one_row(
        connection,
        f"SELECT count(*), count(x), bool_and(x = floor(x)), quantile_cont(x, [0.05, 0.95]), {steps} "
        f"FROM (SELECT {number} AS x FROM ({chosen}))",
    )
    if not n or not whole:
        return False
    step = next((step for step, is_even in zip(_STEPS, even, strict=True) if is_even), 1)
    n_numbers = n / n_looked * n_rows
    return bool(0.9 * n_numbers / ((ends[1] - ends[0]) / step + 1) >= _ENUMERATED)


def _choose(columns: Sequence[_Column]) -> list[tuple[int, ...]]:
    """Which combinations are kept; columns are in descending order of how many values they have."""
    everything = tuple(range(len(columns)))
    alone = [(i,) for i in everything if columns[i].is_unique][:2]
    if len(columns) <= 2:
        alone = [(i,) for i in everything if columns[i].n_different >= _FEW_VALUES]
        return list(dict.fromkeys([*([everything] if len(columns) == 2 else []), *alone]))
    without = [tuple(j for j in everything if j != i) for i in everything[::-1][:_MOST_LEFT_OUT]]
    return list(dict.fromkeys([everything, *without, *combinations(everything[:_DISTINCTIVE], 2), *alone]))


def _hash_cells(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Sequence[_Column],
    key: bytes,
    n_rows: int,
) -> None:
    """The temporary table `sketched`: every cell as a keyed number. Of few values each is hashed once."""
    listed, joins = [], []
    for i, column in enumerate(columns):
        name = identifier(column.name)
        few = column.n_different <= n_rows / 4
        text = _canonical(name if few else f"records.{name}", column.kind)
        hashed = f"(md5_number('{key.hex()[:_KEY_LETTERS]}' || {text}) & {_MASK})::BIGINT"
        if not few:
            listed.append(f"{hashed} AS h{i}")
            continue
        values = f"(SELECT DISTINCT {name} FROM {relation})"
        joins.append(
            f" JOIN (SELECT {name} AS v, {hashed} AS h FROM {values}) AS of{i} "
            f"ON records.{name} IS NOT DISTINCT FROM of{i}.v"
        )
        listed.append(f"of{i}.h AS h{i}")
    total = " + ".join(f"h{i}" for i in range(len(columns)))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE sketched AS SELECT *, {total} AS total FROM ("
        f"SELECT {', '.join(listed)} FROM {relation} AS records{''.join(joins)})"
    )


def _smallest(
    connection: duckdb.DuckDBPyConnection, places: Sequence[int], n_columns: int, n_rows: int
) -> Combination:
    is_whole = len(places) == n_columns
    kept = _KEPT_OF_WHOLE if is_whole else _KEPT
    left_out = [i for i in range(n_columns) if i not in places]
    few = len(places) <= len(left_out)
    total = (
        " + ".join(f"h{i}" for i in places) if few else " - ".join(["total", *(f"h{i}" for i in left_out)])
    )

    def ask(below: int) -> list[tuple[int, int]]:
        return connection.execute(
            f"SELECT s, count(*) FROM (SELECT ({total}) & {_MASK} AS s FROM sketched) WHERE s <= {below} "
            f"GROUP BY s ORDER BY s LIMIT {kept + 1}"
        ).fetchall()

    found = ask(_MASK * _CANDIDATES // n_rows) if n_rows > 4 * _CANDIDATES else []
    if len(found) <= kept:
        found = ask(_MASK)
    sums, counts = np.array(found[:kept], dtype=np.int64).T
    return Combination(
        width=len(places), whole=is_whole, complete=len(found) <= kept, sums=sums, counts=counts
    )


FALSE_ALARM = 1e-6
"""The chance that two tables of different people are taken for the same; half is for whole records."""
_TILTS = np.geomspace(0.01, 1000, 60)
_NOT_EVEN = 0.55
"""Of the dispersion that chance gives: counts that have more of it are not suspiciously even."""
_MANY = 400
"""So many tosses are as good as normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """How much of a table is in another one."""

    people: int
    """About how many of the new table's people are in the earlier one."""
    rows: int
    """Of how many."""
    earlier_rows: int


def find_overlap(new: Sketch, earlier: Sketch) -> Overlap | None:
    """About how many people are in both tables; None where chance may have made them alike."""
    if not np.isin(_all_sums(new), _all_sums(earlier)).any():
        return None  # soon, for most of a long ledger
    shared = [
        (ours, theirs)
        for ours in new.combinations
        for theirs in earlier.combinations
        if ours.width == theirs.width and np.isin(ours.sums, theirs.sums, assume_unique=True).any()
    ]
    n_parts = sum(not (ours.whole and theirs.whole) for ours, theirs in shared)
    found: list[tuple[int, float]] = []
    for ours, theirs in shared:
        allowed = FALSE_ALARM / 2 / (1 if ours.whole and theirs.whole else n_parts)
        x, y = _counts(ours, theirs)
        if _log_chance(x, y) <= math.log(allowed):
            found.append((ours.width, float(np.minimum(x, y).sum() / x.sum())))
    if not found:
        return None
    # more columns are more surely the same person's
    _, share = max(found)
    return Overlap(people=round(share * new.n_rows), rows=new.n_rows, earlier_rows=earlier.n_rows)


def _all_sums(sketch: Sketch) -> Ints:
    return np.concatenate([one.sums for one in sketch.combinations])


def _counts(ours: Combination, theirs: Combination) -> tuple[Ints, Ints]:
    """How often each sum occurs in the one and in the other table, as far as both know all of them."""
    limit = min(ours.limit, theirs.limit)
    sums = np.union1d(ours.sums, theirs.sums)
    sums = sums[sums <= limit]
    counted = []
    for one in (ours, theirs):
        counts = np.zeros(len(sums), dtype=np.int64)
        inside = one.sums <= limit
        counts[np.searchsorted(sums, one.sums[inside])] = one.counts[inside]
        counted.append(counts)
    return counted[0], counted[1]


def _log_chance(x: Ints, y: Ints) -> float:
    """A bound on the chance, as a logarithm, that counts of different people are spread as evenly as these.

    What occurs once in all says nothing. The coin is that of these cells, not of the tables' sizes: a table
    of one town has more in common with some cells of a country's than with others, and an average of coins
    only spreads counts more.
    """
    total = x + y
    x, total = x[total > 1], total[total > 1]
    if not len(x) or not 0 < x.sum() < total.sum():
        return 0.0
    share = float(x.sum() / total.sum())
    observed = float(_deviation(x, total, share).sum())
    if observed >= _NOT_EVEN * len(x):
        return 0.0  # soon, for most of a long ledger; no bound would be small enough
    sizes, n_cells = np.unique(total, return_counts=True)
    exponents = _TILTS * observed
    for size, n in zip(sizes.tolist(), n_cells.tolist(), strict=True):
        exponents = exponents + n * _log_transform(size, share)
    return float(min(0.0, exponents.min()))


def _deviation(x: Ints, total: Ints | int, share: float) -> Floats:
    """The square of the distance from what is expected, in standard deviations."""
    return np.asarray((x - share * total) ** 2 / (total * share * (1 - share)), dtype=np.float64)


def _log_transform(size: int, share: float) -> Floats:
    """Log E exp(-θ deviation) of so many tosses, for every tilt θ."""
    if size > _MANY:
        return np.asarray(-0.5 * np.log1p(2 * _TILTS), dtype=np.float64)
    x = np.arange(size + 1)
    ways = np.array([math.lgamma(size + 1) - math.lgamma(i + 1) - math.lgamma(size - i + 1) for i in x])
    log_p = ways + x * math.log(share) + (size - x) * math.log1p(-share)
    terms = np.exp(log_p[None, :] - _TILTS[:, None] * _deviation(x, size, share)[None, :])
    return np.asarray(np.log(terms.sum(axis=1)), dtype=np.float64)
