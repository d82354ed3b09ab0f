"""Whole numbers of buckets near a fractional optimum, and the proof that there are none much better.

Everything is counted from the fractional optimum rounded down, so the numbers that HiGHS sees are small and
exact, for a thousand rows and for a billion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, inf

import highspy
import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.plan.cuts import Cuts, silent_solver

_N_LAST = 4  # sizes that are left to the end of a dive and settled by enumeration
_WINDOW = 12  # how far around their fractional values
_WHOLE = 1e-7
_BOUND_TOLERANCE = 1e-7  # relative: what is taken off HiGHS's bound for its tolerances


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerProblem:
    """min (S−1)²·b  with  S·b = n,  cuts·b ≥ needs,  b ≥ 0 whole, around a point `origin`."""

    sizes: Ints
    n_rows: int
    cuts: Cuts
    origin: Ints

    @property
    def costs(self) -> Ints:
        """(S−1)²."""
        return (self.sizes - 1) ** 2

    def to_solver(self) -> highspy.Highs:
        """The linear relaxation in steps from the origin."""
        solver, n_sizes = silent_solver(), len(self.sizes)
        columns = np.arange(n_sizes, dtype=np.int32)
        solver.addVars(n_sizes, -self.origin.astype(np.float64), np.full(n_sizes, highspy.kHighsInf))
        solver.changeColsCost(n_sizes, columns, self.costs.astype(np.float64))
        rest = float(self.n_rows - int(self.origin @ self.sizes))
        solver.addRow(rest, rest, n_sizes, columns, self.sizes.astype(np.float64))
        needs = self.cuts.needs - self.cuts.coefficients @ self.origin
        for row, need in zip(self.cuts.coefficients.astype(np.float64), needs.tolist(), strict=True):
            solver.addRow(float(need), highspy.kHighsInf, n_sizes, columns, row)
        return solver


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the integer programme found: the best setting, and a proven bound on the loss of any."""

    n_buckets: Ints | None
    lower_bound: int
    is_infeasible: bool


def dives(problem: IntegerProblem, fractional: Floats) -> Iterator[Ints]:
    """Settings near a fractional one that meet the cuts.

    One size after the other is fixed, the largest first, to the better of its two roundings. The few sizes
    with the most buckets come last: between them the rows must come out even. Leaving the next few to the
    last instead often gives another setting.
    """
    most_first = np.argsort(-fractional, kind="stable")
    for skipped in (0, _N_LAST // 2):
        last = np.sort(most_first[skipped : skipped + _N_LAST])
        found = _dive(problem, last) if len(last) else None
        if found is not None:
            yield found


def _dive(problem: IntegerProblem, last: Ints) -> Ints | None:
    """One dive; None at a dead end."""
    solver = problem.to_solver()
    solver.setOptionValue("presolve", "off")
    steps = _solve(solver)
    for column in reversed(range(len(problem.sizes))):
        if column in last:
            continue
        if steps is None:
            return None
        steps = _fix(solver, column, float(steps[column]), -float(problem.origin[column]))
    return None if steps is None else _settle(problem, last, problem.origin + steps)


def _fix(solver: highspy.Highs, column: int, value: float, least: float) -> Floats | None:
    """Fix one column to its cheaper rounding."""
    nearest = float(round(value))
    options = [nearest] if abs(value - nearest) < _WHOLE else [float(np.floor(value)), float(np.ceil(value))]
    best, best_steps, best_option = inf, None, 0.0
    for option in options:
        solver.changeColBounds(column, max(option, least), max(option, least))
        steps = _solve(solver)
        cost = solver.getInfo().objective_function_value
        if steps is not None and cost < best:
            best, best_steps, best_option = cost, steps, max(option, least)
    solver.changeColBounds(column, best_option, best_option)
    return best_steps


def _solve(solver: highspy.Highs) -> Floats | None:
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(solver.getSolution().col_value)


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


def branch_and_bound(
    problem: IntegerProblem, incumbent: Ints | None, abs_gap: float, max_nodes: int
) -> Outcome:
    """HiGHS on the integer programme, started from the best setting known."""
    solver, n_sizes = problem.to_solver(), len(problem.sizes)
    columns = np.arange(n_sizes, dtype=np.int32)
    solver.changeColsIntegrality(n_sizes, columns, np.array([highspy.HighsVarType.kInteger] * n_sizes))
    for name, value in (("mip_rel_gap", 0.0), ("mip_abs_gap", abs_gap), ("mip_max_nodes", max_nodes)):
        solver.setOptionValue(name, value)
    if incumbent is not None:
        solver.setSolution(n_sizes, columns, (incumbent - problem.origin).astype(np.float64))
    solver.run()
    info = solver.getInfo()
    base = int(problem.origin @ problem.costs)
    is_infeasible = solver.getModelStatus() == highspy.HighsModelStatus.kInfeasible
    has_solution = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    steps = np.rint(solver.getSolution().col_value).astype(np.int64) if has_solution else None
    bound = base + info.mip_dual_bound if np.isfinite(info.mip_dual_bound) else 0.0
    return Outcome(
        n_buckets=None if steps is None else problem.origin + steps,
        lower_bound=max(ceil(bound - _BOUND_TOLERANCE * abs(bound) - 1e-4), 0),
        is_infeasible=is_infeasible,
    )
