"""αβ and FRAPP as a mechanism: plan, draft, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import duckdb

from dalenius.errors import InternalError, PolicyError
from dalenius.mechanisms.alphabeta import statement as says
from dalenius.mechanisms.alphabeta.check import check_view
from dalenius.mechanisms.alphabeta.config import AlphaBetaConfig
from dalenius.mechanisms.alphabeta.frapp import FrappPlan, plan_frapp
from dalenius.mechanisms.alphabeta.plan import AlphaBetaPlan, plan_alphabeta
from dalenius.mechanisms.alphabeta.repeated import repeat_views
from dalenius.mechanisms.alphabeta.rows import (
    decoded,
    decoded_once,
    different,
    first_rows,
    frapp_rows,
    later_rows,
)
from dalenius.mechanisms.alphabeta.shards import FrappGroups, TupleGroups, ViewGroups
from dalenius.mechanisms.base import (
    Batches,
    Check,
    Coding,
    Draft,
    Place,
    PublishedTable,
    Scan,
    Statement,
)
from dalenius.mechanisms.repeated import Repeated
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.mechanisms.tuples.declared import PublicDomain, describe_domain, find_domain
from dalenius.mechanisms.tuples.noise import read_noise
from dalenius.mechanisms.tuples.tuple_set import Reads, TupleSet, word_names
from dalenius.policy import Policy
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest

_UNITS = {"records": "record", "distinct": "tuple", "copies": "copy"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewPlan:
    """The parameters of a table's views, with the domain that they were computed for."""

    law: AlphaBetaPlan | FrappPlan
    public: PublicDomain
    reads: Reads
    coding: Coding
    """Of records, where a view is made from different ones or from numbered copies."""
    n_rows: int
    """How many records the source has."""

    def warnings(self) -> tuple[str, ...]:
        """What the publisher should know before publishing."""
        repeated = self.n_rows - self.law.n_rows
        merged = f"{repeated:,} of {self.n_rows:,} rows repeat another; answers will count different rows"
        return (*([merged] if repeated else []), *self.law.warnings())

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        return {
            **self.law.to_dict(),
            "rows": self.n_rows,
            "tuples": self.law.n_rows,
            "active_domains": list(self.public.active),
            "warnings": list(self.warnings()),
        }

    def __str__(self) -> str:
        extra = [f"warning         {text}" for text in self.warnings() if text not in self.law.warnings()]
        return "\n".join([str(self.law), *extra])


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBeta:
    """(d,γ)-privacy by random deletions and insertions, or by randomising every record (FRAPP)."""

    kind = "alpha-beta"

    def plan(self, policy: Policy, scan: Scan) -> ViewPlan:
        """The probabilities, from the number of tuples and the domain."""
        config, promise = _own_parts(policy)
        reads = _reads(config)
        public = find_domain(policy, config, scan, reads)
        coding = TupleSet.of(public.domain).coding()
        n_rows = scan.n_rows()
        n_tuples = scan.n_different(coding) if reads == "distinct" else n_rows
        if config.duplicates is None:
            _refuse_repeated(n_rows, n_tuples)
        law: AlphaBetaPlan | FrappPlan
        if config.method == "frapp":
            law = plan_frapp(n_tuples, public.domain, promise)
        else:
            noise = None if config.noise is None else read_noise(policy.folder / config.noise, public.domain)
            law = plan_alphabeta(n_tuples, public.domain, promise, views=config.views, noise=noise)
        return ViewPlan(law=law, public=public, reads=reads, coding=coding, n_rows=n_rows)

    def draft(self, policy: Policy, plan: ViewPlan, randomness: Randomness) -> Draft:
        """The only view of a table."""
        return self.draft_at(policy, plan, randomness, Place(id="", index=1, of=1))

    def draft_at(
        self,
        policy: Policy,  # noqa: ARG002  (the plan has all that is needed of it)
        plan: ViewPlan,
        randomness: Randomness,
        place: Place,
    ) -> Draft:
        """One of the views of a table."""
        domain, law = plan.public.domain, plan.law
        is_set = isinstance(law, AlphaBetaPlan)

        def rows(scan: Callable[[], Batches]) -> Batches:
            if isinstance(law, FrappPlan):
                is_any = plan.reads == "records"
                tables = map(domain.encode, scan()) if is_any else different(scan(), domain)
                return frapp_rows(tables, domain, law.gamma_f, randomness)
            if place.index == 1:
                return first_rows(scan(), domain, law.law, law.noise, randomness)
            return later_rows(scan(), domain, place.earlier, law.law, randomness)

        view = PublishedTable(
            name="view",
            columns=domain.names,
            rows=rows,
            order_by=word_names(domain),
            order_bits=domain.first_word_bits,
            reads=None if plan.reads == "records" else plan.coding,
            finish=partial(decoded_once if is_set else decoded, domain=domain),
            shards=_shards(plan, randomness) if place.index == 1 else None,
        )
        return Draft(
            method=law.method,
            tables=(view,),
            statement=_statement(plan),
            n_published=None,
            n_suppressed=None,
        )

    def repeated(self, policy: Policy, plan: ViewPlan, times: int) -> Repeated:  # noqa: ARG002
        """A tuple that all of several independent views, or series of views, show."""
        return repeat_views(plan.law, times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Every cell in its domain, no row twice, and parameters that keep the promise."""
        return check_view(connection, manifest)


def _shards(plan: ViewPlan, randomness: Randomness) -> Callable[[Census], Shards] | None:
    """How partitions make the first view; None: FRAPP of different rows, which would need two shuffles."""
    domain, law, child = plan.public.domain, plan.law, randomness.child("alphabeta")

    def frapp_shards(census: Census) -> Shards:
        assert isinstance(law, FrappPlan)  # noqa: S101
        tuples = TupleGroups.of(domain, census.n_groups(census.n_rows))
        return FrappGroups(gamma_f=law.gamma_f, tuples=tuples, census=census, randomness=child).shards()

    def view_shards(census: Census) -> Shards:
        assert isinstance(law, AlphaBetaPlan)  # noqa: S101
        return ViewGroups.cut(domain, law.law, law.noise, law.noise_rows, census, child).shards()

    if isinstance(law, AlphaBetaPlan):
        return view_shards
    return frapp_shards if plan.reads == "records" else None


def _own_parts(policy: Policy) -> tuple[AlphaBetaConfig, DGammaPrivacy]:
    config, promise = policy.mechanism, policy.promise
    if not isinstance(config, AlphaBetaConfig) or not isinstance(promise, DGammaPrivacy):
        raise InternalError(f"alpha-beta was given a policy of {config.kind} and {promise.kind}")
    return config, replace(promise, adversary="exclusive") if config.exclusive else promise


def _reads(config: AlphaBetaConfig) -> Reads:
    """What a view is made from."""
    return config.duplicates or ("records" if config.method == "frapp" else "distinct")


def _refuse_repeated(n_rows: int, n_tuples: int) -> None:
    """A table with duplicates is refused until the publisher chooses."""
    if n_tuples < n_rows:
        raise PolicyError(
            f"{n_rows - n_tuples:,} of {n_rows:,} rows repeat another row, and a view is a set",
            hint='[mechanism] duplicates = "distinct": the full promise, and answers count different rows; '
            'or duplicates = "copies": answers count rows, the promise is for one copy of a row, and the '
            "view tells which rows occur often",
        )


def _statement(plan: ViewPlan) -> Statement:
    law, active = plan.law, plan.public.active
    parameters = {
        **law.public_parameters(),
        "unit": _UNITS[plan.reads],
        "domains": describe_domain(plan.public.domain),
        "active_domains": list(active),
    }
    promise = {**law.promise.to_dict(), "unit": _UNITS[plan.reads]}
    if isinstance(law, FrappPlan):
        return Statement(
            promise={
                **promise,
                "k": str(law.k),
                "d": str(law.k / law.domain_size),
                "unit": "record",
                "views": 1,
            },
            assumes=says.frapp_assumes(),
            not_covered=says.frapp_not_covered(active),
            disclosed=says.frapp_disclosed(active, plan.reads),
            parameters=parameters,
        )
    shares = says.published_shares(law.noise, plan.public.domain.names)
    return Statement(
        promise={**promise, "d": str(law.d), "views": law.law.views},
        assumes=says.assumes(law, plan.reads),
        not_covered=says.not_covered(law, plan.reads, active),
        disclosed=says.disclosed(law, active),
        parameters={**parameters, "noise_shares": shares},
    )


MECHANISM = AlphaBeta()
