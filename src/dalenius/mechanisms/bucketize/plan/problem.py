"""What a bucketization has to solve: counts and thresholds of the sensitive values, and the largest bucket.

In every bucket of size S value i may occur at most ⌊f′_i·S⌋ times (F′-privacy). These capacities are
computed in integers: in floating point 0.29·100 floors to 28.

Values with the same count and threshold, and in the same groups, planned as one.

k values with the same o and f′ may together put k·⌊f′·S⌋ records into a bucket of size S, and whatever the
searches give them jointly can be dealt to them round-robin: each then gets at most its own share of every
size. With thresholds that depend on counts only there are fewer than √(2n) classes, however many values.
Sorted classes also make a plan independent of the order and the labels of the values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from dalenius.arrays import Ints
from dalenius.errors import InputError, PromiseNotMet
from dalenius.tables.histogram import Counted

_EXACT_IN_INT64 = 2**62
_MOST_ROWS_IN_GROUPS = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A group: the values begin ≤ i < end, of which a bucket of size S may hold ⌊f′·S⌋ together."""

    begin: int
    end: int
    threshold: Fraction

    @property
    def own(self) -> slice:
        """What picks them from an array of values."""
        return slice(self.begin, self.end)

    def holds(self, other: Run) -> bool:
        """Whether the other run is part of this one."""
        return self.begin <= other.begin and other.end <= self.end

    def is_apart(self, other: Run) -> bool:
        """Whether the two have no value in common."""
        return self.end <= other.begin or other.end <= self.begin


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Together:
    """Values that have a threshold together, as what picks them from an array of values."""

    own: slice | Ints
    threshold: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketProblem(Counted):
    """Counts o_i, thresholds f′_i and the largest bucket size allowed.

    >>> problem = BucketProblem(counts=(3, 2), thresholds=(Fraction(3, 5), Fraction(1, 2)), max_bucket=5)
    >>> problem.n_rows, problem.smallest_size
    (5, 2)
    """

    counts: tuple[int, ...]
    thresholds: tuple[Fraction, ...]
    max_bucket: int
    groups: tuple[Run, ...] = ()
    """Runs of values with a threshold together, nested or disjoint, the inner ones first."""
    min_bucket: int = 1
    """The smallest bucket size allowed."""
    seconds: int = 1
    """About how long the optimum may be sought; counted in steps, so that the same counts give one plan."""
    windows: tuple[int, ...] = ()
    """Of numbers, ascending: where the values end that share every limit with each value (`windows.py`)."""

    overlapping: tuple[tuple[tuple[int, ...], Fraction], ...] = ()
    """Of sets: the codes that hold each value, and the value's threshold (`sets.py`)."""

    def __post_init__(self) -> None:
        if not self.counts or len(self.counts) != len(self.thresholds):
            raise InputError(
                f"{len(self.counts)} counts and {len(self.thresholds)} thresholds: "
                "there must be as many of both, and at least one"
            )
        if min(self.counts) < 1:
            raise InputError("a sensitive value has no rows; leave values that do not occur out")
        if any(top <= 0 or top > bottom for top, bottom in self.ratios()[0]):
            raise InputError("a threshold lies outside (0, 1]; thresholds are shares of a bucket")
        if self.max_bucket < 1:
            raise InputError(f"max_bucket is {self.max_bucket}; the smallest that means anything is 1")
        if self.n_rows * min(self.max_bucket, self.n_rows) >= _EXACT_IN_INT64:
            raise InputError(
                f"{self.n_rows} rows in buckets of up to {self.max_bucket} pass 64-bit integers; "
                "use a smaller max_bucket"
            )
        if self.groups:
            _check_groups(self)
        if self.windows:
            _check_windows(self)

    @property
    def smallest_size(self) -> int:
        """M = min ⌈1/f′_i⌉: no smaller bucket can hold a record; or what the publisher wants at least."""
        return max(self.min_bucket, min(sizes_needed(ValueClasses.of(self).thresholds)))

    @property
    def largest_size(self) -> int:
        """The largest bucket size that can occur: no bucket exceeds the table."""
        return min(self.max_bucket, self.n_rows)

    @property
    def is_mixed(self) -> bool:
        """Whether buckets trade after they were dealt, within limits that overlap."""
        return bool(self.windows or self.overlapping)

    def together(self) -> tuple[Together, ...]:
        """What has a threshold beside single values: groups, windows that are part of no other, or sets."""
        if self.overlapping:
            return tuple(Together(own=np.array(codes), threshold=t) for codes, t in self.overlapping if codes)
        ends = self.windows
        runs = self.groups or tuple(
            Run(begin=begin, end=end, threshold=self.thresholds[0])
            for begin, end in enumerate(ends)
            if begin == 0 or ends[begin - 1] < end
        )
        return tuple(Together(own=slice(run.begin, run.end), threshold=run.threshold) for run in runs)

    def ratios(self) -> tuple[tuple[tuple[int, int], ...], Ints]:
        """The different thresholds as numerators and denominators, and which of them each value has.

        >>> half, third = Fraction(1, 2), Fraction(1, 3)
        >>> problem = BucketProblem(counts=(1, 1, 1), thresholds=(half, third, half), max_bucket=3)
        >>> problem.ratios()[0], problem.ratios()[1].tolist()
        (((1, 2), (1, 3)), [0, 1, 0])
        """
        for known, found in _known_ratios:
            if known is self.thresholds:
                return found
        every = list(map(Fraction.as_integer_ratio, self.thresholds))
        places = {ratio: place for place, ratio in enumerate(dict.fromkeys(every))}
        place = np.fromiter(map(places.__getitem__, every), dtype=np.int64, count=len(every))
        _known_ratios[:] = [(self.thresholds, (tuple(places), place))]
        return tuple(places), place

    def count_array(self) -> Ints:
        """The counts as an array."""
        return np.array(self.counts, dtype=np.int64)

    def capacity(self, size: int) -> Ints:
        """How often each value may occur in one bucket of this size.

        >>> problem = BucketProblem(counts=(1,), thresholds=(Fraction("0.29"),), max_bucket=100)
        >>> problem.capacity(100).tolist()
        [29]
        """
        return np.asarray(self.capacity_table([size])[:, 0])

    def capacity_table(self, sizes: Sequence[int] | Ints) -> Ints:
        """⌊f′_i·S⌋ as an m × sizes array, exact."""
        return capacity_table(self.thresholds, sizes)


def _check_groups(problem: BucketProblem) -> None:
    if problem.n_rows > _MOST_ROWS_IN_GROUPS:
        raise InputError(
            f"groups of values are planned for up to {_MOST_ROWS_IN_GROUPS} rows; there are {problem.n_rows}",
            hint="publish the table in parts, as a series of batches",
        )
    for g, group in enumerate(problem.groups):
        if not 0 <= group.begin < group.end <= problem.n_values or not 0 < group.threshold <= 1:
            raise InputError("a group must be a run of values, with a threshold in (0, 1]")
        if not all(other.holds(group) or other.is_apart(group) for other in problem.groups[g + 1 :]):
            raise InputError("groups must be nested or disjoint, the inner ones first")


def _check_windows(problem: BucketProblem) -> None:
    ends = problem.windows
    if len(ends) != problem.n_values or list(ends) != sorted(ends) or ends[-1] != problem.n_values:
        raise InputError("windows must be runs of values that end in the order in which they begin")
    if any(end <= begin for begin, end in enumerate(ends)):
        raise InputError("a window must hold the value that it begins with")
    if problem.groups or len(set(problem.thresholds)) > 1:
        raise InputError("windows have one threshold for all values, and no groups")


def capacity_table(thresholds: Sequence[Fraction], sizes: Sequence[int] | Ints) -> Ints:
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
    n_rows, (ratios, place) = problem.n_rows, problem.ratios()
    most = np.array([top * n_rows // bottom for top, bottom in ratios], dtype=np.int64)
    return tuple(np.flatnonzero(problem.count_array() > most[place]).tolist())


def groups_above(problem: BucketProblem) -> tuple[int, ...]:
    """The groups that no release can keep the promise for: their share is above their threshold.

    >>> problem = BucketProblem(
    ...     counts=(1, 1, 1), thresholds=(Fraction(1, 2),) * 3, max_bucket=4,
    ...     groups=(Run(begin=1, end=3, threshold=Fraction(3, 5)),),
    ... )
    >>> groups_above(problem)
    (0,)
    """
    shares = [Fraction(sum(problem.counts[g.begin : g.end]), problem.n_rows) for g in problem.groups]
    pairs = zip(problem.groups, shares, strict=True)
    return tuple(i for i, (group, share) in enumerate(pairs) if share > group.threshold)


def record_bound(problem: BucketProblem) -> int:
    """A lower bound on the loss of every valid setting.

    A record in a bucket of size S carries (S−1)²/S of the loss, and one of value i needs S ≥ ⌈1/f′_i⌉.
    """
    classes, rows_needing = ValueClasses.of(problem), Counter[int]()
    for count, size in zip(classes.totals.tolist(), sizes_needed(classes.thresholds), strict=True):
        rows_needing[max(size, problem.min_bucket)] += count
    shares = (Fraction(rows * (size - 1) ** 2, size) for size, rows in rows_needing.items())
    return ceil(sum(shares, Fraction(0)))


def least_size(problem: BucketProblem) -> int:
    """No max_bucket below this can do: every value needs a bucket with f_i ≤ k/S ≤ f′_i.

    The smallest such S of a value is the denominator of the simplest fraction in [f_i, f′_i], which the
    continued fractions of both ends give; the largest over the values is needed.
    """
    n_rows, classes = problem.n_rows, ValueClasses.of(problem)
    counts = (classes.totals // classes.n_members).tolist()
    pairs = zip(counts, classes.thresholds, strict=True)
    return max(_simplest_denominator(count, n_rows, *t.as_integer_ratio()) for count, t in pairs)


def _simplest_denominator(top: int, bottom: int, most_top: int, most_bottom: int) -> int:
    """The least denominator of the fractions from top/bottom to most_top/most_bottom.

    >>> _simplest_denominator(3, 10, 2, 5), _simplest_denominator(29, 100, 29, 100)
    (3, 100)
    """
    path = []
    while True:
        whole, rest = divmod(top, bottom)
        if rest == 0 or whole < most_top // most_bottom:
            break
        path.append(whole)
        # inside (whole, whole + 1) the order turns around: 1/(f′ − whole) ≤ 1/x ≤ 1/(f − whole)
        top, bottom, most_top, most_bottom = most_bottom, most_top - whole * most_bottom, bottom, rest
    above, below = (whole if rest == 0 else whole + 1), 1
    for term in reversed(path):
        above, below = term * above + below, above
    return below


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueClasses:
    """The classes of a problem, in ascending order of count and threshold."""

    totals: Ints  # k·o, the records of each class
    n_members: Ints  # k
    thresholds: tuple[Fraction, ...]
    class_of: Ints  # per value
    rank: Ints  # per value, 0..k−1 within its class
    inner: Ints  # per class, the innermost group of its values; −1: none

    @classmethod
    def of(cls, problem: BucketProblem) -> ValueClasses:
        """Group the values of a problem.

        >>> half = Fraction(1, 2)
        >>> problem = BucketProblem(counts=(3, 2, 3), thresholds=(half,) * 3, max_bucket=4)
        >>> classes = ValueClasses.of(problem)
        >>> classes.totals.tolist(), classes.class_of.tolist(), classes.rank.tolist()
        ([2, 6], [1, 0, 1], [0, 0, 1])
        """
        own = (problem.counts, problem.thresholds, problem.groups)
        for *others, known in _known_classes:
            if all(one is other for one, other in zip(own, others, strict=True)):
                return known
        found = cls._group(problem)
        _known_classes[:] = [(*own, found)]
        return found

    @classmethod
    def _group(cls, problem: BucketProblem) -> ValueClasses:
        ratios, place = problem.ratios()
        order = sorted(range(len(ratios)), key=ratios.__getitem__)
        # Equal counts are ordered by (numerator, denominator): any fixed order will do.
        by_ratio = np.empty(len(ratios), dtype=np.int64)
        by_ratio[order] = np.arange(len(ratios))
        counts, count_place = np.unique(problem.count_array(), return_inverse=True)
        inner = np.array(_inner_groups(problem), dtype=np.int64)
        shape = (len(counts), len(ratios), len(problem.groups) + 1)
        keys = np.ravel_multi_index((count_place, by_ratio[place], inner + 1), shape)
        index, class_of, n_members = np.unique(keys, return_inverse=True, return_counts=True)
        by_class = np.argsort(class_of, kind="stable")
        rank = np.empty_like(class_of)
        rank[by_class] = np.arange(len(keys)) - np.repeat(np.cumsum(n_members) - n_members, n_members)
        of_count, of_ratio, of_group = np.unravel_index(index, shape)
        return cls(
            totals=n_members * counts[of_count],
            n_members=n_members,
            thresholds=tuple(Fraction(*ratios[order[r]]) for r in of_ratio.tolist()),
            class_of=class_of,
            rank=rank,
            inner=of_group - 1,
        )

    def capacity_table(self, sizes: tuple[int, ...]) -> Ints:
        """How many records of each class one bucket of each size may hold, min(k·⌊f′·S⌋, S)."""
        jointly = self.n_members[:, None] * capacity_table(self.thresholds, sizes)
        return np.asarray(np.minimum(jointly, np.array(sizes, dtype=np.int64)))

    def to_loads(self, loads: Ints) -> tuple[tuple[int, ...], ...]:
        """The loads of the values from those of the classes, dealt round-robin (values × sizes).

        Member r of k gets the positions r, r + k, r + 2k, … of its class: ⌈(e − r)/k⌉ of the first e. That
        changes where r passes the rest of an end e by k only, so a class has few different rows.
        """
        ends = np.cumsum(loads, axis=1)
        ends = np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends], axis=1)
        begins = np.sort(ends % self.n_members[:, None], axis=1)  # the first of them is 0
        of_class, at = np.nonzero(np.diff(begins, axis=1, prepend=-1))
        first = begins[of_class, at]
        before = -((first[:, None] - ends[of_class]) // self.n_members[of_class][:, None])
        rows = list(map(tuple, np.diff(before, axis=1).tolist()))
        places = np.cumsum(self.n_members) - self.n_members
        alike = np.searchsorted(places[of_class] + first, places[self.class_of] + self.rank, side="right")
        return tuple(map(rows.__getitem__, (alike - 1).tolist()))


_known_ratios: list[tuple[Any, tuple[tuple[tuple[int, int], ...], Ints]]] = []
_known_classes: list[tuple[Any, Any, Any, ValueClasses]] = []
"""Of the last problem: the same values are tried with one max_bucket after another to find what would do."""


def _inner_groups(problem: BucketProblem) -> list[int]:
    """The innermost group of every value; −1: none."""
    inner = [-1] * problem.n_values
    for g in reversed(range(len(problem.groups))):
        group = problem.groups[g]
        inner[group.begin : group.end] = [g] * (group.end - group.begin)
    return inner
