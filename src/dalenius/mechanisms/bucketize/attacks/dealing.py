"""Whether the records of each value were dealt to the buckets at random, and buckets numbered at random.

Given what the buckets hold, every bijection between a value's records and its places is as likely as any
other, value by value (in regions: region by region), whatever the records' quasi-identifiers and places in
the source. So nothing about a record may go with anything about its bucket: the bucket's number, its size,
the other values that it holds, the people of other values in it, or the bucket of the record's neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.threats.counts import Counts, judge_laws, sum_by
from dalenius.threats.facets import Facet, Facets
from dalenius.threats.laws import Draws, alike_neighbours
from dalenius.threats.result import AttackResult
from dalenius.threats.traces import SOURCE_ORDER

_MOST_CONTENTS = 64
"""Values whose presence in a bucket is looked at: those that about half of the buckets hold."""
_CLASSES = 3
"""By the presence of so many values the buckets of a value are told apart."""
_QUARTERS = 4
_STRETCHES = 16
_MOST_SIZES = 8


class DealtRecords:
    """The rows whose value is known, by the value's records and their buckets."""

    def __init__(self, case: BucketCase) -> None:
        truth = case.row_truth()
        self.rows = np.flatnonzero(truth >= 0)
        self.case = case
        self.bucket = case.row_bucket[self.rows]
        kind = case.region[self.bucket] * case.n_values + truth[self.rows]
        self.kinds, self.kind = np.unique(kind, return_inverse=True)
        self.position = case.people.position_of_row()[self.rows]
        self.half = case.people.row_profile[self.rows] % 2
        columns = [(column.name, column.cells, column.row_codes[self.rows]) for column in case.people.columns]
        self.facets = Facets.of(columns, self.position)

    @property
    def n_kinds(self) -> int:
        """Of values, region by region."""
        return len(self.kinds)

    def kind_label(self, kind: int) -> str:
        """A value, and its region if there are several."""
        region, value = divmod(int(self.kinds[kind]), self.case.n_values)
        name = self.case.labels[value]
        return name if self.case.region.max(initial=0) == 0 else f"{name} in region {region + 1}"

    @cached_property
    def in_source(self) -> Ints:
        """The located records, kind by kind in the source's order."""
        located = np.flatnonzero(self.position >= 0)
        return np.asarray(located[np.lexsort((self.position[located], self.kind[located]))])

    @cached_property
    def quarter(self) -> Ints:
        """The quarter of the numbers that each record's bucket is in."""
        return self.bucket * _QUARTERS // self.case.n_buckets

    @cached_property
    def classes(self) -> Ints:
        """What each record's bucket holds besides, as a few bits that halve the places of its kind."""
        holds = _contents(self.case)
        share = np.stack(
            [sum_by(self.kind, holds[self.bucket, z], self.n_kinds) for z in range(holds.shape[1])],
            axis=1,
        )
        share /= np.bincount(self.kind, minlength=self.n_kinds)[:, None]
        balance = share * (1 - share)
        best = np.argsort(-balance, axis=1, kind="stable")[:, :_CLASSES]
        bits = np.zeros(len(self.rows), dtype=np.int64)
        for k in range(best.shape[1]):
            bits = bits * 2 + holds[self.bucket, best[self.kind, k]]
        return bits

    @cached_property
    def size_class(self) -> Ints:
        """The size of each record's bucket, from the smallest on."""
        _, of_bucket = np.unique(self.case.size, return_inverse=True)
        return np.minimum(of_bucket.astype(np.int64)[self.bucket], _MOST_SIZES - 1)

    def draws(self, what: str, outcome: Ints, n_outcomes: int, chosen: Ints | None = None) -> Draws:
        """Something about buckets, dealt to the records of each kind: all of them, or the chosen ones."""
        mine = slice(None) if chosen is None else chosen
        return Draws(
            what=what,
            stratum=self.kind[mine],
            outcome=outcome[mine],
            outcomes=tuple(f"{k + 1} of {n_outcomes}" for k in range(n_outcomes)),
            stratum_label=self.kind_label,
            half=self.half[mine],
        )


def attack_law_of_dealing(case: BucketCase) -> AttackResult:
    """Everything about a record against everything about its bucket."""
    dealt = DealtRecords(case)
    return judge_laws(
        "law of dealing",
        SOURCE_ORDER,
        _test_dealing(dealt) if len(dealt.rows) else (),
        n_things=len(dealt.rows),
        n_failed=len(case.row_bucket) - len(dealt.rows),
        advice="which record of a value goes to which bucket must be a random choice",
    )


def _test_dealing(dealt: DealtRecords) -> Iterator[Counts]:
    n_classes, n_sizes = 2**_CLASSES, int(dealt.size_class.max(initial=0)) + 1
    features = [
        ("number", dealt.quarter, _QUARTERS),
        ("number", dealt.bucket % 2, 2),
        ("contents", dealt.classes, n_classes),
        *([("size", dealt.size_class, n_sizes)] if n_sizes > 1 else []),
    ]
    for what, outcome, n_outcomes in features:
        draws = dealt.draws(f"bucket's {what}", outcome, n_outcomes)
        for facet in dealt.facets.singles:
            yield from draws.by(facet)
    yield from _mates(dealt)
    yield from _neighbours(dealt)


def _mates(dealt: DealtRecords) -> Iterator[Counts]:
    """Do people of different values meet in a bucket by who they are, or by their places in the source?

    Half of the kinds are taken as given; their people are the mates of those of the other kinds.
    """
    is_given = np.zeros(dealt.n_kinds, dtype=bool)
    is_given[_two_sides(dealt)[0]] = True
    given = np.flatnonzero(is_given[dealt.kind])
    mate_in = np.full(dealt.case.n_buckets, -1)
    mate_in[dealt.bucket[given][::-1]] = given[::-1]  # the first one of each bucket
    others = np.flatnonzero(~is_given[dealt.kind] & (mate_in[dealt.bucket] >= 0))
    if not len(others):
        return
    mates = mate_in[dealt.bucket[others]]
    sources = [facet for facet in dealt.facets.singles if facet.name == f"source in {_STRETCHES}"]
    for facet in (*dealt.facets.coarse, *sources):
        outcome = facet.codes[mates].astype(np.int64)
        draws = Draws(
            what=f"{facet.name} of a person in the bucket",
            stratum=dealt.kind[others],
            outcome=outcome,
            outcomes=tuple(map(facet.label, range(facet.n_cells))),
            stratum_label=dealt.kind_label,
            half=dealt.half[others],
        )
        yield from draws.by(facet.take(others))


def _neighbours(dealt: DealtRecords) -> Iterator[Counts]:
    """Records that come one after another in the source, and records of the same rank of two values."""
    order = dealt.in_source
    features = (("number", dealt.quarter, _QUARTERS), ("contents", dealt.classes, 2**_CLASSES))
    for what, feature, n_cells in features:
        yield alike_neighbours(
            f"bucket's {what} of the next record of a value", dealt.kind[order], feature[order]
        )
        for how, own, partner in _same_ranks(dealt):
            facet = Facet(
                name=f"that of a value's record {how}",
                codes=feature[partner],
                n_cells=n_cells,
                label=lambda cell, n=n_cells: f"{cell + 1} of {n}",  # type: ignore[misc]
            )
            yield from dealt.draws(f"bucket's {what}", feature, n_cells, own).by(facet)


def _same_ranks(dealt: DealtRecords) -> Iterator[tuple[str, Ints, Ints]]:
    """Records of half of the kinds, and those of the same rank of a kind of about the same size."""
    order = dealt.in_source
    counts = np.bincount(dealt.kind[order], minlength=dealt.n_kinds)
    starts = np.cumsum(counts) - counts
    given, others = _two_sides(dealt)
    n_pairs = min(len(given), len(others))
    given, others = given[:n_pairs], others[:n_pairs]
    n_own, n_given = counts[others], counts[given]
    both = np.minimum(n_own, n_given)
    pair = np.repeat(np.arange(len(others)), both)
    rank = np.arange(len(pair)) - np.repeat(np.cumsum(both) - both, both)
    first_own, first_given = starts[others][pair], starts[given][pair]
    last_own, last_given = (first_own + n_own[pair] - 1), (first_given + n_given[pair] - 1)
    if len(pair):
        yield "of the same rank", order[first_own + rank], order[first_given + rank]
        yield "of the same rank from the end", order[last_own - rank], order[last_given - rank]
        spread = rank * n_own[pair] // np.maximum(both[pair], 1)
        other = rank * n_given[pair] // np.maximum(both[pair], 1)
        yield "as far through the source", order[first_own + spread], order[first_given + other]


def _two_sides(dealt: DealtRecords) -> tuple[Ints, Ints]:
    """Of every two kinds that follow each other by size, one that is taken as given and the other one.

    Which is which follows Thue and Morse: places dealt round-robin have periods, and this has none.
    """
    by_size = np.argsort(-np.bincount(dealt.kind, minlength=dealt.n_kinds), kind="stable")
    odd = np.array([bin(rank).count("1") % 2 for rank in range(len(by_size))], dtype=bool)
    return by_size[~odd], by_size[odd]


def _more_than_least(case: BucketCase) -> Bools:
    """Entries of the sensitive table with more of their value than the bucket that has the least."""
    n_entries = np.bincount(case.st_value, minlength=case.n_values)
    least = np.full(case.n_values, np.iinfo(np.int64).max)
    np.minimum.at(least, case.st_value, case.st_count)
    least[n_entries < case.n_buckets] = 0
    return np.asarray(case.st_count > least[case.st_value])


def _contents(case: BucketCase) -> Bools:
    """Buckets × the values that tell most of them apart: whether a bucket has more than the least."""
    more = np.flatnonzero(_more_than_least(case))
    n_more = np.bincount(case.st_value[more], minlength=case.n_values)
    balance = n_more * (case.n_buckets - n_more)
    chosen = np.argsort(-balance, kind="stable")[: min(_MOST_CONTENTS, max(int((balance > 0).sum()), 1))]
    place = np.full(case.n_values, -1)
    place[chosen] = np.arange(len(chosen))
    holds = np.zeros((case.n_buckets, len(chosen)), dtype=bool)
    mine = more[place[case.st_value[more]] >= 0]
    holds[case.st_bucket[mine], place[case.st_value[mine]]] = True
    return holds


def attack_law_of_numbers(case: BucketCase) -> AttackResult:
    """What buckets hold, their sizes, regions and people's places in the source, against their numbers."""
    return judge_laws(
        "law of numbers",
        SOURCE_ORDER,
        _numbers(case),
        n_things=case.n_buckets,
        n_failed=0,
        advice="bucket numbers must be a random permutation",
    )


def _numbers(case: BucketCase) -> Iterator[Counts]:
    bucket, code, labels = _properties(case)
    n, width = case.n_buckets, len(labels)
    held = np.bincount(code, minlength=width)
    for cuts in (2, _STRETCHES, 0):
        stretch = np.arange(n) % 2 if cuts == 0 else np.arange(n) * cuts // n
        cells = max(cuts, 2)
        name = "odd and even numbers" if cuts == 0 else f"numbers in {cuts}"
        of_stretch = np.bincount(stretch, minlength=cells)
        yield _overlap(
            name,
            sum_by(code * cells + stretch[bucket], None, width * cells),
            np.repeat(held, cells),
            np.tile(of_stretch, width),
            np.full(width * cells, n),
            [f"{label}, {k + 1} of {cells}" for label in labels for k in range(cells)],
        )
    yield _neighbouring_numbers(n, bucket, code, labels)
    yield from _numbers_by_source(case)


def _neighbouring_numbers(n: int, bucket: Ints, code: Ints, labels: list[str]) -> Counts:
    """Buckets of even number and the next ones: given these, those are a random choice of the rest."""
    width, n_pairs = len(labels), n // 2
    inside = bucket < 2 * n_pairs
    pair, side, what = bucket[inside] // 2, bucket[inside] % 2, code[inside]
    keys, counts = np.unique(pair * width + what, return_counts=True)
    return _overlap(
        "neighbouring numbers",
        sum_by(keys[counts == 2] % width, None, width),
        np.bincount(what[side == 0], minlength=width),
        np.bincount(what[side == 1], minlength=width),
        np.full(width, n_pairs),
        labels,
    )


def _properties(case: BucketCase) -> tuple[Ints, Ints, list[str]]:
    """What is true of which bucket: holding more of a value than others, having a size, being of a region."""
    more = np.flatnonzero(_more_than_least(case))
    every = np.arange(case.n_buckets)
    sizes, size = np.unique(case.size, return_inverse=True)
    labels = [*case.labels, *(f"size {s}" for s in sizes)]
    bucket = [case.st_bucket[more], every]
    code = [case.st_value[more], case.n_values + size.astype(np.int64)]
    if case.region.max(initial=0):
        bucket.append(every)
        code.append(len(labels) + case.region)
        labels += [f"region {region + 1}" for region in range(int(case.region.max()) + 1)]
    return np.concatenate(bucket), np.concatenate(code), labels


def _overlap(name: str, both: Floats, one: Ints, two: Ints, of: Ints, labels: list[str]) -> Counts:
    """How many of `of` things are in both of two sets, of which one is a random choice."""
    n = np.maximum(of, 1).astype(np.float64)
    expected = one * two / n
    spread = expected * (1 - one / n) * (n - two) / np.maximum(n - 1, 1)
    trials = np.minimum(one, two).astype(np.float64)
    return Counts(
        name=name,
        observed=both,
        expected=expected,
        variance=spread,
        trials=trials,
        label=lambda i: labels[i],
    )


def _numbers_by_source(case: BucketCase) -> Iterator[Counts]:
    """Buckets by the mean place of their people in the source."""
    position = case.people.position_of_row()
    located = np.flatnonzero(position >= 0)
    n_located = np.bincount(case.row_bucket[located], minlength=case.n_buckets)
    having = np.flatnonzero(n_located)
    mean = sum_by(case.row_bucket[located], position[located], case.n_buckets)[having] / n_located[having]
    rank = np.argsort(np.argsort(mean, kind="stable"), kind="stable")
    draws = Draws(
        what="number",
        stratum=np.zeros(len(having), dtype=np.int64),
        outcome=np.arange(len(having)) * _QUARTERS // max(len(having), 1),
        outcomes=tuple(f"{k + 1} of {_QUARTERS}" for k in range(_QUARTERS)),
        stratum_label=lambda _: "all",
    )
    facet = Facet(
        name="mean place in the source",
        codes=rank * _STRETCHES // max(len(having), 1),
        n_cells=_STRETCHES,
        label=lambda k: f"{k + 1} of {_STRETCHES}",
    )
    if len(having):
        yield from draws.by(facet)
        yield alike_neighbours("mean place of the next number", draws.stratum, facet.codes.astype(np.int64))
