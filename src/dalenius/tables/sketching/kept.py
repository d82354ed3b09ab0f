"""What a sketch keeps: which columns and combinations, a cell as a keyed number, and the smallest sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Ints, different
from dalenius.sql import one_row
from dalenius.tables.sketch import SUM_MASK, SketchedPair
from dalenius.tables.sketching.digests import LONGEST, Words, digest_texts, in_letters
from dalenius.tables.steps import NUMERIC_TYPES

_KEPT_OF_WHOLE, _KEPT = 128, 64
"""How many sums are kept of whole records, and of every other combination."""
_MOST_COLUMNS = 100
_MOST_LEFT_OUT = 10
_DISTINCTIVE = 5
"""So many columns are kept in pairs."""
NEARLY_ALL = 0.8
"""A column of so many different values may have no value twice."""
_CANDIDATES = 4096
"""So many sums wait until they are counted."""
_TIMES_KEPT = 4
"""Of many sums so many times those that are kept, the smallest, are looked at first."""
_FEW_VALUES = 20
"""A column with fewer is known by itself to nobody."""
_ENUMERATED = 0.15
"""Numbers that fill so much of their range are a numbering: other tables begin at 1 too."""
_STEPS = (86400, 3600, 1000, 900, 300, 100, 60, 10, 5)
"""In what a numbering, or times of measurement, may be counted."""
_WHOLE_NUMBERS = ("INTEGER", "BIGINT")
_SAME_TEXT = 10**14
"""Up to here a whole number and a floating one are written alike, except for `.0`."""
_KEY_LETTERS = 16
"""Of the key before each cell, so that most cells are one block of MD5; the sketch is hidden by all of it."""
_NO_ASCII = 128
_ABOVE = 64 - SUM_MASK.bit_length()


@dataclass(frozen=True, slots=True, kw_only=True)
class SketchedColumn:
    """What is known of a column before its records are looked at."""

    name: str
    kind: str
    """Its type in SQL."""
    n_different: int
    is_unique: bool


def hash_cell(name: str, kind: str, key: bytes) -> str:
    """SQL for a cell as a keyed number."""
    text = canonical(name, kind)
    return f"(md5_number('{key.hex()[:_KEY_LETTERS]}' || {text}) & {SUM_MASK})::BIGINT"


def high(numbers: Ints) -> Words:
    """Numbers in the high bits of a word: sums that pass 64 bits are those modulo 2⁴⁸, without a mask."""
    return np.asarray(numbers.view(np.uint64) << np.uint64(_ABOVE))


def add_exactly(numbers: Words, times: Ints) -> int:
    """The sum of numbers in high bits, each so many times; not modulo anything.

    >>> add_exactly(high(np.array([2**47, 3])), np.array([2**20, 2])) == 2**67 + 6
    True
    """
    half: int = SUM_MASK.bit_length() // 2  # of each half 2³⁹ may be added up
    low, upper = (numbers >> np.uint64(_ABOVE)) & np.uint64(2**half - 1), numbers >> np.uint64(_ABOVE + half)
    return int(low.view(np.int64) @ times) + (int(upper.view(np.int64) @ times) << half)


def canonical(name: str, kind: str) -> str:
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


def digest_words(texts: pa.StringArray, key: bytes) -> tuple[Words, Bools]:
    """The numbers of `hash_cell`, in high bits, of texts that are plain words, and which these are.

    They are short and of ASCII's letters, begin with none below a letter, as a number would, and end with no
    blank. The numbers of others are left open.
    """
    texts = texts.fill_null("")
    letters, starts, lengths = in_letters(texts)
    is_plain = lengths <= LONGEST - _KEY_LETTERS
    own = np.flatnonzero(lengths)
    is_plain[own] &= letters[starts[own]] > ord("9")
    is_plain[own] &= letters[starts[own] + lengths[own] - 1] != ord(" ")
    if letters.max(initial=0) >= _NO_ASCII:
        is_plain &= pc.string_is_ascii(texts).to_numpy(zero_copy_only=False)
    said, short = pc.ascii_lower(texts), np.flatnonzero(lengths <= len("false"))
    are_numbers = pc.is_in(said.take(pa.array(short)), pa.array(["true", "false"]))
    is_plain[short] &= ~are_numbers.to_numpy(zero_copy_only=False)
    every = is_plain.all()
    found = digest_texts(key.hex()[:_KEY_LETTERS].encode(), said if every else said.filter(is_plain))
    if found is not None and every:
        found <<= np.uint64(_ABOVE)
        return found, is_plain
    numbers = np.zeros(len(texts), dtype=np.uint64)
    if found is None:
        return numbers, np.zeros_like(is_plain)
    numbers[is_plain] = found << np.uint64(_ABOVE)
    return numbers, is_plain


def _is_number(kind: str) -> bool:
    return kind.startswith(NUMERIC_TYPES) and not kind.endswith("]")  # lists of numbers are none


def numeric(cell: str, kind: str) -> str:
    """SQL for the number in a cell."""
    if kind.startswith(("DATE", "TIMESTAMP")):
        return f"epoch({cell}::TIMESTAMP)::DOUBLE"
    if _is_number(kind):
        return f"abs({cell}::DOUBLE)"
    return f"try_cast(regexp_replace({cell}::VARCHAR, '[^0-9.]', '', 'g') AS DOUBLE)"


def is_numbering(connection: duckdb.DuckDBPyConnection, chosen: str, n_rows: int) -> bool:
    """Whether a column's numbers `x`, or a random choice of them, are consecutive, or nearly.

    A numbering fills its range, and what does not is far from it.
    """
    steps = ", ".join(f"min(x % {step}) = max(x % {step})" for step in _STEPS)
    n_looked, n, whole, ends, *even = one_row(
        connection,
        f"SELECT count(*), count(x), bool_and(x = floor(x)), quantile_cont(x, [0.05, 0.95]), {steps} "
        f"FROM ({chosen})",
    )
    if not n or not whole:
        return False
    step = next((step for step, is_even in zip(_STEPS, even, strict=True) if is_even), 1)
    n_numbers = n / n_looked * n_rows
    return bool(0.9 * n_numbers / ((ends[1] - ends[0]) / step + 1) >= _ENUMERATED)


class Smallest:
    """The smallest sums so far, and how often each occurs; one more than are kept."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._limit = np.uint64(2**64 - 1)
        self._sums = np.zeros(0, dtype=np.uint64)
        self._counts = np.zeros(0, dtype=np.int64)
        self._waiting: list[Words] = []
        self._n_waiting = 0

    def add(self, sums: Words) -> None:
        """The sums of more rows; some wait until they are worth counting."""
        own = sums[sums <= self._limit]
        self._waiting.append(own)
        self._n_waiting += len(own)
        if self._n_waiting >= _CANDIDATES:
            self._count_waiting()

    def _count_waiting(self) -> None:
        waiting, self._waiting, self._n_waiting = self._waiting, [], 0
        own = np.concatenate([*waiting, np.zeros(0, dtype=np.uint64)])
        own = own[self._low(own)]
        if len(own):
            values, counts = pa.array(own).value_counts().flatten()  # by hashing: most may be the same
            self.add_counted(values.to_numpy(), counts.to_numpy())

    def add_counted(self, sums: Words, counts: Ints) -> None:
        """Sums, and how often each occurs; one may be there twice."""
        every, of_every = np.concatenate([self._sums, sums]), np.concatenate([self._counts, counts])
        low = self._low(every)
        found, place = np.unique(every[low], return_inverse=True)
        together = np.zeros(len(found), dtype=np.int64)
        np.add.at(together, place.ravel(), of_every[low])
        self._sums, self._counts = found[: self._kept + 1], together[: self._kept + 1]
        if len(self._sums) > self._kept:
            self._limit = self._sums[-1]

    def _low(self, sums: Words) -> Bools | slice:
        """Which sums can be among the smallest: every copy of more different ones than are kept."""
        n_enough = _TIMES_KEPT * (self._kept + 1)
        if len(sums) <= n_enough:
            return slice(None)
        is_low: Bools = sums <= np.partition(sums, n_enough)[n_enough]
        return is_low if len(different(sums[is_low])) > self._kept else slice(None)

    @property
    def counted(self) -> tuple[Ints, Ints]:
        """The smallest sums in ascending order, and how often each occurs."""
        self._count_waiting()
        return (self._sums >> np.uint64(_ABOVE)).astype(np.int64), self._counts

    def combination(self, width: int, *, is_whole: bool) -> SketchedPair:
        """As the sketch keeps it."""
        self._count_waiting()
        return SketchedPair(
            width=width,
            whole=is_whole,
            complete=len(self._sums) <= self._kept,
            sums=(self._sums[: self._kept] >> np.uint64(_ABOVE)).astype(np.int64),
            counts=self._counts[: self._kept],
        )


def add_up(places: Sequence[int], cells: Mapping[int, Words], total: Words, n_columns: int) -> Words:
    """The sum of some columns' numbers, by the shorter way: from their cells, or from those left out."""
    left_out = [i for i in range(n_columns) if i not in places]
    if len(places) <= len(left_out):
        return np.asarray(np.add.reduce([cells[i] for i in places]))
    sums = total
    for i in left_out:
        sums = sums - cells[i]
    return sums


def choose_combinations(
    found: Sequence[SketchedColumn],
) -> tuple[list[SketchedColumn], list[tuple[int, ...]]]:
    """The columns that tell the most people apart, these first, and which combinations of them are kept."""
    columns = sorted(found, key=lambda column: -column.n_different)[:_MOST_COLUMNS]
    return columns, _choose(columns)


def keep_smallest(places: Sequence[int], n_columns: int) -> Smallest:
    """For the sums of a combination; all but the most distinctive columns may be another table's whole."""
    are_last = len(places) > 1 and [*places] == [*range(places[0], n_columns)]
    return Smallest(_KEPT_OF_WHOLE if are_last else _KEPT)


def _choose(columns: Sequence[SketchedColumn]) -> list[tuple[int, ...]]:
    everything = tuple(range(len(columns)))
    alone = [(i,) for i in everything if columns[i].is_unique][:2]
    if len(columns) <= 2:
        alone = [(i,) for i in everything if columns[i].n_different >= _FEW_VALUES]
        return list(dict.fromkeys([*([everything] if len(columns) == 2 else []), *alone]))
    without = [tuple(j for j in everything if j != i) for i in everything[::-1][:_MOST_LEFT_OUT]]
    # numbers of people are left out of a table in which they are the rows', and not of one where they are not
    shared = tuple(i for i in everything if not columns[i].is_unique)
    pairs = combinations(everything[:_DISTINCTIVE], 2)
    return list(dict.fromkeys([everything, *([shared] if len(shared) > 1 else []), *without, *pairs, *alone]))
