"""From summands to numbers: estimates of totals, then of the formulas over them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dalenius.ask.grouping import Key
from dalenius.ask.model import Estimation
from dalenius.ask.query import Formula, Query
from dalenius.ask.summands import Summands, Term
from dalenius.ask.totals import Floats, Linear, linearize
from dalenius.mechanisms.bucketize.estimate_targets import Targets

_WEIGHTS_AT_ONCE = 20_000_000
_EXACT = 1e-9
"""A standard error below this part of the number of people is rounding."""


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
    is_count: NDArray[np.bool_]

    def of_question(self, number: int) -> Column:
        """The totals of a question: groups × totals."""
        n_groups, n_totals = len(self.keys[number]), len(self.summands[number].totals)
        part = slice(self.first[number], self.first[number] + n_groups * n_totals)
        shape = (n_groups, n_totals)
        c = self.columns
        return Column(
            estimate=c.estimate[part].reshape(shape),
            std_error=c.std_error[part].reshape(shape),
            low=c.low[part].reshape(shape),
            high=c.high[part].reshape(shape),
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
    found = estimation.estimate(targets)
    low, high = found.intervals(confidence)
    column = Column(estimate=found.estimate, std_error=found.std_error, low=low, high=high)
    return column, estimation.possible_range(targets)


def _whole(low: Floats, high: Floats, is_count: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Counts are whole numbers: an interval reaches to the next one. A millionth is rounding."""
    return (
        np.where(is_count, np.floor(low + 1e-6), low),
        np.where(is_count, np.ceil(high - 1e-6), high),
    )


def estimate_formula(
    estimation: Estimation,
    query: Query,
    formula: Formula,
    summands: Summands,
    totals: Column,
    confidence: float,
) -> Column:
    """A formula of totals in every group of a question, to first order in their errors."""
    linear = linearize(formula, query.aggregates, summands.totals, totals.estimate)
    single = _single_total(linear)
    if single is not None:
        return Column(
            estimate=linear.value,
            std_error=totals.std_error[:, single],
            low=totals.low[:, single],
            high=totals.high[:, single],
        )
    terms = [
        [
            (score, weights * linear.gradient[i, k])
            for k, parts in enumerate(summands.groups[key])
            if linear.gradient[i, k] != 0 and np.isfinite(linear.gradient[i, k])
            for score, weights in parts
        ]
        for i, key in enumerate(summands.groups)
    ]
    found, _ = _estimate(estimation, terms, confidence)
    # one Newton step: an estimator need not be linear, and may know a combination better than its parts
    planned = np.nansum(linear.gradient * totals.estimate, axis=1)
    estimate = linear.value + found.estimate - planned
    gap = estimate - found.estimate
    return Column(
        estimate=estimate,
        std_error=np.where(np.isnan(linear.value), np.nan, found.std_error),
        low=found.low + gap,
        high=found.high + gap,
    )


def _single_total(linear: Linear) -> int | None:
    """The total that the formula simply is, if it is one."""
    if not len(linear.gradient):
        return 0
    row = linear.gradient[0]
    if (linear.gradient == row).all() and np.count_nonzero(row) == 1 and row.max() == 1.0:
        return int(row.argmax())
    return None


def is_exact(column: Column, n_rows: int) -> NDArray[np.bool_]:
    """Which estimates have no error beyond rounding."""
    scale = np.maximum(np.abs(column.estimate), 1.0) + 1e-6 * n_rows
    return np.asarray(column.std_error <= _EXACT * scale * np.sqrt(n_rows))
