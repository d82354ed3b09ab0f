"""FRAPP as a mechanism: plan, draft, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import duckdb

from dalenius.mechanisms.base import Batches, Check, Draft, Mechanism, PolicyOf, Repeated, Scan
from dalenius.mechanisms.frapp.apply import FrappGroups, frapp_rows
from dalenius.mechanisms.frapp.check import check_records
from dalenius.mechanisms.frapp.plan import FrappPlan, plan_frapp
from dalenius.mechanisms.frapp.repeated import repeat_records
from dalenius.mechanisms.frapp.statement import state_plan
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.mechanisms.tuples.apply import TupleGroups, decode_rows, distinct_tables
from dalenius.mechanisms.tuples.config import TupleConfig
from dalenius.mechanisms.tuples.plan import NobodyOutright, TupleSource, ViewPlan
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest

RecordPolicy = PolicyOf[TupleConfig, DGammaPrivacy]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frapp(NobodyOutright):
    """(d,γ)-privacy of single records, by randomising every one of them."""

    kind = "alpha-beta"

    def plan(self, policy: RecordPolicy, scan: Scan) -> ViewPlan[FrappPlan]:
        """The probability with which a record is kept, from the domain."""
        source = TupleSource.of(policy, scan, "records")
        return ViewPlan(law=plan_frapp(source.n_tuples, source.domain, policy.promise), source=source)

    def draft(
        self,
        policy: RecordPolicy,  # noqa: ARG002  (the plan has all that is needed of it)
        plan: ViewPlan[FrappPlan],
        randomness: Randomness,
    ) -> Draft:
        """The only view of a table."""
        domain, law = plan.source.domain, plan.law.law
        is_any = plan.source.reads == "records"

        def rows(scan: Callable[[], Batches]) -> Batches:
            tables = map(domain.encode, scan()) if is_any else distinct_tables(scan(), domain)
            return frapp_rows(tables, domain, law.gamma_f, randomness)

        def shards(census: Census) -> Shards:
            tuples = TupleGroups.of(domain, census.n_groups(census.n_rows))
            child = randomness.child("alphabeta")
            return FrappGroups(gamma_f=law.gamma_f, tuples=tuples, census=census, randomness=child).shards()

        # of different rows it is made in one process: it would need two shuffles
        view = plan.source.publish_view(rows, partial(decode_rows, domain=domain), shards if is_any else None)
        return Draft(
            method=plan.law.method,
            tables=(view,),
            statement=state_plan(plan),
            n_published=None,
            n_suppressed=None,
        )

    def repeat(self, policy: RecordPolicy, plan: ViewPlan[FrappPlan], times: int) -> Repeated:  # noqa: ARG002
        """A record's tuple that all of several independent views show in its place."""
        return repeat_records(plan.law, times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Every cell in its domain, and parameters that keep the promise."""
        return check_records(connection, manifest)


MECHANISM: Mechanism = Frapp()
