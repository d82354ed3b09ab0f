"""What a release must offer to be asked: one class per mechanism."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from dalenius.arrays import Floats
from dalenius.question.targets import Range, Score, Targets
from dalenius.tables.columns import CodedTable


class Found(Protocol):
    """Estimates of targets, and their errors."""

    @property
    def estimate(self) -> Floats:
        """The estimate of each target."""

    @property
    def std_error(self) -> Floats:
        """Its standard error; infinite where the release tells nothing."""

    def intervals(self, confidence: float, possible: Range) -> Range:
        """The ends of each target's interval, which is still to be cut to what is possible."""


class Estimation(Protocol):
    """Estimates of totals from the scores of one call."""

    def estimate(self, targets: Targets) -> Found:
        """Estimate linear combinations of the scores' totals by sensitive value."""

    def possible_range(self, targets: Targets) -> tuple[Floats, Floats]:
        """The least and the most that each target can be, whatever the secret; −∞ and ∞ where unknown."""


class Model(Protocol):
    """An opened release: its rows, its sensitive values, and how totals are estimated from them."""

    @property
    def rows(self) -> CodedTable:
        """The quasi columns, a row per published row."""

    @property
    def sensitive(self) -> CodedTable:
        """The sensitive columns, a row per sensitive value."""

    @property
    def default_estimator(self) -> str:
        """The estimator that is used when none is asked for."""

    @property
    def estimators(self) -> tuple[str, ...]:
        """The names of all."""

    def estimation(self, scores: Sequence[Score], estimator: str) -> Estimation:
        """Prepare estimates from scores of the published rows."""

    def assumption(self, estimator: str) -> str | None:
        """What the intervals rest on; None: on nothing but the publisher's coins."""

    def formula(self, estimator: str) -> str:
        """How the estimate comes about, for `explain`."""

    def summary(self) -> str:
        """What was read, for `explain`."""
