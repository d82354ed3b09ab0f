"""Every published row beside every value of its bucket, for attackers who learn how the two go together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase

MOST_PAIRS = 4_000_000
"""With more, buckets are drawn at random, and people outside them are left out."""
_MOST_CELLS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowPairs:
    """Rows × values of their buckets, ordered by row."""

    row: Ints
    value: Ints
    share: Floats
    """The value's share of the bucket's people."""
    entry: Ints
    """The entry of the sensitive table."""
    bucket: Ints
    is_used: Bools
    """Which buckets were drawn."""

    @classmethod
    def of(cls, case: BucketCase, chosen: Bools) -> RowPairs:
        """The pairs of the chosen buckets."""
        rows = np.flatnonzero(chosen[case.row_bucket])
        n_entries = np.bincount(case.st_bucket, minlength=case.n_buckets)
        first_entry = np.cumsum(n_entries) - n_entries
        repeats = n_entries[case.row_bucket[rows]]
        row = np.repeat(rows, repeats)
        within = np.arange(len(row)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        entry = first_entry[case.row_bucket[row]] + within
        people = np.bincount(case.st_bucket, case.st_expected, case.n_buckets)
        bucket = case.row_bucket[row]
        share = case.st_expected[entry] / people[bucket]
        return cls(
            row=row, value=case.st_value[entry], share=share, entry=entry, bucket=bucket, is_used=chosen
        )

    def within(self, chosen: Bools) -> RowPairs:
        """Those of the chosen buckets."""
        kept = np.flatnonzero(chosen[self.bucket])
        return RowPairs(
            row=self.row[kept],
            value=self.value[kept],
            share=self.share[kept],
            entry=self.entry[kept],
            bucket=self.bucket[kept],
            is_used=self.is_used & chosen,
        )

    def people(self, case: BucketCase) -> Bools:
        """The people all of whose possible rows are looked at."""
        missing = np.zeros(case.people.n_profiles, dtype=bool)
        missing[case.people.row_profile[~self.is_used[case.row_bucket]]] = True
        return ~missing[case.people.profile]


def draw_buckets(case: BucketCase, stream: np.random.Generator) -> Bools:
    """All buckets, or as many random ones as `MOST_PAIRS` allows."""
    n_entries = np.bincount(case.st_bucket, minlength=case.n_buckets)
    cost = (n_entries * case.size)[order := stream.permutation(case.n_buckets)]
    chosen = np.zeros(case.n_buckets, dtype=bool)
    chosen[order[np.cumsum(cost) <= MOST_PAIRS]] = True
    return chosen


def usable_columns(case: BucketCase) -> list[int]:
    """Quasi columns with several values, but not so many that nothing can be learnt of each."""
    most = min(_MOST_CELLS, max(len(case.row_bucket) // 20, 2))
    return [c for c, column in enumerate(case.people.columns) if 1 < column.n_cells <= most]
