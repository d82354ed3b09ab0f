"""Cuts, the relaxed problem and its roundings, beside trying every set of values and every setting."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations
from math import ceil
from typing import Any

import numpy as np
import pytest
from highspy import HighsModelStatus
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dalenius.mechanisms.bucketize.plan import integer
from dalenius.mechanisms.bucketize.plan.branching import branch_and_bound
from dalenius.mechanisms.bucketize.plan.integer import (
    Cuts,
    CutSource,
    IntegerProblem,
    Master,
)
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, ValueClasses
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes
from tests.mechanisms.bucketize.problems import all_settings, is_valid_setting, least_loss, problems


def source_of(problem: BucketProblem) -> CutSource:
    return CutSource.of(ValueClasses.of(problem), candidate_sizes(problem))


def subsets(n: int) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(n), k) for k in range(1, n + 1))


def all_cuts(source: CutSource) -> Cuts:
    """The cut of every set of classes."""
    masks = [np.isin(np.arange(len(source.counts)), own) for own in subsets(len(source.counts))]
    return source.cuts(np.array(masks))


@given(problems())
def test_a_cut_counts_what_a_bucket_may_hold_of_a_set_of_values(problem: BucketProblem) -> None:
    source, classes = source_of(problem), ValueClasses.of(problem)
    cuts = all_cuts(source)
    for own, row, need in zip(subsets(len(source.counts)), cuts.coefficients, cuts.needs, strict=True):
        assert need == sum(int(classes.totals[i]) for i in own)
        for size, held in zip(source.sizes.tolist(), row.tolist(), strict=True):
            each = (classes.n_members[i] * int(classes.thresholds[i] * size) for i in own)
            assert held == min(size, sum(min(int(k), size) for k in each))


@given(problems(max_rows=11))
@settings(max_examples=60)
def test_a_setting_is_valid_iff_it_meets_the_cut_of_every_set_of_values(problem: BucketProblem) -> None:
    """Max-flow/min-cut: written over sets of values the cuts are as strong as over sets of sizes."""
    source = source_of(problem)
    if not len(source.sizes):
        return
    cuts, sizes = all_cuts(source), source.sizes.tolist()
    for setting in all_settings(problem.n_rows, sizes):
        meets = bool((cuts.coefficients @ np.array(setting) >= cuts.needs).all())
        assert meets == is_valid_setting(problem, sizes, setting)


@given(problems(max_rows=11))
@settings(max_examples=60)
def test_what_is_called_violated_is_and_no_prefix_or_single_size_is_missed(problem: BucketProblem) -> None:
    source = source_of(problem)
    sizes = source.sizes.tolist()
    for setting in all_settings(problem.n_rows, sizes):
        b = np.array(setting)
        found = source.find_violated(b.astype(float), 0.5)
        assert (found.coefficients @ b < found.needs).all()
        used = [j for j, n in enumerate(setting) if n]
        prefixes = [used[: k + 1] for k in range(len(used))]
        short = [
            np.minimum(source.capacity[:, w] @ b[w], source.counts).sum() < source.sizes[w] @ b[w]
            for w in (*prefixes, *([j] for j in used))
        ]
        assert (len(found.needs) > 0) == any(short)


def test_the_cut_of_a_violated_set_of_sizes_is_violated() -> None:
    """Two values at 1/2 and 1/4 of the bucket at most: 5 buckets of 2 hold 5 + 0 of 10 places."""
    problem = BucketProblem(counts=(7, 3), thresholds=(Fraction(1, 2), Fraction(1, 4)), max_bucket=10)
    source = source_of(problem)
    b = np.where(source.sizes == 2, 5, 0)
    cut = source.cut_of_sizes(np.flatnonzero(b), b)
    # value 0 has room for 5 of its 7 and value 1 for none of its 3: both lack room, of which 10 there are
    assert cut.needs.tolist() == [10]
    assert int(cut.coefficients[0] @ b) == 5


def test_both_ways_to_multiply_give_the_same_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = BucketProblem(counts=(2, 3, 4, 5), thresholds=(Fraction(1, 2),) * 4, max_bucket=9)
    source = source_of(problem)
    small = all_cuts(source)
    monkeypatch.setattr(integer, "_SMALL_PRODUCT", 0)
    large = all_cuts(source)
    assert large.coefficients.tolist() == small.coefficients.tolist()
    assert large.needs.tolist() == small.needs.tolist()


def relaxed(source: CutSource, cuts: Cuts, n_rows: int) -> float | None:
    """The least loss of fractional buckets that meet the cuts, by another solver."""
    costs = (source.sizes - 1.0) ** 2
    found = linprog(
        costs,
        A_ub=-cuts.coefficients,
        b_ub=-cuts.needs,
        A_eq=source.sizes[None, :].astype(float),
        b_eq=[n_rows],
        method="highs-ds",
    )
    return float(found.fun or 0.0) if found.status == 0 else None


@given(problems(max_rows=12))
@settings(max_examples=60)
def test_the_relaxed_problem_is_what_another_solver_finds(problem: BucketProblem) -> None:
    source = source_of(problem)
    if not len(source.sizes):
        return
    cuts = all_cuts(source)
    master = Master(source.sizes, problem.n_rows)
    assert master.add(cuts)
    assert not master.add(cuts)  # nothing new
    assert len(master.cuts.needs) == len({(c.tobytes(), int(n)) for c, n in pairs(cuts)})
    fractional, wanted = master.solve(), relaxed(source, cuts, problem.n_rows)
    best = least_loss(problem)
    if wanted is None:
        assert fractional is None
        assert best is None
        return
    assert fractional is not None
    assert float(fractional @ source.sizes) == pytest.approx(problem.n_rows)
    assert float(fractional @ (source.sizes - 1) ** 2) == pytest.approx(wanted, abs=1e-6)
    bound = master.lower_bound()
    assert bound == ceil(wanted - 1e-6)
    assert best is None or bound <= best


def pairs(cuts: Cuts) -> Iterator[tuple[np.ndarray, int]]:
    return zip(cuts.coefficients, cuts.needs.tolist(), strict=True)


@given(problems(max_rows=12))
@settings(max_examples=40)
def test_a_reduced_cost_is_what_a_bucket_of_a_size_costs_at_least(problem: BucketProblem) -> None:
    """The relaxed loss with one bucket of a size forced in is no less than the least one and its price."""
    source = source_of(problem)
    if not len(source.sizes):
        return
    cuts = all_cuts(source)
    master = Master(source.sizes, problem.n_rows)
    master.add(cuts)
    if master.solve() is None:
        return
    least = relaxed(source, cuts, problem.n_rows)
    assert least is not None
    for j, price in enumerate(master.reduced_costs().tolist()):
        one = np.eye(len(source.sizes), dtype=np.int64)[[j]]
        forced = Cuts(coefficients=np.vstack([cuts.coefficients, one]), needs=np.append(cuts.needs, 1))
        with_one = relaxed(source, forced, problem.n_rows)
        assert price >= 0
        assert with_one is None or with_one >= least + price - 1e-6


def test_the_lower_bound_holds_before_anything_is_solved() -> None:
    """Without multipliers it is n·min (S−1)²/S: 12 rows in buckets of at least 2 lose 12/2."""
    assert Master(np.array([2, 3, 4]), 12).lower_bound() == 6
    assert Master(np.array([1, 2]), 12).lower_bound() == 0


@st.composite
def integer_problems(draw: st.DrawFn) -> IntegerProblem:
    """Two or three sizes, a handful of rows, cuts of small coefficients, and any origin."""
    sizes = sorted(draw(st.sets(st.integers(1, 7), min_size=2, max_size=4)))
    n_cuts = draw(st.integers(0, 3))
    row = st.lists(st.integers(0, 4), min_size=len(sizes), max_size=len(sizes))
    coefficients = draw(st.lists(row, min_size=n_cuts, max_size=n_cuts))
    needs = draw(st.lists(st.integers(0, 12), min_size=n_cuts, max_size=n_cuts))
    n_rows = draw(st.integers(5, 30))
    origin = [draw(st.integers(0, max(n_rows // size // 2, 1))) for size in sizes]
    return IntegerProblem(
        sizes=np.array(sizes),
        n_rows=n_rows,
        cuts=Cuts(
            coefficients=np.array(coefficients, dtype=np.int64).reshape(n_cuts, len(sizes)),
            needs=np.array(needs, dtype=np.int64),
        ),
        origin=np.array(origin),
    )


def best_of_all(problem: IntegerProblem) -> int | None:
    meeting = [
        int(np.array(b) @ problem.costs)
        for b in all_settings(problem.n_rows, problem.sizes.tolist())
        if (problem.cuts.coefficients @ np.array(b) >= problem.cuts.needs).all()
    ]
    return min(meeting, default=None)


def check_meets(problem: IntegerProblem, n_buckets: np.ndarray) -> int:
    assert (n_buckets >= 0).all()
    assert int(n_buckets @ problem.sizes) == problem.n_rows
    assert (problem.cuts.coefficients @ n_buckets >= problem.cuts.needs).all()
    return int(n_buckets @ problem.costs)


@given(integer_problems())
@settings(max_examples=80)
def test_branch_and_bound_finds_the_best_of_all_settings(problem: IntegerProblem) -> None:
    wanted = best_of_all(problem)
    found = branch_and_bound(problem, None, 0.9, 5_000, is_near=False)
    assert found.is_infeasible == (wanted is None)
    if wanted is not None:
        assert found.n_buckets is not None
        assert check_meets(problem, found.n_buckets) == wanted
        assert wanted - 1 <= found.lower_bound <= wanted
        again = branch_and_bound(problem, found.n_buckets, 0.9, 5_000, is_near=True)
        assert again.n_buckets is not None
        assert check_meets(problem, again.n_buckets) == wanted


@given(integer_problems(), st.data())
@settings(max_examples=80)
def test_whatever_setting_is_known_branch_and_bound_finds_the_best(
    problem: IntegerProblem, data: st.DataObject
) -> None:
    """What sizes can have is narrowed to settings no worse than the known one: the best is among them."""
    known = [np.array(b) for b in all_settings(problem.n_rows, problem.sizes.tolist())]
    known = [b for b in known if problem.is_met(b)]
    if not known:
        return
    start = data.draw(st.sampled_from(known))
    found = branch_and_bound(problem, start, 0.9, 5_000, is_near=True)
    wanted = best_of_all(problem)
    assert wanted is not None
    assert found.n_buckets is not None
    assert check_meets(problem, found.n_buckets) == wanted
    assert wanted - 1 <= found.lower_bound <= wanted


@given(integer_problems(), st.data())
@settings(max_examples=40)
def test_some_of_the_sizes_are_the_problem_without_the_others(
    problem: IntegerProblem, data: st.DataObject
) -> None:
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(problem.sizes))), min_size=1)))
    fewer = problem.among(np.array(kept))
    assert fewer.costs.tolist() == [(int(problem.sizes[j]) - 1) ** 2 for j in kept]
    without = [
        loss
        for b in all_settings(problem.n_rows, problem.sizes.tolist())
        if all(b[j] == 0 or j in kept for j in range(len(b)))
        and (problem.cuts.coefficients @ np.array(b) >= problem.cuts.needs).all()
        and (loss := int(np.array(b) @ problem.costs)) >= 0
    ]
    assert best_of_all(fewer) == min(without, default=None)


class _Undecided:
    """A solver that comes to no end until it begins anew."""

    def __init__(self, solver: Any) -> None:
        self._solver, self._is_new = solver, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solver, name)

    def clearSolver(self) -> None:  # noqa: N802  (its name in HiGHS)
        self._is_new = True
        self._solver.clearSolver()

    def getModelStatus(self) -> Any:  # noqa: N802
        return self._solver.getModelStatus() if self._is_new else HighsModelStatus.kUnknown


def test_a_programme_that_comes_to_no_end_is_solved_from_the_start() -> None:
    """It did, on one of some hundred random tables, and the plan ended in an internal error."""
    sizes = np.array([2, 3, 5])
    cuts = Cuts(coefficients=np.array([[1, 1, 2]]), needs=np.array([28]))
    usual, undecided = Master(sizes, 60), Master(sizes, 60)
    undecided._solver = _Undecided(undecided._solver)  # type: ignore[assignment]
    found = []
    for master in (usual, undecided):
        master.add(cuts)
        found.append(master.solve())
    assert found[0] is not None
    assert np.allclose(found[0], np.asarray(found[1]))
    assert usual.lower_bound() == undecided.lower_bound()


def test_what_is_whole_within_tolerances_only_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    """HiGHS may call numbers whole that are not; rounded, they lack a row, or a cut is not met."""
    problem = IntegerProblem(
        sizes=np.array([2, 3]),
        n_rows=12,
        cuts=Cuts(coefficients=np.array([[1, 2]]), needs=np.array([7])),
        origin=np.array([0, 0]),
    )
    assert [problem.is_met(np.array(b)) for b in ((3, 2), (0, 4), (6, 0), (0, 3), (-3, 6))] == [
        True,
        True,
        False,
        False,
        False,
    ]
    monkeypatch.setattr(IntegerProblem, "is_met", lambda *_: False)
    assert branch_and_bound(problem, None, 0.9, 10, is_near=False).n_buckets is None
