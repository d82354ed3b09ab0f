"""What is asked: workloads of counts, each a value that draws its questions for a table.

`workload.questions(original, stream)` gives texts for `ask_many` and the true answers (`Questions`), beside
which a release's answers are put cell by cell (`Cells`). The user's own questions are in `sql_workload.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import ceil
from typing import Any, Protocol

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import InputError
from dalenius.evaluate.original import CountQuestion, Original
from dalenius.question.answer import Answer
from dalenius.sql import identifiers

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

    def compare(self, answers: Sequence[Answer]) -> Cells:
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


MOST_CELLS = 2_000_000
"""How many numbers a workload may ask for."""


class Workload(Protocol):
    """A kind of questions."""

    @property
    def name(self) -> str:
        """What tables and pictures call it."""

    def questions(self, original: Original, stream: np.random.Generator) -> Questions:
        """Draw the questions, and answer them on the original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnatomyWorkload:
    """Counts over random values of some quasi columns and of the sensitive columns (Xiao and Tao).

    The number qd of quasi columns is uniform in 1..most_quasi. Every column is restricted to
    b = ⌈|A|·s^(1/(qd+1))⌉ random values of its domain, s = the expected selectivity.
    """

    n_questions: int = 1_000
    selectivity: float = 0.01
    most_quasi: int = 7

    def __post_init__(self) -> None:
        _refuse_below_one("questions", self.n_questions)
        if not 0 < self.selectivity <= 1:
            raise InputError(f"a selectivity of {self.selectivity} is not between 0 and 1")

    @property
    def name(self) -> str:
        """What tables and pictures call it."""
        return "anatomy"

    def questions(self, original: Original, stream: np.random.Generator) -> Questions:
        """Random OR-predicates at the expected selectivity."""
        drawn = self.draw(original, stream)
        # Each of these counts changes by at most one when a record is replaced.
        return _count_truths(original, drawn, most_changed=len(drawn))

    def draw(self, original: Original, stream: np.random.Generator) -> list[CountQuestion]:
        """The questions alone."""
        return [self._draw_one(original, stream) for _ in range(self.n_questions)]

    def _draw_one(self, original: Original, stream: np.random.Generator) -> CountQuestion:
        columns = [*_some_columns(original, self.most_quasi, stream), *original.sensitive]
        share = self.selectivity ** (1 / len(columns))

        def some(column: str) -> tuple[int, ...]:
            size = len(original.cells[column])
            return tuple(sorted(stream.choice(size, ceil(size * share), replace=False).tolist()))

        return CountQuestion(conditions=tuple((column, some(column)) for column in columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualityPool:
    """Random equality conditions on quasi columns, each with every sensitive value, like GROUP BY.

    The pool of "Small Domain Randomization" (10.9): 1 to `most_quasi` columns, a value of each; questions
    that fewer than `least_selectivity` of the records satisfy are left out.
    """

    n_conditions: int = 200
    least_selectivity: float = 0.001
    most_quasi: int = 3

    def __post_init__(self) -> None:
        _refuse_below_one("conditions", self.n_conditions)

    @property
    def name(self) -> str:
        """What tables and pictures call it."""
        return "equality"

    def questions(self, original: Original, stream: np.random.Generator) -> Questions:
        """The questions of the pool that are selective enough."""
        kept: list[tuple[CountQuestion, int]] = []
        most_changed = 0
        for _ in range(self.n_conditions):
            of_condition = self._of_condition(original, self.condition(original, stream))
            kept += of_condition
            # A record is in one of a condition's questions at most: replacing it changes two of them.
            most_changed += min(2, len(of_condition))
        if not kept:
            raise InputError(
                f"no question of the pool is satisfied by {self.least_selectivity:.2%} of the records",
                hint="ask with the workload `anatomy` or `marginals` instead",
            )
        drawn, counts = zip(*kept, strict=True)
        sqls = [original.sql(question) for question in drawn]
        return Questions.of_counts(sqls, counts, n_rows=original.n_rows, most_changed=most_changed)

    def condition(self, original: Original, stream: np.random.Generator) -> CountQuestion:
        """One random condition on quasi columns."""
        columns = _some_columns(original, self.most_quasi, stream)
        chosen = ((column, (int(stream.integers(len(original.cells[column]))),)) for column in columns)
        return CountQuestion(conditions=tuple(chosen))

    def _of_condition(self, original: Original, condition: CountQuestion) -> list[tuple[CountQuestion, int]]:
        """The condition with every value of the sensitive columns, and the counts."""
        sizes = [len(original.cells[column]) for column in original.sensitive]
        rows = original.rows(condition)
        ranks = _ranks(original, original.sensitive)[rows]
        counts = np.bincount(ranks, minlength=int(np.prod(sizes)))
        enough = np.flatnonzero((counts > 0) & (counts >= self.least_selectivity * original.n_rows))
        found = []
        for rank in enough.tolist():
            codes = np.unravel_index(rank, sizes) if sizes else ()
            own = tuple((c, (int(code),)) for c, code in zip(original.sensitive, codes, strict=True))
            found.append((CountQuestion(conditions=(*condition.conditions, *own)), int(counts[rank])))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Marginals:
    """Every combination of values of up to `most_columns` columns, also those that do not occur."""

    most_columns: int = 2

    def __post_init__(self) -> None:
        _refuse_below_one("columns", self.most_columns)

    @property
    def name(self) -> str:
        """What tables and pictures call it."""
        most = self.most_columns
        return "marginals of single columns" if most == 1 else f"marginals of up to {most} columns"

    def questions(self, original: Original, stream: np.random.Generator) -> Questions:  # noqa: ARG002
        """One GROUP BY for each choice of columns; nothing is random."""
        chosen = self.column_sets(original)
        n_cells = sum(int(np.prod([len(original.cells[c]) for c in columns])) for columns in chosen)
        if n_cells > MOST_CELLS:
            raise InputError(
                f"the marginals have {n_cells:,} cells; at most {MOST_CELLS:,} are asked for",
                hint="recode the columns with many values, or ask with another workload",
            )
        return joint_counts(original, chosen)

    def column_sets(self, original: Original) -> list[tuple[str, ...]]:
        """The choices of columns."""
        names, most = list(original.cells), self.most_columns
        return [chosen for k in range(1, most + 1) for chosen in combinations(names, k)]


def joint_counts(original: Original, column_sets: Sequence[tuple[str, ...]]) -> Questions:
    """One GROUP BY for each of these choices of columns, with all combinations of their values."""
    return Questions(
        sqls=tuple(_group_by(columns) for columns in column_sets),
        answers=tuple(_true_marginal(original, columns) for columns in column_sets),
        most_changed=2 * len(column_sets),
    )


def _true_marginal(original: Original, columns: tuple[str, ...]) -> TrueAnswer:
    """The counts of all combinations of the columns' values."""
    size = int(np.prod([len(original.cells[column]) for column in columns]))
    counts = np.bincount(_ranks(original, columns), minlength=size).tolist()
    keys = product(*(original.cells[column] for column in columns))
    return TrueAnswer(
        cells={(key, "n"): float(n) for key, n in zip(keys, counts, strict=True)},
        scale={"n": float(original.n_rows)},
    )


def _group_by(columns: tuple[str, ...]) -> str:
    listed = identifiers(columns)
    return f"SELECT {listed}, COUNT(*) AS n FROM t GROUP BY {listed}"


def _count_truths(original: Original, drawn: list[CountQuestion], *, most_changed: int) -> Questions:
    return Questions.of_counts(
        [original.sql(question) for question in drawn],
        [original.count(question) for question in drawn],
        n_rows=original.n_rows,
        most_changed=most_changed,
    )


def _some_columns(original: Original, most: int, stream: np.random.Generator) -> list[str]:
    """A random number of quasi columns, in the table's order."""
    quasi = original.quasi
    if not quasi:
        raise InputError("there is no column but the sensitive ones to ask about")
    number = int(stream.integers(1, min(most, len(quasi)) + 1))
    chosen = stream.choice(len(quasi), number, replace=False)
    return [quasi[i] for i in sorted(chosen.tolist())]


def _ranks(original: Original, columns: tuple[str, ...]) -> Ints:
    """Which combination of the columns' values each record has, the last column running fastest."""
    ranks = np.zeros(original.n_rows, dtype=np.int64)
    for column in columns:
        ranks = ranks * len(original.cells[column]) + original.codes(column)
    return ranks


def _refuse_below_one(what: str, number: int) -> None:
    if number < 1:
        raise InputError(f"a workload of {number} {what} asks nothing", hint=f"at least 1 of the {what}")
