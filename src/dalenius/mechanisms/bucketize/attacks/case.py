"""A bucketized release beside its original, as arrays.

Who only has quasi-identifiers cannot tell the records of equal ones apart, and neither can an audit: which
of several people with one profile a published row is, is known only where all of them have the same value.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.mechanisms.bucketize.regions.published import regions_of_buckets
from dalenius.promises.thresholds import Thresholds
from dalenius.release.folder import StoredRelease
from dalenius.tables.codes import number
from dalenius.tables.histogram import label, write_cells
from dalenius.threats.original import CommonCodes, find_profiles, known_values


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QuasiColumn:
    """One quasi-identifier, by codes that people and rows have in common."""

    cells: pa.Array
    """The different ones."""
    people: Ints
    """The cell of each of the original's people."""
    rows: Ints
    """Of each published row."""

    @classmethod
    def of(cls, common: CommonCodes, name: str) -> QuasiColumn:
        """A column of the original and of the published rows."""
        people, rows = common.of_rows([name])
        return cls(cells=common.joined.columns[name].values[name], people=people, rows=rows)

    @property
    def n_cells(self) -> int:
        """How many different cells there are."""
        return len(self.cells)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketCase:
    """What is attacked, and the truth to score by."""

    release: StoredRelease
    columns: tuple[QuasiColumn, ...]
    profile: Ints
    """Each person's combination of quasi-identifiers."""
    value: Ints
    """Each person's sensitive value."""
    row_profile: Ints
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
    labels: tuple[str, ...]
    """How each sensitive value is written."""
    thresholds: tuple[Fraction | None, ...]
    """The promise for each value; None: the promise does not know the value."""
    fakes: PublishedFakes | None
    """What the manifest says of values that are nobody's."""
    fake_number: Ints
    """The manifest's number of each value; −1 for a value that it does not know."""

    @classmethod
    def load(cls, release: StoredRelease, original: pa.Table) -> BucketCase:
        """Read the release and find the original's people in it."""
        quasi, secret = release.columns("quasi"), release.columns("sensitive")
        qit = release.read("qit", (*quasi, "bucket"))
        st = release.read("st", ("bucket", *secret, "count"))
        common = CommonCodes.of(quasi, (original, qit))
        profile, row_profile = find_profiles(common)
        secrets = CommonCodes.of(secret, (original, st))
        value, st_value = secrets.of_rows(secret)
        numbers, st_bucket = np.unique(st.column("bucket").to_numpy(), return_inverse=True)
        row_bucket = np.searchsorted(numbers, qit.column("bucket").to_numpy())
        if row_bucket.max() >= len(numbers):
            raise ReleaseCorrupt(f"{release.path}: the two tables do not have the same buckets")
        region = regions_of_buckets(release.manifest.parameters, qit, row_bucket, len(numbers))
        cells = secrets.joined.combined(secret).values
        values = list(zip(*(cells[name].to_pylist() for name in secret), strict=True))
        thresholds = Thresholds.of(release.manifest.promise)
        fakes = PublishedFakes.read(release.manifest.parameters)
        order = np.lexsort((st_value, st_bucket.ravel()))
        entries = st_bucket.ravel().astype(np.int64)[order], st_value[order]
        counts = st.column("count").to_numpy().astype(np.int64)[order]
        numbered = _numbers(fakes, values)
        size = np.bincount(row_bucket, minlength=len(numbers))
        return cls(
            release=release,
            columns=tuple(QuasiColumn.of(common, name) for name in quasi),
            profile=profile,
            value=value,
            row_profile=row_profile,
            row_bucket=row_bucket.astype(np.int64),
            region=np.zeros(len(numbers), dtype=np.int64) if region is None else region,
            st_bucket=entries[0],
            st_value=entries[1],
            st_count=counts,
            st_expected=_expected(fakes, entries[0], numbered[entries[1]], counts, size),
            labels=tuple(label(cells) for cells in values),
            thresholds=tuple(map(thresholds.of_value, map(write_cells, values))),
            fakes=fakes,
            fake_number=numbered,
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
    def frequency(self) -> Floats:
        """The share of each value among the people: the public histogram."""
        return np.bincount(self.value, minlength=self.n_values) / self.n_people

    @property
    def limits(self) -> Floats:
        """The thresholds as numbers to compare rates with; 0 where there is none."""
        return np.array([0.0 if t is None else float(t) for t in self.thresholds])

    def row_truth(self) -> Ints:
        """The sensitive value behind each published row; −1 where people of one profile differ."""
        n_profiles = int(max(self.profile.max(), self.row_profile.max())) + 1
        return known_values(self.profile, self.value, n_profiles)[self.row_profile]

    def known_buckets(self) -> Bools:
        """The buckets in which the value behind every row is known."""
        unknown = np.bincount(self.row_bucket[self.row_truth() < 0], minlength=self.n_buckets)
        return np.asarray((unknown == 0) & (self.size > 0))


def success_by_profile(
    case: BucketCase, row: Ints, value: Ints, belief: Floats, people: Bools | None = None
) -> tuple[float, int]:
    """How many people are guessed right by who knows their quasi-identifiers, and how many there are.

    A person's belief is the mean over the published rows with the person's profile. `row`, `value` and
    `belief` list the beliefs about rows that are not 0.
    """
    place, keys = number(case.row_profile[row] * case.n_values + value)
    total = np.bincount(place, belief)
    owner = keys // case.n_values
    best = np.lexsort((total, owner))
    best = best[np.append(np.flatnonzero(np.diff(owner[best])), len(best) - 1)]
    n_profiles = int(max(case.profile.max(), case.row_profile.max())) + 1
    guess = np.full(n_profiles, -1)
    guess[owner[best]] = keys[best] % case.n_values
    chosen = guess[case.profile] >= 0
    if people is not None:
        chosen &= people
    return float((guess[case.profile] == case.value)[chosen].sum()), int(chosen.sum())


def _expected(fakes: PublishedFakes | None, bucket: Ints, number: Ints, count: Ints, size: Ints) -> Floats:
    if fakes is None or (number < 0).any():
        return count.astype(np.float64)
    return fakes.expected_counts(bucket, number, count, size)


def _numbers(fakes: PublishedFakes | None, values: list[tuple[Any, ...]]) -> Ints:
    known = {} if fakes is None else {value: code for code, value in enumerate(fakes.values)}
    written = list(map(write_cells, values))
    return np.array([known.get(value, -1) for value in written], dtype=np.int64)
