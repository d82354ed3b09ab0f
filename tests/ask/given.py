"""A model whose totals are given: whatever else an answer says is made of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from scipy.special import ndtri

from dalenius.arrays import Bools, Floats
from dalenius.ask import answer_asked
from dalenius.question.answer import Answer
from dalenius.question.database import Database, Deadline, Limits, Request, Workspace
from dalenius.question.model import Column, Combination, Estimators, Key, Plane, Possible, Total, totals_of
from dalenius.question.query import Expression, Query
from dalenius.question.sql import parse


@dataclass(frozen=True, kw_only=True)
class Words:
    formula: str = "as given"
    assumption: str | None = "what is given is right"


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenQuestion:
    totals: tuple[Total, ...]
    keys: tuple[Key, ...]
    key_values: tuple[pa.Array, ...]

    def range_of(self, argument: Expression) -> tuple[float, float]:
        return -1e6, 1e6


@dataclass(frozen=True, kw_only=True, eq=False)
class GivenAsked:
    questions: tuple[GivenQuestion, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """Normal totals: each has the interval mean − 3 to mean + 5, so that it can be told from a formula's."""

    mean: Floats
    """Groups × totals."""
    covariance: Floats
    """Totals × totals, the same in every group."""
    keys: tuple[Key, ...] = ((),)
    key_values: tuple[pa.Array, ...] = ()
    calls: list[str] = field(default_factory=list)
    certain: float = -1.0
    together: int = 7
    names: tuple[str, ...] = ("x", "y")
    coins: str = "the coins of a test"
    more: str = "more coins would tell more"
    summary: str = "nothing"
    estimators: Estimators[Words] = field(default_factory=lambda: Estimators(makers={"given": Words}))

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> GivenAsked:
        return GivenAsked(
            questions=tuple(
                GivenQuestion(totals=totals_of(query.aggregates), keys=self.keys, key_values=self.key_values)
                for query in queries
            )
        )

    def estimation(self, asked: GivenAsked, estimator: str, confidence: float) -> Given:
        assert confidence == 0.95
        return self

    def totals(self, question: int) -> Floats:
        return self.mean

    def std_error(self, question: int, total: int) -> Floats:
        return np.full(len(self.mean), np.sqrt(self.covariance[total, total]))

    def total(self, question: int, total: int, estimate: Floats) -> Column:
        self.calls.append(f"total {total}")
        error = self.std_error(question, total)
        return Column(estimate=estimate, std_error=error, low=estimate - 3, high=estimate + 5)

    def _error(self, factors: Floats) -> Floats:
        known = np.nan_to_num(factors)
        return np.asarray(np.sqrt(np.einsum("gi,ij,gj->g", known, self.covariance, known)))

    def combine(self, combinations: Sequence[Combination]) -> list[Column]:
        found = []
        for one in combinations:
            error = np.where(one.is_null, np.nan, self._error(one.factors))
            reach = ndtri(0.975) * error
            found.append(
                Column(estimate=one.value, std_error=error, low=one.value - reach, high=one.value + reach)
            )
        return found

    def covariances(self, pairs: Iterable[tuple[Combination, Floats, Combination, Floats]]) -> list[Floats]:
        return [
            np.einsum("gi,ij,gj->g", np.nan_to_num(a.factors), self.covariance, np.nan_to_num(b.factors))
            for a, _, b, _ in pairs
        ]

    def reach(self, question: int) -> tuple[Floats, Floats]:
        return np.zeros_like(self.mean), np.full_like(self.mean, 10.0)

    def possible(self, question: int) -> Possible:
        low, high = self.reach(question)
        groups = np.arange(len(self.mean))
        planes = (Plane(total=0, groups=groups, std_error=self.std_error(question, 0)),)
        return Possible(low=low, high=high, planes=planes)

    def is_rounding(self, column: Column) -> Bools:
        return np.asarray(column.std_error < 1e-12)


def answer(model: Given, text: str, *, consistent: bool = False) -> Answer:
    """What is said about a question when its totals are these."""
    query = parse(text, model.names)
    workspace = Workspace(database=Database({}, Limits()), deadline=Deadline(Limits()))
    request = Request(estimator="given", consistent=consistent)
    (found,) = answer_asked(model, [query], model.evaluate([query], workspace), request, workspace)
    return found
