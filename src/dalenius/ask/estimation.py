"""From summands to numbers: estimates of totals, then of the formulas over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from dalenius.arrays import Bools, Floats
from dalenius.ask.grouping import Key
from dalenius.ask.summands import Summands, Term
from dalenius.question.model import Estimation
from dalenius.question.query import Formula, Query
from dalenius.question.ratios import denominator, fieller, is_uncertain
from dalenius.question.targets import Targets
from dalenius.question.totals import Linear, linearize, null_sums


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """Estimates of one aggregate or formula, one per group."""

    estimate: Floats
    std_error: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TotalEstimates:
    """Estimates of every total in every group of several questions."""

    summands: tuple[Summands, ...]
    keys: tuple[tuple[Key, ...], ...]
    first: tuple[int, ...]
    """The position of each question's first target; its targets are group by group, total by total."""
    columns: Column
    possible: tuple[Floats, Floats]
    is_count: Bools

    def of_question(self, number: int) -> Column:
        """The totals of a question, groups × totals; a sum over people who are known to be none is NaN."""
        n_groups, n_totals = len(self.keys[number]), len(self.summands[number].totals)
        part = slice(self.first[number], self.first[number] + n_groups * n_totals)
        own = {
            f.name: getattr(self.columns, f.name)[part].reshape(n_groups, n_totals) for f in fields(Column)
        }
        nobody = (own["estimate"] == 0) & (own["std_error"] == 0)
        null = null_sums(self.summands[number].totals, nobody)
        return Column(
            **{
                name: np.where(null, 0.0 if name == "std_error" else np.nan, found)
                for name, found in own.items()
            }
        )


def estimate_totals(
    estimation: Estimation, summands: tuple[Summands, ...], confidence: float, n_rows: int
) -> TotalEstimates:
    """Estimate every total of every group of every question, all at once."""
    keys = tuple(tuple(one.groups) for one in summands)
    terms = [part for one, own in zip(summands, keys, strict=True) for key in own for part in one.groups[key]]
    kinds = [
        t.kind == "count" for one, own in zip(summands, keys, strict=True) for _ in own for t in one.totals
    ]
    sizes = [len(own) * len(one.totals) for one, own in zip(summands, keys, strict=True)]
    is_count = np.array(kinds, dtype=bool)
    columns, possible = _estimate(estimation, terms, confidence)
    known = is_count & is_exact(columns, n_rows)
    columns = replace(columns, estimate=np.where(known, np.rint(columns.estimate), columns.estimate))
    low, high = _whole(np.maximum(columns.low, possible[0]), np.minimum(columns.high, possible[1]), is_count)
    # where the estimate is impossible, the nearest possible number is all the interval that is left
    low, high = np.minimum(low, possible[1]), np.maximum(high, possible[0])
    return TotalEstimates(
        summands=summands,
        keys=keys,
        first=tuple(np.cumsum([0, *sizes])[:-1].tolist()),
        columns=Column(estimate=columns.estimate, std_error=columns.std_error, low=low, high=high),
        possible=possible,
        is_count=is_count,
    )


_WEIGHTS_AT_ONCE = 20_000_000
"""Targets × values that are in memory together."""
_EXACT = 1e-9
"""A standard error below this part of the number of people is rounding."""


def _estimate(
    estimation: Estimation, terms: list[list[Term]], confidence: float
) -> tuple[Column, tuple[Floats, Floats]]:
    """Estimate targets given by their terms, no more at once than their weights fit into memory."""
    n_values = max((len(weights) for parts in terms for _, weights in parts), default=1)
    filled = np.cumsum([len(parts) for parts in terms]) * n_values // _WEIGHTS_AT_ONCE
    starts = np.flatnonzero(np.diff(filled, prepend=-1)).tolist() or [0]
    found = [
        _estimate_together(estimation, Targets.of(terms[start:end]), confidence)
        for start, end in pairwise([*starts, len(terms)])
    ]
    if len(found) == 1:
        return found[0]
    columns = {
        field.name: np.concatenate([getattr(c, field.name) for c, _ in found]) for field in fields(Column)
    }
    return Column(**columns), (
        np.concatenate([low for _, (low, _) in found]),
        np.concatenate([high for _, (_, high) in found]),
    )


def _estimate_together(
    estimation: Estimation, targets: Targets, confidence: float
) -> tuple[Column, tuple[Floats, Floats]]:
    empty = np.zeros(targets.n_targets)
    if not len(targets.target):
        return Column(estimate=empty, std_error=empty, low=empty, high=empty), (empty, empty)
    found, possible = estimation.estimate(targets), estimation.possible_range(targets)
    low, high = found.intervals(confidence, possible)
    return Column(estimate=found.estimate, std_error=found.std_error, low=low, high=high), possible


def _whole(low: Floats, high: Floats, is_count: Bools) -> tuple[Floats, Floats]:
    """Counts are whole numbers: an interval reaches to the next one. A millionth is rounding."""
    return (
        np.where(is_count, np.floor(low + 1e-6), low),
        np.where(is_count, np.ceil(high - 1e-6), high),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A formula of a question's totals, which were estimated before."""

    query: Query
    formula: Formula
    summands: Summands
    totals: Column
    possible: tuple[float, float] = (-np.inf, np.inf)
    """What a ratio can be at all."""

    @property
    def linear(self) -> Linear:
        """The formula's value and derivatives at the estimates."""
        return linearize(self.formula, self.query.aggregates, self.summands.totals, self.totals.estimate)

    def terms(self, gradient: Floats) -> list[list[Term]]:
        """The linear combination of totals with these factors (groups × totals), group by group."""
        return [
            [
                (score, weights * gradient[i, k])
                for k, parts in enumerate(self.summands.groups[key])
                if gradient[i, k] != 0 and np.isfinite(gradient[i, k])
                for score, weights in parts
            ]
            for i, key in enumerate(self.summands.groups)
        ]


def estimate_formulas(estimation: Estimation, wanted: Sequence[Wanted], confidence: float) -> list[Column]:
    """Formulas of totals in every group of their questions, to first order in their errors; ratios further.

    What all formulas need is estimated at once.
    """
    linear = [one.linear for one in wanted]
    singles = [_single_total(one) for one in linear]
    several = [k for k, single in enumerate(singles) if single is None]
    found = _estimate_each(estimation, [wanted[k].terms(linear[k].gradient) for k in several], confidence)
    columns: dict[int, Column] = {}
    for k, column in zip(several, found, strict=True):
        columns[k] = _one_step(linear[k], wanted[k].totals, column)
    columns |= _ratios(estimation, wanted, {k: (linear[k], columns[k]) for k in several}, confidence)
    for k, single in enumerate(singles):
        if single is not None:
            totals = wanted[k].totals
            added = np.nan_to_num(linear[k].value - totals.estimate[:, single])
            columns[k] = Column(
                estimate=linear[k].value,
                std_error=totals.std_error[:, single],
                low=totals.low[:, single] + added,
                high=totals.high[:, single] + added,
            )
    return [columns[k] for k in range(len(wanted))]


def _one_step(linear: Linear, totals: Column, found: Column) -> Column:
    """One Newton step: an estimator need not be linear, and may know a combination better than its parts."""
    planned = np.nansum(linear.gradient * totals.estimate, axis=1)
    estimate = linear.value + found.estimate - planned
    gap = estimate - found.estimate
    unknown = np.isnan(linear.value) & np.where(linear.gradient == 0, False, totals.std_error > 0).any(axis=1)
    return Column(
        estimate=estimate,
        std_error=np.where(unknown, np.nan, found.std_error),
        low=found.low + gap,
        high=found.high + gap,
    )


def _ratios(
    estimation: Estimation,
    wanted: Sequence[Wanted],
    first_order: dict[int, tuple[Linear, Column]],
    confidence: float,
) -> dict[int, Column]:
    """Those formulas that are ratios, with intervals that heed the uncertainty of their denominators."""
    below: dict[int, Linear] = {}
    for k in first_order:
        one = wanted[k]
        found = denominator(one.formula, one.query.aggregates, one.summands.totals, one.totals.estimate)
        if found is not None and len(found.value):
            below[k] = found
    errors = _errors(estimation, {k: (wanted[k], found) for k, found in below.items()}, confidence)
    known = {k: (below[k], error) for k, error in errors.items() if is_uncertain(below[k].value, error).any()}
    joint = []
    for k, (divisor, error) in known.items():
        linear, column = first_order[k]
        scale = _divided(error, column.std_error)
        joint.append(wanted[k].terms(linear.gradient * scale[:, None] + divisor.gradient))
    sums = _estimate_each(estimation, joint, confidence)
    return {
        k: _within(
            _by_fieller(first_order[k][1], divisor.value, error, together.std_error),
            wanted[k].possible,
        )
        for (k, (divisor, error)), together in zip(known.items(), sums, strict=True)
    }


def _errors(
    estimation: Estimation, wanted: dict[int, tuple[Wanted, Linear]], confidence: float
) -> dict[int, Floats]:
    """The standard errors of combinations of totals; those of a single total were estimated before."""
    singles = {k: _single_total(linear) for k, (_, linear) in wanted.items()}
    several = [k for k, single in singles.items() if single is None]
    terms = [wanted[k][0].terms(wanted[k][1].gradient) for k in several]
    found = {
        k: c.std_error for k, c in zip(several, _estimate_each(estimation, terms, confidence), strict=True)
    }
    for k, single in singles.items():
        if single is not None:
            found[k] = wanted[k][0].totals.std_error[:, single]
    return {k: found[k] for k in wanted}


def _by_fieller(column: Column, value: Floats, error: Floats, together: Floats) -> Column:
    """`together`: the standard error of L·error/(L's own) + B, which tells their covariance."""
    reach = np.maximum(column.high - column.estimate, column.estimate - column.low)
    z = _divided(reach, column.std_error)  # the estimator's own quantiles, which need not be normal ones
    with np.errstate(invalid="ignore"):  # of what the release tells nothing about
        covariance = _divided((together**2 - 2 * error**2) * column.std_error, 2 * error)
    low, high = fieller(z, column.std_error, value, error**2, covariance)
    known = np.isfinite(column.std_error) & np.isfinite(error) & (column.std_error > 0)
    uncertain = is_uncertain(value, error) & known
    return replace(
        column,
        low=np.where(uncertain, column.estimate + low, column.low),
        high=np.where(uncertain, column.estimate + high, column.high),
    )


def _within(column: Column, possible: tuple[float, float]) -> Column:
    """An estimate that is not possible is still the estimate: the interval reaches to it."""
    low, high = np.clip(column.low, *possible), np.clip(column.high, *possible)
    return replace(column, low=np.fmin(low, column.estimate), high=np.fmax(high, column.estimate))


def _divided(above: Floats, below: Floats) -> Floats:
    """0 where there is nothing to divide by."""
    usable = np.isfinite(above) & np.isfinite(below) & (below > 0)
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=usable))


def _estimate_each(
    estimation: Estimation, terms: Sequence[list[list[Term]]], confidence: float
) -> list[Column]:
    """Estimate lists of targets all at once, and give each list its own column."""
    found, _ = _estimate(estimation, [target for targets in terms for target in targets], confidence)
    ends = np.cumsum([0, *(len(targets) for targets in terms)])
    return [
        Column(**{field.name: getattr(found, field.name)[start:end] for field in fields(Column)})
        for start, end in pairwise(ends.tolist())
    ]


def _single_total(linear: Linear) -> int | None:
    """The total that the formula is but for a number that is added, if it is one."""
    if not len(linear.gradient):
        return 0
    row = linear.gradient[0]
    if (linear.gradient == row).all() and np.count_nonzero(row) == 1 and row.max() == 1.0:
        return int(row.argmax())
    return None


def is_exact(column: Column, n_rows: int) -> Bools:
    """Which estimates have no error beyond rounding."""
    scale = np.fmax(np.abs(column.estimate), 1.0) + 1e-6 * n_rows
    return np.asarray(column.std_error <= _EXACT * scale * np.sqrt(n_rows))
