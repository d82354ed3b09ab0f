"""What is asked: workloads of counts, each a value that draws its questions for a table.

`workload.questions(original, stream)` gives texts for `ask_many` and the true answers. The user's own
questions are in `sql_workload.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import ceil
from typing import Protocol

import numpy as np

from dalenius.arrays import Ints
from dalenius.errors import InputError
from dalenius.evaluate.original import CountQuestion, Original
from dalenius.evaluate.questions import Questions, TrueAnswer
from dalenius.sql import identifiers

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
        return _counted(original, drawn, most_changed=len(drawn))

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


def _counted(original: Original, drawn: list[CountQuestion], *, most_changed: int) -> Questions:
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
