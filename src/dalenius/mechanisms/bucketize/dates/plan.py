"""The plan of a table that was published before: who stays keeps the bucket, who is new gets a new one.

A bucket is made once, of people who come at one date, and lists their values for as long as one of them is in
the table: the values of those who have left too. So the tables of later dates tell nothing about anybody's
value that the table of the first date has not told: they follow from it and from who is in the table. Whoever
takes every matching of a bucket's people with its values as equally likely goes on doing so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.display import PrivatePlan
from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.base import NEW, WITHHELD, KeptPeople
from dalenius.mechanisms.bucketize.config import MEASURES
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan, BucketPolicy, plan_promise
from dalenius.promises import BucketPromise
from dalenius.promises.f_privacy import FPrivacy
from dalenius.tables.columns import CodedTable
from dalenius.tables.histogram import Histogram, label_cell


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBuckets:
    """The buckets so far that somebody in the table is in."""

    entries: pa.Table
    """`bucket`, the sensitive columns, `count`, by bucket."""
    places: Ints
    """Of each of them, how many values it lists."""
    people: Ints
    """Of each, how many of its people are in the table."""
    certain: Ints
    """Of each, how many of these are in it with one value only, or with one cell of a sensitive column."""

    @property
    def n_absent(self) -> int:
        """How many values are listed whose people have left: the counterfeits."""
        return int(self.places.sum() - self.people.sum())

    @classmethod
    def of(cls, kept: KeptPeople) -> KeptBuckets:
        """From who is where."""
        numbers, people = np.unique(kept.bucket[kept.bucket > NEW], return_counts=True)
        bucket = kept.known.column("bucket").to_numpy()
        entries = kept.known.filter(pa.array(np.isin(bucket, numbers)))
        place = np.searchsorted(numbers, entries.column("bucket").to_numpy())
        places = np.bincount(place, entries.column("count").to_numpy(), len(numbers)).astype(np.int64)
        alone = np.bincount(place, minlength=len(numbers)) == 1
        sensitive = [name for name in entries.column_names if name not in ("bucket", "count")]
        for name in sensitive if len(sensitive) > 1 else ():
            cells = entries.column(name).combine_chunks().dictionary_encode("encode").indices.to_numpy()
            alone |= np.bincount(np.unique(np.stack([place, cells]), axis=1)[0], minlength=len(numbers)) == 1
        return cls(entries=entries, places=places, people=people, certain=np.where(alone, people, 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class DatePlan(PrivatePlan):
    """Buckets for those who are new, beside the buckets of those who stay."""

    schema: pa.Schema
    kept: KeptPeople
    buckets: KeptBuckets
    newcomers: BucketizePlan | None
    """None: nobody is new."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return len(self.kept.bucket)

    @property
    def n_new(self) -> int:
        """How many people are published for the first time."""
        return 0 if self.newcomers is None else self.newcomers.n_rows

    @property
    def n_new_buckets(self) -> int:
        """How many buckets they have."""
        return 0 if self.newcomers is None else sum(self.newcomers.buckets.n_buckets)

    @property
    def n_withheld(self) -> int:
        """How many people are in the source and are not published."""
        return int((self.kept.bucket == WITHHELD).sum())

    @property
    def last_bucket(self) -> int:
        """The highest number that any bucket of the series has so far."""
        return int(np.max(self.kept.known.column("bucket").to_numpy(), initial=0))

    @property
    def outright(self) -> int:
        """How many people are in buckets of one value only."""
        new = None if self.newcomers is None else self.newcomers.outright
        return int(self.buckets.certain.sum()) + (new or 0)  # a series has buckets that are dealt, not mixed

    def sizes(self) -> list[dict[str, int]]:
        """How many buckets list how many values."""
        sizes = self.buckets.places
        if self.newcomers is not None:
            plan = self.newcomers.buckets
            sizes = np.concatenate([sizes, np.repeat(plan.sizes, plan.n_buckets)])
        found, counts = np.unique(sizes, return_counts=True)
        return [{"size": s, "count": n} for s, n in zip(found.tolist(), counts.tolist(), strict=True)]

    def summary(self) -> dict[str, int]:
        """Who comes, stays and leaves, in numbers."""
        return {
            "new": self.n_new,
            "stay": int(self.buckets.people.sum()),
            "absent": self.buckets.n_absent,
            "changed": self.kept.n_changed,
            "withheld": self.n_withheld,
        }

    def __str__(self) -> str:
        told = self.summary()
        lines = [
            f"{told['stay']} people stay in {len(self.buckets.places)} buckets, which list {told['absent']} "
            "values of people who have left",
            f"{told['new']} people are new"
            + ("" if self.newcomers is None else f", in buckets of their own:\n{self.newcomers.buckets}"),
        ]
        if told["changed"]:
            lines.append(f"{told['changed']} people have another value now; {told['withheld']} are withheld")
        return "\n".join(lines)

    def draw(self, altair: Any) -> Any:
        """The picture that `dalenius plan --chart` saves: of the new buckets."""
        if self.newcomers is None:
            raise InputError("nobody is new, so there are no new buckets to draw")
        return self.newcomers.draw(altair)

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it; the measures are those of the new buckets."""
        new = {} if self.newcomers is None else self.newcomers.to_dict()
        return {
            "method": new.get("method", "optimal"),
            "rows": self.n_rows,
            "buckets": self.sizes(),
            **{name: new.get(name) for name in MEASURES},
            "dates": self.summary(),
        }


def plan_date(policy: BucketPolicy, schema: pa.Schema, kept: KeptPeople) -> DatePlan:
    """Buckets for those who are new, among themselves."""
    newcomers = None
    if kept.cells.num_rows:
        histogram = count_cells(kept.cells)
        is_first = not kept.known.num_rows
        promise = policy.promise if is_first else known_names(policy.promise, histogram)
        try:
            newcomers = plan_promise(policy.mechanism, promise, histogram, schema)
        except PromiseNotMet as error:
            raise _too_few(error, kept) from error
    return DatePlan(schema=schema, kept=kept, buckets=KeptBuckets.of(kept), newcomers=newcomers)


def known_names(promise: BucketPromise, histogram: Histogram) -> BucketPromise:
    """Without the names of values that nobody here has: the first date has looked for misspelt ones."""
    if not isinstance(promise, FPrivacy):
        return promise
    labels = {tuple(map(label_cell, value)) for value in histogram.values}
    return replace(promise, named=tuple(entry for entry in promise.named if entry[0] in labels))


def count_cells(cells: pa.Table) -> Histogram:
    """How often each combination of cells occurs."""
    values = CodedTable.of(cells).combine(cells.column_names)
    listed = [tuple(row) for row in values.to_pylist(cells.column_names)]
    counts = np.bincount(values.codes, minlength=len(listed)).tolist()
    return Histogram.of(cells.column_names, dict(zip(listed, counts, strict=True)))


def _too_few(error: PromiseNotMet, kept: KeptPeople) -> PromiseNotMet:
    if not kept.known.num_rows:
        return error
    return PromiseNotMet(
        f"the {kept.cells.num_rows} people who are new cannot have buckets among themselves: {error.message}",
        hint="publish this table without them, and leave them out of all later dates: who knows that they "
        "came now, and finds them at a later date, knows that they could not have buckets now, which can "
        "tell their values. For people to come, fix beforehand how many there must be, or on which days, "
        "before new ones are published",
    )
