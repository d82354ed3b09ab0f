"""What a bucketized release holds: what its manifest says, and its two tables.

Nobody else reads this mechanism's parameters, or the tables as rows. Asking and attacking want them whole;
the check of a release reads them bucket by bucket in their own order, so that memory holds a batch.

Bucket numbers say nothing about regions; a bucket's region is the one whose conditions its people satisfy.
Whether the people of every bucket are of one region is told from the published rows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Ints
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.plain import Stated
from dalenius.promises import read_promise
from dalenius.promises.bounds import Thresholds
from dalenius.promises.groups import Group, read_groups
from dalenius.promises.proximity import Proximity, ascending
from dalenius.promises.sets import NONE, Having, SetPrivacy, read_alike, read_having
from dalenius.release.folder import StoredRelease
from dalenius.release.manifest import MOST_ROWS, Manifest
from dalenius.sql import count, identifier, one_row
from dalenius.tables.codes import encode
from dalenius.tables.columns import CodedTable
from dalenius.tables.histogram import Histogram, count_values, write_cells
from dalenius.tables.reading import DictionaryColumns, read_batches

if TYPE_CHECKING:
    import duckdb

_NOT_TOGETHER = (
    ("fakes", "regions"),
    ("fakes", "dates"),
    ("fakes", "suppression"),
    ("regions", "dates"),
    ("regions", "limits of several values"),
    ("regions", "suppression"),
    ("varied contents", "fakes"),
    ("varied contents", "regions"),
    ("varied contents", "dates"),
    ("varied contents", "limits of several values"),
    ("varied contents", "suppression"),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedBuckets:
    """What the manifest of a bucketized release says."""

    sensitive: tuple[str, ...]
    thresholds: Thresholds
    groups: tuple[Group | Having, ...]
    """Sets of values that have a threshold together."""
    proximity: Proximity | None
    """The limit of numbers that are near each other."""
    alike: tuple[str, ...]
    """Quasi columns in which the people of a bucket do not differ."""
    fakes: PublishedFakes | None
    """None: every entry of the sensitive table is somebody's."""
    regions: PublishedRegions | None
    """None: the buckets were made from the whole table."""
    dates: PublishedDates | None
    """None: everybody of every bucket is in the table."""

    @property
    def n_fakes(self) -> int:
        """σ: how many values of every bucket are nobody's."""
        return 0 if self.fakes is None else self.fakes.n_fakes


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedDates:
    """What the manifest of a table that is published again and again says about its buckets."""

    last_bucket: int
    """The highest number of any bucket so far."""
    absent: int
    """How many values are listed whose people are not in the table."""

    @classmethod
    def of(cls, stated: Stated, *, is_first: bool) -> PublishedDates:
        """From the manifest's section; before the first date there is nobody who could have left."""
        return cls(
            last_bucket=stated["last_bucket"].integer(at_least=1, at_most=MOST_ROWS),
            absent=stated["absent"].integer(at_least=0, at_most=0 if is_first else MOST_ROWS),
        )


def read(manifest: Manifest) -> PublishedBuckets:
    """What a manifest says about buckets."""
    given, sensitive = Stated.of(manifest.parameters, "parameters"), manifest.columns_of("sensitive")
    fakes, regions, thresholds = given.get("fakes"), given.get("regions"), Thresholds.of(manifest.promise)
    dates = given.get("dates")
    if not sensitive:
        raise ReleaseCorrupt("the manifest names no sensitive column")
    if any(len(value) != len(sensitive) for value in thresholds.listed):
        raise ReleaseCorrupt("the manifest's promise does not have a cell per sensitive column")
    groups = read_groups(manifest.promise)
    if any(len(value) != len(sensitive) for group in groups for value in group.values):
        raise ReleaseCorrupt("the manifest's groups do not have a cell per sensitive column")
    is_of_sets = manifest.promise.get("kind") == SetPrivacy.kind
    having = read_having(manifest.promise) if is_of_sets else ()
    if is_of_sets and [one.name for one in having] != [*sensitive, NONE]:
        raise ReleaseCorrupt("the manifest's promise does not have a limit per sensitive column")
    _refuse_unchecked(manifest, groups)
    return PublishedBuckets(
        sensitive=sensitive,
        thresholds=thresholds,
        groups=(*groups, *having),
        proximity=_read_proximity(manifest),
        alike=_read_alike(manifest) if is_of_sets else (),
        fakes=PublishedFakes.of(fakes, len(sensitive)) if fakes and fakes.section() else None,
        regions=None if regions is None else PublishedRegions.of(regions, manifest.columns_of("quasi")),
        dates=None if dates is None else PublishedDates.of(dates, is_first=manifest.index == 1),
    )


def _read_alike(manifest: Manifest) -> tuple[str, ...]:
    columns = read_alike(manifest.promise)
    if not set(columns) <= set(manifest.columns_of("quasi")):
        raise ReleaseCorrupt("the manifest's promise names a column that is not published")
    return columns


def _refuse_unchecked(manifest: Manifest, groups: tuple[Group, ...]) -> None:
    """What no policy can ask for together is not checked together either."""
    promise, series, has = manifest.promise, manifest.series, manifest.parameters.get
    is_dated = series is not None and series.kind == "dates"
    if "prior" in promise:
        raise ReleaseCorrupt("the manifest's promise is for a belief beforehand, which buckets do not keep")
    if is_dated != (has("dates") is not None):
        raise ReleaseCorrupt("the manifest says of a release who has left that is not of a date, or does not")
    contents = has("contents")
    if contents not in (None, "varied"):
        raise ReleaseCorrupt("the manifest says of what buckets hold what no release says")
    # sets have regions only of people who are alike, which is checked by itself
    is_of_sets = promise["kind"] == SetPrivacy.kind and not promise.get("alike")
    is_together = bool(groups) or is_of_sets or promise["kind"] == Proximity.kind
    kept_apart = {
        "fakes": bool(has("fakes")),
        "regions": has("regions") is not None,
        "dates": is_dated,
        "limits of several values": is_together,
        "suppression": "suppression" in promise,
        "varied contents": contents is not None,
    }
    asked = {name for name, is_so in kept_apart.items() if is_so}
    for pair in _NOT_TOGETHER:
        if asked.issuperset(pair):
            raise ReleaseCorrupt(f"the manifest has {' and '.join(pair)}, which no policy has together")


def _read_proximity(manifest: Manifest) -> Proximity | None:
    if manifest.promise.get("kind") != Proximity.kind:
        return None
    if len(manifest.columns_of("sensitive")) != 1:
        raise ReleaseCorrupt("the manifest promises proximity of other than one sensitive column")
    promise = read_promise(manifest.promise)
    assert isinstance(promise, Proximity)  # noqa: S101  (by its kind)
    return promise


def tables(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """The columns of each table: people, and values with their counts."""
    quasi, sensitive = manifest.columns_of("quasi"), manifest.columns_of("sensitive")
    return {"qit": (*quasi, "bucket"), "st": ("bucket", *sensitive, "count")}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketTables:
    """Both tables in memory, with the buckets numbered from 0 in the order of their published numbers."""

    people: pa.Table
    """The quasi columns."""
    row_bucket: Ints
    """Of each person."""
    entries: pa.Table
    """The sensitive columns."""
    entry_bucket: Ints
    count: Ints
    """How many people of its bucket have an entry's value; a fake counts as one."""
    numbers: Ints
    """The published number of each bucket."""

    @property
    def n_buckets(self) -> int:
        """How many buckets there are."""
        return len(self.numbers)

    @property
    def size(self) -> Ints:
        """How many people each bucket has."""
        return np.bincount(self.row_bucket, minlength=self.n_buckets)

    def regions(self, regions: PublishedRegions) -> Ints:
        """The region that each bucket was made in."""
        return regions.of_buckets(self.people, self.row_bucket, self.n_buckets)


def read_tables(release: StoredRelease) -> BucketTables:
    """Read both tables; refuse them where they do not fit together."""
    quasi, sensitive = release.columns("quasi"), release.columns("sensitive")
    qit = release.read("qit", (*quasi, "bucket"))
    st = release.read("st", ("bucket", *sensitive, "count"))
    numbers, entry_bucket = _number_buckets(st.column("bucket").to_numpy())
    row_number = qit.column("bucket").to_numpy()
    is_dense = len(numbers) > 0 and numbers[-1] - numbers[0] + 1 == len(numbers)  # as in most releases
    row_bucket = row_number - numbers[0] if is_dense else np.searchsorted(numbers, row_number)
    if (
        qit.num_rows == 0
        or st.num_rows == 0
        or st.column("count").null_count
        or (numbers[np.clip(row_bucket, 0, len(numbers) - 1)] != row_number).any()
    ):
        raise ReleaseCorrupt(f"{release.path}: the two tables do not have the same buckets")
    return BucketTables(
        people=qit.select(list(quasi)),
        row_bucket=row_bucket.astype(np.int64),
        entries=st.select(list(sensitive)),
        entry_bucket=entry_bucket.astype(np.int64),
        count=st.column("count").to_numpy().astype(np.int64),
        numbers=numbers,
    )


def _number_buckets(bucket: Ints) -> tuple[Ints, Ints]:
    """The different numbers, ascending, and which of them each is; those of a release ascend."""
    steps = np.diff(bucket)
    if not (steps >= 0).all():
        numbers, place = np.unique(bucket, return_inverse=True)
        return numbers, place.ravel()
    is_first = np.concatenate([np.ones(min(len(bucket), 1), dtype=bool), steps > 0])
    return bucket[is_first], np.cumsum(is_first) - 1


def count_published(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Histogram | None:
    """How many people have each value, from views of the tables.

    None where fakes, or the values of people who have left, hide it.
    """
    stated = read(manifest)
    is_hidden = stated.fakes or (stated.dates and stated.dates.absent)
    return None if is_hidden else count_values(connection, "st", stated.sensitive, 'sum("count")::BIGINT')


def count_certain(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
    """How many people are in buckets that tell their value, or a column of it.

    A value that a bucket lists twice is nobody's fake; if these are as many as the people, all others are.
    """
    stated = read(manifest)
    columns = stated.sensitive if len(stated.sensitive) > 1 else ()
    if not columns and not stated.fakes and (few := _list_one_value(connection)) is not None:
        return _count_in(connection, few) if len(few) else 0
    cells = [identifier(name) for name in columns]
    alike = [f"min(hash({one})) = max(hash({one}))" for one in cells]
    if any(isinstance(group, Having) for group in stated.groups):  # who lacks a value may be known to
        alike = [f"bool_and({one})" for one in cells]
    listed = "st"
    if stated.fakes:
        people = "SELECT bucket, count(*) AS people FROM qit GROUP BY bucket"
        real = 'coalesce(sum("count") FILTER ("count" > 1) OVER (PARTITION BY bucket), 0)'
        listed = f'(SELECT * FROM st JOIN ({people}) USING (bucket) QUALIFY "count" > 1 OR {real} <> people)'
    certain = " OR ".join(["count(*) = 1", *alike])
    alone = f"SELECT bucket FROM {listed} GROUP BY bucket HAVING {certain}"
    return count(connection, f"SELECT count(*) FROM qit SEMI JOIN ({alone}) USING (bucket)")


def _list_one_value(connection: duckdb.DuckDBPyConnection) -> Ints | None:
    """The buckets that list one value; None where the table is not in their order, as releases are.

    A pass over neighbours takes a tenth of the time of grouping.
    """
    found: list[Ints] = []
    held = np.zeros(0, dtype=np.int64)
    for batch in read_batches(connection, "SELECT bucket::BIGINT FROM st"):
        if batch.column(0).null_count:
            return None
        # what is held begins the run that the last batch ended with
        buckets = np.concatenate([held, batch.column(0).to_numpy()])
        if (buckets[1:] < buckets[:-1]).any():
            return None
        is_last = buckets[1:] != buckets[:-1]
        found.append(buckets[:-1][is_last & np.append(True, is_last[:-1])[: len(is_last)]])
        ends = np.flatnonzero(is_last)
        held = buckets[ends[-1] + 1 if len(ends) else 0 :][:2]
    return np.concatenate([*found, held if len(held) == 1 else held[:0]])


def _count_in(connection: duckdb.DuckDBPyConnection, buckets: Ints) -> int:
    """How many people are in these buckets."""
    connection.register("few", pa.table({"bucket": buckets}))
    n_people = count(connection, "SELECT count(*) FROM qit SEMI JOIN few USING (bucket)")
    connection.unregister("few")
    return n_people


def count_people(connection: duckdb.DuckDBPyConnection) -> Ints:
    """How many people each bucket has, in the order of their numbers."""
    query = "SELECT count(*) AS n FROM qit GROUP BY bucket ORDER BY bucket"
    return np.asarray(connection.sql(query).to_arrow_table().column("n"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The rows of some whole buckets."""

    bucket: Ints
    count: Ints
    starts: Ints
    """Where each bucket's rows begin."""
    code: Ints
    """Which of `values` each row holds."""
    values: tuple[tuple[str | None, ...], ...]
    """The different values of these rows, as texts."""

    @property
    def places(self) -> Ints:
        """How many sensitive values the buckets hold, in the order of `starts`."""
        return np.add.reduceat(self.count, self.starts)

    def count_held(self, group: Group | Having) -> Ints:
        """How many values of a group the buckets hold, in the order of `starts`."""
        inside = np.array([group.has(value) for value in self.values], dtype=bool)
        return np.add.reduceat(np.where(inside[self.code], self.count, 0), self.starts)

    def count_near(self, promise: Proximity) -> Ints:
        """For each row, how many values of its bucket one guess hits that hits the row's, and larger ones."""
        written = [value[0] for value in self.values]
        order = ascending(written)
        rank = np.argsort(order)[self.code]
        ends = np.array(promise.reach([written[code] for code in order]), dtype=np.int64)
        begins = self.bucket_of_row() * len(order)
        by_key = np.argsort(begins + rank, kind="stable")
        keys = (begins + rank)[by_key]
        before = np.concatenate([[0], np.cumsum(self.count[by_key])])
        last = np.searchsorted(keys, begins + ends[rank])
        first = np.searchsorted(keys, begins + rank)
        return np.asarray(before[last] - before[first], dtype=np.int64)

    def bucket_of_row(self) -> Ints:
        """Which bucket each row is of, from 0, in the order of `starts`."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.count)))


def read_entries(
    connection: duckdb.DuckDBPyConnection, sensitive: Sequence[str], where: str
) -> Iterator[Entries]:
    """The entries that a condition holds for; a bucket comes whole if its rows stand together."""
    cells = ", ".join(f"{identifier(name)} AS v{i}" for i, name in enumerate(sensitive))
    query = (
        f'SELECT coalesce(bucket::BIGINT, 0) AS bucket, coalesce("count"::BIGINT, 0) AS n, {cells} FROM st '
        f"WHERE {where}"
    )
    columns = DictionaryColumns.of(connection, query)
    held: list[pa.RecordBatch] = []
    for batch in read_batches(connection, columns.code(query)):
        if not batch.num_rows:
            continue
        rows = pa.Table.from_batches([*held, columns.decode(batch)]).combine_chunks()
        bucket = rows.column("bucket").to_numpy()
        n_whole = int(np.flatnonzero(bucket != bucket[-1])[-1]) + 1 if (bucket != bucket[-1]).any() else 0
        if n_whole:
            yield _entries(rows.slice(0, n_whole))
        held = rows.slice(n_whole).to_batches()
    if held:
        yield _entries(pa.Table.from_batches(held))


def _entries(rows: pa.Table) -> Entries:
    bucket = rows.column("bucket").to_numpy()
    cells = CodedTable.of(rows.select(rows.column_names[2:]))
    values = cells.combine(list(cells.columns))
    # the manifest's thresholds name values by the same texts
    written = tuple(map(write_cells, values.to_pylist(list(cells.columns))))
    return Entries(
        bucket=bucket,
        count=rows.column("n").to_numpy(),
        starts=np.flatnonzero(np.diff(bucket, prepend=bucket[0] - 1)),
        code=values.codes.astype(np.int64),
        values=written,
    )


_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedRegions:
    """The regions that a manifest lists.

    >>> listed = [
    ...     {"rows": 1, "buckets": 1, "where": [{"column": "sex", "in": ["F"]}]},
    ...     {"rows": 1, "buckets": 1, "where": [{"column": "sex", "in": ["M"]}]},
    ... ]
    >>> regions = PublishedRegions.of(Stated.of(listed, "regions"), ("sex",))
    >>> regions.of_rows(pa.table({"sex": ["M", "F", None]})).tolist()
    [1, 0, -1]
    """

    where: tuple[Sequence[Mapping[str, Any]], ...]
    """The conditions that the people of each region satisfy."""
    rows: tuple[int, ...]
    """How many people each has."""
    buckets: tuple[int, ...]

    @classmethod
    def of(cls, listed: Stated, quasi: tuple[str, ...]) -> PublishedRegions:
        """From the manifest's list, whose conditions are on the quasi columns."""
        regions = listed.entries()
        return cls(
            where=tuple(tuple(_condition(c, quasi) for c in r["where"].entries()) for r in regions),
            rows=tuple(r["rows"].integer(at_least=0, at_most=MOST_ROWS) for r in regions),
            buckets=tuple(r["buckets"].integer(at_least=0, at_most=MOST_ROWS) for r in regions),
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self.where)

    def of_rows(self, rows: pa.Table) -> Ints:
        """The region whose conditions each row satisfies; −1: none."""
        found = np.full(rows.num_rows, _UNKNOWN, dtype=np.int64)
        names = {condition["column"] for conditions in self.where for condition in conditions}
        columns = {name: _conditions(rows.column(name)) for name in names}
        for number, conditions in enumerate(self.where):
            inside = np.ones(rows.num_rows, dtype=bool)
            for condition in conditions:
                inside &= columns[condition["column"]](condition)
            found[inside] = number
        return found

    def of_buckets(self, rows: pa.Table, row_bucket: Ints, n_buckets: int) -> Ints:
        """The region of each bucket, by one of its people."""
        one = np.zeros(n_buckets, dtype=np.int64)
        one[row_bucket] = np.arange(len(row_bucket))
        found = self.of_rows(rows.take(pa.array(one)))
        if not np.array_equal(np.unique(found), np.arange(len(self))):
            raise ReleaseCorrupt("the buckets are not in the regions that the manifest lists")
        return found


def _condition(stated: Stated, quasi: tuple[str, ...]) -> Mapping[str, Any]:
    """A condition: a column, and texts that it may have, or numbers that it lies between."""
    found: dict[str, Any] = {"column": stated["column"].one_of(*quasi)}
    if "in" in stated.section():
        return found | {"in": stated["in"].cells()}
    ends = {key: stated[key].number() for key in ("above", "at_most") if key in stated.section()}
    if not isinstance(stated["null"].value, bool):
        raise ReleaseCorrupt(f"the manifest's {stated.place} does not say whether NULL is in it")
    return found | ends | {"null": stated["null"].value}


def _conditions(column: pa.ChunkedArray) -> Callable[[Mapping[str, Any]], Bools]:
    """Which rows satisfy a condition on the column."""
    codes, cells = encode(column)
    empty = cells.is_null().to_numpy(zero_copy_only=False)

    def satisfy(condition: Mapping[str, Any]) -> Bools:
        if "in" in condition:
            wanted = set(condition["in"])
            labels = write_cells(cells.to_pylist())
            return np.asarray(np.array([label in wanted for label in labels], dtype=bool)[codes])
        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        inside = np.ones(len(numbers), dtype=bool)
        if "above" in condition:
            inside &= ~(numbers <= condition["above"])  # NaN is above every number
        if "at_most" in condition:
            inside &= numbers <= condition["at_most"]
        return np.asarray(np.where(empty, condition["null"], inside)[codes])

    return satisfy


def check_regions(connection: duckdb.DuckDBPyConnection, regions: PublishedRegions) -> Check:
    """Every record is in a region, every bucket in one region, and the regions have the stated sizes."""
    least, last, n_rows = one_row(connection, "SELECT min(bucket), max(bucket), count(*) FROM qit")
    if not n_rows or least < 1 or last > n_rows:  # there are no more buckets than people
        return Check(name="regions", ok=False, detail="the numbers of the buckets are not those of a release")
    region_of = np.full(int(last) + 1, -1, dtype=np.int64)
    rows = np.zeros(len(regions), dtype=np.int64)
    n_outside = n_strangers = 0
    for batch in read_batches(connection, "SELECT * FROM qit"):
        found = regions.of_rows(pa.Table.from_batches([batch]))
        bucket = batch.column("bucket").to_numpy()
        known = found >= 0
        n_outside += int((~known).sum())
        rows += np.bincount(found[known], minlength=len(regions))
        new = known & (region_of[bucket] < 0)
        region_of[bucket[new]] = found[new]
        n_strangers += int((region_of[bucket] != found)[known].sum())
    buckets = np.bincount(region_of[region_of >= 0], minlength=len(regions))
    sizes = regions.rows == tuple(rows.tolist()) and regions.buckets == tuple(buckets.tolist())
    ok = n_outside == n_strangers == 0 and sizes
    return Check(
        name="regions",
        ok=ok,
        detail=f"every bucket is in one of the {len(regions)} regions"
        if ok
        else f"{n_outside} records are in no region, {n_strangers} in a bucket of another, or sizes differ",
    )
