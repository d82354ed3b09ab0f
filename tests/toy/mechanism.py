"""Roulette as a mechanism: plan, draft, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.base import (
    Batches,
    Check,
    Draft,
    Mechanism,
    PolicyOf,
    PublishedTable,
    Repeated,
    Scan,
    Statement,
    repeat_evidence,
)
from dalenius.mechanisms.sharding import Census, Piece, Shards
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest
from dalenius.sql import count, identifier, unused_name
from dalenius.tables.codes import Encoder
from dalenius.tables.histogram import Histogram
from tests.toy.apply import Spinner
from tests.toy.config import RouletteConfig
from tests.toy.published import Wheel, read

RoulettePolicy = PolicyOf[RouletteConfig, RhoPrivacy]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoulettePlan:
    """The wheel for a table, with the counts that it was made from."""

    histogram: Histogram
    schema: pa.Schema
    wheel: Wheel
    promise: RhoPrivacy

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.histogram.n_rows

    @property
    def outright(self) -> int:
        """Nobody: the wheel has several values."""
        return 0

    def __str__(self) -> str:
        return (
            f"a wheel of {self.wheel.n_values} values, spun for {float(self.wheel.spin):.1%} of the records"
        )

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        return {
            "method": "spin",
            "rows": self.n_rows,
            "values": self.wheel.n_values,
            "gamma": float(self.wheel.gamma),
            "retention": float(1 - self.wheel.spin),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Roulette:
    """(ρ1,ρ2)-privacy with one fixed rate: the rate is given, and kept or refused."""

    kind = "roulette"

    def plan(self, policy: RoulettePolicy, scan: Scan) -> RoulettePlan:
        """Whether the wheel is spun often enough for the promise."""
        config, promise = policy.mechanism, policy.promise
        histogram = scan.histogram(policy.columns.sensitive)
        wheel = Wheel(spin=config.spin, n_values=len(histogram))
        prior = promise.prior_limit(histogram.counts)
        if prior >= promise.rho2 or wheel.gamma > amplification_limit(prior, promise.rho2):
            raise PromiseNotMet(
                f"a belief of {float(prior):.3g} can pass rho2 ({float(promise.rho2):.3g})",
                hint=f"spin the wheel more often than {float(config.spin):.3g}, or raise rho2",
            )
        return RoulettePlan(histogram=histogram, schema=scan.schema, wheel=wheel, promise=promise)

    def draft(self, policy: RoulettePolicy, plan: RoulettePlan, randomness: Randomness) -> Draft:
        """How records are replaced."""
        columns = policy.columns.published
        tag = unused_name("tag", columns)
        spinner = Spinner(
            wheel=plan.wheel,
            encoder=plan.histogram.encoder(plan.schema),
            quasi=policy.columns.quasi,
            schema=plan.schema,
            randomness=randomness.child("roulette"),
        )

        def rows(scan: Callable[[], Batches]) -> Batches:
            return spinner.rows(scan(), tag)

        data = PublishedTable(name="data", columns=columns, rows=rows, order_by=(tag,), shards=spinner.shards)
        tables = (data, _wheel(spinner.encoder))
        return Draft(method="spin", tables=tables, statement=_state(plan), n_published=plan.n_rows)

    def repeat(self, policy: RoulettePolicy, plan: RoulettePlan, times: int) -> Repeated:
        """A value that is published as itself every time."""
        prior = plan.promise.prior_limit(plan.histogram.counts)
        return Repeated(
            times=times,
            posterior=float(repeat_evidence(prior, plan.wheel.gamma, times)),
            promised=float(plan.promise.rho2),
            about="a protected value",
            how="exact",
        )

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Every value is on the wheel, and the wheel is spun often enough."""
        return _check(connection, manifest)

    def count_outright(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
        """Nobody: every value may come from the wheel."""
        return 0


def _wheel(encoder: Encoder) -> PublishedTable:
    """The values that every record may have been given, in their own order."""
    values = pa.table(dict(encoder.cells))

    def shards(census: Census) -> Shards:
        return Shards(n_groups=1, gather=lambda _group, _rows: Piece(rows=values, n_records=0))

    return PublishedTable(
        name="wheel",
        columns=tuple(encoder.cells),
        rows=lambda _scan: iter(values.to_batches()),
        shards=shards,
    )


def _state(plan: RoulettePlan) -> Statement:
    wheel, promise = plan.wheel, plan.promise
    return Statement(
        promise={**promise.to_dict(), "prior_at_most": str(wheel.prior_at_most(promise.rho2))},
        assumes=("one row is one person", "the attacker knows beforehand which sensitive values occur"),
        not_covered=(
            "values that the attacker believed with more than prior_at_most",
            "whether a person is in the table",
            "several releases about the same people",
        ),
        disclosed=(
            "the number of records",
            "which sensitive values occur",
            "every record's quasi-identifiers",
        ),
        parameters={
            "spin": str(wheel.spin),
            "n_values": wheel.n_values,
        },
    )


def _check(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterator[Check]:
    public, sensitive = read(manifest), manifest.columns_of("sensitive")
    same = " AND ".join(f"d.{name} IS NOT DISTINCT FROM w.{name}" for name in map(identifier, sensitive))
    foreign = count(connection, f"SELECT count(*) FROM data d ANTI JOIN wheel w ON {same}")
    yield Check(
        name="values", ok=foreign == 0, detail=f"{foreign} records have a value that is not on the wheel"
    )
    limit = amplification_limit(public.prior_at_most, public.rho2)
    ok = 0 < public.prior_at_most < public.rho2 and public.wheel.gamma <= limit
    odds = float(public.wheel.gamma)
    yield Check(name="promise", ok=ok, detail=f"the odds of a value can become {odds:.4g} times as large")


MECHANISM: Mechanism = Roulette()
