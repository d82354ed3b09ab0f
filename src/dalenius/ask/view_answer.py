"""Answers from views: estimates of totals and of formulas over them, with intervals, group by group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import ndtri

from dalenius.arrays import Floats
from dalenius.ask.estimation import Column
from dalenius.ask.finishing import order_groups, project
from dalenius.ask.view_kernels import Covariance, Kernel
from dalenius.ask.view_question import Question, evaluate
from dalenius.ask.view_sums import Sums
from dalenius.ask.viewed import ViewModel
from dalenius.mechanisms.tuples.atoms import Atoms
from dalenius.question.answer import Answer, AnswerRow, finite
from dalenius.question.database import Database, Deadline, Request
from dalenius.question.query import AggregateRef, Expression, Formula, Query
from dalenius.question.ratios import denominator, fieller, possible_ratio
from dalenius.question.totals import Linear, linearize, null_sums

Gradient = dict[int, Floats]
"""The factors of some totals, per group."""

_FEW_TUPLES = 30
"""Below the variance of this many tuples a sum is not taken as normal."""


def answer_from_views(
    model: ViewModel, queries: Sequence[Query], request: Request, database: Database
) -> list[Answer]:
    """Answer questions of a view, or of the views of a series."""
    deadline = Deadline(request.limits)
    atoms = Atoms(domain=model.domain, database=database, deadline=deadline)
    answers = []
    for query in queries:
        deadline.check()
        question = evaluate(query, atoms)
        answers.append(answer_evaluated(model, query, question, request, database, deadline))
    return answers


def answer_evaluated(
    model: ViewModel,
    query: Query,
    question: Question,
    request: Request,
    database: Database,
    deadline: Deadline,
) -> Answer:
    """Answer a question whose conditions were evaluated on the domain's values."""
    sums = Sums(
        question=question,
        domain=model.domain,
        noise=model.noise,
        rows=model.rows,
        check_time=deadline.check,
    )
    return _finish(_Estimates(query=query, sums=sums, model=model, request=request), database, deadline)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Estimates:
    query: Query
    sums: Sums
    model: ViewModel
    request: Request
    _known: dict[tuple[int, int], Covariance] = field(default_factory=dict)
    """The covariances of two totals that were needed already."""

    @property
    def kernel(self) -> Kernel:
        return self.model.kernel(self.request.estimator or self.model.default_estimator)

    def totals(self) -> Floats:
        """Groups × totals."""
        n_totals = len(self.sums.question.totals)
        found = np.stack([self.kernel.estimate(self.sums, i) for i in range(n_totals)], axis=1)
        nobody = np.stack([self.sums.count_domain(i) == 0 for i in range(n_totals)], axis=1)
        moved = self._consistent(found) if self.request.consistent else found
        return np.where(null_sums(self.sums.question.totals, nobody), np.nan, moved)

    def _consistent(self, totals: Floats) -> Floats:
        """Counts moved between 0 and what the domain has, adding up to the moved sum of all groups."""
        moved = totals.copy()
        for i, total in enumerate(self.sums.question.totals):
            if total.kind == "count":
                high = self.sums.count_domain(i)
                everything = float(np.clip(totals[:, i].sum(), 0, high.sum()))
                error = np.sqrt(np.maximum(self._variance({i: np.ones(len(totals))}), 1e-12))
                moved[:, i] = project(totals[:, i], error, np.zeros(len(totals)), high, everything)
        return moved

    def column(self, formula: Formula, totals: Floats) -> Column:
        """A formula of totals in every group, to first order in their errors."""
        question = self.sums.question
        linear = linearize(formula, self.query.aggregates, question.totals, totals)
        single = _single_total(linear)
        gradient = _as_gradient(linear)
        variance = self._variance(gradient)
        unknown = np.isnan(linear.value) & ~np.isnan(totals).any(axis=1)
        std_error = np.where(unknown, np.nan, np.sqrt(np.maximum(variance, 0.0)))
        if single is not None and question.totals[single].kind == "count":
            added = np.nan_to_num(linear.value - totals[:, single])
            low, high = (end + added for end in self._count_interval(single))
        elif single is not None:
            low, high = self._sum_interval(single, linear.value, variance)
        else:
            low, high = self._ratio_interval(formula, linear, totals, gradient, std_error)
        # an estimate that is not possible is still the estimate: the interval reaches to it
        return Column(
            estimate=linear.value,
            std_error=std_error,
            low=np.fmin(low, linear.value),
            high=np.fmax(high, linear.value),
        )

    def _ratio_interval(
        self, formula: Formula, linear: Linear, totals: Floats, gradient: Gradient, std_error: Floats
    ) -> tuple[Floats, Floats]:
        """By Fieller's method for a ratio; to first order for other arithmetic."""
        z = float(ndtri((1 + self.request.confidence) / 2))
        below = denominator(formula, self.query.aggregates, self.sums.question.totals, totals)
        if below is None:
            return linear.value - z * std_error, linear.value + z * std_error
        divisor = _as_gradient(below)
        variance = self._variance(divisor)
        none = np.zeros(len(std_error))
        both = {k: gradient.get(k, none) + divisor.get(k, none) for k in (*gradient, *divisor)}
        covariance = (self._variance(both) - std_error**2 - variance) / 2
        reach = fieller(np.full(len(std_error), z), std_error, below.value, variance, covariance)
        possible = possible_ratio(formula, self.query.aggregates, self._range)
        return (
            np.clip(linear.value + reach[0], *possible),
            np.clip(linear.value + reach[1], *possible),
        )

    def _range(self, argument: Expression) -> tuple[float, float]:
        """The least and the largest number that an argument is on the domain."""
        question = self.sums.question
        for total, summand in zip(question.totals, question.summands, strict=True):
            if total.kind == "sum" and total.argument == argument and summand.number is not None:
                numbers = summand.number.values[summand.number.present]
                return float(numbers.min(initial=np.inf)), float(numbers.max(initial=-np.inf))
        return -np.inf, np.inf

    def _variance(self, gradient: Gradient) -> Floats:
        """Of Σ gradient·total, per group; the estimated part is moved to what is possible."""
        n_groups = len(self.sums.groups.keys)
        known, estimated, most = np.zeros(n_groups), np.zeros(n_groups), np.zeros(n_groups)
        for i, by_one in gradient.items():
            for j, by_two in gradient.items():
                if j < i:
                    continue
                part = self._covariance(i, j)
                weight = by_one * by_two * (1.0 if i == j else 2.0)
                known += weight * part.known
                estimated += weight * part.estimated
                with np.errstate(invalid="ignore"):
                    most += np.where(weight == 0, 0.0, weight * part.most)
        most = np.where(np.isnan(most), np.inf, most)
        return known + np.clip(estimated, 0.0, np.maximum(most, 0.0))

    def _covariance(self, one: int, two: int) -> Covariance:
        if (one, two) not in self._known:
            self._known[one, two] = self.kernel.covariance(self.sums, one, two)
        return self._known[one, two]

    def _count_interval(self, total: int) -> tuple[Floats, Floats]:
        found = self.kernel.count_intervals(self.sums, total, self.request.confidence)
        low, high = np.array([one[0] for one in found]), np.array([one[1] for one in found])
        return np.floor(low + 1e-6), np.ceil(high - 1e-6)

    def _sum_interval(self, total: int, estimate: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Normal where many tuples make up the variance, else Bernstein's inequality, which covers too.

        The tuples of the table add at most M² each to the estimated part; how many there can be is bounded at
        half the allowed error probability, and Bernstein's inequality has the other half.
        """
        number = self.sums.question.summands[total].number
        largest = (number.largest if number is not None else 1.0) * self.kernel.spread
        miss = 1 - self.request.confidence
        reach = float(ndtri(1 - miss / 2)) * np.sqrt(np.maximum(variance, 0.0))
        few = np.flatnonzero(variance <= _FEW_TUPLES * largest**2)
        if len(few):
            part = self._covariance(total, total)
            counts = self.kernel.count_intervals(self.sums, total, 1 - miss / 2)
            log_term = math.log(4 / miss)
            for i in few:
                bound = part.known[i] + min(counts[i][1] * largest**2, max(float(part.most[i]), 0.0))
                third = log_term * largest / 3
                reach[i] = third + math.sqrt(third**2 + 2 * bound * log_term)
        return estimate - reach, estimate + reach


def _as_gradient(linear: Linear) -> Gradient:
    return {i: np.nan_to_num(column) for i, column in enumerate(linear.gradient.T) if column.any()}


def _single_total(linear: Linear) -> int | None:
    """The total that the formula simply is, if it is one."""
    if not len(linear.gradient):
        return None
    row = linear.gradient[0]
    if (linear.gradient == row).all() and np.count_nonzero(row) == 1 and row.max() == 1.0:
        return int(row.argmax())
    return None


def _finish(estimates: _Estimates, database: Database, deadline: Deadline) -> Answer:
    query, sums, request, model = estimates.query, estimates.sums, estimates.request, estimates.model
    totals = estimates.totals()
    columns = [estimates.column(item.formula, totals) for item in query.items]
    by_name = {f"i{k}": column.estimate for k, column in enumerate(columns)}
    for k in range(len(query.aggregates)):
        ref = AggregateRef(index=k)
        by_name[f"a{k}"] = linearize(ref, query.aggregates, sums.question.totals, totals).value
    keys = sums.groups.keys
    values = [key.values for key in sums.question.keys]
    order = order_groups(database, deadline, query, keys, values, by_name)
    names = [key.name for key in query.groups]
    rows = []
    for i in order:
        cells = [cells[code].as_py() for cells, code in zip(values, keys[i], strict=True)]
        group = tuple(zip(names, cells, strict=True))
        for item, column in zip(query.items, columns, strict=True):
            rows.append(_row(group, item.name, column, i, request))
    return Answer(
        rows=tuple(rows),
        confidence=request.confidence,
        assumption="moved to the nearest table that is possible, which is no longer unbiased"
        if request.consistent
        else None,
        explain=_explain(model, query, request.estimator or model.default_estimator),
    )


def _row(
    group: tuple[tuple[str, object], ...], name: str, column: Column, i: int, request: Request
) -> AnswerRow:
    status: Literal["exact", "estimate", "consistent"] = "consistent" if request.consistent else "estimate"
    return AnswerRow(
        group=group,
        column=name,
        estimate=finite(column.estimate[i]),
        std_error=finite(column.std_error[i]),
        low=finite(column.low[i]),
        high=finite(column.high[i]),
        status="exact" if column.std_error[i] == 0 else status,
    )


def _explain(model: ViewModel, query: Query, estimator: str) -> str:
    return "\n".join(
        [
            f"question: {query.text}",
            f"estimator: {estimator}: {model.kernel(estimator).formula}",
            f"read: {model.summary()}",
            "rests on: the coins of the mechanism alone, nothing about the data",
        ]
    )
