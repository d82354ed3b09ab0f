"""αβ as a mechanism: plan, draft, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import duckdb

from dalenius.errors import PolicyError
from dalenius.mechanisms.alphabeta import published
from dalenius.mechanisms.alphabeta.apply import ViewGroups, first_rows, later_rows
from dalenius.mechanisms.alphabeta.check import check_view
from dalenius.mechanisms.alphabeta.config import AlphaBetaConfig
from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, ViewLaw
from dalenius.mechanisms.alphabeta.plan.views import AlphaBetaPlan, plan_alphabeta
from dalenius.mechanisms.alphabeta.repeated import plan_series, repeat_views
from dalenius.mechanisms.alphabeta.statement import state_plan
from dalenius.mechanisms.base import (
    Batches,
    Check,
    Draft,
    PlannedSeries,
    PolicyOf,
    Repeated,
    Scan,
    SerialMechanism,
    SeriesPlace,
)
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.mechanisms.tuples.apply import decode_distinct
from dalenius.mechanisms.tuples.noise import read_noise
from dalenius.mechanisms.tuples.plan import NobodyOutright, TupleSource, ViewPlan
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest

ViewPolicy = PolicyOf[AlphaBetaConfig, DGammaPrivacy]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBeta(NobodyOutright):
    """(d,γ)-privacy by random deletions and insertions."""

    kind = "alpha-beta"

    def plan(self, policy: ViewPolicy, scan: Scan) -> ViewPlan[AlphaBetaPlan]:
        """The probabilities, from the number of tuples and the domain."""
        config, promise = policy.mechanism, policy.promise
        if config.exclusive:
            promise = replace(promise, adversary="exclusive")
        source = TupleSource.of(policy, scan, "distinct")
        if config.duplicates is None:
            _refuse_repeated(source.n_rows, source.n_tuples)
        noise = None if config.noise is None else read_noise(policy.folder / config.noise, source.domain)
        if config.changing:
            _refuse_unknown_prior(promise)
        law = plan_alphabeta(
            source.n_tuples,
            source.domain,
            promise,
            views=config.views,
            kind=ChangingLaw if config.changing else ViewLaw,
            noise=noise,
            choice=config.choice,
        )
        return ViewPlan(law=law, source=source)

    def draft(self, policy: ViewPolicy, plan: ViewPlan[AlphaBetaPlan], randomness: Randomness) -> Draft:
        """The only view of a table."""
        return self.draft_at(policy, plan, randomness, SeriesPlace(id="", index=1, of=1))

    def draft_at(
        self,
        policy: ViewPolicy,  # noqa: ARG002  (the plan has all that is needed of it)
        plan: ViewPlan[AlphaBetaPlan],
        randomness: Randomness,
        place: SeriesPlace,
    ) -> Draft:
        """One of the views of a table."""
        domain, own = plan.source.domain, plan.law
        is_first = place.index == 1

        def rows(scan: Callable[[], Batches]) -> Batches:
            if is_first:
                return first_rows(scan(), domain, own.law, own.noise, randomness)
            return later_rows(scan(), domain, place.earlier, own.law, randomness)

        def shards(census: Census) -> Shards:
            child = randomness.child("alphabeta")
            return ViewGroups.cut(domain, own.law, own.noise, own.noise_rows, census, child).shards()

        view = plan.source.publish_view(
            rows, partial(decode_distinct, domain=domain), shards if is_first else None
        )
        return Draft(
            method=own.method,
            tables=(view,),
            statement=state_plan(plan),
            n_published=None,
            n_suppressed=None,
        )

    def planned_series(self, first: Manifest, index: int) -> PlannedSeries:
        """What the first view of a series tells about all of them, before view number `index`."""
        return plan_series(published.read(first), index)

    def repeat(self, policy: ViewPolicy, plan: ViewPlan[AlphaBetaPlan], times: int) -> Repeated:  # noqa: ARG002
        """A tuple that all of several independent views, or series of views, show."""
        return repeat_views(plan.law, times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Every cell in its domain, no row twice, and parameters that keep the promise."""
        return check_view(connection, manifest)


def _refuse_unknown_prior(promise: DGammaPrivacy) -> None:
    """All views have one d, and the number of rows that k is multiplied with changes."""
    if promise.k is not None:
        raise PolicyError(
            "[promise] k bounds a prior by k·n/m, and with changing = true the number n of rows changes from "
            "view to view",
            hint="state d instead of k: the belief, before the first view, that a given row will be in the "
            "table at any of the dates; k times the rows that all tables together may have, divided by the "
            "size of the domain",
        )


def _refuse_repeated(n_rows: int, n_tuples: int) -> None:
    """A table with duplicates is refused until the publisher chooses."""
    if n_tuples < n_rows:
        raise PolicyError(
            f"{n_rows - n_tuples:,} of {n_rows:,} rows repeat another row, and a view is a set",
            hint='[mechanism] duplicates = "distinct": the full promise, and answers count different rows; '
            'or duplicates = "copies": answers count rows, the promise is for one copy of a row, and the '
            "view tells which rows occur often",
        )


MECHANISM: SerialMechanism = AlphaBeta()
