"""A stage before a mechanism: what is drawn once, what is withheld, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from dalenius import Policy
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.base import Batches, Statement
from dalenius.mechanisms.bucketize.mechanism import MECHANISM
from dalenius.mechanisms.config import StageConfig
from dalenius.mechanisms.stages import Staged
from dalenius.randomness import Randomness
from dalenius.tables.codes import Encoder
from dalenius.tables.histogram import Histogram

COUNTS = {"a": 6, "b": 6, "c": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPlan:
    """Keeps the first so many records of every value, or of as many values as a coin says."""

    most: int
    counts: tuple[int, ...]
    is_certain: bool = True

    @property
    def certain(self) -> tuple[int, ...] | None:
        return self.likeliest if self.is_certain else None

    @property
    def likeliest(self) -> tuple[int, ...]:
        return tuple(min(count, self.most) for count in self.counts)

    def draw(self, randomness: Randomness) -> tuple[int, ...]:
        if not self.most:
            raise PromiseNotMet("nothing is left")
        keeps_last = randomness.stream("first").random() < 0.5 or self.is_certain
        return tuple(
            kept * (keeps_last or at + 1 < len(self.counts)) for at, kept in enumerate(self.likeliest)
        )

    def withhold(
        self, batches: Batches, encoder: Encoder, kept: tuple[int, ...], randomness: Randomness
    ) -> Batches:
        left = list(kept)
        for batch in batches:
            chosen = []
            for code in encoder.encode(batch).tolist():
                left[code] -= 1
                chosen.append(left[code] >= 0)
            yield batch.filter(pa.array(chosen))

    def state(self, statement: Statement, kept: tuple[int, ...]) -> Statement:
        return replace(statement, disclosed=(*statement.disclosed, f"{sum(kept)} were first"))

    def to_dict(self) -> dict[str, Any]:
        return {"first": self.most}

    def __str__(self) -> str:
        return f"the first {self.most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    most: int
    is_certain: bool = True

    def plan(self, config: Any, promise: Any, histogram: Histogram) -> FirstPlan:
        return FirstPlan(most=self.most, counts=histogram.counts, is_certain=self.is_certain)


def table() -> pa.Table:
    values = [value for value, count in COUNTS.items() for _ in range(count)]
    return pa.table({"uid": range(len(values)), "disease": values})


POLICY = Policy.from_dict(
    {
        "source": table(),
        "columns": {"quasi": ["uid"], "sensitive": ["disease"]},
        "promise": {"kind": "l-diversity", "l": 2},
    }
)


def staged(stage: First) -> Staged:
    return Staged(config=StageConfig(method="first"), stage=stage, mechanism=MECHANISM)


def plan_of(mechanism: Staged) -> Any:
    with LocalEngine().open(POLICY, None, lambda *_: None) as scan:
        return mechanism.plan(POLICY, scan)


def test_the_mechanism_plans_for_what_is_kept_and_the_stage_speaks_first() -> None:
    plan = plan_of(staged(First(most=3)))
    assert plan.n_rows == 15
    assert plan.after.n_rows == 9
    assert str(plan).splitlines()[0] == "the first 3"
    printed = plan.to_dict()
    assert (printed["rows"], printed["first"]) == (15, 3)
    assert sum(entry["size"] * entry["count"] for entry in printed["buckets"]) == 9


def test_only_kept_records_are_published() -> None:
    mechanism = staged(First(most=2))
    plan = plan_of(mechanism)
    draft = mechanism.draft(POLICY, plan, Randomness.seeded(1))
    assert (draft.n_published, draft.n_suppressed) == (6, 9)
    qit, st = draft.tables
    batches = table().to_batches(max_chunksize=4)
    rows = pa.Table.from_batches(qit.rows(lambda: iter(batches)))
    assert sorted(rows.column("uid").to_pylist()) == [0, 1, 6, 7, 12, 13]
    listed = pa.Table.from_batches(st.rows(lambda: iter(batches)))
    assert sum(listed.column("count").to_pylist()) == 6
    assert draft.statement.disclosed[-1] == "6 were first"


def test_what_a_coin_decides_is_planned_after_the_draw() -> None:
    mechanism = staged(First(most=3, is_certain=False))
    plan = plan_of(mechanism)
    assert plan.after is None
    assert "buckets are planned after the draw" in str(plan)
    assert plan.to_dict()["buckets"] is plan.to_dict()["loss"] is None
    drawn = {mechanism.draft(POLICY, plan, Randomness.seeded(seed)).n_published for seed in range(20)}
    assert drawn == {6, 9}  # with a value wholly withheld, and without


def test_a_draw_that_leaves_nothing_is_no_release() -> None:
    mechanism = staged(First(most=0, is_certain=False))
    with pytest.raises(PromiseNotMet, match="nothing is left"):
        mechanism.draft(POLICY, plan_of(mechanism), Randomness.seeded(1))


def test_releases_of_other_parts_tell_who_is_left_out() -> None:
    mechanism, whole = staged(First(most=3)), plan_of(staged(First(most=6)))
    found = mechanism.repeat(POLICY, plan_of(mechanism), 2)
    assert found.promised == 0.5
    assert found.times == 2
    assert 0 < found.success <= 1  # type: ignore[operator]
    assert mechanism.repeat(POLICY, whole, 2).posterior > 0
