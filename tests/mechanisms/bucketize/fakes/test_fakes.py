"""Fakes: contents that say nothing beyond their loads, exact Bayes beside brute force, unbiased answers."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dalenius
from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.mechanisms.bucketize.fakes.law import (
    FakeLaw,
    content_weights,
    expect_fakes,
    fit_to_counts,
    last_success,
    last_trials,
    likeliest_is_first,
)
from dalenius.mechanisms.bucketize.fakes.plan import MixedLayout, count_values, mix_contents, plan_fakes
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.plain import Stated
from dalenius.randomness import Randomness
from tests.auditing.releases import restate_hashes
from tests.chance import FALSE_ALARM, Z
from tests.mechanisms.bucketize.fakes.enumeration import LAW, all_tables, brute_contents, brute_joint

COUNTS = (520, 480, 440, 400, 330, 280, 220, 170, 110, 50)


def problem_of(counts: tuple[int, ...] = COUNTS, l: int = 5) -> BucketProblem:  # noqa: E741
    return BucketProblem(counts=counts, thresholds=(Fraction(1, l),) * len(counts), max_bucket=20)


def planned(n_fakes: int, counts: tuple[int, ...] = COUNTS) -> tuple[BucketProblem, BucketPlan, MixedLayout]:
    problem = problem_of(counts)
    plan = plan_buckets(problem, "optimal")
    fakes = plan_fakes(plan, problem, n_fakes)
    return problem, plan, MixedLayout(plan, problem, fakes, Randomness.seeded(3))


def mixing_p_value(rounds_of_mixing: bool) -> float:
    columns, n_buckets, size = (3, 2, 2, 1), 4, 2
    tables = all_tables(columns, n_buckets, size)
    flat = np.repeat(np.arange(4), columns)
    start = flat[np.arange(n_buckets)[:, None] + np.arange(size) * n_buckets].astype(np.int32)
    seen: Counter[tuple[tuple[int, ...], ...]] = Counter()
    for seed in range(700):
        rng = np.random.default_rng(seed)
        mixed = mix_contents(start, np.ones(4, dtype=np.int64), rng) if rounds_of_mixing else start
        seen[tuple(map(tuple, rng.permutation(mixed).tolist()))] += 1
    return float(stats.chisquare([seen[t] for t in tables]).pvalue)


def test_mixed_contents_are_uniform_over_all_tables_and_round_robin_is_not() -> None:
    assert mixing_p_value(True) > FALSE_ALARM
    assert mixing_p_value(False) < FALSE_ALARM


@given(
    counts=st.lists(st.integers(1, 30), min_size=3, max_size=7),
    times=st.integers(2, 4),
    seed=st.integers(0, 50),
)
def test_mixing_keeps_loads_and_capacities(counts: list[int], times: int, seed: int) -> None:
    n = sum(counts)
    thresholds = tuple(min(Fraction(1), times * Fraction(c, n) + Fraction(1, 10)) for c in counts)
    problem = BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=12)
    plan = plan_buckets(problem, "optimal")
    for j, size in enumerate(plan.sizes):
        flat = np.repeat(np.arange(len(counts)), [row[j] for row in plan.loads])
        b = plan.n_buckets[j]
        dealt = flat[np.arange(b)[:, None] + np.arange(size) * b].astype(np.int32)
        mixed = count_values(
            mix_contents(dealt, problem.capacity(size), np.random.default_rng(seed)), len(counts)
        )
        assert mixed.sum(axis=0).tolist() == [row[j] for row in plan.loads]
        assert (mixed <= problem.capacity(size)).all()
        assert (mixed.sum(axis=1) == size).all()


@pytest.mark.parametrize("capacity", [(1, 1, 1, 1, 1, 1), (2, 2, 1, 1, 1, 1), (3, 2, 2, 1, 1, 1)])
def test_content_weights_give_the_plan_its_expected_counts(capacity: tuple[int, ...]) -> None:
    mean = np.array([0.9, 0.7, 0.5, 0.45, 0.3, 0.15])
    w = content_weights(mean, np.array(capacity), 3)
    law = brute_contents(w, np.array(capacity), 3)
    expected = sum(p * np.array(c) for c, p in law.items())
    assert expected == pytest.approx(mean, abs=1e-8)


@pytest.mark.parametrize("capacity", [(1, 1, 1, 1, 1, 1), (2, 1, 1, 1, 1, 1)])
def test_posteriors_are_those_of_brute_force(capacity: tuple[int, ...]) -> None:
    joint = brute_joint(LAW, np.array(capacity))
    by_listed: dict[tuple[int, ...], np.ndarray] = {}
    by_left: dict[tuple[tuple[int, ...], tuple[int, ...]], np.ndarray] = {}
    for (c, f), p in joint.items():
        listed = tuple(k + (x in f) for x, k in enumerate(c))
        by_listed.setdefault(listed, np.zeros(7))
        by_listed[listed] += p * np.array([*(x in f for x in range(6)), 1])
        for x, k in enumerate(c):
            if k:
                known = tuple(n - (y == x) for y, n in enumerate(c))
                left = tuple(sorted((x, *f)))
                by_left.setdefault((known, left), np.zeros(6))[x] += p * k / LAW.size
    for listed, mass in by_listed.items():
        assert LAW.fake_probability(np.array([listed]))[0] == pytest.approx(mass[:6] / mass[6], abs=1e-9)
    for (known, left), mass in by_left.items():
        found = LAW.last_posterior(np.array([known]), np.array([left]))[0]
        assert found == pytest.approx(mass[list(left)] / mass.sum(), abs=1e-9)


@pytest.mark.parametrize("capacity", [(1, 1, 1, 1, 1, 1), (2, 1, 1, 1, 1, 1)])
def test_who_knows_fewer_others_is_less_sure_on_average(capacity: tuple[int, ...]) -> None:
    """Exact Bayes by enumeration of who has which of a bucket's values; none, one or both others known."""
    right = []
    for n_known in range(LAW.size):
        seen: dict[tuple[object, ...], dict[int, float]] = {}
        for (c, f), p in brute_joint(LAW, np.array(capacity)).items():
            listed = tuple(k + (x in f) for x, k in enumerate(c))
            orders = set(permutations([x for x, k in enumerate(c) for _ in range(k)]))
            for last, *others in orders:
                by_last = seen.setdefault((listed, *others[:n_known]), {})
                by_last[last] = by_last.get(last, 0.0) + p / len(orders)
        right.append(sum(max(by_last.values()) for by_last in seen.values()))
    assert right == sorted(right)
    assert right[0] < right[1] < right[2]


def test_drawn_fakes_follow_their_law_and_no_other() -> None:
    absent = np.array([True, False, True, True, True, True])
    drawn = LAW.draw(np.tile(absent, (20_000, 1)), np.random.default_rng(1))
    seen = Counter(tuple(sorted(row)) for row in drawn.tolist())
    sets = list(combinations(np.flatnonzero(absent).tolist(), 2))
    weights = np.array([math.prod(LAW.fake[x] for x in f) for f in sets])
    observed = [seen[f] for f in sets]
    assert sum(observed) == 20_000
    assert stats.chisquare(observed, weights / weights.sum() * 20_000).pvalue > FALSE_ALARM
    assert stats.chisquare(observed).pvalue < FALSE_ALARM


@pytest.mark.parametrize("n_fakes", [1, 2, 4])
def test_the_chosen_law_is_better_than_uniform_and_proportional_and_above_the_floor(n_fakes: int) -> None:
    problem = problem_of()
    plan = plan_buckets(problem, "optimal")
    found = plan_fakes(plan, problem, n_fakes)
    law = found.laws[0]
    contents = count_values(
        MixedLayout(plan, problem, found, Randomness.seeded(1))._contents[0], problem.n_values
    )
    successes = []
    for fake in (law.fake, np.ones(10), np.array(COUNTS) / sum(COUNTS)):
        tried = FakeLaw(size=law.size, n_fakes=n_fakes, real=law.real, fake=fake)
        drawn = tried.draw(contents == 0, np.random.default_rng(2))
        successes.append(last_success(tried, contents, drawn)[0])
    ours, uniform, proportional = successes
    assert max(found.floor, 1 / (1 + n_fakes)) - 0.01 < ours < proportional + 0.003
    assert ours < found.posterior < ours + 0.05
    assert uniform > ours + 0.02


def whole_table_posteriors(
    law: FakeLaw, columns: tuple[int, ...], n_buckets: int
) -> list[tuple[float, float]]:
    """(probability, posterior of the likeliest value) of all that who sees every bucket can know of the last.

    Bayes over all contents and fakes of all buckets, one fake each; the last person is of the first bucket.
    """
    joint: dict[tuple[object, ...], Counter[int]] = {}
    tables = all_tables(columns, n_buckets, law.size)
    for table in tables:
        absent = [[x for x in range(len(columns)) if x not in row] for row in table]
        for fakes in product(*absent):
            chances = [law.fake[f] / law.fake[free].sum() for f, free in zip(fakes, absent, strict=True)]
            view = tuple(tuple(sorted((*row, f))) for row, f in zip(table, fakes, strict=True))
            for own in table[0]:
                others = tuple(x for x in table[0] if x != own)
                joint.setdefault((view, others), Counter())[own] += math.prod(chances)
    total = sum(sum(by_value.values()) for by_value in joint.values())
    return [(sum(c.values()) / total, max(c.values()) / sum(c.values())) for c in joint.values()]


def test_who_counts_the_fakes_of_all_buckets_is_certain_of_people_and_the_plan_says_so() -> None:
    """By enumeration: five values in three buckets of two, 53 % at most from one bucket alone."""
    columns = (2, 1, 1, 1, 1)
    problem = problem_of(columns, l=2)
    plan = plan_buckets(problem, "optimal")
    assert (plan.sizes, plan.n_buckets) == ((2,), (3,))
    found = plan_fakes(plan, problem, 1)
    exact = whole_table_posteriors(found.laws[0], columns, 3)
    known, *left = np.array(list(permutations(range(5), 3))).T
    alone = found.laws[0].last_posterior(np.eye(5, dtype=np.int64)[known], np.stack(left, axis=1)).max()
    assert alone < 0.6
    assert max(posterior for _, posterior in exact) == pytest.approx(1)
    assert sum(p for p, posterior in exact if posterior > 0.6) > 0.7
    assert found.largest == 1.0
    assert sum(p * posterior for p, posterior in exact) < found.posterior


def test_counting_fakes_gains_less_than_is_stated_and_more_than_one_bucket_tells() -> None:
    """Forty values, most of them rare: 0.53 from one bucket alone, 0.69 with the count of the fakes."""
    counts = tuple(max(1, round(45 / (i + 1) ** 0.8)) for i in range(40))
    problem = problem_of(counts, l=4)
    plan = plan_buckets(problem, "optimal")
    found = plan_fakes(plan, problem, 1)
    right, alone, people = 0.0, 0.0, 0.0
    for seed in range(12):
        layout = MixedLayout(plan, problem, found, Randomness.seeded(seed))
        for law, codes, fakes in zip(found.laws, layout._contents, layout._fakes, strict=True):
            contents = count_values(codes, problem.n_values)
            known, left, weight = last_trials(contents, fakes)
            counted = fit_to_counts(law, contents, fakes)
            right += float((likeliest_is_first(counted.last_posterior(known, left)) * weight).sum())
            alone += float((likeliest_is_first(law.last_posterior(known, left)) * weight).sum())
            people += float(weight.sum())
    assert alone / people + 0.1 < right / people < found.posterior


def test_expected_numbers_of_fakes_are_those_of_brute_force() -> None:
    absent = np.array([[True, False, True, True, True, False], [False, True, True, False, True, True]])
    brute = np.zeros(6)
    for row in absent:
        sets = list(combinations(np.flatnonzero(row).tolist(), 2))
        weights = np.array([math.prod(LAW.fake[x] for x in f) for f in sets])
        for f, weight in zip(sets, weights / weights.sum(), strict=True):
            brute[list(f)] += weight
    assert expect_fakes(LAW, absent) == pytest.approx(brute)


def test_every_bucket_has_its_people_and_its_fakes() -> None:
    problem, plan, layout = planned(3)
    ((bucket, code, count),) = layout.contents()
    sizes = dict(zip(*np.unique(layout._bucket_of_place, return_counts=True), strict=True))
    assert {b: n + 3 for b, n in sizes.items()} == Counter(np.repeat(bucket, count).tolist())
    assert count.max() == 1  # l-diversity, small buckets: distinct values, the fakes among them
    for value in range(problem.n_values):
        assert len(layout.places(value)) == COUNTS[value]
        assert set(layout.places(value)) <= set(bucket[code == value])
    assert plan.n_rows == len(layout._bucket_of_place)


def test_expected_counts_are_unbiased_and_equal_shares_are_not() -> None:
    problem, plan, _ = planned(2)
    fakes = plan_fakes(plan, problem, 2)
    parameters = {
        **fakes.to_summary(),
        "values": [[str(x)] for x in range(10)],
        "sizes": [
            {
                "size": law.size,
                "counts": [row[j] for row in plan.loads],
                "real": [None if np.isinf(w) else w for w in law.real.tolist()],
                "fake": law.fake.tolist(),
            }
            for j, law in enumerate(fakes.laws)
        ],
    }
    published = PublishedFakes.of(Stated.of(parameters, "fakes"), 1)
    z_ours, z_plain = [], []
    for seed in range(30):
        layout = MixedLayout(plan, problem, fakes, Randomness.seeded(seed))
        ((bucket, code, count),) = layout.contents()
        people = np.bincount(layout._bucket_of_place - 1)
        expected = published.expected_counts(bucket - 1, code.astype(np.int64), count, people)
        real = Counter((b, v) for v in range(10) for b in layout.places(v).tolist())
        truth = np.array([real[b, v] for b, v in zip(bucket.tolist(), code.tolist(), strict=True)])
        # entries of value 6 in buckets that list value 8 too; the control takes all entries as equally fake
        chosen = (code == 6) & np.isin(bucket, bucket[code == 8])
        z_ours.append((expected - truth)[chosen].sum())
        z_plain.append((count * 5 / 7 - truth)[chosen].sum())
        assert np.bincount(bucket - 1, expected) == pytest.approx(people, rel=1e-6)
        assert np.bincount(code, expected) == pytest.approx(np.array(COUNTS), rel=1e-3)
    assert stats.ttest_1samp(z_ours, 0).pvalue > FALSE_ALARM
    assert stats.ttest_1samp(z_plain, 0).pvalue < FALSE_ALARM


def policy(folder: Path, table: pa.Table, n_fakes: int, **promise: object) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(folder / "r"),
            "columns": {"quasi": ["uid", "group"], "sensitive": ["value"]},
            "promise": promise or {"kind": "l-diversity", "l": 5},
            "mechanism": {"kind": "bucketize", "fakes": n_fakes},
        }
    )


def people(seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(10), COUNTS))
    group = np.where(rng.random(len(codes)) < np.where(codes < 3, 0.8, 0.3), "a", "b")
    return pa.table({"uid": np.arange(len(codes)), "group": group, "value": [f"v{c}" for c in codes]})


def test_a_release_with_fakes_verifies_asks_and_states_its_posterior(tmp_path: Path) -> None:
    table = people()
    release = dalenius.publish(policy(tmp_path, table, 2))
    stated = release.manifest["parameters"]["fakes"]
    assert release.verify(strict=True).ok
    assert stated["naive_posterior"] == pytest.approx(1 / 3)
    assert f"{stated['posterior']:.0%}" in release.manifest["not_covered"][0]
    answer = release.ask("SELECT COUNT(*) FROM t WHERE value = 'v0'").rows[0]
    assert answer.std_error is not None
    assert answer.estimate == pytest.approx(COUNTS[0], abs=answer.std_error)
    truth = sum(
        g == "a" and v == "v0"
        for g, v in zip(*(table[c].to_pylist() for c in ("group", "value")), strict=True)
    )
    joint = release.ask(
        "SELECT COUNT(*) FROM t WHERE value = 'v0' AND \"group\" = 'a'", estimator="regression"
    ).rows[0]
    assert joint.estimate is not None
    assert joint.std_error is not None
    assert abs(joint.estimate - truth) < Z * joint.std_error
    audit = dalenius.audit(release.path, table, seed=1)
    assert audit.ok
    found = audit.named("corruption")
    assert found.bound == stated["posterior"]
    assert found.detail["posterior"] == pytest.approx(found.success, abs=0.06)
    assert found.detail["naive"] == pytest.approx(1 / 3, abs=0.05)
    curve = [entry["success"] for entry in found.detail["curve"]]
    assert curve[-1] > curve[0] + 0.1  # the more are known, the surer


def test_fakes_outside_the_domain_are_caught(tmp_path: Path) -> None:
    table = people()
    release = dalenius.publish(policy(tmp_path, table, 1))
    path = release.stored.files("st")[0]
    st_table = pq.read_table(path)
    real = set(zip(*_real_pairs(release, table), strict=True))
    pairs = list(zip(st_table["bucket"].to_pylist(), st_table["value"].to_pylist(), strict=True))
    foreign = ["nobody" if pair not in real else pair[1] for pair in pairs]
    pq.write_table(st_table.set_column(1, "value", pa.array(foreign)), path)
    checks = {check.name: check.ok for check in release.verify().checks}
    assert not checks["files"]
    restate_hashes(release.path)
    audit = dalenius.audit(release.path, table, seed=1)
    assert audit.named("corruption").holds is False
    from dalenius.release.verify import check_promise

    assert {check.name for check in check_promise(release.stored) if not check.ok} == {"fakes"}


def _real_pairs(release: dalenius.Release, table: pa.Table) -> tuple[list[int], list[str]]:
    qit = pq.read_table(release.stored.files("qit")[0])
    values = table["value"].to_pylist()
    return qit["bucket"].to_pylist(), [values[uid] for uid in qit["uid"].to_pylist()]


def test_thresholds_that_differ_hold_for_fakes_too(tmp_path: Path) -> None:
    table = people()
    release = dalenius.publish(
        policy(tmp_path, table, 1, kind="f-privacy", default="1/5", values={"v0": "1/4", "v9": "1/6"}), seed=1
    )
    assert release.verify().ok
    st_table = pq.read_table(release.stored.files("st")[0]).to_pandas()
    size = pq.read_table(release.stored.files("qit")[0]).to_pandas().groupby("bucket").size()
    at_most = {e["value"][0]: Fraction(e["at_most"]) for e in release.manifest["promise"]["thresholds"]}
    for bucket, value, count in st_table.itertuples(index=False):
        assert count <= at_most[value] * int(size[bucket])


def test_what_cannot_be_faked_is_refused(tmp_path: Path) -> None:
    few = pa.table({"uid": range(60), "group": ["a"] * 60, "value": [f"v{i % 5}" for i in range(60)]})
    with pytest.raises(PromiseNotMet, match="fakes = 1: of the 0 values"):
        dalenius.plan(policy(tmp_path, few, 1))
    with pytest.raises(PolicyError, match="fakes"):
        policy(tmp_path, few, -1)
