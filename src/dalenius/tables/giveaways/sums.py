"""Two numbers that make the secret one: the days of coming and leaving tell how long somebody stayed.

Nobody shares such a pair of cells, and neither number follows the secret by itself. Looked for is a sum,
difference, product or ratio, with any factors or powers: nearly all of the secret's variance, or that of its
logarithm, is explained by both. The same is asked the other way round of several secret numbers: a published
number that two of them make rules out whoever in a bucket has others.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats
from dalenius.tables.giveaways.cells import MUCH, any_order

_EXPLAINED = 0.99
"""So much of the variance is nearly all: what is left is a tenth of the standard deviation."""
_LOOKED_AT = 2_000
"""A formula shows in any part of a table."""
_FEWEST = 30
_MOST_ALIKE = 1e-10
"""Two columns that are one, but for a part of their variance that may be rounding."""

Pair = tuple[str, str]


def read_numbers(records: pa.Table, names: list[str]) -> dict[str, Floats]:
    """The columns of numbers and days, of some people; NaN where there is none."""
    rows = pa.array(any_order(len(records))[:_LOOKED_AT])
    found = {}
    for name in names:
        kind = records.schema.field(name).type
        if (is_time := pa.types.is_temporal(kind)) or pa.types.is_decimal(kind) or _is_number(kind):
            cells = records[name].take(rows)
            if is_time:
                cells = cells.cast(
                    pa.int32() if pa.types.is_date32(kind) or pa.types.is_time32(kind) else pa.int64()
                )
            found[name] = cells.cast(pa.float64(), safe=False).to_numpy().astype(np.float64)
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
                explained = _explained_by_two(_standard(numbers.T), _standard(one[:, None])[:, 0])
                i, j = divmod(int(np.argmax(explained)), len(names))
                if explained[i, j] >= _EXPLAINED:
                    return names[min(i, j)], names[max(i, j)]
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


def _explained_by_two(known: Floats, told: Floats) -> Floats:
    """The share of a number's variance that each two columns explain, among people who have all three."""
    n_people, is_told = len(told), ~np.isnan(told)
    known, y = known[is_told], told[is_told][:, None]
    has = (~np.isnan(known)).astype(np.float64)
    x, are_all = np.where(has > 0, known, 0.0), bool(has.all())

    def add(numbers: Floats) -> Floats:
        """By column, over the people whom another column knows too; a sum for all others if it knows all."""
        return numbers.sum(axis=0)[:, None] if are_all else numbers.T @ has

    n = np.maximum(add(has), 1.0)
    mean, y_mean = add(x) / n, add(has * y) / n
    own = add(x * x) / n - mean**2
    both = (x.T @ x) / n - mean * mean.T
    with_y = add(x * y) / n - mean * y_mean
    variance = add(has * y * y) / n - y_mean**2
    left = own * own.T - both**2
    explained = (with_y**2 * own.T - 2 * with_y * with_y.T * both + (with_y**2).T * own) / (left * variance)
    is_enough = (n >= max(_FEWEST, MUCH * n_people)) & (left > _MOST_ALIKE * own * own.T) & (variance > 1e-12)
    return np.where(is_enough & np.isfinite(explained), explained, 0.0)
