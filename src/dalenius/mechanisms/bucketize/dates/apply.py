"""Writing the tables of a date: everybody with the bucket, every bucket with the values that it came with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.base import NEW, Batches, Draft, PolicyOf, PublishedTable
from dalenius.mechanisms.bucketize.apply import Assigner, Layout, random_within, st_rows
from dalenius.mechanisms.bucketize.config import BucketizeConfig
from dalenius.mechanisms.bucketize.dates.plan import DatePlan, count_cells, known_names
from dalenius.mechanisms.bucketize.dates.statement import state_date
from dalenius.promises import BucketPromise
from dalenius.randomness import Randomness
from dalenius.sql import unused_name


class DatedPolicy(PolicyOf[BucketizeConfig, BucketPromise], Protocol):
    """A policy that also says what becomes of people whose value has changed."""

    @property
    def changed(self) -> Literal["leaves", "stays"] | None:
        """None: nobody's may."""


def draft_date(policy: DatedPolicy, plan: DatePlan, randomness: Randomness) -> tuple[Draft, Ints]:
    """The draft, and the bucket of every record."""
    quasi, sensitive = policy.columns.quasi, policy.columns.sensitive
    buckets, new_entries = _deal(plan, randomness)
    old_entries = plan.buckets.entries.select(["bucket", *sensitive, "count"])
    entries = pa.concat_tables([old_entries, *(table.cast(old_entries.schema) for table in new_entries)])
    key = unused_name("key", quasi)
    last = plan.last_bucket + plan.n_new_buckets

    def qit(scan: Callable[[], Batches]) -> Batches:
        return _people(scan(), quasi, buckets, randomness.stream("bucketize", "order"), key, last)

    def st(scan: Callable[[], Batches]) -> Batches:  # noqa: ARG001  (who is where decides it)
        return iter(entries.combine_chunks().to_batches())

    values = count_cells(entries.select(list(sensitive)))
    draft = Draft(
        method="optimal" if plan.newcomers is None else plan.newcomers.buckets.method,
        tables=(
            PublishedTable(name="qit", columns=(*quasi, "bucket"), rows=qit, order_by=(key,)),
            PublishedTable(name="st", columns=("bucket", *sensitive, "count"), rows=st),
        ),
        statement=state_date(known_names(policy.promise, values), plan, values, policy.changed),
        n_published=int((buckets > NEW).sum()),
        outright=plan.outright,
    )
    return draft, buckets


def _deal(plan: DatePlan, randomness: Randomness) -> tuple[Ints, list[pa.Table]]:
    """Everybody's bucket, and what the new ones hold; their numbers come after all that were given."""
    buckets = plan.kept.bucket.copy()
    if plan.newcomers is None:
        return buckets, []
    layout = Layout.shuffled(plan.newcomers.buckets, randomness, first=plan.last_bucket + 1)
    encoder = plan.newcomers.histogram.encoder(plan.schema)
    assigner = Assigner(layout, randomness)
    (cells,) = plan.kept.cells.combine_chunks().to_batches(max_chunksize=plan.n_new)
    buckets[buckets == NEW] = assigner.assign(encoder.encode(cells))
    assigner.finish()
    return buckets, [pa.Table.from_batches(list(st_rows(layout, encoder)))]


def _people(
    batches: Batches,
    quasi: tuple[str, ...],
    buckets: Ints,
    order: np.random.Generator,
    key: str,
    last: int,
) -> Iterator[pa.RecordBatch]:
    """The quasi columns of those who are published, with the bucket and the key that rows are ordered by."""
    done = 0
    for batch in batches:
        own = buckets[done : done + batch.num_rows]
        done += batch.num_rows
        rows = np.flatnonzero(own > NEW)
        columns = {name: batch.column(name).take(pa.array(rows)) for name in quasi}
        keys = random_within(own[rows], last, order)
        yield pa.RecordBatch.from_pydict({**columns, "bucket": own[rows], key: keys})
    if done != len(buckets):
        raise InternalError("the table changed between two passes over it")
