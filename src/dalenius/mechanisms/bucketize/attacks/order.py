"""Order: do rows within buckets, the numbers of buckets, or who was dealt where tell anything?

Rows must stand in random order inside their buckets, whatever their values and places in the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats, Ints, rank_within
from dalenius.mechanisms.bucketize.attacks.case import MOST_PAIRS, BucketCase
from dalenius.tables.codes import number
from dalenius.threats.chance import Chance, rank_correlation
from dalenius.threats.counts import Counts, judge_laws, sum_by
from dalenius.threats.facets import Facet, place_in_source
from dalenius.threats.result import AttackResult, Threat, against_chance
from dalenius.threats.traces import SOURCE_ORDER, report_correlations

_FILE_ORDER = Threat(
    knows="the release's files, byte by byte", wants="sensitive values from the order of rows", covered=True
)


def attack_row_order(case: BucketCase) -> AttackResult:
    """Guess that the k-th row of a bucket has the k-th of the bucket's values, in the tables' order.

    Under a random order a row with value x is at one of the places listed for x with probability c(x)/|g|.
    """
    truth, size = case.row_truth(), case.size
    places = np.bincount(case.st_bucket, case.st_count, case.n_buckets)
    even = (places == size)[case.row_bucket]  # with fakes there is no k-th value
    within = rank_within(case.row_bucket)
    rows = np.flatnonzero(even & (truth >= 0))
    listed = np.repeat(case.st_value, case.st_count)
    first_place = (np.cumsum(places) - places).astype(np.int64)
    guess = listed[first_place[case.row_bucket[rows]] + within[rows]]
    n_same = _entry_counts(case, case.row_bucket[rows], truth[rows])
    expected = float((n_same / size[case.row_bucket[rows]]).sum())
    return against_chance(
        "row order",
        _FILE_ORDER,
        hits=int((guess == truth[rows]).sum()),
        trials=len(rows),
        chance=Chance.of_permutation(expected),
        n_failed=len(case.row_bucket) - len(rows),
        advice="rows within a bucket must be in random order",
    )


def attack_source_order(case: BucketCase) -> AttackResult:
    """Do neighbours in a bucket follow the source's order? Guess that the earlier row comes first."""
    position = case.people.position_of_row()
    known = np.flatnonzero(position >= 0)
    same = case.row_bucket[known[1:]] == case.row_bucket[known[:-1]]
    rising = (position[known[1:]] > position[known[:-1]])[same]
    trials, hits = len(rising), int(rising.sum())
    # the ascents of a random order of k rows are a sum of independent coins, of variance (k+1)/12 (Harper)
    n_rows = np.bincount(case.row_bucket[known], minlength=case.n_buckets)
    variance = float((n_rows[n_rows > 1] + 1).sum()) / 12
    return against_chance(
        "source order",
        SOURCE_ORDER,
        hits=max(hits, trials - hits),
        trials=trials,
        chance=Chance(expected=trials / 2, variance=variance, sides=2),
        n_failed=len(case.row_bucket) - len(known),
        advice="rows within a bucket must be in random order, not in the source's",
    )


def attack_bucket_numbers(case: BucketCase) -> AttackResult:
    """Do bucket numbers follow the source's order, or the buckets' sizes or contents?"""
    position = case.people.position_of_row()
    known = position >= 0
    mean_position = np.bincount(case.row_bucket[known], position[known], case.n_buckets) / np.maximum(
        np.bincount(case.row_bucket[known], minlength=case.n_buckets), 1
    )
    has_position = np.bincount(case.row_bucket[known], minlength=case.n_buckets) > 0
    mean_value = np.bincount(case.st_bucket, case.st_value * case.st_count, case.n_buckets)
    numbers = np.arange(case.n_buckets)
    found = {
        "source order": abs(rank_correlation(numbers[has_position], mean_position[has_position])),
        "contents": abs(_tied_correlation(numbers, mean_value)),
        "size": abs(_tied_correlation(numbers, case.size)),
    }
    n = int(has_position.sum())
    return report_correlations(
        "bucket numbers",
        found,
        n=n,
        n_failed=case.n_buckets - n,
        advice="bucket numbers must be a random permutation",
    )


def attack_dealing(case: BucketCase) -> AttackResult:
    """Were the records of each value dealt to the buckets in the source's order?

    Take the records of one value in the source's order: each and the next one make a step from a bucket to
    a bucket. Dealt round-robin without a shuffle, all values make the same steps. The share of steps that an
    earlier value made too is compared with random dealing; bucket numbers do not matter.
    """
    position = case.people.position_of_row()
    truth = case.row_truth()
    rows = np.flatnonzero((position >= 0) & (truth >= 0))
    kind = case.region[case.row_bucket[rows]] * case.n_values + truth[rows]  # dealt region by region
    by_kind = np.lexsort((position[rows], kind))
    rows, value = rows[by_kind], kind[by_kind]
    bucket = case.row_bucket[rows]
    is_step = value[1:] == value[:-1]
    step = (bucket[:-1] * case.n_buckets + bucket[1:])[is_step]
    repeated = len(step) - len(np.unique(step))
    expected = _expected_coincidences(case, np.bincount(value, minlength=_n_kinds(case)))
    return against_chance(
        "dealing",
        SOURCE_ORDER,
        hits=repeated,
        trials=len(step),
        # equal steps are pairs, all but independent: their variance is below twice their mean
        chance=Chance(expected=expected, variance=2 * expected, largest=2.0),
        n_failed=len(case.row_bucket) - len(rows),
        advice="which record of a value goes to which bucket must be a random choice",
    )


def _expected_coincidences(case: BucketCase, n_known: Ints) -> float:
    """How many pairs of steps are the same under random dealing.

    A step of value x goes from g to h with probability c(g,x)·c(h,x)/(o_x(o_x−1)); with G = Σ_g c(g,x)·c(g,y)
    a step of x and one of y are the same with probability G²/(o_x(o_x−1)·o_y(o_y−1)).
    """
    kind = case.region[case.st_bucket] * case.n_values + case.st_value
    contents = sp.csr_array(
        (case.st_count.astype(np.float64), (case.st_bucket, kind)), shape=(case.n_buckets, _n_kinds(case))
    )
    counts: Floats = np.asarray(contents.sum(axis=0), dtype=np.float64)
    # a place is taken once: of c(g,x) records in a bucket another one makes the same step
    together = sp.csr_array(contents.T @ contents - sp.diags_array(counts))
    steps = np.maximum(n_known - 1, 0) / np.maximum(counts * (counts - 1), 1.0)
    return float(np.dot(steps, np.asarray(together.power(2) @ steps))) / 2


def _n_kinds(case: BucketCase) -> int:
    """How many pairs of region and value there are."""
    return (int(case.region.max()) + 1) * case.n_values


def _entry_counts(case: BucketCase, bucket: Ints, value: Ints) -> Ints:
    """How often the sensitive table lists a value in a bucket."""
    keys = case.st_bucket * case.n_values + case.st_value
    wanted = bucket * case.n_values + value
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, case.st_count[place], 0)


def _tied_correlation(numbers: Ints, measure: Ints) -> float:
    """Rank correlation of two sequences of which the second has ties: ties share their mean rank."""
    n = len(numbers)
    _, place, counts = np.unique(measure, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts + 1) / 2)[place.ravel()]
    if n < 2 or rank.std() == 0:
        return 0.0
    return float(np.corrcoef(numbers, rank)[0, 1])


_PLACES = Threat(
    knows="the release's files, byte by byte",
    wants="sensitive values, or places in the source, from where rows stand in their bucket",
    covered=True,
)
_FROM_TOP, _FROM_BOTTOM = 8, 4
"""How many places of a bucket are looked at from either end."""
_STRETCHES = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Rows whose code is known, bucket by bucket in the order of the file."""

    bucket: Ints
    """From 0 without gaps, ascending."""
    facet: Facet
    """Of the same rows."""

    @classmethod
    def of(cls, bucket: Ints, facet: Facet) -> Lines:
        """Of rows in the order of the file; those of buckets with one such row say nothing."""
        several = np.flatnonzero(np.bincount(bucket, minlength=1)[bucket] > 1)
        several = several[np.argsort(bucket[several], kind="stable")]
        numbered = np.cumsum(np.diff(bucket[several], prepend=-1) > 0) - 1
        return cls(bucket=numbered.astype(np.int64), facet=facet.take(several))

    @cached_property
    def codes(self) -> Ints:
        """Of each row."""
        return self.facet.codes.astype(np.int64)

    @cached_property
    def size(self) -> Ints:
        """How many such rows each bucket has."""
        return np.bincount(self.bucket)

    @cached_property
    def place(self) -> Ints:
        """Of each row in its bucket, from 0."""
        return np.asarray(np.arange(len(self.bucket)) - (np.cumsum(self.size) - self.size)[self.bucket])

    @cached_property
    def entries(self) -> tuple[Ints, Ints, Ints, Ints]:
        """The different codes of the buckets: bucket, code, how many rows, the first one's place."""
        width = self.facet.n_cells
        keys, first, counts = np.unique(
            self.bucket * width + self.codes, return_index=True, return_counts=True
        )
        return keys // width, keys % width, counts, self.place[first]

    def tests(self) -> Iterator[Counts]:
        """Every law of a random order."""
        if not len(self.bucket):
            return
        largest = int(self.size.max())
        for k in range(min(_FROM_TOP, largest)):
            yield self.at_place(k, self.place == k, f"row {k + 1} of the bucket")
        for k in range(min(_FROM_BOTTOM, largest)):
            here = self.size[self.bucket] - 1 - self.place == k
            yield self.at_place(k, here, f"row {k + 1} from the bucket's end")
        yield self.precedence()
        yield self.learnt_order()

    def at_place(self, k: int, here: np.ndarray, where: str) -> Counts:
        """What stands at one place: each of a bucket's rows with the same probability."""
        bucket, code, count, _ = self.entries
        n = self.size[bucket]
        share = np.where(n > k, count / n, 0.0)
        width = self.facet.n_cells
        return Counts(
            name=f"{where}, by {self.facet.name}",
            observed=sum_by(self.codes[here], None, width),
            expected=sum_by(code, share, width),
            variance=sum_by(code, share * (1 - share), width),
            trials=sum_by(code, n > k, width),
            label=self.facet.label,
        )

    def precedence(self) -> Counts:
        """For every two codes, in how many buckets the first row of one comes before that of the other."""
        bucket, code, count, first = self.entries
        ends = np.cumsum(np.bincount(bucket))
        n_later = ends[bucket] - 1 - np.arange(len(bucket))
        used = np.flatnonzero(np.cumsum(n_later) <= MOST_PAIRS)  # bucket numbers are random
        one = np.repeat(used, n_later[used])
        starts = np.cumsum(n_later[used]) - n_later[used]
        two = one + 1 + np.arange(len(one)) - np.repeat(starts, n_later[used])
        width = self.facet.n_cells
        cell, keys = number(code[one] * width + code[two])
        chance, label = count[one] / (count[one] + count[two]), self.facet.label
        return Counts(
            name=f"order of two, by {self.facet.name}",
            observed=sum_by(cell, first[one] < first[two], len(keys)),
            expected=sum_by(cell, chance, len(keys)),
            variance=sum_by(cell, chance * (1 - chance), len(keys)),
            trials=sum_by(cell, None, len(keys)),
            label=lambda i: f"{label(int(keys[i]) // width)} before {label(int(keys[i]) % width)}",
        )

    def learnt_order(self) -> Counts:
        """Codes ranked by where they stand in one half of the buckets: does the other half follow?"""
        n = self.size[self.bucket]
        off_middle = (self.place - (n - 1) / 2) / ((n - 1) / 2)
        half = self.bucket % 2
        sums, variances, bounds = np.zeros(2), np.zeros(2), np.zeros(2)
        for h in (0, 1):
            learnt, tried = half != h, half == h
            seen = sum_by(self.codes[learnt], None, self.facet.n_cells)
            mean = sum_by(self.codes[learnt], off_middle[learnt], self.facet.n_cells) / np.maximum(seen, 1)
            order = np.argsort(np.argsort(mean, kind="stable"), kind="stable")
            score = np.where(seen > 0, 2 * order / max(len(order) - 1, 1) - 1, 0.0)[self.codes[tried]]
            bucket = self.bucket[tried]
            size = np.maximum(self.size, 2)
            centred = score - (sum_by(bucket, score, len(size)) / size)[bucket]
            spread = sum_by(bucket, centred**2, len(size)) * sum_by(bucket, off_middle[tried] ** 2, len(size))
            sums[h] = float((score * off_middle[tried]).sum())
            variances[h], bounds[h] = float((spread / (size - 1)).sum()), float(np.sqrt(spread).max())
        names = ("in buckets of even number", "in buckets of odd number")
        return Counts(
            name=f"order by {self.facet.name}, learnt",
            observed=sums,
            expected=np.zeros(2),
            variance=variances,
            trials=np.bincount(half, minlength=2).astype(np.float64),
            label=lambda h: names[h],
            largest=max(float(bounds.max()), 1.0) + 1e-9,
        )


def attack_places(case: BucketCase) -> AttackResult:
    """Rows by value, and by their place in the source."""
    truth, position = case.row_truth(), case.people.position_of_row()
    known, located = np.flatnonzero(truth >= 0), np.flatnonzero(position >= 0)
    labels = case.labels
    value = Facet(name="value", codes=truth[known], n_cells=case.n_values, label=lambda x: labels[x])
    source = place_in_source(position[located], case.n_people, _STRETCHES)

    def groups() -> Iterator[Counts]:
        yield from Lines.of(case.row_bucket[known], value).tests()
        yield from Lines.of(case.row_bucket[located], source).tests()

    return judge_laws(
        "law of places",
        _PLACES,
        groups(),
        n_things=len(known),
        n_failed=len(truth) - len(known),
        advice="rows within a bucket must be in random order",
    )
