"""Branch and bound over whole numbers of buckets, counted as those of at least a size.

The unknowns are y_s = Σ_{S≥s} b_S, as whole as the b_S are. A cut Σ_S g(S)·b_S ≥ o is then
Σ_s (g(s) − g(s⁻))·y_s ≥ o, s⁻ being the size before s: a bucket that is one larger takes a record more of a
value at a few sizes only, so most of these coefficients are 0 and the others small; the g(S) all differ.
Of small coefficients rounding proves much, of large ones next to nothing: most problems are settled before
anything is branched on that took thousands of nodes over the b_S.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, inf
from typing import TYPE_CHECKING

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.plan.integer import IntegerProblem, silent_solver, solve_relaxed

if TYPE_CHECKING:
    import highspy

_BOUND_TOLERANCE = 1e-7  # relative: what is taken off HiGHS's bound for its tolerances
_SLACK = 1e-5  # what the ends of an unknown are moved outwards, for the same reason
_LEAST_STEPS = 100
_PRIMAL, _DUAL = 4, 1  # HiGHS's numbers of the simplex methods
_FIXED_OPTIONS = {"mip_allow_restart": False}
"""To begin anew after the first node takes as long as hundreds of nodes, and proves no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchResult:
    """What the integer programme found: the best setting, and a proven bound on the loss of any."""

    n_buckets: Ints | None
    lower_bound: int
    is_infeasible: bool
    n_nodes: int


def count_steps(problem: IntegerProblem) -> int:
    """How many coefficients the cuts have over the numbers of buckets of at least a size."""
    return max(int(np.count_nonzero(_grows(problem))), _LEAST_STEPS)


def branch_and_bound(
    problem: IntegerProblem, incumbent: Ints | None, abs_gap: float, max_nodes: int, *, is_near: bool
) -> BranchResult:
    """HiGHS on the integer programme, started from the best setting known.

    Every unknown has two finite ends: of whole unknowns without them HiGHS 1.15 proves what is not so.
    What it finds is whole, and meets the cuts, within its tolerances: with thousands of rows in a bucket that
    need not hold in integers, and then it has found nothing.

    Args:
        problem: the sizes and cuts.
        incumbent: the best setting known.
        abs_gap: the distance from the bound at which to stop.
        max_nodes: how many nodes there may be.
        is_near: whether the best is so near to the optimum that it says much about what sizes can have.
    """
    import highspy

    solver, columns = _to_solver(problem), np.arange(len(problem.sizes), dtype=np.int32)
    if incumbent is not None and is_near:
        _tighten(solver, problem, incumbent)
    is_whole = np.array([highspy.HighsVarType.kInteger] * len(columns))
    solver.changeColsIntegrality(len(columns), columns, is_whole)
    options = {"mip_rel_gap": 0.0, "mip_abs_gap": abs_gap, "mip_max_nodes": max_nodes, **_FIXED_OPTIONS}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    if incumbent is not None:
        steps = _at_least(incumbent - problem.origin)
        solver.setSolution(len(columns), columns, steps.astype(np.float64))
    solver.run()
    return _result(solver, problem)


def _result(solver: highspy.Highs, problem: IntegerProblem) -> BranchResult:
    import highspy

    info, found = solver.getInfo(), None
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        steps = np.rint(solver.getSolution().col_value).astype(np.int64)
        found = problem.origin + steps - np.append(steps[1:], 0)
    base = int(problem.origin @ problem.costs)
    bound = base + info.mip_dual_bound if np.isfinite(info.mip_dual_bound) else 0.0
    return BranchResult(
        n_buckets=found if found is not None and problem.is_met(found) else None,
        lower_bound=max(ceil(bound - _BOUND_TOLERANCE * abs(bound) - 1e-4), 0),
        is_infeasible=solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible,
        n_nodes=int(info.mip_node_count),
    )


def _grows(problem: IntegerProblem) -> Ints:
    """By how much each cut grows from one size to the next."""
    return np.diff(problem.cuts.coefficients, axis=1, prepend=0)


def _at_least(n_buckets: Ints) -> Ints:
    """How many buckets are of each size or larger."""
    return np.asarray(np.cumsum(n_buckets[::-1])[::-1])


def _to_solver(problem: IntegerProblem) -> highspy.Highs:
    """The linear relaxation over how many buckets are of each size or larger, in steps from the origin."""
    solver, n_sizes = silent_solver(), len(problem.sizes)
    start = _at_least(problem.origin)
    solver.addVars(
        n_sizes, -start.astype(np.float64), (problem.n_rows // problem.sizes - start).astype(np.float64)
    )
    columns = np.arange(n_sizes, dtype=np.int32)
    solver.changeColsCost(n_sizes, columns, np.diff(problem.costs, prepend=0).astype(np.float64))
    rest = float(problem.n_rows - int(problem.origin @ problem.sizes))
    solver.addRow(rest, rest, n_sizes, columns, np.diff(problem.sizes, prepend=0).astype(np.float64))
    needs = problem.cuts.needs - problem.cuts.coefficients @ problem.origin
    for row, need in zip(_grows(problem), needs.tolist(), strict=True):
        used = np.flatnonzero(row)
        solver.addRow(float(need), inf, len(used), columns[used], row[used].astype(np.float64))
    for size, least in enumerate(
        problem.origin[:-1].tolist()
    ):  # no more of the next size on than of this one
        solver.addRow(-float(least), inf, 2, columns[size : size + 2], np.array([1.0, -1.0]))
    return solver


def _tighten(solver: highspy.Highs, problem: IntegerProblem, incumbent: Ints) -> None:
    """Narrow each unknown to what it can be in a setting that loses no more than the best one known.

    That is a linear programme for each end. Without it HiGHS knows little of the unknowns before it branches.
    """
    columns = np.arange(len(problem.sizes), dtype=np.int32)
    costs = np.diff(problem.costs, prepend=0).astype(np.float64)
    known = incumbent - problem.origin
    solver.addRow(-inf, float(known @ problem.costs), len(columns), columns, costs)
    solver.changeColsCost(len(columns), columns, np.zeros(len(columns)))
    solver.setOptionValue("presolve", "off")
    solver.setOptionValue("simplex_strategy", _PRIMAL)  # only costs change: the last answer stays feasible
    least = [_least(solver, column, 1.0) for column in columns.tolist()]
    largest = [_least(solver, column, -1.0) for column in columns.tolist()]
    solver.deleteRows(1, np.array([solver.getNumRow() - 1], dtype=np.int32))
    solver.changeColsCost(len(columns), columns, costs)
    solver.setOptionValue("presolve", "choose")
    solver.setOptionValue("simplex_strategy", _DUAL)
    solver.clearSolver()
    for column, (low, high, now) in enumerate(zip(least, largest, _at_least(known).tolist(), strict=True)):
        if low is not None and high is not None:
            solver.changeColBounds(column, min(ceil(low - _SLACK), now), max(floor(_SLACK - high), now))


def _least(solver: highspy.Highs, column: int, sign: float) -> float | None:
    """The least that an unknown, or its negative, can be; None: HiGHS could not say."""
    solver.changeColCost(column, sign)
    steps = solve_relaxed(solver)
    solver.changeColCost(column, 0.0)
    return None if steps is None else sign * float(steps[column])
