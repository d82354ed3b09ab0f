"""Two numbers that make the secret one: the days of coming and leaving tell how long somebody stayed.

Nobody shares such a pair of cells, and neither number follows the secret by itself. Looked for is a sum,
difference, product or ratio, with any factors or powers: nearly all of the secret's variance, or that of its
logarithm, is explained by both. The same is asked the other way round of several secret numbers: a published
number that two of them make rules out whoever in a bucket has others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.tables.codes import in_one_piece
from dalenius.tables.giveaways.cells import MUCH, any_order

_EXPLAINED = 0.99
"""So much of the variance is nearly all: what is left is a tenth of the standard deviation."""
_LOOKED_AT = 2_000
"""A formula shows in any part of a table."""
_FEWEST = 30
_MOST_ALIKE = 1e-10
"""Two columns that are one, but for a part of their variance that may be rounding."""
_MANY = 30
"""Of so many columns most pairs are ruled out by few people …"""
_FEW_PEOPLE = 200
_LEFT_OPEN = 2 * (1 - _EXPLAINED)
"""… of whom they leave more open than they may of all; twice as much, so that rounding does not matter."""

Pair = tuple[str, str]


def read_numbers(records: pa.Table, names: list[str]) -> dict[str, Floats]:
    """The columns of numbers and days, of some people; NaN where there is none."""
    rows = pa.array(any_order(len(records))[:_LOOKED_AT])
    found = {}
    for name in names:
        kind, column = records.schema.field(name).type, records[name]
        if is_coded := pa.types.is_dictionary(kind):
            kind = kind.value_type
        if (is_time := pa.types.is_temporal(kind)) or pa.types.is_decimal(kind) or _is_number(kind):
            cells = in_one_piece(column.take(rows))
            cells = cells.dictionary_decode() if is_coded else cells
            if is_time:
                cells = cells.cast(
                    pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
                )
            numbers = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            found[name] = numbers.astype(np.float64)
    return found


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def find_formula(known: Mapping[str, Floats], told: Floats) -> Pair | None:
    """The two numbers that nearly make the third one, as a sum or as a product; None: none do."""
    with np.errstate(divide="ignore", invalid="ignore"):
        for names, numbers, one in (
            ([*known], np.array([*known.values()]), told),
            ([*known], np.log(np.array([*known.values()])), np.log(told)),
        ):
            if len(names) > 1:
                x, y = _standard(numbers.T), _standard(one[:, None])[:, 0]
                kept = _may_explain(x, y)
                explained = _explained_by_two(x[:, kept], y)
                i, j = divmod(int(np.argmax(explained)), len(kept)) if len(kept) else (0, 0)
                if len(kept) and explained[i, j] >= _EXPLAINED:
                    return names[kept[min(i, j)]], names[kept[max(i, j)]]
    return None


def _standard(numbers: Floats) -> Floats:
    """So that no digits are lost; what is no finite number is missing."""
    kept = np.where(np.isfinite(numbers), numbers, np.nan)
    is_known = ~np.isnan(kept)
    n = np.maximum(is_known.sum(axis=0), 1)
    largest = np.where(is_known, np.abs(kept), 0.0).max(axis=0, initial=0.0)
    kept = kept / np.where(largest > 0, largest, 1.0)  # or squares of the largest would be infinite
    kept = kept - np.where(is_known, kept, 0.0).sum(axis=0) / n
    deviation = np.sqrt((np.where(is_known, kept, 0.0) ** 2).sum(axis=0) / n)
    return np.asarray(kept / np.where(deviation > 0, deviation, 1.0), dtype=np.float64)


def _may_explain(known: Floats, told: Floats) -> Ints:
    """The columns of all pairs that may explain nearly all of a number, by a few people.

    What a pair leaves open of these people, with factors of their own, is no more than it leaves open of all.
    """
    is_told = ~np.isnan(told)
    n_told, n_columns = int(is_told.sum()), known.shape[1]
    if n_columns <= _MANY or n_told <= 2 * _FEW_PEOPLE:
        return np.arange(n_columns)
    x, y = known[is_told], told[is_told]
    most, least = np.where(np.isnan(x), -np.inf, x).max(axis=0), np.where(np.isnan(x), np.inf, x).min(axis=0)
    varied = np.flatnonzero(most > least)
    few = _Moments.of(x[:_FEW_PEOPLE, varied], y[:_FEW_PEOPLE])
    left_open = few.n * few.variance * (1 - few.explained())
    is_open = few.are_alike() | ~(left_open > _LEFT_OPEN * float(((y - y.mean()) ** 2).sum()))
    np.fill_diagonal(is_open, val=False)
    return varied[is_open.any(axis=1)]


def _explained_by_two(known: Floats, told: Floats) -> Floats:
    """The share of a number's variance that each two columns explain, among people who have all three."""
    is_told = ~np.isnan(told)
    found = _Moments.of(known[is_told], told[is_told])
    explained = found.explained()
    is_enough = (found.n >= max(_FEWEST, MUCH * len(told))) & ~found.are_alike() & (found.variance > 1e-12)
    return np.where(is_enough & np.isfinite(explained), explained, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Moments:
    """Of each two columns and a number, among the people who have all three."""

    n: Floats
    own: Floats
    """The variance of the first column."""
    both: Floats
    """The covariance of both columns."""
    with_y: Floats
    """The covariance of the first column and the number."""
    variance: Floats
    """Of the number."""

    @classmethod
    def of(cls, known: Floats, y: Floats) -> _Moments:
        """People × columns, and the number of each person, which is known of all of them."""
        y = y[:, None]
        has = (~np.isnan(known)).astype(np.float64)
        x, are_all = np.where(has > 0, known, 0.0), bool(has.all())

        def add(numbers: Floats) -> Floats:
            """By column, over people whom another column knows too; a sum for all others if it knows all."""
            return numbers.sum(axis=0)[:, None] if are_all else numbers.T @ has

        n = np.maximum(add(has), 1.0)
        mean, y_mean = add(x) / n, add(has * y) / n
        return cls(
            n=n,
            own=add(x * x) / n - mean**2,
            both=(x.T @ x) / n - mean * mean.T,
            with_y=add(x * y) / n - mean * y_mean,
            variance=add(has * y * y) / n - y_mean**2,
        )

    def explained(self) -> Floats:
        """The share of the number's variance that both columns explain; anything where they are alike."""
        own, with_y = self.own, self.with_y
        both = with_y**2 * own.T - 2 * with_y * with_y.T * self.both + (with_y**2).T * own
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(both / (self._left() * self.variance))

    def are_alike(self) -> Bools:
        """Which two columns are one, or one of which is always the same."""
        return np.asarray(self._left() <= _MOST_ALIKE * self.own * self.own.T)

    def _left(self) -> Floats:
        return self.own * self.own.T - self.both**2
