"""A bucketized release beside its original, as arrays.

Which of several people with one profile a published row is, is known only where all of them have the same
value. Attackers who learn how rows and values go together see every row beside every value of its bucket.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize import published
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.mechanisms.bucketize.published import read_tables
from dalenius.promises.groups import Group
from dalenius.promises.proximity import Proximity, is_number
from dalenius.promises.sets import Having
from dalenius.release.folder import StoredRelease
from dalenius.tables.codes import number
from dalenius.tables.histogram import label, write_cells
from dalenius.threats.original import CommonCodes, People
from dalenius.threats.result import AttackResult, make_result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketCase:
    """What is attacked, and the truth to score by."""

    release: StoredRelease
    people: People
    labels: tuple[str, ...]
    """How each sensitive value is written."""
    thresholds: tuple[Fraction | None, ...]
    """The promise for each value; None: the promise does not know the value."""
    groups: tuple[Group | Having, ...]
    """Sets of values that the promise limits together."""
    in_group: Bools
    """Groups × values."""
    proximity: Proximity | None
    """The promise about numbers that are near each other."""
    values: tuple[tuple[str | None, ...], ...]
    """The cells of each sensitive value, as texts."""
    value: Ints
    """Each person's sensitive value."""
    row_bucket: Ints
    """Of each published row; buckets from 0 in the order of their numbers."""
    region: Ints
    """The region that each bucket was made in; all 0 without regions."""
    st_bucket: Ints
    st_value: Ints
    st_count: Ints
    """The sensitive table, by bucket."""
    st_expected: Floats
    """How many people have each entry's value, in expectation: fakes are counted off by their laws."""
    fakes: PublishedFakes | None
    """What the manifest says of values that are nobody's."""
    fake_number: Ints
    """The manifest's number of each value; −1 for a value that it does not know."""
    numbers: Ints
    """The published number of each bucket."""
    has_dates: bool
    """Whether buckets may list values of people who are not there."""

    @classmethod
    def load(cls, release: StoredRelease, original: pa.Table) -> BucketCase:
        """Read the release and find the original's people in it."""
        stated, tables = published.read(release.manifest), read_tables(release)
        people = People.find(original, tables.people, release.columns("quasi"))
        common = CommonCodes.of(stated.sensitive, (original, tables.entries))
        value, st_value = common.of_rows(stated.sensitive)
        values = common.cells(stated.sensitive)
        order = np.lexsort((st_value, tables.entry_bucket))
        st_bucket, st_value, st_count = tables.entry_bucket[order], st_value[order], tables.count[order]
        numbered = np.full(len(values), -1) if stated.fakes is None else stated.fakes.find(values)
        groups = tuple(group for group in stated.groups if group.at_most < 1)
        one_region = np.zeros(tables.n_buckets, dtype=np.int64)
        return cls(
            release=release,
            people=people,
            value=value,
            row_bucket=tables.row_bucket,
            region=one_region if stated.regions is None else tables.regions(stated.regions),
            st_bucket=st_bucket,
            st_value=st_value,
            st_count=st_count,
            st_expected=_expect(stated.fakes, st_bucket, numbered[st_value], st_count, tables.size),
            labels=tuple(label(cells) for cells in values),
            thresholds=tuple(map(stated.thresholds.of_value, map(write_cells, values))),
            proximity=stated.proximity if is_number(tables.entries.schema.field(0).type) else None,
            values=tuple(map(write_cells, values)),
            groups=groups,
            in_group=np.array([[g.has(cells) for cells in values] for g in groups], dtype=np.bool_),
            fakes=stated.fakes,
            fake_number=numbered,
            numbers=tables.numbers,
            has_dates=stated.dates is not None,
        )

    @property
    def n_fakes(self) -> int:
        """σ: how many values of each bucket are nobody's."""
        return 0 if self.fakes is None else self.fakes.n_fakes

    @property
    def n_people(self) -> int:
        """How many people the original has."""
        return len(self.value)

    @property
    def n_values(self) -> int:
        """How many sensitive values original and release have."""
        return len(self.labels)

    @property
    def n_buckets(self) -> int:
        """How many buckets there are."""
        return int(self.st_bucket[-1]) + 1

    @property
    def size(self) -> Ints:
        """How many people each bucket has."""
        return np.bincount(self.row_bucket, minlength=self.n_buckets)

    @property
    def listed(self) -> Ints:
        """How many values each bucket lists: more than people where some have left."""
        return np.bincount(self.st_bucket, self.st_count, self.n_buckets).astype(np.int64) - self.n_fakes

    @property
    def make_result(self) -> Callable[..., AttackResult]:
        """The result of counted successes, beside the guess of the commonest value."""
        return partial(make_result, baseline=float(self.frequency.max()))

    @property
    def frequency(self) -> Floats:
        """The share of each value among the people: the public histogram."""
        return np.bincount(self.value, minlength=self.n_values) / self.n_people

    @property
    def limits(self) -> Floats:
        """The thresholds as numbers to compare rates with; 0 where there is none."""
        return np.array([0.0 if t is None else float(t) for t in self.thresholds])

    def row_truth(self) -> Ints:
        """The sensitive value behind each published row; −1 where people of one profile differ."""
        return self.people.value_of_row(self.value)

    def known_buckets(self) -> Bools:
        """The buckets in which the value behind every row is known."""
        unknown = np.bincount(self.row_bucket[self.row_truth() < 0], minlength=self.n_buckets)
        return np.asarray((unknown == 0) & (self.size > 0))


def success_by_profile(
    case: BucketCase, row: Ints, value: Ints, belief: Floats, among: Bools | None = None
) -> tuple[float, int]:
    """How many people are guessed right by who knows their quasi-identifiers, and how many there are.

    A person's belief is the mean over the published rows with the person's profile. `row`, `value` and
    `belief` list the beliefs about rows that are not 0.
    """
    people = case.people
    place, keys = number(people.row_profile[row] * case.n_values + value)
    total = np.bincount(place, belief)
    owner = keys // case.n_values
    best = np.lexsort((total, owner))
    best = best[np.append(np.flatnonzero(np.diff(owner[best])), len(best) - 1)]
    guess = np.full(people.n_profiles, -1)
    guess[owner[best]] = keys[best] % case.n_values
    chosen = guess[people.profile] >= 0
    if among is not None:
        chosen &= among
    return float((guess[people.profile] == case.value)[chosen].sum()), int(chosen.sum())


def _expect(fakes: PublishedFakes | None, bucket: Ints, number: Ints, count: Ints, size: Ints) -> Floats:
    if fakes is None or (number < 0).any():
        return count.astype(np.float64)
    return fakes.expected_counts(bucket, number, count, size)


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


MOST_PAIRS = 4_000_000
"""With more, buckets are drawn at random, and people outside them are left out."""


def draw_buckets(case: BucketCase, stream: np.random.Generator) -> Bools:
    """All buckets, or as many random ones as `MOST_PAIRS` allows."""
    n_entries = np.bincount(case.st_bucket, minlength=case.n_buckets)
    cost = (n_entries * case.size)[order := stream.permutation(case.n_buckets)]
    chosen = np.zeros(case.n_buckets, dtype=bool)
    chosen[order[np.cumsum(cost) <= MOST_PAIRS]] = True
    return chosen


_MOST_CELLS = 2_000


def usable_columns(case: BucketCase) -> list[int]:
    """Quasi columns with several values, but not so many that nothing can be learnt of each."""
    most = min(_MOST_CELLS, max(len(case.row_bucket) // 20, 2))
    return [c for c, column in enumerate(case.people.columns) if 1 < column.n_cells <= most]
