"""Bucketization as a mechanism: plan, draft, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.errors import InternalError, PromiseNotMet
from dalenius.exact import show
from dalenius.mechanisms.base import Batches, Check, Draft, PublishedTable, Scan, Statement
from dalenius.mechanisms.bucketize.apply import Assigner, Coder, Layout, Places, qit_rows, st_rows
from dalenius.mechanisms.bucketize.chart import draw_buckets
from dalenius.mechanisms.bucketize.check import check_buckets
from dalenius.mechanisms.bucketize.config import BucketizeConfig
from dalenius.mechanisms.bucketize.fakes.plan import FakePlan, MixedLayout, plan_fakes
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, violations
from dalenius.mechanisms.bucketize.regions.cut import grow, least_rows
from dalenius.mechanisms.bucketize.regions.plan import (
    RegionCoder,
    RegionLayout,
    RegionsPlan,
    plan_regions,
    problem_of_region,
)
from dalenius.mechanisms.bucketize.repeated import plan_contents, repeat_buckets
from dalenius.mechanisms.bucketize.shards import BucketGroups, QitGroups, StGroups
from dalenius.mechanisms.repeated import Repeated
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.plain import plain_fields
from dalenius.policy import Policy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.kinds import BucketPromise
from dalenius.promises.l_diversity import LDiversity
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest
from dalenius.tables.histogram import Histogram, label
from dalenius.tables.names import unused_name

_ASSUMES = (
    "one row is one person",
    "the attacker may know everybody's quasi-identifiers, and so a person's bucket, but takes every "
    "matching of a bucket's people with its sensitive values as equally likely",
)
_CORRUPTION = "an attacker who knows the sensitive values of others in the bucket (corruption)"
_NOT_COVERED = (
    "an attacker who learns from the release how quasi-identifiers and sensitive values go together "
    "(negative association, deFinetti)",
    "whether a person is in the table",
    "several releases about the same people",
    "sets of sensitive values: only each single value has a threshold",
)
_DISCLOSED = (
    "the number of records",
    "how often each sensitive value occurs",
    "the size of every bucket and the sensitive values in it",
    "every record's quasi-identifiers",
)
_REGIONS_DISCLOSED = (
    "how often each sensitive value occurs in each region; every share is within its threshold",
    "where regions are cut, and that no further cut was sure to keep every threshold; both can be computed "
    "from the published quasi-identifiers and the regions' counts",
)
_REGIONS_NOT_COVERED = (
    "an attacker who knows why the publisher chose this policy (regions, their least rows, the thresholds), "
    "if it was chosen in view of the sensitive values",
)
_FAKES_DISCLOSED = ("how many values of each bucket are fakes, and the law that they were drawn by",)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BucketizePlan:
    """The bucket plan of a table, with the counts that it was made from."""

    histogram: Histogram
    schema: pa.Schema
    thresholds: tuple[Fraction, ...]
    buckets: BucketPlan
    problem: BucketProblem
    fakes: FakePlan | None = None
    regions: RegionsPlan | None = None
    """Where buckets are made region by region; `buckets` then has those of all regions."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.histogram.n_rows

    def __str__(self) -> str:
        return str(self.buckets) if self.regions is None else f"{self.buckets}\n{self.regions}"

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        plan = self.buckets
        return {
            "method": plan.method,
            "rows": self.n_rows,
            "buckets": [{"size": s, "count": b} for s, b in zip(plan.sizes, plan.n_buckets, strict=True)],
            **plain_fields(plan, "loss", "mse", "lower_bound", "gap"),
            **({"fakes": self.fakes.to_summary()} if self.fakes else {}),
            **({"regions": self.regions.to_summary()} if self.regions else {}),
        }

    def draw(self, altair: Any) -> Any:
        """The picture that `dalenius plan --chart` saves."""
        return draw_buckets(altair, self.histogram, self.thresholds, self.buckets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucketize:
    """F′-privacy and ℓ-diversity by separating people from sensitive values, bucket by bucket."""

    kind = "bucketize"

    def plan(self, policy: Policy, scan: Scan) -> BucketizePlan:
        """The bucket sizes, how many of each, and how many records of each value go to each size."""
        plan = plan_counts(policy, scan.histogram(policy.columns.sensitive), scan.schema)
        return _in_regions(policy, plan, scan) if _own_parts(policy)[0].regions else plan

    def draft(self, policy: Policy, plan: BucketizePlan, randomness: Randomness) -> Draft:
        """Number the buckets and say how records find theirs."""
        encoder = plan.histogram.encoder(plan.schema)
        coder: Coder = RegionCoder(tree=plan.regions.tree, encoder=encoder) if plan.regions else encoder
        quasi, sensitive = policy.columns.quasi, policy.columns.sensitive
        key = unused_name("key", quasi)
        is_whole = bool(plan.fakes or plan.regions)

        @cache  # an engine that shards the tables needs no numbers of all buckets
        def layout() -> Places:
            return _layout(plan, randomness)

        def qit(scan: Callable[[], Batches]) -> Batches:
            order = randomness.stream("bucketize", "order")
            return qit_rows(scan(), quasi, coder, Assigner(layout(), randomness), order, key)

        def st(scan: Callable[[], Batches]) -> Batches:  # noqa: ARG001  (the plan alone decides it)
            return st_rows(layout(), encoder)

        return Draft(
            method=plan.buckets.method,
            tables=(
                PublishedTable(
                    name="qit",
                    columns=(*quasi, "bucket"),
                    rows=qit,
                    order_by=(key,),
                    shards=None if is_whole else qit_shards(plan, plan.histogram, quasi, randomness),
                ),
                PublishedTable(
                    name="st",
                    columns=("bucket", *sensitive, "count"),
                    rows=st,
                    shards=None if is_whole else st_shards(plan, randomness),
                ),
            ),
            statement=_statement(policy, plan),
            n_published=plan.n_rows,
        )

    def repeated(self, policy: Policy, plan: BucketizePlan, times: int) -> Repeated:  # noqa: ARG002
        """A person's buckets in all releases, intersected."""
        if plan.regions is None:
            parts = [plan_contents(plan.buckets, plan.problem, plan.fakes)]
        else:
            parts = [
                plan_contents(own, problem_of_region(plan.problem, counts), None).among(counts > 0)
                for own, counts in zip(plan.regions.plans, plan.regions.counts, strict=True)
            ]
        return repeat_buckets(parts, plan.thresholds, times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Bucket sizes agree, and every value is within its threshold in every bucket."""
        return check_buckets(connection, manifest)


def qit_shards(
    plan: BucketizePlan, counted: Histogram, quasi: tuple[str, ...], randomness: Randomness
) -> Callable[[Census], Shards]:
    """How partitions make the quasi-identifier table; what is counted and not planned is withheld."""

    def shards(census: Census) -> Shards:
        planned = {value: code for code, value in enumerate(plan.histogram.values)}
        return QitGroups(
            groups=_groups(plan, census, randomness),
            census=census,
            encoder=counted.encoder(plan.schema),
            code_of=np.array([planned.get(value, -1) for value in counted.values], dtype=np.int32),
            quasi=quasi,
            schema=plan.schema,
        ).shards()

    return shards


def st_shards(plan: BucketizePlan, randomness: Randomness) -> Callable[[Census], Shards]:
    """How the sensitive table is made in pieces."""

    def shards(census: Census) -> Shards:
        encoder = plan.histogram.encoder(plan.schema)
        return StGroups(groups=_groups(plan, census, randomness), encoder=encoder).shards()

    return shards


def _groups(plan: BucketizePlan, census: Census, randomness: Randomness) -> BucketGroups:
    return BucketGroups.cut(plan.buckets, census.n_groups(plan.n_rows), randomness)


def plan_counts(policy: Policy, histogram: Histogram, schema: pa.Schema) -> BucketizePlan:
    """The plan for a table with these counts."""
    config, promise = _own_parts(policy)
    thresholds = promise.thresholds(histogram)
    problem = BucketProblem(counts=histogram.counts, thresholds=thresholds, max_bucket=config.max_bucket)
    broken = violations(problem)
    if broken:
        raise infeasible(promise, histogram, thresholds, broken)
    buckets = plan_buckets(problem, config.method)
    return BucketizePlan(
        histogram=histogram,
        schema=schema,
        thresholds=thresholds,
        buckets=buckets,
        problem=problem,
        fakes=plan_fakes(buckets, problem, config.fakes) if config.fakes else None,
    )


def _in_regions(policy: Policy, plan: BucketizePlan, scan: Scan) -> BucketizePlan:
    """The plan with its buckets made inside regions, for the same thresholds."""
    config, _ = _own_parts(policy)
    asked = config.regions
    least = least_rows(plan.n_rows, config.max_bucket) if isinstance(asked, bool) else asked
    encoder = plan.histogram.encoder(plan.schema)
    tree, counts = grow(
        scan, encoder, plan.thresholds, policy.columns.quasi, max_bucket=config.max_bucket, least=least
    )
    regions = plan_regions(tree, counts, plan.problem, plan.buckets, least)
    buckets = regions.merged()
    buckets.check(plan.problem)
    return replace(plan, buckets=buckets, regions=regions)


def _layout(plan: BucketizePlan, randomness: Randomness) -> Places:
    if plan.fakes:
        return MixedLayout(plan.buckets, plan.problem, plan.fakes, randomness)
    if plan.regions:
        return RegionLayout.shuffled(plan.regions, randomness)
    return Layout.shuffled(plan.buckets, randomness)


def infeasible(
    promise: BucketPromise, histogram: Histogram, thresholds: tuple[Fraction, ...], broken: tuple[int, ...]
) -> PromiseNotMet:
    """Why no release can keep the thresholds (Lemma 1); only values that the policy names are named."""
    named = [code for code in broken if promise.is_named(histogram.values[code])]
    column = " × ".join(repr(name) for name in histogram.columns)
    if named:
        code = named[0]
        lowest = show(histogram.frequency(code))
        message = (
            f"threshold of {label(histogram.values[code])!r} ({show(thresholds[code])}) is below its "
            f"frequency ({lowest}); the lowest that any release can keep is {lowest}"
        )
        return PromiseNotMet(message, hint="raise the threshold, or publish fewer of these records")
    worst = max(broken, key=histogram.frequency)
    frequency = histogram.frequency(worst)
    message = (
        f"{len(broken)} of {len(histogram)} values of {column} are more frequent than their threshold; "
        f"the commonest makes up {show(frequency)} of the records, its threshold is {show(thresholds[worst])}"
    )
    largest_l = frequency.denominator // frequency.numerator
    hint = f"no threshold can be below {show(frequency)}, nor l above {largest_l}"
    if isinstance(promise, LDiversity) and len(histogram) >= promise.l:
        hint += "; or publish part of the table: a section [suppress] in the policy withholds records"
    return PromiseNotMet(message, hint=hint)


def _own_parts(policy: Policy) -> tuple[BucketizeConfig, BucketPromise]:
    config, promise = policy.mechanism, policy.promise
    if not isinstance(config, BucketizeConfig) or not isinstance(promise, FPrivacy | LDiversity):
        raise InternalError(f"bucketize was given a policy of {config.kind} and {promise.kind}")
    return config, promise


def _statement(policy: Policy, plan: BucketizePlan) -> Statement:
    compound = len(plan.histogram.columns) > 1
    parameters: dict[str, Any] = {"buckets": plan.to_dict()["buckets"]}
    corruption: str = _CORRUPTION
    fakes_disclosed: tuple[str, ...] = ()
    if plan.fakes:
        parameters["fakes"] = plan.fakes.to_dict(plan.buckets, plan.histogram)
        corruption, fakes_disclosed = plan.fakes.statement(), _FAKES_DISCLOSED
    regions_disclosed: tuple[str, ...] = ()
    if plan.regions:
        parameters |= {"regions": plan.regions.to_manifest(), "region_least_rows": plan.regions.least_rows}
        regions_disclosed = _REGIONS_DISCLOSED
    return Statement(
        promise=_own_parts(policy)[1].to_dict(plan.histogram),
        assumes=_ASSUMES,
        not_covered=(
            corruption,
            *_NOT_COVERED,
            *(_REGIONS_NOT_COVERED if plan.regions else ()),
            *(["a single sensitive column: thresholds hold for combinations of cells"] if compound else []),
        ),
        disclosed=(*_DISCLOSED, *fakes_disclosed, *regions_disclosed),
        parameters=parameters,
    )


MECHANISM = Bucketize()
