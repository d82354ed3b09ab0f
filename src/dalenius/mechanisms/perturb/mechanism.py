"""Perturbation as a mechanism: plan, draft, check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.display import PrivatePlan
from dalenius.mechanisms.base import (
    Batches,
    Check,
    Draft,
    PolicyOf,
    PublishedTable,
    Repeated,
    Scan,
)
from dalenius.mechanisms.perturb.apply import DataGroups, Perturber, data_rows
from dalenius.mechanisms.perturb.check import check_parts
from dalenius.mechanisms.perturb.config import PerturbConfig
from dalenius.mechanisms.perturb.plan.methods import (
    LEAST_TOP,
    PerturbPlan,
    plan_for_release,
    plan_perturbation,
)
from dalenius.mechanisms.perturb.plan.thresholds import declare_limits, plan_thresholds
from dalenius.mechanisms.perturb.published import read, to_parameters
from dalenius.mechanisms.perturb.repeated import repeat_perturbation
from dalenius.mechanisms.perturb.statement import state
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.mechanisms.stages import CountsMechanism
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest
from dalenius.sql import count, unused_name
from dalenius.tables.histogram import Histogram, with_one_nan

PerturbPolicy = PolicyOf[PerturbConfig, RhoPrivacy | FPrivacy]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PerturbTablePlan(PrivatePlan):
    """The perturbation of a table, with the counts that it was made from."""

    histogram: Histogram
    schema: pa.Schema
    perturbation: PerturbPlan
    promised: dict[str, Any] | None = None
    """The promise as data where every value has a limit of its own; None: the perturbation's own."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.histogram.n_rows

    @property
    def outright(self) -> int:
        """How many people are in parts that have one value only, or one cell of a sensitive column."""
        values, parts = self.histogram.values, self.perturbation.parts
        return sum(part.n_rows for part in parts if _is_certain([values[code] for code in part.codes]))

    def __str__(self) -> str:
        return "\n".join([str(self.perturbation), *_advice(self.perturbation)])

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        return self.perturbation.to_dict()


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturb:
    """(ρ1,ρ2)-privacy by replacing sensitive values at random, within parts or over the whole domain."""

    kind = "perturb"
    plans = "parts"
    plan_keys = ("parts", "error_bound", "error_bound_hoeffding")

    def plan(self, policy: PerturbPolicy, scan: Scan) -> PerturbTablePlan:
        """The parts, how many records of each value go to each, and each part's law."""
        return self.plan_counts(policy, scan.histogram(policy.columns.sensitive), scan.schema)

    def plan_counts(self, policy: PerturbPolicy, histogram: Histogram, schema: pa.Schema) -> PerturbTablePlan:
        """The same for a table with these counts."""
        config, promise = policy.mechanism, policy.promise
        promised = None
        if isinstance(promise, FPrivacy):
            perturbation, limits = plan_thresholds(histogram, promise, config.method)
            promised = declare_limits(histogram, limits)
        else:
            perturbation = plan_for_release(histogram.counts, promise, config.method)
        return PerturbTablePlan(
            histogram=histogram, schema=schema, perturbation=perturbation, promised=promised
        )

    def draft(self, policy: PerturbPolicy, plan: PerturbTablePlan, randomness: Randomness) -> Draft:
        """Number the parts and say how records are perturbed."""
        numbered = _number_parts(plan.perturbation, randomness)
        encoder = plan.histogram.encoder(plan.schema)
        quasi, sensitive = policy.columns.quasi, policy.columns.sensitive
        tag = unused_name("tag", (*quasi, *sensitive, "part"))

        def data(scan: Callable[[], Batches]) -> Batches:
            return data_rows(scan(), quasi, encoder, Perturber(numbered, randomness), tag)

        def shards(census: Census) -> Shards:
            return DataGroups(
                plan=numbered,
                census=census,
                encoder=encoder,
                quasi=quasi,
                schema=plan.schema,
                randomness=randomness.child("perturb"),
            ).shards()

        parameters = to_parameters(encoder.cells, numbered.channels)
        return Draft(
            method=numbered.method,
            tables=(
                PublishedTable(
                    name="data",
                    columns=(*quasi, *sensitive, "part"),
                    rows=data,
                    order_by=(tag,),
                    shards=shards,
                ),
            ),
            statement=state(numbered, len(sensitive), parameters, plan.promised),
            n_published=plan.n_rows,
            outright=plan.outright,
        )

    def draft_part(
        self,
        policy: PerturbPolicy,
        plan: PerturbTablePlan,
        whole: Histogram,  # noqa: ARG002
        randomness: Randomness,
    ) -> Draft:
        """The same for a plan of a part of a table's records, which is made on one machine."""
        draft = self.draft(policy, plan, randomness)
        return replace(draft, tables=tuple(replace(table, shards=None) for table in draft.tables))

    def repeat_part(
        self,
        policy: PerturbPolicy,
        plan: PerturbTablePlan,
        whole: Histogram,  # noqa: ARG002
        times: int,
    ) -> Repeated:
        """The same where each release leaves some people out: whoever is in all of them learns no less."""
        return self.repeat(policy, plan, times)

    def count_values(
        self,
        connection: duckdb.DuckDBPyConnection,  # noqa: ARG002
        manifest: Manifest,  # noqa: ARG002
    ) -> Histogram | None:
        """Published values are perturbed: they do not tell how many records have each."""
        return None

    def repeat(self, policy: PerturbPolicy, plan: PerturbTablePlan, times: int) -> Repeated:  # noqa: ARG002
        """A person's published values and parts in all releases, multiplied."""
        return repeat_perturbation(plan.perturbation, times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Every value is one of its part's, and every part's law fits the promise."""
        return check_parts(connection, manifest)

    def count_outright(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
        """How many people are in parts that have one value only, or one cell of a sensitive column."""
        stated = read(manifest)
        alone = [
            number
            for number, channel in enumerate(stated.channels, start=1)
            if _is_certain([stated.texts[code] for code in channel.codes])
        ]
        listed = ", ".join(map(str, alone)) or "NULL"
        return count(connection, f"SELECT count(*) FROM data WHERE part IN ({listed})")


def _is_certain(values: Sequence[Sequence[Any]]) -> bool:
    """Whether all of them have the same cell in a column."""
    alike = (with_one_nan(tuple(value)) for value in values)
    return any(len(set(cells)) == 1 for cells in zip(*alike, strict=True))


def _number_parts(plan: PerturbPlan, randomness: Randomness) -> PerturbPlan:
    """The same plan with its parts in random order: the order in which a search finds them tells counts."""
    order = randomness.stream("perturb", "numbers").permutation(len(plan.parts))
    return replace(plan, parts=tuple(plan.parts[i] for i in order))


def _advice(plan: PerturbPlan) -> list[str]:
    """What a publisher should know before choosing this method."""
    lines = []
    if plan.method in ("small-domain", "paper"):
        other = plan_perturbation(plan.counts, plan.promise, "best")
        if other.value_rmse < plan.value_rmse:
            lines.append(
                f'method = "best" gives more accurate counts here: {other.value_rmse:.4g} instead '
                f"of {plan.value_rmse:.4g} rows root mean square error, in {len(other.parts)} parts"
            )
    if not plan.is_for_any_prior and plan.smallest_top < LEAST_TOP:
        where = "the table" if len(plan.parts) == 1 else "a part"
        lines.append(
            f"the commonest protected value of {where} has {plan.smallest_top} records: in so small a "
            f"{where.split()[1]} who knows the exact counts, or works them out, can pass rho2"
        )
    return lines


MECHANISM: CountsMechanism = Perturb()
