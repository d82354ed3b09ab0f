"""The searches for settings of many sizes, beside the whole linear programme and every setting."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.plan import optimal
from dalenius.mechanisms.bucketize.plan.branching import BranchResult
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.multi_size import plan_multi_size, split_repeatedly
from dalenius.mechanisms.bucketize.plan.optimal import can_be_kept, has_any_setting, plan_optimal
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes
from dalenius.mechanisms.bucketize.plan.two_size import search_two_size
from tests.mechanisms.bucketize.problems import EXAMPLE_3, least_loss, problems, skewed

if TYPE_CHECKING:
    from dalenius.mechanisms.bucketize.plan.integer import Master


def whole_programme(problem: BucketProblem) -> float | None:
    """SPEC's programme with divisible buckets: b_S, x_iS ≥ 0, Σ_S x_iS = o_i, Σ_i x_iS = S·b_S, x ≤ ⌊f′S⌋·b.

    No cuts, no classes of values: every load is a variable of its own.
    """
    sizes = np.arange(1, problem.largest_size + 1)
    m, k = problem.n_values, len(sizes)
    capacity = problem.capacity_table(sizes)
    n_variables = k + m * k

    def load(i: int, j: int) -> int:
        return k + i * k + j

    equal = np.zeros((m + k, n_variables))
    for i in range(m):
        equal[i, [load(i, j) for j in range(k)]] = 1
    for j in range(k):
        equal[m + j, [load(i, j) for i in range(m)]] = 1
        equal[m + j, j] = -sizes[j]
    below = np.zeros((m * k, n_variables))
    for i in range(m):
        for j in range(k):
            below[i * k + j, load(i, j)] = 1
            below[i * k + j, j] = -capacity[i, j]
    costs = np.concatenate([(sizes - 1.0) ** 2, np.zeros(m * k)])
    needs = np.concatenate([problem.count_array(), np.zeros(k)])
    found = linprog(costs, A_ub=below, b_ub=np.zeros(m * k), A_eq=equal, b_eq=needs, method="highs-ds")
    return float(found.fun or 0.0) if found.status == 0 else None


@given(problems(max_rows=12))
@settings(max_examples=50)
def test_bounds_are_in_order_from_the_programme_to_the_optimum(problem: BucketProblem) -> None:
    """The bound of a plan is at most its loss, and no plan is below the programme of all loads."""
    divisible, best = whole_programme(problem), least_loss(problem)
    if divisible is None:
        assert best is None
        with pytest.raises(NoSettingFits):
            plan_optimal(problem)
        return
    if best is not None:
        plan = plan_optimal(problem)
        assert divisible - 1e-6 <= plan.loss == best
        assert plan.lower_bound is not None
        assert plan.lower_bound <= best


@given(problems(max_rows=12))
@settings(max_examples=60)
def test_whether_there_is_a_setting_is_what_trying_all_says(problem: BucketProblem) -> None:
    assert has_any_setting(problem) == (least_loss(problem) is not None)


@given(problems(max_rows=12))
@settings(max_examples=60)
def test_what_cannot_be_kept_in_parts_cannot_be_kept_whole(problem: BucketProblem) -> None:
    """`can_be_kept` may be right in vain, and never says no where the programme of all loads says yes."""
    divisible = whole_programme(problem)
    if divisible is not None:
        assert can_be_kept(problem) or problem.max_bucket < needed_by_hand(problem)
    if not can_be_kept(problem):
        assert least_loss(problem) is None


def needed_by_hand(problem: BucketProblem) -> int:
    """Each value needs a size S and a k with f ≤ k/S ≤ f′; whole buckets cannot do without."""
    shares = [Fraction(count, problem.n_rows) for count in problem.counts]
    return max(
        next(s for s in range(1, problem.n_rows + 1) if any(f <= Fraction(k, s) <= t for k in range(s + 1)))
        for f, t in zip(shares, problem.thresholds, strict=True)
    )


@given(problems())
@settings(max_examples=60)
def test_splitting_loads_every_record_within_the_capacities(problem: BucketProblem) -> None:
    sizes = candidate_sizes(problem)
    counts, capacity = problem.count_array(), problem.capacity_table(sizes)
    loads = split_repeatedly(counts, capacity, sizes)
    two = search_two_size(counts, capacity, sizes)
    assert (loads is None) == (two is None)
    if loads is None or two is None:
        return
    b, rest = np.divmod(loads.sum(axis=0), np.array(sizes))
    assert not rest.any()
    assert loads.sum(axis=1).tolist() == counts.tolist()
    assert (loads <= capacity * b).all()
    assert int(b @ (np.array(sizes) - 1) ** 2) <= two.loss


@given(problems())
@settings(max_examples=40)
def test_a_part_that_two_sizes_would_improve_is_split_again(problem: BucketProblem) -> None:
    """Algorithm 2 ends where no part of one size loses less in two: each size's loads are such a part."""
    sizes = candidate_sizes(problem)
    counts, capacity = problem.count_array(), problem.capacity_table(sizes)
    first = search_two_size(counts, capacity, sizes)
    loads = split_repeatedly(counts, capacity, sizes)
    if first is None or loads is None:
        return
    used = np.flatnonzero(loads.any(axis=0))
    if len(used) == 1:  # one part only: what two sizes could do better would have been taken
        b = int(loads.sum()) // sizes[used[0]]
        assert search_two_size(counts, capacity, sizes, below=b * (sizes[used[0]] - 1) ** 2) is None


def test_many_sizes_are_better_than_two_on_a_skewed_table() -> None:
    """Eight of ten values are rare; each level of rarity wants a size of its own."""
    problem = skewed(12, 3_000, 3)
    multi, best = plan_multi_size(problem), plan_optimal(problem)
    assert len(best.sizes) > 2
    assert best.loss <= multi.loss
    assert best.lower_bound is not None
    assert best.loss - best.lower_bound <= 1e-4 * best.lower_bound
    for plan in (multi, best):
        plan.check(problem)


def test_example_3_is_planned_no_worse_than_the_papers_setting() -> None:
    """(4 × 9), (14 × 1) loses 9·9 + 13² = 250."""
    assert 9 * 3**2 + 1 * 13**2 == 250
    assert plan_multi_size(EXAMPLE_3).loss <= 250
    assert plan_optimal(EXAMPLE_3).loss <= plan_multi_size(EXAMPLE_3).loss


@pytest.mark.parametrize("limit", ["_HEURISTIC_ENTRIES", "_FEW_SIZES", "_MAX_ROUNDINGS"])
def test_a_search_without_one_of_its_helps_keeps_thresholds_and_bound(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No heuristic start, few sizes to round with, or no rounding: worse at most, never wrong."""
    wanted = {problem: plan_optimal(problem).loss for problem in (EXAMPLE_3, skewed(8, 400, 3))}
    monkeypatch.setattr(optimal, limit, 0)
    for problem, loss in wanted.items():
        plan = plan_optimal(problem)
        plan.check(problem)
        assert plan.loss >= loss
        assert plan.lower_bound is not None
        assert plan.lower_bound <= loss


def test_a_search_with_no_effort_left_says_that_nothing_was_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("_MAX_ROUNDINGS", "_HEURISTIC_ENTRIES", "_BRANCH_WORK"):
        monkeypatch.setattr(optimal, limit, 0)
    monkeypatch.setattr(optimal, "split_repeatedly", lambda *_: None)
    with pytest.raises(NoSettingFits, match="though none was proven impossible"):
        plan_optimal(EXAMPLE_3)
    assert not has_any_setting(EXAMPLE_3)


def test_the_best_is_kept_whatever_comes_after() -> None:
    search = optimal._SizeSearch(EXAMPLE_3)
    search.run()
    best = search.to_plan()
    sizes = np.array(candidate_sizes(EXAMPLE_3))
    worse = np.where(sizes == 14, 3, 0) + np.where(sizes == 8, 1, 0)
    search._take(worse, np.zeros((len(search._source.counts), len(sizes)), dtype=np.int64))
    assert search.to_plan() == best


def test_a_bucket_of_all_rows_is_found_where_nothing_smaller_keeps_a_group() -> None:
    """Three of seven have one of two values, and no bucket may hold more than 3/7 of the two together."""
    group = Run(begin=0, end=2, threshold=Fraction(3, 7))
    problem = BucketProblem(
        counts=(1, 2, 4),
        thresholds=(Fraction(1, 2), Fraction(1, 2), Fraction(3, 5)),
        max_bucket=7,
        groups=(group,),
    )
    plan = plan_optimal(problem)
    assert (plan.sizes, plan.n_buckets, plan.loss) == ((7,), (1,), 36)
    with pytest.raises(PromiseNotMet):
        plan_optimal(replace(problem, max_bucket=6))


@given(st.integers(2, 6), st.integers(20, 120), st.integers(2, 5))
@settings(max_examples=15)
def test_the_same_counts_give_the_same_plan(n_values: int, n_rows: int, times: int) -> None:
    problem = skewed(n_values, n_rows, times)
    first: BucketPlan = plan_optimal(problem)
    assert plan_optimal(problem) == first


def test_more_seconds_are_never_for_a_worse_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first second has no branch and bound here, the others do; and again they give the same."""
    problem = skewed(30, 3_000, 3)  # its cuts have 512 steps
    monkeypatch.setattr(optimal, "_BRANCH_WORK", 300)
    monkeypatch.setattr(optimal, "_EXACT_UP_TO", 0)
    plans = [plan_optimal(replace(problem, seconds=seconds)) for seconds in (1, 3, 3)]
    gaps = [plan.gap for plan in plans if plan.gap is not None]
    assert gaps[1] < gaps[0]
    assert plans[1].loss <= plans[0].loss
    assert plans[1] == plans[2]
    for plan in plans:
        plan.check(problem)


def test_the_best_of_small_tables_with_many_values_is_proven() -> None:
    """Thousands of nodes over the numbers of buckets of each size left a gap of 1 %, and a worse plan."""
    counts = tuple(max(1, 600 // (10 + 3 * i)) for i in range(60))
    thresholds = tuple(min(Fraction(1, 2), Fraction(2 * count, 591) + Fraction(3, 100)) for count in counts)
    plan = plan_optimal(BucketProblem(counts=counts, thresholds=thresholds, max_bucket=60))
    assert (plan.n_rows, plan.loss, plan.gap) == (591, 8_978, 0.0)


@pytest.mark.parametrize(
    ("exact_up_to", "seconds", "weight", "nodes"),
    [(50, 1, 1, 7), (50, 3, 1, 21), (49, 1, 1, 5), (50, 1, 10, 2), (50, 3, 10, 6), (50, 1, 16, 1)],
)
def test_small_tables_and_more_seconds_get_more_nodes_and_long_cuts_fewer(
    exact_up_to: int, seconds: int, weight: int, nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 rows; 7 or 5 nodes a second at most, and 20 nodes of one step; 16 steps a second altogether."""
    asked = []

    def branch(*given: object, is_near: bool) -> BranchResult:
        asked.append(given[3])
        assert not is_near  # nothing is known yet
        return BranchResult(n_buckets=None, lower_bound=0, is_infeasible=False, n_nodes=1)

    limits = {"_EXACT_UP_TO": exact_up_to, "_MAX_NODES_EXACT": 7, "_MAX_NODES": 5, "_NODE_WORK": 20}
    for name, limit in {**limits, "_BRANCH_WORK": 16}.items():
        monkeypatch.setattr(optimal, name, limit)
    monkeypatch.setattr(optimal, "count_steps", lambda _: weight)
    monkeypatch.setattr(optimal, "branch_and_bound", branch)
    search = optimal._SizeSearch(replace(EXAMPLE_3, seconds=seconds))
    search._branch(*search.relax())
    assert asked == [nodes]
    monkeypatch.setattr(optimal, "count_steps", lambda _: 16 * seconds + 1)
    search._branch(*search.relax())
    assert asked == [nodes]  # such long cuts are left alone


@pytest.mark.parametrize(
    ("n_rows", "seconds", "gap"), [(1_000, 1, 0.9), (1_001, 1, 100.0), (1_001, 2, 1.0), (1_000, 2, 0.9)]
)
def test_up_to_a_thousand_rows_nothing_but_the_optimum_will_do(n_rows: int, seconds: int, gap: float) -> None:
    """Losses are whole: a distance below 1 is none. Beyond, 1e-4 of the bound, or 1e-6 in more time."""
    problem = BucketProblem(
        counts=(n_rows - 500, 500), thresholds=(Fraction(2, 3),) * 2, max_bucket=9, seconds=seconds
    )
    search = optimal._SizeSearch(problem)
    search._bound = 10**6
    assert search._abs_gap() == pytest.approx(gap)


def test_even_buckets_of_one_or_two_sizes_are_tried_from_the_fewest_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """17 rows in buckets of up to 7: three of them at least, as many as 17 with a limit of sixteen tries."""
    problem = BucketProblem(counts=(1,) * 17, thresholds=(Fraction(1, 2),) * 17, max_bucket=7)
    search = optimal._SizeSearch(problem)
    tried: list[dict[int, int]] = []

    def record(n_buckets: np.ndarray) -> None:
        sizes = search._source.sizes.tolist()
        tried.append({size: b for size, b in zip(sizes, n_buckets.tolist(), strict=True) if b})

    monkeypatch.setattr(search, "_try", record)
    search._try_even()
    evenly = [Counter(len(range(b, 17, n)) for b in range(n)) for n in range(3, 18)]
    assert tried == [setting for setting in evenly if min(setting) >= 2]
    assert tried[:2] == [{6: 2, 5: 1}, {5: 1, 4: 3}]
    tried.clear()
    monkeypatch.setattr(optimal, "_EVEN_STARTS", 2)
    search._try_even()
    assert tried == [{6: 2, 5: 1}, {5: 1, 4: 3}]


def test_where_any_setting_will_do_even_buckets_of_a_large_table_need_no_programme(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a linear programme is solved")

    monkeypatch.setattr(optimal, "_HEURISTIC_ENTRIES", 0)
    monkeypatch.setattr(optimal, "Master", refuse)
    assert has_any_setting(BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10))


def test_the_relaxed_problem_is_settled_by_few_cuts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cuts of the relaxed answer alone, not of what is on the way to it, are three times as many."""
    counts = tuple((20_000 * np.arange(1, 501) ** -0.5).astype(np.int64).tolist())
    thresholds = tuple(Fraction(count, sum(counts)) + Fraction(1, 500) for count in counts)
    problem = BucketProblem(counts=counts, thresholds=thresholds, max_bucket=1_000)
    n_cuts, losses = [], []
    for gap in (optimal._RELAXED_GAP, np.inf):
        monkeypatch.setattr(optimal, "_RELAXED_GAP", gap)
        search = optimal._SizeSearch(problem)
        search._take_even()
        master, fractional = search.relax()
        n_cuts.append(master.n_cuts)
        losses.append(float(fractional @ search._costs))
        assert master.lower_bound() <= losses[-1] * (1 + 1e-6) + 1
    assert 2 * n_cuts[0] < n_cuts[1]
    assert losses[0] == pytest.approx(losses[1], rel=2e-6)


def test_no_size_is_left_out_for_what_branching_proved() -> None:
    """A bucket of a size loses its price above the relaxed loss; a higher bound says nothing of that."""
    search = optimal._SizeSearch(skewed(30, 3_000, 3))
    search.run()
    master, fractional = search.relax()
    columns, are_all = search._can_be_better(master, fractional)
    assert search._best is not None
    search._bound = search._loss(search._best) - 1
    again, are_still_all = search._can_be_better(master, fractional)
    assert are_all
    assert are_still_all
    assert 0 < len(columns) < len(fractional)
    assert columns.tolist() == again.tolist()


@pytest.mark.parametrize("accepted", [0, 2, None])
def test_settings_are_mended_until_one_is_accepted(
    accepted: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is accepted ends the search; without one it ends when nothing is found any more."""
    search, offered = optimal._SizeSearch(EXAMPLE_3), list[int]()
    n_sizes = len(search._source.sizes)
    found = iter([np.full(n_sizes, number) for number in range(4)])
    monkeypatch.setattr(optimal, "settle_more", lambda *_, **__: next(found, None))
    monkeypatch.setattr(search, "_integer_problem", lambda *_: SimpleNamespace(among=lambda _: None))

    def offer(n_buckets: object, _: object) -> bool:
        offered.append(len(offered))
        return accepted == offered[-1]

    monkeypatch.setattr(search, "_offer", offer)
    everything = np.arange(n_sizes)
    search._mend(np.zeros(n_sizes, dtype=np.int64), everything, cast("Master", None))
    assert offered == list(range(4 if accepted is None else accepted + 1))
