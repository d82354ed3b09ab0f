"""The best two bucket sizes by a plain integer programme: the paper's "Optimal" of figures 6 and 7.

Integers b_S (how many buckets of size S), binaries y_S (whether S is in use), loads x_iS ≥ 0:

    min Σ_S b_S·(S−1)²   s.t.   Σ_S x_iS = o_i,   Σ_i x_iS = S·b_S,   x_iS ≤ ⌊f′_i·S⌋·b_S,
                                S·b_S ≤ n·y_S,    Σ_S y_S ≤ 2

It is here to be timed: `plan_two_size` gives the same answer without a solver.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dalenius.mechanisms.bucketize.problem import BucketProblem, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverAnswer:
    """What the solver found in its time."""

    loss: int | None
    """Of the best setting found; None: no setting was found."""
    is_proven: bool
    """Whether it is the optimum: the solver was not stopped by its time limit."""


def solve_two_size_ilp(problem: BucketProblem, limit: float) -> SolverAnswer:
    """Give the whole programme to HiGHS, for at most `limit` seconds.

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10)
    >>> solve_two_size_ilp(problem, limit=10)
    SolverAnswer(loss=32, is_proven=True)
    """
    sizes = np.arange(problem.smallest_size, problem.largest_size + 1)
    q, m = len(sizes), problem.n_values
    cost = np.concatenate([(sizes - 1.0) ** 2, np.zeros(q + m * q)])
    upper = np.concatenate([np.full(q, np.inf), np.ones(q), np.full(m * q, np.inf)])
    is_integer = np.concatenate([np.ones(2 * q), np.zeros(m * q)])
    from scipy.optimize import Bounds, LinearConstraint, milp  # takes half a second to load

    found = milp(
        cost,
        constraints=[LinearConstraint(*limits) for limits in _constraints(problem, sizes)],
        bounds=Bounds(0, upper),
        integrality=is_integer,
        options={"time_limit": limit, "mip_rel_gap": 0.0},
    )
    loss = None if found.x is None else int(np.rint(found.x[:q]) @ (sizes - 1) ** 2)
    return SolverAnswer(loss=loss, is_proven=found.status == 0)


def _constraints(problem: BucketProblem, sizes: IntArray) -> list[tuple[sparse.csr_array, Any, Any]]:
    """Matrix, least and most of each set; columns: b_S, then y_S, then x_iS value by value."""
    q, m = len(sizes), problem.n_values
    width = 2 * q + m * q
    each, load = np.arange(q), np.arange(m * q)
    value, size, x = load // q, load % q, 2 * q + load
    ones, capacity = np.ones(m * q), problem.capacity_table(sizes).ravel()
    counts = problem.count_array()
    placed = _matrix((m, width), (value, x, ones))
    filled = _matrix((q, width), (size, x, ones), (each, each, -sizes))
    allowed = _matrix((m * q, width), (load, x, ones), (load, size, -capacity))
    used = _matrix((q, width), (each, each, sizes / problem.n_rows), (each, q + each, -np.ones(q)))
    two = _matrix((1, width), (np.zeros(q, dtype=int), q + each, np.ones(q)))
    return [
        (placed, counts, counts),
        (filled, 0, 0),
        (allowed, -np.inf, 0),
        (used, -np.inf, 0),
        (two, -np.inf, 2),
    ]


def _matrix(shape: tuple[int, int], *entries: tuple[IntArray, IntArray, NDArray[Any]]) -> sparse.csr_array:
    """A sparse matrix from (rows, columns, values)."""
    row, column, entry = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sparse.csr_array((entry.astype(np.float64), (row, column)), shape=shape)
