"""Bucketization as a mechanism: plan, draft, check.

What plans and applies is imported by the methods that do so: who only checks a release needs none of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.base import Batches, Check, Draft, KeptPeople, PublishedTable, Repeated, Scan
from dalenius.mechanisms.bucketize.check import check_buckets
from dalenius.mechanisms.bucketize.config import MEASURES
from dalenius.mechanisms.bucketize.published import count_certain, count_published
from dalenius.mechanisms.stages import CountsMechanism
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.release.manifest import Manifest
from dalenius.sql import unused_name
from dalenius.tables.histogram import Histogram

if TYPE_CHECKING:
    from dalenius.mechanisms.bucketize.apply import Coder, Places
    from dalenius.mechanisms.bucketize.dates.apply import DatedPolicy
    from dalenius.mechanisms.bucketize.dates.plan import DatePlan
    from dalenius.mechanisms.bucketize.table_plan import BucketizePlan, BucketPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucketize:
    """F′-privacy and ℓ-diversity by separating people from sensitive values, bucket by bucket."""

    kind = "bucketize"
    plans = "buckets"
    plan_keys = ("buckets", *MEASURES)

    def plan(self, policy: BucketPolicy, scan: Scan) -> BucketizePlan:
        """The bucket sizes, how many of each, and how many records of each value go to each size."""
        from dalenius.mechanisms.bucketize.table_plan import (
            mix_numbers,
            plan_among_alike,
            plan_counts,
            plan_in_regions,
        )

        histogram = mix_numbers(scan.histogram(policy.columns.sensitive), scan.schema)
        plan = plan_counts(policy, histogram, scan.schema)
        if policy.mechanism.regions:
            return plan_in_regions(policy, plan, scan)
        could = policy.mechanism.could_have_regions(policy.promise) and bool(policy.columns.quasi)
        return replace(plan_among_alike(policy, plan, scan), could_have_regions=could)

    def plan_counts(self, policy: BucketPolicy, histogram: Histogram, schema: pa.Schema) -> BucketizePlan:
        """The same for a table with these counts."""
        from dalenius.mechanisms.bucketize.table_plan import plan_counts

        return plan_counts(policy, histogram, schema)

    def draft(self, policy: BucketPolicy, plan: BucketizePlan, randomness: Randomness) -> Draft:
        """Number the buckets and say how records find theirs."""
        return self.draft_part(policy, plan, plan.histogram, randomness)

    def draft_part(
        self, policy: BucketPolicy, plan: BucketizePlan, whole: Histogram, randomness: Randomness
    ) -> Draft:
        """The same for a plan of a part of a table's records."""
        from dalenius.mechanisms.bucketize.apply import Assigner, qit_rows, st_rows, with_buckets
        from dalenius.mechanisms.bucketize.regions.plan import RegionCoder
        from dalenius.mechanisms.bucketize.shards import qit_shards, st_shards
        from dalenius.mechanisms.bucketize.statement import state_plan

        if getattr(policy.promise, "alike", ()) and plan.regions is None:
            raise InternalError("buckets were planned for people who are not alike as promised")
        encoder = plan.histogram.encoder(plan.schema)
        coder: Coder = RegionCoder(tree=plan.regions.tree, encoder=encoder) if plan.regions else encoder
        quasi, sensitive = policy.columns.quasi, policy.columns.sensitive
        key = unused_name("key", quasi)
        is_whole = bool(plan.fakes or plan.regions or plan.problem.is_mixed or plan.is_varied)

        @cache  # an engine that shards the tables needs no numbers of all buckets
        def layout() -> Places:
            return _lay_out(plan, randomness)

        def qit(scan: Callable[[], Batches]) -> Batches:
            order = randomness.stream("bucketize", "order")
            return qit_rows(scan(), quasi, coder, Assigner(layout(), randomness), order, key)

        def finish(rows: Batches) -> Batches:
            return with_buckets(rows, layout().n_buckets, key)

        def st(scan: Callable[[], Batches]) -> Batches:  # noqa: ARG001  (the plan alone decides it)
            return st_rows(layout(), encoder)

        known = plan.outright
        return Draft(
            method=plan.buckets.method,
            tables=(
                PublishedTable(
                    name="qit",
                    columns=(*quasi, "bucket"),
                    rows=qit,
                    order_by=(key,),
                    finish=finish,
                    shards=None if is_whole else qit_shards(plan, whole, quasi, randomness),
                ),
                PublishedTable(
                    name="st",
                    columns=("bucket", *sensitive, "count"),
                    rows=st,
                    shards=None if is_whole else st_shards(plan, randomness),
                ),
            ),
            statement=state_plan(policy.promise, plan),
            n_published=plan.n_rows,
            outright=plan.count_alike(layout().contents()) if known is None else known,
        )

    def plan_date(self, policy: BucketPolicy, schema: pa.Schema, kept: KeptPeople) -> DatePlan:
        """New buckets for those who are new; who stays keeps the bucket."""
        from dalenius.mechanisms.bucketize.dates.plan import plan_date

        return plan_date(policy, schema, kept)

    def draft_date(self, policy: DatedPolicy, plan: DatePlan, randomness: Randomness) -> tuple[Draft, Ints]:
        """Deal those who are new, and list every bucket that somebody is in."""
        from dalenius.mechanisms.bucketize.dates.apply import draft_date

        return draft_date(policy, plan, randomness)

    def check_dates(self, parts: Sequence[StoredRelease]) -> Iterable[Check]:
        """Every bucket lists the same values at every date."""
        from dalenius.mechanisms.bucketize.dates.check import check_dates

        return check_dates(parts)

    def repeat(self, policy: BucketPolicy, plan: BucketizePlan, times: int) -> Repeated:  # noqa: ARG002
        """A person's buckets in all releases, intersected."""
        from dalenius.mechanisms.bucketize.repeated import repeat_table

        return repeat_table(plan, times)

    def repeat_part(
        self, policy: BucketPolicy, plan: BucketizePlan, whole: Histogram, times: int
    ) -> Repeated:
        """The same where each release leaves some people out."""
        from dalenius.mechanisms.bucketize.repeated import repeat_part

        return repeat_part(plan, whole, policy.promise.thresholds(whole), times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Bucket sizes agree, and every value is within its threshold in every bucket."""
        return check_buckets(connection, manifest)

    def count_outright(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
        """How many people are in buckets of one value only."""
        return count_certain(connection, manifest)

    def count_values(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Histogram | None:
        """How many published records have each value; None where fakes hide it."""
        return count_published(connection, manifest)


def _lay_out(plan: BucketizePlan, randomness: Randomness) -> Places:
    from dalenius.mechanisms.bucketize.apply import GivenLayout, Layout, mix_contents
    from dalenius.mechanisms.bucketize.contents.varied import VariedLayout
    from dalenius.mechanisms.bucketize.fakes.plan import MixedLayout
    from dalenius.mechanisms.bucketize.regions.plan import RegionLayout

    if plan.is_varied:
        return VariedLayout(plan.buckets, plan.problem, randomness)
    if plan.fakes:
        return MixedLayout(plan.buckets, plan.problem, plan.fakes, randomness)
    if plan.regions:
        return RegionLayout.shuffled(
            plan.regions, randomness, plan.problem if plan.problem.is_mixed else None
        )
    if plan.problem.is_mixed:
        mixed = mix_contents(plan.buckets, plan.problem, randomness)
        return GivenLayout.shuffled(plan.buckets, mixed, randomness)
    return Layout.shuffled(plan.buckets, randomness)


MECHANISM: CountsMechanism = Bucketize()
