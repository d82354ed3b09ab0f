"""Whole numbers of buckets near the answer of a relaxed problem.

One size after the other is fixed to the better of its two roundings, and a few are left to the end: between
them the rows must come out even. Mostly trying what is near is enough for that; where no such setting meets
the cuts, more sizes are set free again, and branch and bound settles them.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.plan.branching import branch_and_bound
from dalenius.mechanisms.bucketize.plan.integer import Cuts, IntegerProblem, solve_relaxed

if TYPE_CHECKING:
    import highspy

_N_LAST = 4  # sizes that are left to the end of a dive and settled by enumeration
_WINDOW = 12  # how far around their fractional values
_WHOLE = 1e-7
_N_FREE = 16  # sizes that are settled by branch and bound
_NODES = 20


def dives(problem: IntegerProblem, fractional: Floats, abs_gap: float | None) -> Iterator[Ints]:
    """Settings near a fractional one that meet the cuts.

    One size after the other is fixed, the largest first, to the better of its two roundings. The few sizes
    with the most buckets come last: between them the rows must come out even. Leaving the next few to the
    last instead often gives another setting.

    Args:
        problem: the sizes and cuts.
        fractional: the setting.
        abs_gap: how far from the best roundings may be where branch and bound settles the last sizes; None:
            it is not asked.
    """
    most_first = np.argsort(-fractional, kind="stable")
    for skipped in (0, _N_LAST // 2):
        last = np.sort(most_first[skipped : skipped + _N_LAST])
        near = _dive(problem, last) if len(last) else None
        if near is None:
            continue
        found = _settle(problem, last, near)
        if found is not None:
            yield found
        if abs_gap is not None:
            found = settle_more(problem, near, abs_gap, by=fractional, known=found)
            if found is not None:
                yield found


def _dive(problem: IntegerProblem, last: Ints) -> Floats | None:
    """All sizes but the last ones fixed to whole numbers, one after the other; None at a dead end."""
    solver = problem.to_solver()
    solver.setOptionValue("presolve", "off")
    steps = solve_relaxed(solver)
    for column in reversed(range(len(problem.sizes))):
        if column in last:
            continue
        if steps is None:
            return None
        steps = _fix(solver, column, float(steps[column]), -float(problem.origin[column]))
    return None if steps is None else problem.origin + steps


def _fix(solver: highspy.Highs, column: int, value: float, least: float) -> Floats | None:
    """Fix one column to its cheaper rounding."""
    nearest = float(round(value))
    options = [nearest] if abs(value - nearest) < _WHOLE else [float(np.floor(value)), float(np.ceil(value))]
    best, best_steps, best_option = inf, None, 0.0
    for option in options:
        solver.changeColBounds(column, max(option, least), max(option, least))
        steps = solve_relaxed(solver)
        cost = solver.getInfo().objective_function_value
        if steps is not None and cost < best:
            best, best_steps, best_option = cost, steps, max(option, least)
    solver.changeColBounds(column, best_option, best_option)
    return best_steps


def _settle(problem: IntegerProblem, last: Ints, near: Floats) -> Ints | None:
    """Whole numbers for the last sizes, by trying all within a window; the first one takes what is left."""
    n_buckets = np.rint(near).astype(np.int64)
    n_buckets[last] = 0
    window = np.arange(-_WINDOW, _WINDOW + 1)
    axes = [np.floor(near[j]).astype(np.int64) + window for j in last[1:]]
    others = np.zeros((0, 1), dtype=np.int64)
    if axes:
        others = np.array(np.meshgrid(*axes, indexing="ij")).reshape(len(axes), -1)
    left = problem.n_rows - int(n_buckets @ problem.sizes) - problem.sizes[last[1:]] @ others
    tried = np.vstack([left // problem.sizes[last[0]], others])
    tried = tried[:, (left % problem.sizes[last[0]] == 0) & (tried >= 0).all(axis=0)]
    needs = problem.cuts.needs - problem.cuts.coefficients @ n_buckets
    tried = tried[:, (problem.cuts.coefficients[:, last] @ tried >= needs[:, None]).all(axis=0)]
    if not tried.shape[1]:
        return None
    n_buckets[last] = tried[:, (problem.costs[last] @ tried).argmin()]
    return n_buckets


def settle_more(
    problem: IntegerProblem, near: Floats, abs_gap: float, *, by: Floats, known: Ints | None = None
) -> Ints | None:
    """Whole numbers for the sizes with the most buckets by branch and bound, the others being settled.

    Args:
        problem: the sizes and cuts.
        near: a setting that is whole but for some of those sizes, or does not meet all cuts.
        abs_gap: how far from the best the answer may be.
        by: a setting that tells which sizes have the most buckets.
        known: a setting that differs in those sizes only, and meets the cuts.
    """
    free = np.sort(np.argsort(-by, kind="stable")[:_N_FREE])
    fixed = np.rint(near).astype(np.int64)
    fixed[free] = 0
    cuts = problem.cuts
    left = IntegerProblem(
        sizes=problem.sizes[free],
        n_rows=problem.n_rows - int(fixed @ problem.sizes),
        cuts=Cuts(coefficients=cuts.coefficients[:, free], needs=cuts.needs - cuts.coefficients @ fixed),
        origin=np.maximum(np.floor(near[free]), 0).astype(np.int64),
    )
    found = branch_and_bound(
        left, None if known is None else known[free], abs_gap, _NODES, is_near=False
    ).n_buckets
    if found is None:
        return None
    fixed[free] = found
    return fixed
