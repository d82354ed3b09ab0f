"""How fast buckets are planned, as ratios measured in one run.

    python -m bench.plan_speed [--json] [--plain-limit SECONDS]

a  two sizes, full pruning against no pruning: ten million rows, 50 values, sizes up to 50
b  the optimum by cuts against the same model given whole to HiGHS: 500,000 rows, 400 values
c  the optimum of 3,200 values against that of 400
d  two sizes and the optimum, a billion rows against a million

The histograms fall geometrically as the occupations of the CENSUS data do (7.5 % to 0.18 % at 50 values); the
thresholds are times·f + 0.02.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from fractions import Fraction
from statistics import median
from time import perf_counter

import highspy
import numpy as np
from scipy import sparse

from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.two_size import plan_two_size

GAP = 1e-4


def skewed(n_values: int, n_rows: int, times: int) -> BucketProblem:
    weights = np.geomspace(0.075, 0.0018, n_values)
    counts = [max(int(w), 1) for w in weights / weights.sum() * n_rows]
    counts[0] += n_rows - sum(counts)
    thresholds = tuple(min(Fraction(1), times * Fraction(o, n_rows) + Fraction(1, 50)) for o in counts)
    return BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=50)


def seconds(*works: Callable[[], object], repeats: int = 15) -> list[float]:
    """The median time of each work, run in turns so that other load on the machine hits all alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats + 1):
        for work, mine in zip(works, times, strict=True):
            mine.append(once(work))
    return [median(mine[1:]) for mine in times]  # the first run fills caches


def once(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def whole_model(problem: BucketProblem) -> highspy.HighsLp:
    """The integer programme of the optimum with every load x_iS in it."""
    sizes = np.arange(problem.smallest_size, problem.largest_size + 1)
    m, q = problem.n_values, len(sizes)
    load = np.arange(m * q)
    value, size = load // q, load % q
    ones = np.ones(m * q)
    rows_of_value = sparse.csr_matrix((ones, (value, q + load)), shape=(m, q + m * q))
    rows_of_size = sparse.csr_matrix((ones, (size, q + load)), shape=(q, q + m * q)) - sparse.csr_matrix(
        (sizes.astype(float), (np.arange(q), np.arange(q))), shape=(q, q + m * q)
    )
    capacity = problem.capacity_table(sizes).ravel().astype(float)
    limits = sparse.csr_matrix((ones, (load, q + load)), shape=(m * q, q + m * q)) - sparse.csr_matrix(
        (capacity, (load, size)), shape=(m * q, q + m * q)
    )
    matrix = sparse.vstack([rows_of_value, rows_of_size, limits]).tocsr()
    counts = problem.count_array().astype(float)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = q + m * q, matrix.shape[0]
    model.col_cost_ = np.concatenate([(sizes - 1.0) ** 2, np.zeros(m * q)])
    model.col_lower_ = np.zeros(q + m * q)
    model.col_upper_ = np.full(q + m * q, highspy.kHighsInf)
    model.row_lower_ = np.concatenate([counts, np.zeros(q), np.full(m * q, -highspy.kHighsInf)])
    model.row_upper_ = np.concatenate([counts, np.zeros(q), np.zeros(m * q)])
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_, model.a_matrix_.index_ = matrix.indptr, matrix.indices
    model.a_matrix_.value_ = matrix.data
    kinds = highspy.HighsVarType
    model.integrality_ = [kinds.kInteger] * q + [kinds.kContinuous] * (m * q)
    return model


def solve_whole(problem: BucketProblem, limit: float) -> dict[str, float]:
    model = whole_model(problem)
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("mip_rel_gap", GAP)
    solver.setOptionValue("time_limit", limit)
    solver.passModel(model)
    taken = once(solver.run)
    info = solver.getInfo()
    return {"seconds": taken, "loss": info.objective_function_value, "gap": info.mip_gap}


def pruning() -> dict[str, object]:
    problem = skewed(50, 10**7, 2)
    [full] = seconds(lambda: plan_two_size(problem, "full"))
    plans = [plan_two_size(problem, "full")]
    loss = once(lambda: plans.append(plan_two_size(problem, "loss")))
    none = once(lambda: plans.append(plan_two_size(problem, "none")))
    same = all(plan == plans[0] for plan in plans)
    return {"full": full, "loss": loss, "none": none, "same_answer": same, "ratio": none / full}


def cuts(limit: float) -> dict[str, object]:
    found: dict[str, object] = {}
    ratios = []
    for times in (2, 8):
        problem = skewed(400, 500_000, times)
        plan = plan_buckets(problem)
        [taken] = seconds(lambda p=problem: plan_buckets(p))  # type: ignore[misc]
        whole = solve_whole(problem, limit)
        found[f"times_{times}"] = {
            "cuts": {"seconds": taken, "loss": plan.loss, "gap": plan.gap},
            "whole": whole,
            "whole_hit_the_limit": whole["gap"] > GAP,
        }
        ratios.append(whole["seconds"] / taken)
    return {**found, "ratio": min(ratios), "ratios": ratios}


def many_values() -> dict[str, object]:
    few, many = skewed(400, 500_000, 8), skewed(3_200, 500_000, 8)
    few_seconds, many_seconds = seconds(lambda: plan_buckets(few), lambda: plan_buckets(many))
    gaps = {"m_400": plan_buckets(few).gap, "m_3200": plan_buckets(many).gap}
    return {"m_400": few_seconds, "m_3200": many_seconds, "gaps": gaps, "ratio": few_seconds / many_seconds}


def many_rows() -> dict[str, object]:
    million, billion = skewed(50, 10**6, 8), skewed(50, 10**9, 8)
    two_small, two_large, best_small, best_large = seconds(
        lambda: plan_buckets(million, "two-size"),
        lambda: plan_buckets(billion, "two-size"),
        lambda: plan_buckets(million, "optimal"),
        lambda: plan_buckets(billion, "optimal"),
    )
    return {
        "two-size": {"million": two_small, "billion": two_large, "ratio": two_small / two_large},
        "optimal": {"million": best_small, "billion": best_large, "ratio": best_small / best_large},
        "ratio": min(two_small / two_large, best_small / best_large),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how fast buckets are planned.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--plain-limit", type=float, default=120.0, help="seconds for the model given whole")
    options = parser.parse_args()
    results = {
        "a: full pruning, times faster than none (10M rows)": pruning(),
        "b: cuts, times faster than the whole model (m = 400)": cuts(options.plain_limit),
        "c: m = 3,200, times faster than m = 400": many_values(),
        "d: a billion rows, times faster than a million": many_rows(),
    }
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for name, result in results.items():
        print(f"{name}: {result['ratio']:.2f}")
        for key, value in result.items():
            if key != "ratio":
                print(f"    {key}: {value}")


if __name__ == "__main__":
    main()
