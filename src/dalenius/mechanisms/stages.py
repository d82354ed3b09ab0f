"""What is done to a table before its mechanism gets it, and the mechanism of a policy with such a stage.

A stage withholds records. Its plan tosses no coin. `draft` draws once how many records of each value are kept
and plans the mechanism on these counts alone: everything after it (tables, dictionaries, manifest) knows the
kept counts only. A mechanism declares in its config which stages it can be preceded by; it must plan from
the counts of the sensitive values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from dalenius.display import PrivatePlan
from dalenius.mechanisms import registry
from dalenius.mechanisms.base import (
    Batches,
    Check,
    DatedMechanism,
    Draft,
    Mechanism,
    Plan,
    Repeated,
    Scan,
    SerialMechanism,
    Statement,
)
from dalenius.mechanisms.config import StageConfig, config_of
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest
from dalenius.tables.codes import Encoder
from dalenius.tables.histogram import Histogram

if TYPE_CHECKING:  # what is published is checked without what reads a policy
    import duckdb

    from dalenius.policy import Policy


class StagePlan(Protocol):
    """What a stage will do to a table, before any coin is tossed. It prints itself, and it is private."""

    @property
    def certain(self) -> tuple[int, ...] | None:
        """What is kept, except for the order of equal counts, if no coin changes it."""

    @property
    def likeliest(self) -> tuple[int, ...]:
        """What is kept in the likeliest outcome."""

    def draw(self, randomness: Randomness) -> tuple[int, ...]:
        """What is kept, to be drawn once; raise PromiseNotMet if nothing is."""

    def withhold(
        self, batches: Batches, encoder: Encoder, kept: tuple[int, ...], randomness: Randomness
    ) -> Batches:
        """The kept records of each batch: a uniformly random choice of each value's."""

    def state(self, statement: Statement, kept: tuple[int, ...]) -> Statement:
        """What a mechanism says of its release, with what the stage has done to the table before."""

    def to_dict(self) -> dict[str, Any]:
        """What the stage adds to the plan that `dalenius plan --json` prints."""


class Stage(Protocol):
    """One way of withholding records."""

    def plan(self, config: Any, promise: Any, histogram: Histogram) -> StagePlan:
        """The law of what is kept; no coin is tossed."""


class CountsMechanism(Mechanism, Protocol):
    """A mechanism that plans from the counts of the sensitive values alone."""

    @property
    def plans(self) -> str:
        """What it plans, in a word."""

    @property
    def plan_keys(self) -> tuple[str, ...]:
        """What `dalenius plan --json` prints of it, None as long as the counts are not drawn."""

    def plan_counts(self, policy: Any, histogram: Histogram, schema: pa.Schema) -> Plan:
        """The plan for a table with these counts."""

    def draft_part(self, policy: Any, plan: Any, whole: Histogram, randomness: Randomness) -> Draft:
        """The draft of a plan for a part of the records that a table has."""

    def count_values(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Histogram | None:
        """How many published records have each value, from the tables alone; None: they do not tell."""

    def repeat_part(self, policy: Any, plan: Any, whole: Histogram, times: int) -> Repeated:
        """What so many releases by this plan would tell, each of another part of the records."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class StagedPlan(PrivatePlan):
    """What the stage will do, and what the mechanism will, where no coin changes that."""

    histogram: Histogram
    schema: pa.Schema
    method: str
    """Of the mechanism."""
    stage: StagePlan
    after: Plan | None
    """None where it depends on the draw."""
    unplanned: CountsMechanism

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.histogram.n_rows

    @property
    def outright(self) -> int | None:
        """As the mechanism's plan has it; None where that depends on the draw."""
        return None if self.after is None else self.after.outright

    def __str__(self) -> str:
        after = f"  {self.unplanned.plans} are planned after the draw" if self.after is None else self.after
        return f"{self.stage}\n{after}"

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        after = dict.fromkeys(self.unplanned.plan_keys) if self.after is None else self.after.to_dict()
        return {**after, "method": self.method, "rows": self.n_rows, **self.stage.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """A mechanism with a stage before it."""

    config: StageConfig
    stage: Stage
    mechanism: CountsMechanism

    @property
    def kind(self) -> str:
        """The mechanism's own."""
        return self.mechanism.kind

    def plan(self, policy: Policy, scan: Scan) -> StagedPlan:
        """The law of what is kept, and the mechanism's plan if that is certain."""
        histogram, schema = scan.histogram(policy.columns.sensitive), scan.schema
        stage = self.stage.plan(self.config, policy.promise, histogram)
        kept = stage.certain
        return StagedPlan(
            histogram=histogram,
            schema=schema,
            method=policy.mechanism.method,
            stage=stage,
            after=None
            if kept is None
            else self.mechanism.plan_counts(policy, _keep(histogram, kept), schema),
            unplanned=self.mechanism,
        )

    def draft(self, policy: Policy, plan: StagedPlan, randomness: Randomness) -> Draft:
        """Draw once how many records of each value are kept, and plan for these."""
        kept = plan.stage.draw(randomness)
        after = self.mechanism.plan_counts(policy, _keep(plan.histogram, kept), plan.schema)
        draft = self.mechanism.draft_part(policy, after, plan.histogram, randomness)

        def thin(scan: Callable[[], Batches]) -> Batches:
            encoder = plan.histogram.encoder(plan.schema)
            return plan.stage.withhold(scan(), encoder, kept, randomness)

        def thin_rows(rows: Callable[[Callable[[], Batches]], Batches]) -> Any:
            return lambda scan: rows(lambda: thin(scan))

        return replace(
            draft,
            tables=tuple(replace(table, rows=thin_rows(table.rows)) for table in draft.tables),
            statement=plan.stage.state(draft.statement, kept),
            n_suppressed=plan.n_rows - sum(kept),
        )

    def repeat(self, policy: Policy, plan: StagedPlan, times: int) -> Repeated:
        """Joined releases of the likeliest outcome: who is withheld from one is in the next."""
        left = _keep(plan.histogram, plan.stage.likeliest)
        after = self.mechanism.plan_counts(policy, left, plan.schema)
        return self.mechanism.repeat_part(policy, after, plan.histogram, times)

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """As of every release of the mechanism."""
        return check_release(connection, manifest)

    def count_outright(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
        """As of every release of the mechanism."""
        return self.mechanism.count_outright(connection, manifest)


def kept_counts(plan: Plan) -> Histogram | None:
    """What a stage is certain to leave of each value; None without a stage, or where that is drawn."""
    if not isinstance(plan, StagedPlan) or plan.stage.certain is None:
        return None
    return _keep(plan.histogram, plan.stage.certain)


def _keep(histogram: Histogram, kept: tuple[int, ...]) -> Histogram:
    """The counts of what is published; a value that is wholly withheld is not in it."""
    return Histogram.of(histogram.columns, dict(zip(histogram.values, kept, strict=True)))


def mechanism_of(policy: Policy) -> Mechanism:
    """The mechanism that carries a policy out, with its stage of suppression if it has one."""
    config = policy.mechanism
    found: Any = registry.room(config.kind, config.method, "mechanism").MECHANISM
    if policy.suppress is None:
        plain: Mechanism = found
        return plain
    stage: Stage = registry.stage_room("suppress", "stage").STAGE
    return Staged(config=policy.suppress, stage=stage, mechanism=found)


def dated_mechanism(policy: Policy) -> DatedMechanism:
    """The mechanism that publishes a policy's table as it is at the next date."""
    return mechanism_of(policy)  # type: ignore[return-value]


def serial_mechanism(policy: Policy) -> SerialMechanism:
    """The mechanism that publishes the next release of a policy's series."""
    return mechanism_of(policy)  # type: ignore[return-value]


def count_outright(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
    """How many people's sensitive value a release tells for certain, from its tables alone."""
    made = manifest.mechanism
    mechanism: Mechanism = registry.room(made.kind, made.method, "mechanism").MECHANISM
    return mechanism.count_outright(connection, manifest)


def check_dates(kind: str, method: str, parts: Sequence[Any]) -> Iterable[Check]:
    """Whether the tables of several dates belong together, from the releases alone."""
    mechanism: DatedMechanism = registry.room(kind, method, "mechanism").MECHANISM
    return mechanism.check_dates(parts)


def check_release(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> list[Check]:
    """What a release's mechanism says about its tables, and the stages that may have come before it.

    A mechanism checks its promise last; the stages are heard before that.
    """
    kind, method = manifest.mechanism.kind, manifest.mechanism.method
    mechanism: Any = registry.room(kind, method, "mechanism").MECHANISM
    checks: list[Check] = list(mechanism.check(connection, manifest))
    for stage in config_of(kind, method).stages:
        counting = partial(mechanism.count_values, connection, manifest)
        checks.insert(-1, registry.stage_room(stage, "check").check_stage(manifest, counting))
    return checks
