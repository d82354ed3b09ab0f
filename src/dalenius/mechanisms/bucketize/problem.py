"""What a bucketization has to solve: counts and thresholds of the sensitive values, and the largest bucket.

In every bucket of size S value i may occur at most ⌊f′_i·S⌋ times (F′-privacy). These capacities are
computed in integers: in floating point 0.29·100 floors to 28.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError, PromiseNotMet

IntArray = NDArray[np.int64]

_EXACT_IN_INT64 = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketProblem:
    """Counts o_i, thresholds f′_i and the largest bucket size allowed.

    >>> problem = BucketProblem(counts=(3, 2), thresholds=(Fraction(3, 5), Fraction(1, 2)), max_bucket=5)
    >>> problem.n_rows, problem.smallest_size
    (5, 2)
    """

    counts: tuple[int, ...]
    thresholds: tuple[Fraction, ...]
    max_bucket: int

    def __post_init__(self) -> None:
        if not self.counts or len(self.counts) != len(self.thresholds):
            raise InputError(
                f"{len(self.counts)} counts and {len(self.thresholds)} thresholds: "
                "there must be as many of both, and at least one"
            )
        if min(self.counts) < 1:
            raise InputError("a sensitive value has no rows; leave values that do not occur out")
        if any(t.numerator <= 0 or t.numerator > t.denominator for t in self.thresholds):
            raise InputError("a threshold lies outside (0, 1]; thresholds are shares of a bucket")
        if self.max_bucket < 1:
            raise InputError(f"max_bucket is {self.max_bucket}; the smallest that means anything is 1")
        if self.n_rows * min(self.max_bucket, self.n_rows) >= _EXACT_IN_INT64:
            raise InputError(
                f"{self.n_rows} rows in buckets of up to {self.max_bucket} pass 64-bit integers; "
                "use a smaller max_bucket"
            )

    @property
    def n_rows(self) -> int:
        """The number of records."""
        return sum(self.counts)

    @property
    def n_values(self) -> int:
        """The number of sensitive values (the paper's m)."""
        return len(self.counts)

    @property
    def smallest_size(self) -> int:
        """M = min ⌈1/f′_i⌉: no smaller bucket can hold a record."""
        return min(sizes_needed(self.thresholds))

    @property
    def largest_size(self) -> int:
        """The largest bucket size that can occur: no bucket exceeds the table."""
        return min(self.max_bucket, self.n_rows)

    def count_array(self) -> IntArray:
        """The counts as an array."""
        return np.array(self.counts, dtype=np.int64)

    def capacity(self, size: int) -> IntArray:
        """How often each value may occur in one bucket of this size.

        >>> problem = BucketProblem(counts=(1,), thresholds=(Fraction("0.29"),), max_bucket=100)
        >>> problem.capacity(100).tolist()
        [29]
        """
        return np.asarray(self.capacity_table([size])[:, 0])

    def capacity_table(self, sizes: Sequence[int] | IntArray) -> IntArray:
        """⌊f′_i·S⌋ as an m × sizes array, exact."""
        return capacity_table(self.thresholds, sizes)


def capacity_table(thresholds: Sequence[Fraction], sizes: Sequence[int] | IntArray) -> IntArray:
    """⌊f′_i·S⌋ for every threshold and size, exact."""
    ratios = [t.as_integer_ratio() for t in thresholds]
    largest = max((int(size) for size in sizes), default=0)
    # A threshold is at most 1. Python integers in an object array where 64 bits would overflow.
    exact = np.int64 if max(b for _, b in ratios) * max(largest, 1) < _EXACT_IN_INT64 else object
    tops = np.array([top for top, _ in ratios], dtype=exact)
    bottoms = np.array([bottom for _, bottom in ratios], dtype=exact)
    table = tops[:, None] * np.asarray(sizes).astype(exact)[None, :] // bottoms[:, None]
    return np.asarray(table.astype(np.int64))


def sizes_needed(thresholds: Iterable[Fraction]) -> list[int]:
    """⌈1/f′_i⌉, the smallest bucket that can hold a record of each value.

    >>> sizes_needed([Fraction(2, 5), Fraction(1, 2)])
    [3, 2]
    """
    return [-(-t.denominator // t.numerator) for t in thresholds]


class ThresholdsTooLow(PromiseNotMet):
    """Some thresholds are below the frequencies of their values; `indices` says which."""

    def __init__(self, indices: tuple[int, ...]) -> None:
        super().__init__(
            f"the thresholds of {len(indices)} sensitive value(s) are below their frequencies",
            hint="the lowest threshold that any release can keep is the value's frequency",
        )
        self.indices = indices


class NoSettingFits(PromiseNotMet):
    """No bucket setting of the kind searched for fits; `needed` is a `max_bucket` that would do, if known."""

    def __init__(self, message: str, *, needed: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.needed = needed


def violations(problem: BucketProblem) -> tuple[int, ...]:
    """The values that no release can keep the promise for: f_i > f′_i (Lemma 1), compared exactly.

    >>> violations(BucketProblem(counts=(3, 1), thresholds=(Fraction(1, 2), Fraction(1, 4)), max_bucket=4))
    (0,)
    """
    n_rows = problem.n_rows
    pairs = zip(problem.counts, problem.thresholds, strict=True)
    return tuple(i for i, (count, t) in enumerate(pairs) if count * t.denominator > t.numerator * n_rows)


def record_bound(problem: BucketProblem) -> int:
    """A lower bound on the loss of every valid setting.

    A record in a bucket of size S carries (S−1)²/S of the loss, and one of value i needs S ≥ ⌈1/f′_i⌉.
    """
    rows_needing: Counter[int] = Counter()
    for count, size in zip(problem.counts, sizes_needed(problem.thresholds), strict=True):
        rows_needing[size] += count
    shares = (Fraction(rows * (size - 1) ** 2, size) for size, rows in rows_needing.items())
    return ceil(sum(shares, Fraction(0)))
