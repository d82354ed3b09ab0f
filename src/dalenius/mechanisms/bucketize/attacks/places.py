"""Whether rows stand in random order inside their buckets, whatever their values and places in the source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.attacks.case import MOST_PAIRS, BucketCase
from dalenius.tables.codes import number
from dalenius.threats.counts import Counts, judge_laws, summed
from dalenius.threats.facets import Facet, place_in_source
from dalenius.threats.result import AttackResult, Threat

_FILE_ORDER = Threat(
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
            observed=summed(self.codes[here], None, width),
            expected=summed(code, share, width),
            variance=summed(code, share * (1 - share), width),
            trials=summed(code, n > k, width),
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
            observed=summed(cell, first[one] < first[two], len(keys)),
            expected=summed(cell, chance, len(keys)),
            variance=summed(cell, chance * (1 - chance), len(keys)),
            trials=summed(cell, None, len(keys)),
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
            seen = summed(self.codes[learnt], None, self.facet.n_cells)
            mean = summed(self.codes[learnt], off_middle[learnt], self.facet.n_cells) / np.maximum(seen, 1)
            order = np.argsort(np.argsort(mean, kind="stable"), kind="stable")
            score = np.where(seen > 0, 2 * order / max(len(order) - 1, 1) - 1, 0.0)[self.codes[tried]]
            bucket = self.bucket[tried]
            size = np.maximum(self.size, 2)
            centred = score - (summed(bucket, score, len(size)) / size)[bucket]
            spread = summed(bucket, centred**2, len(size)) * summed(bucket, off_middle[tried] ** 2, len(size))
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
        _FILE_ORDER,
        groups(),
        n_things=len(known),
        n_failed=len(truth) - len(known),
        advice="rows within a bucket must be in random order",
    )
