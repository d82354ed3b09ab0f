"""Figures 6 and 7 of "Inferential or Differential": how long the searches for two bucket sizes take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from time import process_time

import numpy as np

from dalenius.mechanisms.bucketize.plan import plan_buckets
from dalenius.mechanisms.bucketize.problem import BucketProblem
from dalenius.mechanisms.bucketize.two_size import Search, plan_two_size
from dalenius.randomness import Randomness
from dalenius.reproduce.bucketization_mse import linear_problem
from dalenius.reproduce.census import SHAPES, STATED
from dalenius.reproduce.experiment import Experiment, Line, Reproduction, Row
from dalenius.reproduce.progress import track
from dalenius.reproduce.two_size_ilp import solve_two_size_ilp

THETA = 8
THOUSANDS = (100, 200, 300, 400, 500)
FACTORS = (2, 4, 8, 16, 32, 64)
REPEATS = 5
"""The paper takes the mean of 100 runs, we the median of these, or of as many as `ENOUGH` seconds allow."""
ENOUGH = 0.5
LIMIT = 30.0
"""Seconds, by the clock, for one run of the solver."""
SEARCHES: dict[str, Search] = {"Full-pruning": "full", "Loss-pruning": "loss", "No-pruning": "none"}
_SOLVER = "Optimal (two-size ILP)"
OURS = "all sizes, by cuts (ours)"


def scaled_up(counts: Sequence[int], factor: int, stream: np.random.Generator) -> tuple[int, ...]:
    """The histogram after each record's code v became factor·v + r, r uniform in 0..factor−1 (7.3.2).

    >>> counts = scaled_up([1_000, 10], 4, Randomness.seeded(1).stream("doctest"))
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
    return Reproduction(
        columns=("table", "rows, thousands", "search", "processor seconds", "finished"),
        rows=tuple(rows),
        stated="Full-pruning takes the least time and hardly grows with |T|; Loss-pruning takes far less "
        "than No-pruning, and grows; the integer programme takes less than No-pruning",
        differs=f"{_growth(rows)}. The integer programme takes {_against_no_pruning(rows)}: our plain "
        "search validates a block of settings at once, and the model has a load for every value and size",
        data=f"{SHAPES}; θ = {THETA}; the median of up to {REPEATS} runs, the solver (HiGHS) once, at "
        f"most {limit:g} s by the clock",
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
        problem = linear_problem(scaled_up(STATED[source](n_rows), factor, stream), THETA)
        rows += [(source, factor, name, taken, "yes") for name, taken in search_times(problem).items()]
        if source not in stopped:
            rows.append((source, factor, *_solver_time(problem, limit)))
            stopped |= {source} if rows[-1][-1] == "no" else set()
    return Reproduction(
        columns=("table", "scale-up factor", "search", "processor seconds", "finished"),
        rows=tuple(rows),
        stated="the integer programme's time grows quickly with |SA|, the others' little; No-pruning's "
        "falls, because M grows and the lists of settings get shorter",
        differs=f"{_solver_story(rows)}. The optimum over all sizes does not need to be exponential "
        f"in |SA|: by cuts it takes at most {_slowest(rows, OURS):.2g} s. By the "
        f"scale-up factor, {_growth(rows)}",
        data=f"{SHAPES}, {n_rows:,} rows, every value split into several at random; θ = {THETA}; the median "
        f"of up to {REPEATS} runs, the solver (HiGHS) once, at most {limit:g} s by the clock",
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


def _picture(x: str, x_title: str) -> Line:
    return Line(
        x=x,
        y="processor seconds",
        series="search",
        panel="table",
        x_title=x_title,
        y_title="processor seconds",
        y_scale="log",
        x_scale="log" if x == "scale-up factor" else "linear",
    )


FIGURE_6 = Experiment(
    name="bucketization-fig6",
    title="Time to find two bucket sizes, by the number of rows",
    run=time_by_rows,
    picture=_picture("rows, thousands", "rows, thousands"),
)
FIGURE_7 = Experiment(
    name="bucketization-fig7",
    title="Time to find two bucket sizes, by the number of sensitive values",
    run=time_by_values,
    picture=_picture("scale-up factor", "scale-up factor of |SA|"),
)
