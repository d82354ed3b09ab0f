"""The best two bucket sizes by a plain integer programme: the paper's "Optimal" of figures 6 and 7.

Integers b_S (how many buckets of size S), binaries y_S (whether S is in use), loads x_iS ≥ 0:

    min Σ_S b_S·(S−1)²   s.t.   Σ_S x_iS = o_i,   Σ_i x_iS = S·b_S,   x_iS ≤ ⌊f′_i·S⌋·b_S,
                                S·b_S ≤ n·y_S,    Σ_S y_S ≤ 2

It is here to be timed: `plan_two_size` gives the same answer without a solver.

Figures 6 and 7 of "Inferential or Differential": how long the searches for two bucket sizes take.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.two_size import Search, plan_two_size
from dalenius.randomness import Randomness
from dalenius.reproduce.bucketization import linear_problem
from dalenius.reproduce.census import SHAPES, STATED
from dalenius.reproduce.experiment import Axis, Experiment, Reproduction, Row, draw_seconds, track


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


def _constraints(problem: BucketProblem, sizes: Ints) -> list[tuple[sparse.csr_array, Any, Any]]:
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


def _matrix(shape: tuple[int, int], *entries: tuple[Ints, Ints, NDArray[Any]]) -> sparse.csr_array:
    """A sparse matrix from (rows, columns, values)."""
    row, column, entry = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    return sparse.csr_array((entry.astype(np.float64), (row, column)), shape=shape)


THETA = 8
THOUSANDS = (100, 200, 300, 400, 500)
FACTORS = (2, 4, 8, 16, 32, 64)
REPEATS = 5
"""The paper takes the mean of 100 runs, we the median of these, or of as many as `ENOUGH` seconds allow."""
ENOUGH = 0.5
LIMIT = 600.0
"""Seconds, by the clock, for one run of the solver."""
SEARCHES: dict[str, Search] = {"Full-pruning": "full", "Loss-pruning": "loss", "No-pruning": "none"}
_SOLVER = "Optimal (two-size ILP)"
OURS = "all sizes, by cuts (ours)"


def scale_up(counts: Sequence[int], factor: int, stream: np.random.Generator) -> tuple[int, ...]:
    """The histogram after each record's code v became factor·v + r, r uniform in 0..factor−1 (7.3.2).

    >>> counts = scale_up([1_000, 10], 4, Randomness.seeded(1).stream("doctest"))
    >>> sum(counts[:4]), sum(counts[4:])
    (1000, 10)
    """
    parts = stream.multinomial(np.asarray(counts), np.full(factor, 1 / factor))
    return tuple(int(count) for count in parts.ravel() if count)


def seconds_of(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The median processor time that some work takes, which other work on the machine changes little."""
    times: list[float] = []
    while len(times) < repeats and sum(times) < ENOUGH:
        start = process_time()
        work()
        times.append(process_time() - start)
    return median(times)


def search_times(problem: BucketProblem) -> dict[str, float]:
    """Processor seconds of each search."""
    found = {
        name: seconds_of(lambda search=search: plan_two_size(problem, search))  # type: ignore[misc]
        for name, search in SEARCHES.items()
    }
    return found | {OURS: seconds_of(lambda: plan_buckets(problem, "optimal"))}


def time_by_rows(thousands: Sequence[int] = THOUSANDS, limit: float = LIMIT) -> Reproduction:
    """Figure 6: the solver runs for the first, the middle and the last number of rows."""
    with_solver = {thousands[0], thousands[len(thousands) // 2], thousands[-1]}
    rows: list[Row] = []
    for source, k in track([(source, k) for source in STATED for k in thousands], "timing"):
        problem = linear_problem(STATED[source](1_000 * k), THETA)
        rows += [(source, k, name, taken, "yes") for name, taken in search_times(problem).items()]
        if k in with_solver:
            rows.append((source, k, *_solver_time(problem, limit)))
    return _tell_times(
        "rows, thousands",
        rows,
        stated="Full-pruning takes the least time and hardly grows with |T|; Loss-pruning takes far less "
        "than No-pruning, and grows; the integer programme takes less than No-pruning",
        differs=f"{_growth(rows)}. The integer programme takes {_against_no_pruning(rows)}: our plain "
        "search validates a block of settings at once, and the model has a load for every value and size",
        data=SHAPES,
        limit=limit,
    )


def _tell_times(
    x: str, rows: list[Row], *, stated: str, differs: str, data: str, limit: float
) -> Reproduction:
    how = f"the median of up to {REPEATS} runs, the solver (HiGHS) once, at most {limit:g} s by the clock"
    return Reproduction(
        columns=("table", x, "search", "processor seconds", "finished"),
        rows=tuple(rows),
        stated=stated,
        differs=differs,
        data=f"{data}; θ = {THETA}; {how}",
    )


def _growth(rows: Sequence[Row]) -> str:
    found = []
    for name in SEARCHES:
        own = [(source, float(taken)) for source, _, search, taken, _ in rows if search == name]
        by_source = {source: [taken for s, taken in own if s == source] for source in STATED}
        ratios = [times[-1] / times[0] for times in by_source.values()]
        slowest = max(max(times) for times in by_source.values())
        found.append(f"{name} {min(ratios):.1f} to {max(ratios):.1f} times (at most {slowest:.2g} s)")
    return f"from the smallest to the largest, times grow: {', '.join(found)}"


def _against_no_pruning(rows: Sequence[Row]) -> str:
    taken = {row[:3]: float(row[3]) for row in rows}
    ratios = [taken[s, k, name] / taken[s, k, "No-pruning"] for s, k, name, *_ in rows if name == _SOLVER]
    n_stopped = sum(row[-1] == "no" for row in rows)
    stopped = f" (and {n_stopped} of its {len(ratios)} runs were stopped by the limit)" if n_stopped else ""
    return f"{min(ratios):.1f} to {max(ratios):.1f} times as long as No-pruning{stopped}"


def time_by_values(
    factors: Sequence[int] = FACTORS, limit: float = LIMIT, n_rows: int = 500_000
) -> Reproduction:
    """Figure 7: the solver is not tried again once it ran into its limit."""
    rows: list[Row] = []
    stopped: set[str] = set()
    for source, factor in track([(source, factor) for source in STATED for factor in factors], "timing"):
        stream = Randomness.seeded(1).stream("scale-up", source, factor)
        problem = linear_problem(scale_up(STATED[source](n_rows), factor, stream), THETA)
        rows += [(source, factor, name, taken, "yes") for name, taken in search_times(problem).items()]
        if source not in stopped:
            rows.append((source, factor, *_solver_time(problem, limit)))
            stopped |= {source} if rows[-1][-1] == "no" else set()
    return _tell_times(
        "scale-up factor",
        rows,
        stated="the integer programme's time grows quickly with |SA|, the others' little; No-pruning's "
        "falls, because M grows and the lists of settings get shorter",
        differs=f"{_solver_story(rows)}. The optimum over all sizes does not need to be exponential "
        f"in |SA|: by cuts it takes at most {_slowest(rows, OURS):.2g} s. By the "
        f"scale-up factor, {_growth(rows)}",
        data=f"{SHAPES}, {n_rows:,} rows, every value split into several at random",
        limit=limit,
    )


def _solver_time(problem: BucketProblem, limit: float) -> tuple[str, float, str]:
    start = process_time()
    answer = solve_two_size_ilp(problem, limit)
    return _SOLVER, process_time() - start, "yes" if answer.is_proven else "no"


def _slowest(rows: Sequence[Row], name: str) -> float:
    return max(float(row[3]) for row in rows if row[2] == name)


def _solver_story(rows: Sequence[Row]) -> str:
    found = []
    for source in STATED:
        runs = [row for row in rows if row[0] == source and row[2] == _SOLVER]
        times = ", ".join(f"{float(row[3]):.1f} s at {row[1]}" for row in runs if row[-1] == "yes")
        ended = [
            f"stopped by its limit at {row[1]}, after {float(row[3]):.0f} s"
            for row in runs
            if row[-1] == "no"
        ]
        found.append(f"{source}: {'; '.join(filter(None, [times, *ended]))}")
    return f"the integer programme, by scale-up factor: {'. '.join(found)}"


_BY_ROWS = draw_seconds(Axis("rows, thousands"), "search")
_BY_VALUES = draw_seconds(Axis("scale-up factor", "scale-up factor of |SA|", scale="log"), "search")
_TITLE = "Time to find two bucket sizes, by the number of"
FIGURE_6 = Experiment("bucketization-fig6", f"{_TITLE} rows", time_by_rows, _BY_ROWS)
FIGURE_7 = Experiment("bucketization-fig7", f"{_TITLE} sensitive values", time_by_values, _BY_VALUES)
