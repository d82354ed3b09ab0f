"""The weights of bucketized releases: Anatomy's, with fakes taken off where there are some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.mechanisms.base import AS_IT_IS, Completion, Place, Weighting, listed_columns, stage
from dalenius.mechanisms.bucketize import published
from dalenius.mechanisms.bucketize.estimate import MATCHING
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.mechanisms.bucketize.published import read_tables
from dalenius.randomness import random_keys
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifiers
from dalenius.tables.columns import CodedTable

if TYPE_CHECKING:
    from dalenius.arrays import Ints
    from dalenius.mechanisms.bucketize.answer import BucketizedRows
    from dalenius.mechanisms.bucketize.estimate.buckets import Buckets

_TABLE = "bucket_weights"
_SOMEBODYS = "a value that people of the bucket have, nobody knows who"
_FAKES = " Some entries of st are fakes; the weights take them off by the law that the manifest states."


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """Every person with every value of the bucket, weighted count/|bucket| (Anatomy's estimator)."""
    fakes = published.read(release.manifest).fakes
    secret = release.columns("sensitive")
    if fakes is None:
        share = 'CAST("count" AS DOUBLE) / sum("count") OVER (PARTITION BY bucket)'
        connection.execute(
            f"CREATE TABLE {_TABLE} AS SELECT bucket, {identifiers(secret)}, {share} AS weight FROM st "
            "ORDER BY ALL"
        )
    else:
        stage(connection, _TABLE, _without_fakes(connection, fakes, secret))
    return Weighting(
        helpers=((_TABLE, "what each person of a bucket counts towards each of its values"),),
        columns=(
            ("qit", "bucket", "the number of the person's bucket; numbers are random"),
            ("st", "bucket", "the number of a bucket; numbers are random"),
            ("st", "count", "how many people of the bucket have the value"),
            (_TABLE, "bucket", "the number of a bucket; numbers are random"),
            (_TABLE, "weight", "the share of the bucket's people that have the value"),
        ),
        published=(
            ("qit", "quasi", AS_IT_IS),
            ("st", "sensitive", f"{_SOMEBODYS}; it may be a fake"),
            (_TABLE, "sensitive", _SOMEBODYS),
        ),
        view=f"SELECT {listed_columns(columns, {'q': release.columns('quasi'), 'b': secret})}, b.weight\n"
        f"FROM {place('qit')} AS q\n"
        f"JOIN {place(_TABLE)} AS b ON b.bucket = q.bucket",
        weight="the share of the bucket's people that have the row's sensitive value: count / people",
        note="SUM(weight) is Anatomy's estimate: it takes every matching of people with values in a bucket "
        "as equally likely and so leans towards independence where the sensitive value depends on the "
        "columns asked about. The default estimator of `dalenius ask` is better, and `dalenius ask "
        "--estimator anatomy` gives the same as SUM(weight)." + ("" if fakes is None else _FAKES),
    )


def _without_fakes(
    connection: duckdb.DuckDBPyConnection, fakes: PublishedFakes, secret: tuple[str, ...]
) -> pa.Table:
    """The entries of st, weighted by their expected real counts."""
    listed = f'SELECT bucket, {identifiers(secret)}, "count" FROM st ORDER BY ALL'
    entries = connection.sql(listed).to_arrow_table()
    values = CodedTable.of(entries.select(list(secret))).combine(secret)
    numbers = fakes.codes_of(values.to_pylist(secret))[values.codes]
    size = published.count_people(connection)
    _, bucket = np.unique(entries.column("bucket").to_numpy(), return_inverse=True)
    expected = fakes.expected_counts(bucket, numbers, entries.column("count").to_numpy(), size)
    return entries.select(["bucket", *secret]).append_column("weight", pa.array(expected / size[bucket]))


ASSUMES = (
    "inside a bucket every way to match people with values is equally likely: what goes together only inside "
    "buckets is lost, so that associations between the sensitive value and other columns come out too weak"
)


ASSUMES_EFFECTS = (
    "a value depends on the published columns by a main effect of each, of a size that the release teaches: "
    "a matching of a bucket's people with its values is as likely as that says, and effects are drawn anew "
    "for every copy. Interactions of columns beyond that come out too weak"
)


ASSUMES_NUMBERS = (
    "how large a number is depends on the published columns by a main effect of each, of a size that the "
    "release teaches: a matching of a bucket's people with its numbers is as likely as that says, and "
    "effects are drawn anew for every copy. Interactions of columns beyond that come out too weak"
)


_FAKES_DRAWN = ". Which values of a bucket are fakes is drawn as well, by the law that the manifest states"


def complete(release: StoredRelease) -> Completion:
    """Fit the effects of the columns once; every draw is another matching, given other effects."""
    from dalenius.mechanisms.bucketize.answer import BucketizedRows
    from dalenius.mechanisms.bucketize.estimate.drawing import draw_alike, draw_numbers, draw_values
    from dalenius.mechanisms.bucketize.estimate.matching import MOST_VALUES
    from dalenius.mechanisms.bucketize.estimate.numbers import Numbers
    from dalenius.mechanisms.bucketize.estimate.posterior import Posterior

    rows = BucketizedRows.load(release)
    made = rows.estimator(MATCHING).made
    if isinstance(made, Posterior):
        return _complete_by(release, rows, partial(draw_values, made), ASSUMES_EFFECTS)
    if isinstance(made, Numbers):
        return _complete_by(release, rows, partial(draw_numbers, made), ASSUMES_NUMBERS)
    # of fakes it is known how likely each value is one
    found = _complete_by(release, rows, draw_alike, ASSUMES) if rows.has_fakes else _complete_alike(release)
    return replace(found, too_many_values=rows.sensitive.n_rows > MOST_VALUES)


def _complete_by(
    release: StoredRelease,
    rows: BucketizedRows,
    draw_codes: Callable[[Buckets, np.random.Generator], Ints],
    assumes: str,
) -> Completion:
    """By a draw of a value's code for each person."""
    people = _columns(read_tables(release).people)

    def draw(stream: np.random.Generator) -> pa.Table:
        codes = draw_codes(rows.buckets, stream)
        secret = {name: column.decode(codes) for name, column in rows.sensitive.columns.items()}
        return pa.table({**people, **secret})

    return Completion(draw=draw, assumes=assumes + (_FAKES_DRAWN if rows.has_fakes else ""))


def _complete_alike(release: StoredRelease) -> Completion:
    """Where effects cannot be learned: inside a bucket every matching is as likely as the next."""
    tables = read_tables(release)
    places = np.repeat(np.arange(len(tables.count)), tables.count)
    places = places[np.argsort(tables.entry_bucket[places], kind="stable")]

    first = np.cumsum(tables.size) - tables.size
    starts = np.searchsorted(tables.entry_bucket[places], np.arange(tables.n_buckets))

    def draw(stream: np.random.Generator) -> pa.Table:
        order = np.lexsort((random_keys(stream, len(tables.row_bucket)), tables.row_bucket))
        entry = np.empty(len(order), dtype=np.int64)
        # of a bucket that people have left, some of its values at random
        mixed = places
        if len(places) > len(order):
            home = tables.entry_bucket[places]
            mixed = places[np.lexsort((random_keys(stream, len(places)), home))]
        home = tables.row_bucket[order]
        entry[order] = mixed[starts[home] + np.arange(len(order)) - first[home]]
        values = tables.entries.take(pa.array(entry))
        return pa.table({**_columns(tables.people), **_columns(values)})

    return Completion(draw=draw, assumes=ASSUMES)


def _columns(table: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(table.column_names, table.columns, strict=True))
