"""Does a bucketized release keep its thresholds? From the published tables alone, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache

import duckdb
import numpy as np

from dalenius.arrays import Ints
from dalenius.exact import show
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.bucketize import published
from dalenius.mechanisms.bucketize.published import Entries, check_regions, read_entries
from dalenius.prefetch import prefetch
from dalenius.promises.bounds import Thresholds
from dalenius.promises.groups import Group
from dalenius.promises.proximity import Proximity, is_number
from dalenius.promises.sets import Having
from dalenius.release.manifest import Manifest
from dalenius.sql import count, identifier, identifiers
from dalenius.tables.codes import number
from dalenius.tables.histogram import write_cells
from dalenius.tables.reading import read_batches

_MARKED_PER_KEY = 64
"""Different keys are counted by marking bytes where there are at most so many for each."""
_WINDOW = 2**22
"""Bucket numbers that are looked at together."""


def check_buckets(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterator[Check]:
    """Sizes, well-formed counts, the fakes' domain, and the thresholds."""
    stated = published.read(manifest)
    sensitive, n_fakes = stated.sensitive, stated.n_fakes
    limits = _BucketLimits(stated.thresholds, n_fakes)
    n_people = count(connection, "SELECT count(*) FROM qit")
    near = stated.proximity if stated.proximity and _are_numbers(connection, sensitive) else None
    last_number = n_people if stated.dates is None else stated.dates.last_bucket
    n_malformed = n_broken = n_groups_broken = n_absent = n_near_broken = 0
    # rows with numbers that cannot be: there are no more buckets than people, unless some have left
    n_uneven = n_people + count(connection, "SELECT count(*) FROM st")
    # by ranges of bucket numbers: memory does not grow with the release, whose files are sorted by them
    for first in range(1, last_number + 1, _WINDOW) if stated.dates is None else _windows(connection):
        numbers = range(first, min(first + _WINDOW, last_number + 1))
        people = _people(connection, numbers)
        n_uneven -= int(people.sum())
        last = first - 1
        for entries in prefetch(read_entries(connection, sensitive, _within(numbers))):
            n_uneven -= len(entries.bucket)
            n_malformed += _count_malformed(entries, last)
            n_broken += limits.broken(entries)
            n_groups_broken += _count_broken(stated.groups, entries, n_fakes)
            n_near_broken += 0 if near is None else _count_near_broken(near, entries, n_fakes)
            last = int(entries.bucket[-1])
            here = entries.bucket[entries.starts] - first
            # a bucket that nobody is in is not listed, though others of its people may have left
            n_uneven += 0 if stated.dates is None else int(np.count_nonzero(people[here] < 1))
            np.subtract.at(people, here, entries.places - n_fakes)
        n_absent -= int(people.sum())
        n_uneven += int(np.count_nonzero(people if stated.dates is None else people > 0))
    yield (
        _check_sizes(n_uneven, n_fakes)
        if stated.dates is None
        else _check_absent(n_uneven, n_absent, stated.dates.absent)
    )
    malformed = f"{n_malformed} entries are repeated, out of order or not positive" if n_malformed else None
    yield Check.of("sensitive table", malformed, "every value is counted once a bucket")
    if stated.fakes is not None:
        yield _check_domain(connection, stated.fakes.values, sensitive)
    if stated.regions is not None:
        yield check_regions(connection, stated.regions)
    yield _check_numbers(n_people, manifest.rows.published)
    broken = f"{n_broken} entries of the sensitive table are above their threshold" if n_broken else None
    yield Check.of("promise", broken, "every value is within its threshold in every bucket")
    if stated.groups:
        yield _check_groups(n_groups_broken, len(stated.groups))
    if stated.alike:
        yield _check_alike(connection, stated.alike)
    if stated.proximity:
        yield _check_near(n_near_broken, stated.proximity, are_numbers=near is not None)


def _windows(connection: duckdb.DuckDBPyConnection) -> list[int]:
    """Where the ranges begin that hold a bucket: of those that people have left, most may be gone."""
    every = "SELECT bucket FROM qit UNION ALL SELECT bucket FROM st"
    query = f"SELECT DISTINCT (bucket - 1) // {_WINDOW} FROM ({every}) WHERE bucket >= 1 ORDER BY 1"
    return [1 + number * _WINDOW for (number,) in connection.execute(query).fetchall()]


def _within(numbers: range) -> str:
    return f"bucket >= {numbers.start} AND bucket < {numbers.stop}"


def _people(connection: duckdb.DuckDBPyConnection, numbers: range) -> Ints:
    """How many people each of a range of buckets has."""
    people = np.zeros(len(numbers), dtype=np.int64)
    query = f"SELECT bucket::BIGINT FROM qit WHERE {_within(numbers)}"
    for batch in read_batches(connection, query):
        buckets = batch.column(0).to_numpy(zero_copy_only=False) - numbers.start
        least = int(buckets.min(initial=len(people)))  # a batch has neighbours: few numbers are counted
        found = np.bincount(buckets - least)
        people[least : least + len(found)] += found
    return people


def _check_alike(connection: duckdb.DuckDBPyConnection, columns: tuple[str, ...]) -> Check:
    """The people of a bucket have the same cells in these columns."""
    listed = identifiers(columns)
    different = f"SELECT bucket FROM (SELECT DISTINCT bucket, {listed} FROM qit)"
    n_mixed = count(connection, f"SELECT count(*) FROM ({different} GROUP BY bucket HAVING count(*) > 1)")
    return Check(
        name="alike",
        ok=n_mixed == 0,
        detail=f"the people of {n_mixed} buckets differ in {', '.join(columns)}"
        if n_mixed
        else f"the people of every bucket are alike in {', '.join(columns)}",
    )


def _check_sizes(n_uneven: int, n_fakes: int) -> Check:
    same = f"as many sensitive values as people{f', and {n_fakes} more' if n_fakes else ''}"
    uneven = f"{n_uneven} buckets do not have {same}" if n_uneven else None
    return Check.of("bucket sizes", uneven, f"every bucket has {same}")


def _check_absent(n_uneven: int, n_absent: int, stated: int) -> Check:
    """Buckets list at least the values of the people in them, and as many more as is said."""
    if n_uneven:
        detail = f"{n_uneven} buckets have fewer sensitive values than people, or nobody"
    else:
        detail = f"{n_absent} values are of people who have left, and the manifest says {stated}"
    return Check(name="bucket sizes", ok=n_uneven == 0 and n_absent == stated, detail=detail)


def _count_malformed(entries: Entries, last: int) -> int:
    """Rows that repeat a value of their bucket, that come after a later bucket, or that count nobody."""
    keys = entries.bucket_of_row() * len(entries.values) + entries.code
    n_repeated = len(keys) - _count_different(keys) if (np.diff(keys) <= 0).any() else 0
    n_unordered = np.count_nonzero(np.diff(entries.bucket[entries.starts], prepend=last) <= 0)
    return int(n_repeated + n_unordered + np.count_nonzero(entries.count < 1))


def _count_different(keys: Ints) -> int:
    n_keys = int(keys.max()) + 1
    if n_keys > _MARKED_PER_KEY * len(keys):
        return len(number(keys)[1])
    is_there = np.zeros(n_keys, dtype=np.bool_)
    is_there[keys] = True
    return int(np.count_nonzero(is_there))


class _BucketLimits:
    """How many copies of a value a bucket may hold, in exact integers."""

    def __init__(self, thresholds: Thresholds, n_fakes: int) -> None:
        self._n_fakes = n_fakes
        self._thresholds = thresholds
        self._limit = cache(self._exact_limit)  # asked for every value and size of every batch

    def broken(self, entries: Entries) -> int:
        """How many rows are above their value's threshold."""
        # of the bucket's people: an attacker may know which values are fakes
        sizes, size_index = np.unique(entries.places - self._n_fakes, return_inverse=True)
        limits = np.array(
            [[self._limit(value, int(size)) for value in entries.values] for size in sizes], dtype=np.int64
        )
        begins = np.repeat(
            size_index * len(entries.values), np.diff(entries.starts, append=len(entries.code))
        )
        return int(np.count_nonzero(entries.count > limits.ravel()[begins + entries.code]))

    def _exact_limit(self, value: tuple[str | None, ...], size: int) -> int:
        # a value without a threshold counts as broken: nothing was promised that could hold
        at_most = self._thresholds.of_value(value) or Fraction(0)
        return at_most.numerator * size // at_most.denominator


def _count_broken(groups: tuple[Group | Having, ...], entries: Entries, n_fakes: int) -> int:
    """How many times a group is above its threshold in a bucket, of whose people it is a share."""
    sizes, size_index = np.unique(entries.places - n_fakes, return_inverse=True)
    n_broken = 0
    for group in groups:
        limits = np.array([group.most(size) for size in sizes.tolist()], dtype=np.int64)
        n_broken += int(np.count_nonzero(entries.count_held(group) > limits[size_index]))
    return n_broken


def _check_groups(n_broken: int, n_groups: int) -> Check:
    what = "1 group of values" if n_groups == 1 else f"{n_groups} groups of values"
    broken = f"{what}: above their thresholds in buckets {n_broken} times" if n_broken else None
    return Check.of("promise on groups", broken, f"{what}: within their thresholds in every bucket")


def _are_numbers(connection: duckdb.DuckDBPyConnection, sensitive: tuple[str, ...]) -> bool:
    query = f"SELECT {identifier(sensitive[0])} FROM st LIMIT 0"
    return is_number(connection.sql(query).to_arrow_table().schema.field(0).type)


def _count_near_broken(promise: Proximity, entries: Entries, n_fakes: int) -> int:
    """How many values begin a run of near numbers that is above the limit in their bucket, of its people."""
    sizes, size_index = np.unique(entries.places - n_fakes, return_inverse=True)
    top, bottom = promise.at_most.as_integer_ratio()
    limits = np.array([top * size // bottom for size in sizes.tolist()], dtype=np.int64)
    allowed = limits[size_index[entries.bucket_of_row()]]
    return int(np.count_nonzero(entries.count_near(promise) > allowed))


def _check_near(n_broken: int, promise: Proximity, *, are_numbers: bool) -> Check:
    what, at_most = f"values within {promise.within} of one number are", show(promise.at_most)
    problem = f"{what} above {at_most} of a bucket {n_broken} times" if n_broken else None
    if not are_numbers:
        problem = "the sensitive column does not hold numbers"
    return Check.of("promise on near numbers", problem, f"{what} at most {at_most} of every bucket")


def _check_domain(
    connection: duckdb.DuckDBPyConnection,
    values: tuple[tuple[str | None, ...], ...],
    sensitive: tuple[str, ...],
) -> Check:
    """A fake from outside the domain would be known for one at once."""
    domain = set(values)
    listed = ", ".join(f"{identifier(name)} AS v{i}" for i, name in enumerate(sensitive))
    rows = connection.sql(f"SELECT {listed}, count(*) AS n FROM st GROUP BY ALL").to_arrow_table()
    *cells, counts = (column.to_pylist() for column in rows.columns)
    labels = zip(*map(write_cells, cells), strict=True)
    outside = sum(n for value, n in zip(labels, counts, strict=True) if value not in domain)
    problem = f"{outside} entries are outside the domain" if outside else None
    return Check.of("fakes", problem, "every value is one of the domain's")


def _check_numbers(n_people: int, stated: int | None) -> Check:
    return Check(
        name="records",
        ok=n_people == stated,
        detail=f"{n_people} records are published, and the manifest says {stated}",
    )
