"""A bucket plan for every region, and the places that they make together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.arrays import Int32s, Ints
from dalenius.mechanisms.bucketize.apply import (
    Entries,
    GivenLayout,
    Layout,
    by_bucket,
    mix_contents,
)
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.regions.alike import AlikePeople, largest_share
from dalenius.mechanisms.bucketize.regions.cut import RegionTree
from dalenius.promises.f_privacy import CAP
from dalenius.randomness import Randomness
from dalenius.tables.codes import Encoder

BUCKETS_PER_BATCH = 20_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionsPlan:
    """The regions, what each holds, and the buckets of each."""

    without: BucketPlan
    """What the whole table would have without regions."""
    tree: RegionTree | AlikePeople
    least_rows: int | None
    """None: who shares a region is not for the rule of cuts to say."""
    counts: Ints
    """Regions × values."""
    plans: tuple[BucketPlan, ...]
    """Of each region, for the values that occur in it."""

    @property
    def n_regions(self) -> int:
        """How many regions there are."""
        return len(self.plans)

    @property
    def rows(self) -> list[int]:
        """How many people each region has."""
        return [plan.n_rows for plan in self.plans]

    @property
    def certain(self) -> Ints:
        """How many records of each value of the table are in buckets of that value only."""
        found = np.zeros(self.counts.shape[1], dtype=np.int64)
        for plan, own in zip(self.plans, self.counts, strict=True):
            found[np.flatnonzero(own)] += plan.certain
        return found

    def merged(self) -> BucketPlan:
        """The buckets of all regions as one plan; its bound is for these regions."""
        n_values = self.counts.shape[1]
        n_buckets: dict[int, int] = {}
        loads: dict[int, Ints] = {}
        for plan, own in zip(self.plans, self.counts, strict=True):
            used = np.flatnonzero(own)
            for j, (size, b) in enumerate(zip(plan.sizes, plan.n_buckets, strict=True)):
                n_buckets[size] = n_buckets.get(size, 0) + b
                column = loads.setdefault(size, np.zeros(n_values, dtype=np.int64))
                column[used] += [row[j] for row in plan.loads]
        sizes = tuple(sorted(n_buckets))
        bounds = [plan.lower_bound for plan in self.plans]
        known = [bound for bound in bounds if bound is not None]
        return BucketPlan(
            method=self.without.method,
            sizes=sizes,
            n_buckets=tuple(n_buckets[size] for size in sizes),
            loads=tuple(map(tuple, np.stack([loads[size] for size in sizes], axis=1).tolist())),
            lower_bound=sum(known) if len(known) == len(bounds) else None,
        )

    def to_summary(self) -> dict[str, Any]:
        """The regions as `dalenius plan --json` prints them."""
        return {
            "count": self.n_regions,
            **({} if self.least_rows is None else {"least_rows": self.least_rows}),
            "rows": self.rows,
            "mse_without": self.without.mse,
            "conditions": self.tree.conditions(),
        }

    def to_manifest(self) -> list[dict[str, Any]]:
        """The regions as the manifest lists them: who is in them, and how many buckets they have."""
        return [
            {"rows": plan.n_rows, "buckets": sum(plan.n_buckets), "where": conditions}
            for plan, conditions in zip(self.plans, self.tree.conditions(), strict=True)
        ]

    def __str__(self) -> str:
        rows, mse = self.rows, self.merged().mse
        least = "" if self.least_rows is None else f" (at least {self.least_rows})"
        lines = [f"{self.n_regions} regions of {min(rows)} to {max(rows)} rows{least};"]
        lines[0] += f" MSE {mse:.4f} inside them, {self.without.mse:.4f} without regions"
        if self.n_regions == 1 and self.least_rows is not None:
            return f"1 region: no cut is sure to keep every threshold; MSE {mse:.4f}, as without regions"
        most = 12  # regions that are listed
        for n, conditions in list(zip(rows, self.tree.conditions(), strict=True))[:most]:
            lines.append(f"{n:>10} rows  {'; '.join(map(show_condition, conditions))}")
        if self.n_regions > most:
            lines.append(f"           … and {self.n_regions - most} more (--json lists them all)")
        return "\n".join(lines)


def show_condition(condition: dict[str, Any]) -> str:
    """A condition in words.

    >>> show_condition({"column": "age", "above": 30, "at_most": 40, "null": False})
    '30 < age ≤ 40'
    >>> show_condition({"column": "sex", "in": ["F", None]})
    'sex in F, NULL'
    """
    name = condition["column"]
    if "in" in condition:
        cells = ["NULL" if cell is None else cell for cell in condition["in"]]
        shown = ", ".join(cells[:4])
        return f"{name} in {shown}" + (f" and {len(cells) - 4} more" if len(cells) > 4 else "")
    above = f"{condition['above']} < " if "above" in condition else ""
    at_most = f" ≤ {condition['at_most']}" if "at_most" in condition else ""
    return f"{above}{name}{at_most}" + (" or NULL" if condition["null"] and (above or at_most) else "")


def plan_regions(
    tree: RegionTree | AlikePeople,
    counts: Ints,
    problem: BucketProblem,
    without: BucketPlan,
    least_rows: int | None,
) -> RegionsPlan:
    """Plan the buckets of each region, with the thresholds of the whole table."""
    plans = [
        plan_buckets(problem_of_region(problem, own), without.method) if len(counts) > 1 else without
        for own in counts
    ]
    return RegionsPlan(tree=tree, least_rows=least_rows, counts=counts, plans=tuple(plans), without=without)


def problem_of_region(problem: BucketProblem, counts: Ints) -> BucketProblem:
    """The values that occur in a region, with the thresholds that they have in the whole table.

    Except for having none of several values, which nobody names: where more have none elsewhere, its limit
    is higher for these people, and not for those of this region.
    """
    used = np.flatnonzero(counts).tolist()
    place = {code: number for number, code in enumerate(used)}
    overlapping = [
        (tuple(place[code] for code in codes if code in place), limit) for codes, limit in problem.overlapping
    ]
    thresholds = [problem.thresholds[code] for code in used]
    if overlapping:
        without_any, limit = overlapping[-1]
        share = largest_share(counts[None, :], problem.overlapping[-1][0])
        overlapping[-1] = (without_any, min(limit, max(CAP, share)))
        for code in without_any:
            thresholds[code] = overlapping[-1][1]
    return BucketProblem(
        counts=tuple(int(counts[code]) for code in used),
        thresholds=tuple(thresholds),
        max_bucket=problem.max_bucket,
        min_bucket=problem.min_bucket,
        seconds=problem.seconds,
        overlapping=tuple(overlapping),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionCoder:
    """The code of a row is region · m + value."""

    tree: RegionTree | AlikePeople
    encoder: Encoder

    def encode(self, batch: pa.RecordBatch) -> Int32s:
        """The codes of a batch."""
        codes = self.tree.regions(batch) * self.encoder.n_values + self.encoder.encode(batch)
        return np.asarray(codes.astype(np.int32))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionLayout:
    """The places of all regions; bucket numbers are random over the whole table."""

    layouts: tuple[Layout | GivenLayout, ...]
    used: tuple[Ints, ...]
    """Of each region, the values that occur in it."""
    counts: Ints
    """Regions × values."""

    @classmethod
    def shuffled(
        cls, plan: RegionsPlan, randomness: Randomness, problem: BucketProblem | None = None
    ) -> RegionLayout:
        """With random bucket numbers, from 1; buckets of a problem with overlapping limits trade."""
        n_buckets = [sum(own.n_buckets) for own in plan.plans]
        numbers = randomness.stream("bucketize", "numbers").permutation(sum(n_buckets)) + 1
        own = np.split(numbers, np.cumsum(n_buckets)[:-1])
        layouts: list[Layout | GivenLayout] = []
        for region, (part, some) in enumerate(zip(plan.plans, own, strict=True)):
            if problem is None:
                layouts.append(Layout.numbered(part, some))
                continue
            mixed = mix_contents(
                part, problem_of_region(problem, plan.counts[region]), randomness.child("region", region)
            )
            layouts.append(GivenLayout(part, mixed, some))
        used = tuple(np.flatnonzero(counts) for counts in plan.counts)
        return cls(layouts=tuple(layouts), used=used, counts=plan.counts)

    @property
    def n_places(self) -> list[int]:
        """How many records of each value there are in each region."""
        return [int(count) for count in self.counts.ravel()]

    @property
    def n_buckets(self) -> int:
        """How many buckets there are in all regions."""
        return sum(layout.n_buckets for layout in self.layouts)

    def places(self, code: int) -> Ints:
        """The bucket number of every place of a value in a region."""
        region, value = divmod(code, self.counts.shape[1])
        own = np.flatnonzero(self.used[region] == value)
        return self.layouts[region].places(int(own[0])) if len(own) else np.zeros(0, dtype=np.int64)

    def contents(self) -> Iterator[Entries]:
        """Batches of (bucket, value code, count), by bucket number and code."""
        for first in range(1, self.n_buckets + 1, BUCKETS_PER_BATCH):
            parts = []
            for layout, used in zip(self.layouts, self.used, strict=True):
                chosen = (first <= layout.numbers) & (layout.numbers < first + BUCKETS_PER_BATCH)
                if chosen.any():
                    buckets, codes, counts = layout.entries(np.flatnonzero(chosen))
                    parts.append((buckets, used[codes], counts))
            yield by_bucket(parts)
