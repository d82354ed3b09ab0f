"""Questions with their true answers, and a release's answers put beside them, cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dalenius.arrays import Bools, Floats
from dalenius.question.answer import Answer

Key = tuple[tuple[Any, ...], str]
"""The cells of a group's keys, and the name of the aggregate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrueAnswer:
    """What the original says about one question: the cells that every release is held against."""

    cells: Mapping[Key, float]
    scale: Mapping[str, float]
    """Per aggregate, its size on the whole table: n for a COUNT, Σ|x| for a SUM, 0 for what is neither."""

    def absent(self, column: str) -> float:
        """What an answer says of a group that it leaves out: 0 records, but no number for a mean."""
        return 0.0 if self.scale[column] else np.nan


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """True and estimated numbers side by side; an estimate of NaN is a cell that was not answered."""

    truth: Floats
    estimate: Floats
    scale: Floats

    @property
    def n_unanswered(self) -> int:
        """How many cells have no estimate."""
        return int(np.isnan(self.estimate).sum())

    @property
    def answered(self) -> Cells:
        """The cells that have an estimate."""
        return self.where(~np.isnan(self.estimate))

    def where(self, chosen: Bools) -> Cells:
        """Some of the cells."""
        return Cells(truth=self.truth[chosen], estimate=self.estimate[chosen], scale=self.scale[chosen])

    def at_least(self, share: float) -> Cells:
        """The cells whose truth is that share of the whole table's number or more."""
        return self.where(self.truth >= share * self.scale)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Questions:
    """A workload drawn for one table: texts for `ask_many`, and what the original answers.

    >>> asked = Questions.of_counts(["SELECT COUNT(*) AS n FROM t"], [3], n_rows=3, most_changed=1)
    >>> asked.truth.tolist(), asked.n_cells
    ([3.0], 1)
    """

    sqls: tuple[str, ...]
    answers: tuple[TrueAnswer, ...]
    most_changed: int | None
    """How much all answers together can change when one record is replaced; None: not bounded."""

    @classmethod
    def of_counts(
        cls, sqls: Sequence[str], counts: Sequence[int], *, n_rows: int, most_changed: int
    ) -> Questions:
        """Plain counts, each with its only column called n."""
        answers = tuple(TrueAnswer(cells={((), "n"): float(c)}, scale={"n": float(n_rows)}) for c in counts)
        return cls(sqls=tuple(sqls), answers=answers, most_changed=most_changed)

    @property
    def n_cells(self) -> int:
        """How many numbers are asked for."""
        return sum(len(answer.cells) for answer in self.answers)

    @property
    def truth(self) -> Floats:
        """The true numbers, question by question."""
        return np.array([number for answer in self.answers for number in answer.cells.values()], dtype=float)

    @property
    def scale(self) -> Floats:
        """What each number is measured against."""
        return np.array([a.scale[key[1]] for a in self.answers for key in a.cells], dtype=float)

    def beside(self, answers: Sequence[Answer]) -> Cells:
        """The answers of `ask_many` to `sqls`, cell by cell beside the truth."""
        estimates: list[float] = []
        for true, answer in zip(self.answers, answers, strict=True):
            found = {(tuple(cell for _, cell in row.group), row.column): row.estimate for row in answer.rows}
            estimates += [_number(found.get(key, true.absent(key[1]))) for key in true.cells]
        return self.with_estimates(np.array(estimates, dtype=float))

    def with_estimates(self, estimate: Floats) -> Cells:
        """Estimates from elsewhere, in the order of `truth`."""
        return Cells(truth=self.truth, estimate=estimate, scale=self.scale)


def _number(estimate: float | None) -> float:
    return np.nan if estimate is None else estimate
