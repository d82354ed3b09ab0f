"""Figures 6 and 7: the integer programme row by row, and what is said of times that were made up."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from dalenius.reproduce import bucketization_runtime as module
from dalenius.reproduce.bucketization_runtime import (
    ENOUGH,
    OURS,
    SEARCHES,
    SolverAnswer,
    scale_up,
    seconds_of,
    solve_two_size_ilp,
    time_by_rows,
    time_by_values,
)
from dalenius.reproduce.experiment import Row
from tests.mechanisms.bucketize.problems import least_loss

SOLVER = "Optimal (two-size ILP)"
PROBLEM = BucketProblem(counts=(3, 2, 1), thresholds=(Fraction(1, 2),) * 3, max_bucket=4)
SIZES = np.array([2, 3, 4])


def satisfied(b: list[int], y: list[int], loads: list[list[int]]) -> list[bool]:
    """Whether a point meets each set of constraints."""
    x = np.array([*b, *y, *(load for row in loads for load in row)], dtype=float)
    found = []
    for matrix, least, most in module._constraints(PROBLEM, SIZES):
        values = matrix @ x
        found.append(
            bool((values >= np.asarray(least) - 1e-9).all() and (values <= np.asarray(most) + 1e-9).all())
        )
    return found


def test_a_valid_setting_meets_every_constraint() -> None:
    """Three buckets of 2, each with at most one of a value: loads 3, 2, 1 all in size 2."""
    assert satisfied([3, 0, 0], [1, 0, 0], [[3, 0, 0], [2, 0, 0], [1, 0, 0]]) == [True] * 5
    # a bucket of 2 and one of 4 with two, one and one
    assert satisfied([1, 0, 1], [1, 0, 1], [[1, 0, 2], [1, 0, 1], [0, 0, 1]]) == [True] * 5


@pytest.mark.parametrize(
    ("point", "broken"),
    [
        (([3, 0, 0], [1, 0, 0], [[2, 0, 0], [2, 0, 0], [1, 0, 0]]), {0, 1}),  # a record is nowhere
        (([2, 0, 0], [1, 0, 0], [[3, 0, 0], [2, 0, 0], [1, 0, 0]]), {1, 2}),  # six records in four places
        (([1, 0, 1], [1, 0, 1], [[2, 0, 1], [0, 0, 2], [0, 0, 1]]), {2}),  # both places have value 0
        (([3, 0, 0], [0, 0, 0], [[3, 0, 0], [2, 0, 0], [1, 0, 0]]), {3}),  # buckets of a size not in use
        (([1, 0, 1], [1, 1, 1], [[1, 0, 2], [1, 0, 1], [0, 0, 1]]), {4}),  # three sizes in use
    ],
)
def test_each_set_of_constraints_refuses_what_it_is_for(
    point: tuple[list[int], list[int], list[list[int]]], broken: set[int]
) -> None:
    assert {k for k, ok in enumerate(satisfied(*point)) if not ok} == broken


@pytest.mark.parametrize("thresholds", [("1/2", "1/2", "1/2"), ("2/3", "1/2", "1/3"), ("1/2", "1/3", "1/3")])
def test_the_programme_finds_the_best_of_all_settings_of_two_sizes(thresholds: tuple[str, ...]) -> None:
    for counts in product((1, 3), (2, 3), (1, 2)):
        problem = BucketProblem(counts=counts, thresholds=tuple(map(Fraction, thresholds)), max_bucket=6)
        assert solve_two_size_ilp(problem, limit=20) == SolverAnswer(
            loss=least_loss(problem, n_sizes=2), is_proven=least_loss(problem, n_sizes=2) is not None
        )


def test_a_value_is_split_into_so_many_and_empty_ones_are_left_out() -> None:
    counts = scale_up([5, 1], 4, Randomness.seeded(1).stream("x"))
    assert sum(counts) == 6
    assert min(counts) >= 1
    assert len(counts) <= 5  # the single record is one value
    assert scale_up([3], 1, Randomness.seeded(1).stream("x")) == (3,)


def test_the_median_of_some_runs_is_taken_and_slow_work_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.1, 1.0, 1.3, 2.0, 2.05, 3.0, 3.01])
    monkeypatch.setattr(module, "process_time", lambda: next(clock))
    runs: list[int] = []
    # 0.1, 0.3, 0.05: after these 0.45 s are spent, a fourth run is made, of 0.01
    assert seconds_of(lambda: runs.append(1), repeats=4) == pytest.approx((0.05 + 0.1) / 2)
    assert len(runs) == 4
    slow = iter([0.0, 7.0])
    monkeypatch.setattr(module, "process_time", lambda: next(slow))
    assert seconds_of(lambda: runs.append(1)) == 7.0
    assert len(runs) == 5
    assert ENOUGH < 7


def test_every_search_is_timed_on_the_same_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(module, "seconds_of", lambda work: (work(), 1.0)[1])
    monkeypatch.setattr(module, "plan_two_size", lambda problem, search: asked.append((problem, search)))
    monkeypatch.setattr(module, "plan_buckets", lambda problem, method: asked.append((problem, method)))
    assert module.search_times(PROBLEM) == dict.fromkeys([*SEARCHES, OURS], 1.0)
    assert asked == [(PROBLEM, "full"), (PROBLEM, "loss"), (PROBLEM, "none"), (PROBLEM, "optimal")]


def made_up_rows() -> list[Row]:
    """Full-pruning does not grow, Loss-pruning doubles, No-pruning grows tenfold; the solver is stopped."""
    rows: list[Row] = []
    for source, factor in (("OCC", 1.0), ("EDU", 2.0)):
        for k, times in ((100, (0.01, 0.1, 1.0)), (500, (0.01, 0.2, 10.0))):
            rows += [
                (source, k, name, factor * taken, "yes") for name, taken in zip(SEARCHES, times, strict=True)
            ]
            rows.append((source, k, OURS, 0.3 * factor, "yes"))
            rows.append((source, k, SOLVER, 4.0 if k == 100 else 90.0, "yes" if k == 100 else "no"))
    return rows


def test_growth_is_from_the_smallest_to_the_largest() -> None:
    said = module._growth(made_up_rows())
    assert "Full-pruning 1.0 to 1.0 times (at most 0.02 s)" in said
    assert "Loss-pruning 2.0 to 2.0 times (at most 0.4 s)" in said
    assert "No-pruning 10.0 to 10.0 times (at most 20 s)" in said


def test_the_solver_is_compared_with_the_plain_search_of_the_same_table() -> None:
    """4 s against 1 and 2, 90 against 10 and 20; two of the four runs were stopped."""
    said = module._against_no_pruning(made_up_rows())
    assert said == ("2.0 to 9.0 times as long as No-pruning (and 2 of its 4 runs were stopped by the limit)")
    finished = [row for row in made_up_rows() if row[-1] == "yes"]
    assert module._against_no_pruning(finished) == "2.0 to 4.0 times as long as No-pruning"


def test_the_solvers_story_is_told_table_by_table() -> None:
    said = module._solver_story(made_up_rows())
    assert "OCC: 4.0 s at 100; stopped by its limit at 500, after 90 s" in said
    assert "EDU: 4.0 s at 100; stopped by its limit at 500, after 90 s" in said
    assert module._slowest(made_up_rows(), OURS) == pytest.approx(0.6)


def test_the_solver_runs_for_the_first_the_middle_and_the_last_size(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[int] = []

    def solved(problem: BucketProblem, limit: float) -> tuple[str, float, str]:
        assert limit == 3.0
        problems.append(problem.n_rows)
        return SOLVER, 2.0, "yes"

    monkeypatch.setattr(module, "_solver_time", solved)
    monkeypatch.setattr(module, "search_times", lambda _: dict.fromkeys([*SEARCHES, OURS], 1.0))
    outcome = time_by_rows(thousands=[1, 2, 3, 4, 5], limit=3.0)
    assert problems == [1_000, 3_000, 5_000] * 2
    assert len(outcome.rows) == 2 * (5 * 4 + 3)
    assert "2.0 to 2.0 times as long as No-pruning" in outcome.differs
    assert "at most 3 s by the clock" in outcome.data


def test_a_solver_that_was_stopped_is_not_tried_on_more_values(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[tuple[int, int]] = []

    def solved(problem: BucketProblem, _limit: float) -> tuple[str, float, str]:
        runs.append((problem.n_rows, problem.n_values))
        return SOLVER, 2.0, "yes" if len(runs) % 2 else "no"

    monkeypatch.setattr(module, "_solver_time", solved)
    monkeypatch.setattr(module, "search_times", lambda _: dict.fromkeys([*SEARCHES, OURS], 1.0))
    outcome = time_by_values(factors=[1, 2, 4], limit=1.0, n_rows=20_000)
    # the first run of each table is finished, the second is stopped, and there is no third
    assert len(runs) == 4
    assert [n for n, _ in runs] == [20_000] * 4
    assert [m for _, m in runs] == [50, 100, 14, 28]
    assert sum(row[2] == SOLVER for row in outcome.rows) == 4
    assert "by cuts it takes at most 1 s" in outcome.differs
