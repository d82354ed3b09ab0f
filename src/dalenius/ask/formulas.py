"""From estimates of totals to those of aggregates and of arithmetic of them.

A formula that is a total, except for a number that is added, has the total's interval. Any other is taken to
first order in the errors of its totals, and a ratio further, by Fieller's method. What the formulas of
several questions need is estimated at once.

Fieller's intervals hold where the denominator is uncertain too. To first order a ratio R = A/B has the error
of L = (A − R·B)/B. That is too small where B may be nearly 0. Fieller (1954) asks instead which r make A −
r·B consistent with 0: with u = r − R,

    u²·(1 − z²·Var B/B²) + 2u·z²·Cov(L, B)/B − z²·Var L ≤ 0.

Where B cannot be told from 0 this sets no limits to r, and only what is possible at all does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dalenius.arrays import Bools, Floats, divide, normal_quantile
from dalenius.question.model import Column, Combination, Estimation, Linear, Question, Total, linearize
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Bounded,
    Expression,
    Formula,
    Number,
    Query,
    Root,
)

_NEARLY_ALL = 0.9
_ROUNDING = 1e-9


def denominator(
    formula: Formula, aggregates: tuple[Aggregate, ...], totals: tuple[Total, ...], estimates: Floats
) -> Linear | None:
    """What a formula divides by, if it is one ratio of sums of totals."""
    match formula:
        case AggregateRef(index=index) if aggregates[index].kind == "avg":
            aggregate = aggregates[index]
            count = Total(kind="count", argument=aggregate.argument, condition=aggregate.condition)
            gradient = np.zeros_like(estimates)
            gradient[:, totals.index(count)] = 1.0
            return Linear(value=estimates[:, totals.index(count)], gradient=gradient)
        case Arithmetic(operator="/", left=left, right=right):
            if _is_linear(left, aggregates) and _is_linear(right, aggregates):
                return linearize(right, aggregates, totals, estimates)
    return None


def _is_linear(formula: Formula, aggregates: tuple[Aggregate, ...]) -> bool:
    match formula:
        case Number():
            return True
        case AggregateRef(index=index):
            return aggregates[index].kind != "avg"
        case Arithmetic(operator=operator, left=left, right=right):
            if operator == "*" and not (isinstance(left, Number) or isinstance(right, Number)):
                return False
            return operator != "/" and _is_linear(left, aggregates) and _is_linear(right, aggregates)
        case _:
            return False


def possible_ratio(
    formula: Formula, aggregates: tuple[Aggregate, ...], range_of: Callable[[Expression], tuple[float, float]]
) -> tuple[float, float]:
    """What a ratio can be at all: a mean lies among the numbers averaged, a part of a count within it."""
    match formula:
        case AggregateRef(index=index) if aggregates[index].kind == "avg":
            argument = aggregates[index].argument
            return (-np.inf, np.inf) if argument is None else range_of(argument)
        case Arithmetic(operator="/", left=AggregateRef(index=part), right=AggregateRef(index=whole)):
            everybody = aggregates[whole] == Aggregate(kind="count")
            return (0.0, 1.0) if everybody and aggregates[part].kind == "count" else (-np.inf, np.inf)
        case Arithmetic(operator="/", left=Arithmetic(operator="*", left=Number(value=factor), right=part)):
            share = Arithmetic(operator="/", left=part, right=formula.right)
            low, high = possible_ratio(share, aggregates, range_of)
            return (factor * low, factor * high) if factor > 0 else (-np.inf, np.inf)
    return -np.inf, np.inf


def is_uncertain(value: Floats, std_error: Floats, certain: float) -> Bools:
    """Which denominators need more than the first order: those with a larger relative error."""
    with np.errstate(invalid="ignore"):
        return np.asarray((value != 0) & ~(std_error <= certain * np.abs(value)))


def fieller(
    z: Floats, error: Floats, value: Floats, variance: Floats, covariance: Floats
) -> tuple[Floats, Floats]:
    """How far the interval of a ratio reaches below and above it, u as above.

    Args:
        z: quantiles of the error's law, in standard errors.
        error: the ratio's standard error to first order, √Var L.
        value: B.
        variance: Var B.
        covariance: Cov(L, B).

    >>> one = np.ones(1)
    >>> low, high = fieller(2 * one, 0.1 * one, 10 * one, 4 * one, 0 * one)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([-0.218], [0.218])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        square = 1 - z**2 * variance / value**2
        middle = z**2 * covariance / value
        root = np.sqrt(middle**2 + np.maximum(square, 0.0) * (z * error) ** 2)
        bounded = square > 0
        low = np.where(bounded, (-middle - root) / square, -np.inf)
        high = np.where(bounded, (-middle + root) / square, np.inf)
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Estimated:
    """A question with the estimates of its totals."""

    number: int
    """Which of the questions that were evaluated together it is."""
    query: Query
    question: Question
    totals: Floats
    """Groups × totals; NaN: NULL."""
    is_moved: bool
    """Whether they were moved to what is possible."""

    def linear(self, formula: Formula) -> Linear:
        """The formula's value and derivatives at the estimates."""
        return linearize(formula, self.query.aggregates, self.question.totals, self.totals)

    def denominator(self, formula: Formula) -> Linear | None:
        """What a formula divides by, if it is one ratio of sums of totals."""
        return denominator(formula, self.query.aggregates, self.question.totals, self.totals)

    def combination(self, linear: Linear) -> Combination:
        """The linear combination that has the formula's error."""
        return Combination(
            question=self.number,
            factors=linear.gradient,
            totals=self.totals,
            is_null=np.isnan(linear.value),
        )

    def total(self, estimation: Estimation, total: int) -> Column:
        """One of its totals with its interval."""
        estimate = self.totals[:, total]
        found = estimation.total(self.number, total, estimate)
        if not self.is_moved:
            return found
        return replace(found, low=np.fmin(found.low, estimate), high=np.fmax(found.high, estimate))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A formula of a question's totals."""

    asked: Estimated
    formula: Formula
    linear: Linear
    around: tuple[Root | Bounded, ...] = ()
    """What is done with the formula's result, the last one first."""

    @classmethod
    def of(cls, asked: Estimated, formula: Formula) -> Wanted:
        """With its value and derivatives."""
        around = []
        while isinstance(formula, Root | Bounded):
            around.append(formula)
            formula = formula.part
        return cls(asked=asked, formula=formula, linear=asked.linear(formula), around=tuple(around))

    def finish(self, column: Column) -> Column:
        """The result of the whole, from that of the formula inside."""
        for one in reversed(self.around):
            if isinstance(one, Root):
                column = _take_root(column)
                continue
            least, most = self._bounds(one)
            column = _settled_at(least, column) if least == most else _within(column, (least, most))
        return column

    def _bounds(self, bounded: Bounded) -> tuple[float, float]:
        if bounded.spread is None:
            return bounded.low, bounded.high
        least, most = self.asked.question.range_of(bounded.spread)
        widest = bounded.most * (most - least) ** 2
        return bounded.low, widest if np.isfinite(widest) else bounded.high


def is_certain(estimation: Estimation, wanted: Wanted, column: Column) -> Bools:
    """Where there is no error but rounding: of the result, or of every total that it is made of."""
    asked, gradient = wanted.asked, wanted.linear.gradient
    if _single_total(wanted.linear) is not None:
        return estimation.is_rounding(column)
    certain = np.ones(len(gradient), dtype=np.bool_)
    for total in np.flatnonzero((np.nan_to_num(gradient, nan=1.0) != 0).any(axis=0)).tolist():
        certain &= estimation.is_rounding(estimation.total(asked.number, total, asked.totals[:, total]))
    return np.asarray(estimation.is_rounding(column) | certain)


def is_open(estimation: Estimation, wanted: Wanted, column: Column) -> Bools:
    """Where the interval is nearly as wide as what is possible whatever the secret: nothing is told."""
    asked, query = wanted.asked, wanted.asked.query
    single = _single_total(wanted.linear)
    if wanted.around or not len(column.estimate) or not (column.std_error > 0).any():
        return np.zeros(len(column.estimate), dtype=np.bool_)
    if single is not None:
        low, high = estimation.reach(asked.number)
        widest = high[:, single] - low[:, single]
    else:
        least, most = possible_ratio(wanted.formula, query.aggregates, asked.question.range_of)
        widest = np.full(len(column.estimate), most - least)
    with np.errstate(invalid="ignore"):
        wide = column.high - column.low >= _NEARLY_ALL * widest
    return np.asarray(wide & np.isfinite(widest) & (widest > 0) & (column.std_error > 0))


def estimate_formulas(estimation: Estimation, wanted: Sequence[Wanted], confidence: float) -> list[Column]:
    """Formulas of totals in every group of their questions."""
    singles = [_single_total(one.linear) for one in wanted]
    several = [k for k, single in enumerate(singles) if single is None]
    found = estimation.combine([wanted[k].asked.combination(wanted[k].linear) for k in several])
    columns = {k: _one_step(wanted[k], column) for k, column in zip(several, found, strict=True)}
    columns |= _ratios(estimation, {k: (wanted[k], columns[k]) for k in several}, confidence)
    for k, single in enumerate(singles):
        if single is not None:
            columns[k] = _add(wanted[k], wanted[k].asked.total(estimation, single))
    return [one.finish(columns[k]) for k, one in enumerate(wanted)]


def estimates_alone(estimation: Estimation, wanted: Sequence[Wanted]) -> list[Floats]:
    """The same without errors."""
    several = [k for k, one in enumerate(wanted) if _single_total(one.linear) is None]
    found = estimation.combine([wanted[k].asked.combination(wanted[k].linear) for k in several])
    known = {k: _one_step(wanted[k], column).estimate for k, column in zip(several, found, strict=True)}
    return [known.get(k, one.linear.value) for k, one in enumerate(wanted)]


def aggregate(asked: Estimated, index: int) -> Wanted:
    """An aggregate by itself."""
    return Wanted.of(asked, AggregateRef(index=index))


def _add(wanted: Wanted, total: Column) -> Column:
    """A total plus a number."""
    value = wanted.linear.value
    added = np.nan_to_num(value - total.estimate)
    return replace(total, estimate=value, low=total.low + added, high=total.high + added)


def _one_step(wanted: Wanted, found: Column) -> Column:
    """One Newton step: an estimator need not be linear, and may know a combination better than its parts."""
    combination = wanted.asked.combination(wanted.linear)
    estimate = wanted.linear.value + found.estimate - combination.value
    gap = estimate - found.estimate
    moved = replace(found, estimate=estimate, low=found.low + gap, high=found.high + gap)
    return _within(moved, (-np.inf, np.inf))


def _ratios(
    estimation: Estimation, first_order: dict[int, tuple[Wanted, Column]], confidence: float
) -> dict[int, Column]:
    """Those formulas that are ratios, with intervals that heed the uncertainty of their denominators."""
    normal = normal_quantile((1 + confidence) / 2)
    below: dict[int, Linear] = {}
    for k, (one, _) in first_order.items():
        found = one.asked.denominator(one.formula)
        if found is not None and len(found.value):
            below[k] = found
    errors = _errors(estimation, {k: (first_order[k][0].asked, divisor) for k, divisor in below.items()})
    heeded = [k for k in below if is_uncertain(below[k].value, errors[k], estimation.certain).any()]
    pairs = []
    for k in heeded:
        one, column = first_order[k]
        whole, divisor = one.asked.combination(one.linear), one.asked.combination(below[k])
        pairs.append((whole, column.std_error, divisor, errors[k]))
    ratios = {k: _possible_only(estimation, *first_order[k], below[k], errors[k]) for k in below}
    for k, covariance in zip(heeded, estimation.covariances(pairs), strict=True):
        one, column = first_order[k]
        uncertain = is_uncertain(below[k].value, errors[k], estimation.certain)
        column = _by_fieller(column, below[k].value, errors[k], covariance, uncertain, normal)
        ratios[k] = _possible_only(estimation, one, column, below[k], errors[k])
    return ratios


def _possible_only(
    estimation: Estimation, wanted: Wanted, ratio: Column, divisor: Linear, error: Floats
) -> Column:
    """A ratio's interval inside what is possible.

    A mean of numbers lies among them. Where the number of people is certain, so are the limits of their sum
    by it.
    """
    asked, query, formula = wanted.asked, wanted.asked.query, wanted.formula
    low, high = possible_ratio(formula, query.aggregates, asked.question.range_of)
    if isinstance(formula, AggregateRef):  # an average
        own = query.aggregates[formula.index]
        total = asked.question.totals.index(Total(kind="sum", argument=own.argument, condition=own.condition))
        least, most = estimation.reach(asked.number)
        certain = (error <= _ROUNDING * divisor.value) & (divisor.value > 0)
        people = np.where(certain, divisor.value, 1.0)
        least, most = least[:, total] / people, most[:, total] / people
        return _within(
            ratio, (np.where(certain, np.fmax(least, low), low), np.where(certain, np.fmin(most, high), high))
        )
    return _within(ratio, (low, high))


def _errors(estimation: Estimation, wanted: dict[int, tuple[Estimated, Linear]]) -> dict[int, Floats]:
    """The standard errors of combinations of totals."""
    singles = {k: _single_total(linear) for k, (_, linear) in wanted.items()}
    several = [k for k, single in singles.items() if single is None]
    found = estimation.combine([wanted[k][0].combination(wanted[k][1]) for k in several])
    errors = {k: column.std_error for k, column in zip(several, found, strict=True)}
    for k, single in singles.items():
        if single is not None:
            errors[k] = estimation.std_error(wanted[k][0].number, single)
    return errors


def _by_fieller(
    column: Column, value: Floats, error: Floats, covariance: Floats, uncertain: Bools, normal: float
) -> Column:
    """Where the denominator is uncertain; `normal` is the quantile for what has no error to first order."""
    reach = np.maximum(column.high - column.estimate, column.estimate - column.low)
    # the estimator's own quantiles, which need not be normal ones
    z = np.where(column.std_error > 0, divide(reach, column.std_error), normal)
    low, high = fieller(z, column.std_error, value, error**2, covariance)
    uncertain = uncertain & np.isfinite(column.std_error) & np.isfinite(error)
    return replace(
        column,
        low=np.where(uncertain, column.estimate + low, column.low),
        high=np.where(uncertain, column.estimate + high, column.high),
    )


def _take_root(column: Column) -> Column:
    """Square roots: the interval is that of the square, so that it holds however uncertain that is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        estimate = np.sqrt(np.maximum(column.estimate, 0.0))
        error = np.where(column.std_error == 0, 0.0, column.std_error / (2 * estimate))
        low, high = np.sqrt(np.maximum(column.low, 0.0)), np.sqrt(np.maximum(column.high, 0.0))
        # where the square may be 0 the first order says nothing
        error = np.where(np.isfinite(error), error, (high - low) / 4)
    return Column(estimate=estimate, std_error=error, low=low, high=high)


def _settled_at(number: float, column: Column) -> Column:
    """The only number that is possible, whatever rounding made of it: where all numbers are the same one."""
    is_null = np.isnan(column.estimate)
    found = np.where(is_null, np.nan, number)
    return Column(
        estimate=found,
        std_error=np.where(is_null, column.std_error, 0.0),
        low=np.where(is_null, column.low, number),
        high=np.where(is_null, column.high, number),
    )


def _within(column: Column, possible: tuple[float | Floats, float | Floats]) -> Column:
    """An estimate that is not possible is still the estimate: the interval reaches to it."""
    low, high = np.clip(column.low, *possible), np.clip(column.high, *possible)
    return replace(column, low=np.fmin(low, column.estimate), high=np.fmax(high, column.estimate))


def _single_total(linear: Linear) -> int | None:
    """The total that the formula is except for a number that is added, if it is one."""
    if not len(linear.gradient):
        return 0
    row = linear.gradient[0]
    if (linear.gradient == row).all() and np.count_nonzero(row) == 1 and row.max() == 1.0:
        return int(row.argmax())
    return None
