"""A release with a row per person, as questions are asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dalenius.mechanisms.rows.estimation import RowEstimation, RowsAsked, TargetEstimation
from dalenius.mechanisms.rows.lookup import Lookup
from dalenius.mechanisms.rows.summands import ScoreList, summands
from dalenius.question.database import Workspace
from dalenius.question.model import Estimator, Estimators
from dalenius.question.query import Query
from dalenius.question.targets import Score
from dalenius.tables.columns import CodedTable


class RowEstimator(Estimator, Protocol):
    """One way of estimating totals from a release's rows."""

    def estimation(self, scores: Sequence[Score]) -> TargetEstimation:
        """Prepare estimates from scores of the published rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowModel:
    """The rows and sensitive values of such a release, encoded."""

    rows: CodedTable
    """The quasi columns, a row per published row."""
    sensitive: CodedTable
    """The sensitive columns, a row per sensitive value."""
    estimators: Estimators[RowEstimator]
    summary: str
    together = 128
    coins = "the coins of the publisher alone"

    @property
    def names(self) -> tuple[str, ...]:
        """The quasi columns, then the sensitive ones."""
        return (*self.rows.columns, *self.sensitive.columns)

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> RowsAsked:
        """What the questions add up; questions about the same rows share their scores."""
        lookup = Lookup(rows=self.rows, sensitive=self.sensitive, workspace=workspace)
        scores = ScoreList()
        questions = []
        for query in queries:
            workspace.deadline.check()
            questions.append(summands(lookup, query, scores))
        return RowsAsked(questions=tuple(questions), scores=tuple(scores.scores))

    def estimation(self, asked: RowsAsked, estimator: str, confidence: float) -> RowEstimation:
        """Estimate what the questions add up."""
        source = self.estimators[estimator].estimation(asked.scores)
        return RowEstimation.of(asked, source, confidence, self.rows.n_rows)
