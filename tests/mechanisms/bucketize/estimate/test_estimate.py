"""Estimators against enumeration, dense linear algebra and seeded assignments."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.mechanisms.bucketize.estimate import make_estimator
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.possible import possible_range
from dalenius.mechanisms.bucketize.estimate.prior import ScatterPrior, learn_prior
from dalenius.mechanisms.bucketize.estimate.regression import (
    Anatomy,
    Geometry,
    Regression,
    Spectrum,
    assignment_variance,
    value_variances,
)
from dalenius.mechanisms.bucketize.estimate.shrinkage import RHO, Shrinkage
from dalenius.question.targets import Estimates, Score, Targets, intervals
from tests.ask.releases import deal
from tests.chance import FALSE_ALARM, Z

FLAT = ScatterPrior(weights=(0.04,) * 25)


def buckets_of(bucket: np.ndarray, value: np.ndarray) -> Buckets:
    width = int(value.max()) + 1
    entries, counts = np.unique(bucket * width + value, return_counts=True)
    return Buckets.of(bucket, entries // width, entries % width, counts)


def one_target(buckets: Buckets, rows: np.ndarray, weights: np.ndarray) -> tuple[ScoreSums, Targets]:
    return ScoreSums.of(buckets, [Score(rows=rows)]), Targets.of([[(0, weights.astype(float))]])


# --- Anatomy: a uniformly random matching inside one bucket ---


@given(
    first=st.lists(st.integers(-3, 3), min_size=4, max_size=4),
    second=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    weights=st.lists(st.integers(-2, 2), min_size=6, max_size=6),
    values=st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_anatomy_has_mean_and_variance_of_all_matchings(
    first: list[int], second: list[int], weights: list[int], values: list[int]
) -> None:
    """Two scores with two weightings at once: the target is no product of a row and a value part."""
    scores = [Score(rows=np.arange(4), values=np.array(s, dtype=float)) for s in (first, second)]
    a, b = np.array(weights[:3], dtype=float), np.array(weights[3:], dtype=float)
    held = np.array(values)
    width = held.max() + 1
    sums = [
        sum(first[r] * a[z] + second[r] * b[z] for r, z in enumerate(order)) for order in permutations(values)
    ]
    buckets = buckets_of(np.zeros(4, dtype=int), held)
    found = Anatomy().estimate(ScoreSums.of(buckets, scores), Targets.of([[(0, a[:width]), (1, b[:width])]]))
    assert found.estimate[0] == pytest.approx(np.mean(sums), abs=1e-9)
    assert found.std_error[0] == pytest.approx(np.std(sums), abs=1e-6)


def test_anatomy_is_hypergeometric_for_counts() -> None:
    value = np.array([0, 0, 1, 1, 1])
    sums, targets = one_target(buckets_of(np.zeros(5, dtype=int), value), np.array([0, 3]), np.array([1, 0]))
    found = Anatomy().estimate(sums, targets)
    assert found.estimate[0] == pytest.approx(2 * 2 / 5)
    assert found.std_error[0] ** 2 == pytest.approx(2 * 2 * 3 * 3 / (25 * 4))


# --- the publisher's assignment ---

VALUE = np.repeat(np.arange(3), [60, 90, 150])
PLACES = deal(VALUE, {3: 40, 6: 30}, np.random.default_rng(1))


def assignments(n: int, seed: int) -> list[np.ndarray]:
    """Buckets of the records: the same contents each time, another random order within each value."""
    rng = np.random.default_rng(seed)
    result = []
    for _ in range(n):
        bucket = PLACES.copy()
        for z in range(3):
            bucket[z == VALUE] = rng.permutation(PLACES[z == VALUE])
        result.append(bucket)
    return result


POSITIVE = np.concatenate([np.arange(45), 60 + np.arange(20), 150 + np.arange(30)])
"""45 of the 60 records of value 0 satisfy the condition, 20 of 90, and 30 of 150."""
WEIGHTS = np.array([1.0, 0.0, 0.0])


def test_regression_is_unbiased_and_anatomy_is_not() -> None:
    n = 400
    regressed, errors, anatomy = [], [], []
    for bucket in assignments(n, seed=2):
        buckets = buckets_of(bucket, VALUE)
        sums, targets = one_target(buckets, POSITIVE, WEIGHTS)
        found = Regression(geometry=Geometry.of(buckets)).estimate(sums, targets)
        regressed.append(found.estimate[0])
        errors.append(found.std_error[0])
        anatomy.append(Anatomy().estimate(sums, targets).estimate[0])
    spread = np.std(regressed, ddof=1)
    assert abs(np.mean(regressed) - 45) < Z * spread / np.sqrt(n)
    assert abs(np.mean(anatomy) - 45) > Z * np.std(anatomy) / np.sqrt(n), "the control must be rejected"
    # one within-value variance for all values: the standard error is right within a third
    assert 0.75 < np.mean(errors) / spread < 1.35


def test_moments_of_the_statistic() -> None:
    """E t = S β, and Cov t = v·(S − S²) where both values have the same within-value variance."""
    value = np.repeat([0, 1], [4, 4])
    places = np.array([0, 0, 0, 1, 1, 1, 2, 2])  # contents (3,0)… of buckets of 3, 3 and 2
    shares = np.array([0.25, 0.75])
    rng = np.random.default_rng(3)
    seen = []
    for _ in range(1500):
        bucket = np.concatenate([rng.permutation(places[:4]), rng.permutation(places[4:])])
        buckets = buckets_of(bucket, value)
        seen.append(ScoreSums.of(buckets, [Score(rows=np.array([0, 4, 5, 6]))]).by_value[:, 0] / 2.0)
    dense = buckets.composition.to_dense()
    S = (dense / buckets.type_size[:, None] * buckets.copies[:, None]).T @ dense / 4.0
    t = np.array(seen)
    expected = S @ (2.0 * shares)
    deviation = t.std(axis=0) / np.sqrt(len(t))
    assert (np.abs(t.mean(axis=0) - expected) < Z * deviation).all()
    within = 0.25 * 0.75 * 4 / 3  # finite population: o/(o−1)
    assert np.cov(t.T) == pytest.approx(within * (S - S @ S), abs=0.01)
    assert np.cov(t.T) != pytest.approx(within * S, abs=0.01), "without the finite population it is wrong"


def test_noise_of_the_assignment_with_unequal_values() -> None:
    """The variance of Anatomy's statistic over assignments, against v_z of the true shares."""
    loads = np.array([[1.0, -0.5, 2.0]])
    seen = []
    for bucket in assignments(1500, seed=9):
        sums = ScoreSums.of(buckets_of(bucket, VALUE), [Score(rows=POSITIVE)])
        seen.append((loads @ sums.by_value)[0, 0])
    share = np.array([45 / 60, 20 / 90, 30 / 150])
    counts = np.array([60, 90, 150])
    within = share * (1 - share) * counts / (counts - 1)
    expected = (within * assignment_variance(sums.buckets, loads)[0]).sum()
    spread = np.sqrt(2 / len(seen))  # of a variance, relative
    assert np.var(seen) == pytest.approx(expected, rel=Z * spread)
    alike = 95 / 300 * 205 / 300 * assignment_variance(sums.buckets, loads)[0].sum()
    assert np.var(seen) != pytest.approx(alike, rel=Z * spread), "one variance for all is wrong"


# --- shrinkage ---


TOGETHER = np.array([[1.0, 0.6, -0.2], [0.6, 1.5, 0.0], [-0.2, 0.0, 0.7]])


@pytest.mark.parametrize("scatter", [np.eye(3), TOGETHER, np.diag(1 / np.bincount(VALUE))])
def test_shrinkage_is_the_best_linear_prediction(scatter: np.ndarray) -> None:
    """Against dense conditioning: K_z = realised totals, flat prior on the mean, for each ρ of the grid."""
    buckets = buckets_of(PLACES, VALUE)
    sums, targets = one_target(buckets, POSITIVE, np.array([1.0, 0.0, 1.0]))
    geometry = Geometry.scattered(Spectrum.of(buckets), scatter)
    found = Shrinkage(geometry=geometry, prior=FLAT).estimate(sums, targets)
    C = np.stack([np.bincount(PLACES[z == VALUE], minlength=70) for z in range(3)], axis=1).astype(float)
    y = np.bincount(PLACES[POSITIVE], minlength=70).astype(float)
    o, n = C.sum(axis=0), C.sum()
    scale = len(POSITIVE) / n * (1 - len(POSITIVE) / n)
    a, within = np.array([1.0, 0.0, 1.0]), value_variances(sums, np.array([0]))[0]
    for k in range(0, len(RHO), 5):
        v, tau2 = scale * (1 - RHO[k]), scale * RHO[k]
        flat = 1e4 * np.ones((3, 3))
        effect = tau2 * scatter + flat
        cov_y = v * np.diag(C.sum(axis=1)) + C @ effect @ C.T
        cov_ky = (np.diag(o) @ effect + v * np.eye(3)) @ C.T
        gain = np.linalg.solve(cov_y, cov_ky.T).T
        assert found.mean[0, k] == pytest.approx(a @ gain @ y, rel=1e-4)
        # the error of that prediction when the variance within value z is v_z
        cov_y = np.diag(C @ within) + C @ effect @ C.T
        cov_ky = (np.diag(o) @ effect + np.diag(within)) @ C.T
        cov_k = np.diag(o) @ effect @ np.diag(o) + np.diag(o * within)
        error = cov_k - gain @ cov_ky.T - cov_ky @ gain.T + gain @ cov_y @ gain.T
        assert found.variance[0, k] == pytest.approx(a @ error @ a, rel=1e-3)


def test_shrinkage_is_anatomy_without_scatter_and_exact_without_buckets() -> None:
    buckets = buckets_of(PLACES, VALUE)
    sums, targets = one_target(buckets, POSITIVE, WEIGHTS)
    least_scatter = Shrinkage(geometry=Geometry.of(buckets), prior=FLAT).estimate(sums, targets).mean[0, 0]
    assert least_scatter == pytest.approx(Anatomy().estimate(sums, targets).estimate[0], rel=0.01)
    alone = buckets_of(np.arange(300), VALUE)
    for name in ("anatomy", "regression", "shrinkage"):
        sums, targets = one_target(alone, POSITIVE, WEIGHTS)
        found = make_estimator(name, alone, [VALUE]).estimate(sums, targets)
        assert found.estimate[0] == pytest.approx(45)
        assert found.std_error[0] == pytest.approx(0, abs=1e-6)


def test_the_total_over_all_values_is_exact() -> None:
    buckets = buckets_of(PLACES, VALUE)
    sums, targets = one_target(buckets, POSITIVE, np.ones(3))
    for name in ("anatomy", "regression", "shrinkage"):
        found = make_estimator(name, buckets, [VALUE % 2]).estimate(sums, targets)
        assert found.estimate[0] == pytest.approx(len(POSITIVE))
        assert found.std_error[0] == pytest.approx(0, abs=1e-5)


def test_regression_says_when_the_release_tells_nothing() -> None:
    bucket, value = np.repeat(np.arange(50), 2), np.tile([0, 1], 50)  # every bucket has one of each
    sums, targets = one_target(buckets_of(bucket, value), np.arange(0, 100, 4), np.array([1.0, 0.0]))
    regression = Regression(geometry=Geometry.of(sums.buckets))
    assert np.isinf(regression.estimate(sums, targets).std_error[0])
    shrinkage = make_estimator("shrinkage", sums.buckets, [value]).estimate(sums, targets)
    assert np.isfinite(shrinkage.std_error[0])
    low, high = possible_range(sums, targets)
    assert (low[0], high[0]) == (0.0, 25.0)


def test_prior_follows_the_scatter() -> None:
    """Columns that depend on the value have a larger scatter than columns that do not."""
    rng = np.random.default_rng(4)
    value = np.sort(rng.integers(0, 8, 6000))
    bucket = deal(value, {2: 1000, 4: 1000}, rng)
    buckets = buckets_of(bucket, value)
    unrelated = [rng.integers(0, 4, 6000) for _ in range(4)]
    related = [(value + rng.integers(0, 3, 6000)) % 4 for _ in range(4)]
    low, high = (np.array(learn_prior(buckets, c)[1].weights) for c in (unrelated, related))
    grid = np.linspace(0, 1, len(low))  # from the least to the largest scatter
    assert low @ grid + 0.2 < high @ grid


def test_values_that_go_together_are_learned() -> None:
    """Values 0 and 1 answer every column alike, 2 and 3 otherwise: so do their shares, as learned."""
    rng = np.random.default_rng(8)
    value = np.sort(rng.integers(0, 8, 6000))
    buckets = buckets_of(deal(value, {2: 1000, 4: 1000}, rng), value)
    kind = np.array([0, 0, 1, 1, 2, 3, 4, 5])[value]
    columns = [(kind * (k + 1) + rng.integers(0, 2, 6000)) % 5 for k in range(4)]
    learned = learn_prior(buckets, columns)[0].scatter
    size = np.sqrt(np.diag(learned))
    together = learned / np.outer(size, size)
    assert min(together[0, 1], together[2, 3]) > 0.3
    assert np.abs(together[:4, :4][[0, 0, 1, 1], [2, 3, 2, 3]]).max() < 0.3
    unrelated = learn_prior(buckets, [rng.integers(0, 5, 6000) for _ in range(4)])[0].scatter
    assert np.abs(unrelated - np.diag(np.diag(unrelated))).max() < 0.2


@pytest.mark.parametrize("name", ["shrinkage", "regression"])
def test_targets_that_share_weights_are_estimated_as_each_alone(name: str) -> None:
    buckets = buckets_of(PLACES, VALUE)
    sums = ScoreSums.of(buckets, [Score(rows=POSITIVE), Score(rows=np.arange(300), values=np.arange(300.0))])
    one, two = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.5])
    terms = [[(0, one)], [(1, two)], [(0, -3 * two)], [(1, 2 * one), (0, -one)], [(0, 0 * one)], [(1, one)]]
    estimator = make_estimator(name, buckets, [VALUE % 2, VALUE // 2])
    together = estimator.estimate(sums, Targets.of(terms))
    for k, own in enumerate(terms):
        alone = estimator.estimate(sums, Targets.of([own]))
        for part in ("mean", "variance", "weight"):
            assert getattr(together, part)[k] == pytest.approx(getattr(alone, part)[0], rel=1e-9, abs=1e-9)


# --- intervals ---


def test_intervals_hold_where_a_column_determines_the_value() -> None:
    """Shrinkage's own intervals (the control) pull such cells towards the overall share, and miss."""
    rng = np.random.default_rng(3)
    value = np.sort(rng.choice(12, 2000))
    clinic = np.where(rng.random(2000) < 0.1, rng.integers(0, 12, 2000), value)
    region = rng.integers(0, 12, 2000)
    cells = [(np.flatnonzero((clinic == k) & (region == r)), k) for k in range(12) for r in range(12)]
    truth = np.array([np.count_nonzero(value[rows] == k) for rows, k in cells])
    targets = Targets.of([[(number, np.eye(12)[k])] for number, (_, k) in enumerate(cells)])
    held = []
    for _ in range(3):
        buckets = buckets_of(deal(value, {10: 200}, rng), value)
        sums = ScoreSums.of(buckets, [Score(rows=rows) for rows, _ in cells])
        found = make_estimator("shrinkage", buckets, [clinic, region]).estimate(sums, targets)
        for one in (found, replace(found, unbiased=None)):
            low, high = one.intervals(0.95, possible_range(sums, targets))
            held.append(np.mean((np.floor(low) <= truth) & (truth <= np.ceil(high))))
    assert min(held[::2]) > 0.95
    assert max(held[1::2]) < 0.6


def test_known_numbers_shift_both_intervals() -> None:
    one = Estimates(mean=np.zeros((1, 1)), variance=np.ones((1, 1)), weight=np.ones((1, 1)))
    both = replace(one, unbiased=replace(one, mean=one.mean + 1)).shift(np.array([7.0]))
    assert [end[0] for end in both.intervals(0.95)] == pytest.approx([7 - 1.96, 8 + 1.96], abs=0.001)


def test_coverage_on_a_small_table() -> None:
    """20 releases × 40 conditions on a table whose columns depend on the sensitive value."""
    rng = np.random.default_rng(7)
    value = np.sort(rng.choice(6, 3000, p=[0.3, 0.25, 0.2, 0.12, 0.08, 0.05]))
    columns = [(value * (k % 2) + rng.integers(0, 5 + k, 3000)) % 6 for k in range(4)]
    covered: dict[str, list[bool]] = {"shrinkage": [], "regression": [], "anatomy": []}
    for _ in range(20):
        buckets = buckets_of(deal(value, {3: 400, 6: 300}, rng), value)
        scores: list[Score] = []
        terms, truths = [], []
        for _ in range(40):
            one, two = rng.choice(4, 2, replace=False)
            rows = np.flatnonzero((columns[one] == rng.integers(6)) & (columns[two] < rng.integers(1, 6)))
            weights = (rng.random(6) < 0.4).astype(float)
            terms.append([(len(scores), weights)])
            scores.append(Score(rows=rows))
            truths.append(weights[value[rows]].sum())
        sums, targets = ScoreSums.of(buckets, scores), Targets.of(terms)
        low, high = possible_range(sums, targets)
        assert (low <= truths).all()
        assert (high >= truths).all()
        for name, hits in covered.items():
            ends = intervals(make_estimator(name, buckets, columns).estimate(sums, targets), 0.95)
            hits.extend((np.floor(ends[0]) <= truths) & (truths <= np.ceil(ends[1])))
    rates = {name: float(np.mean(hits)) for name, hits in covered.items()}
    assert rates["shrinkage"] > 0.92
    assert rates["regression"] > 0.92
    assert rates["anatomy"] < 0.85, "the control: Anatomy's intervals do not hold"


@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_regression_covers_over_assignments(confidence: float) -> None:
    """One question, nothing random but the assignment: hits are binomial. Half the width is noticed."""
    n, hits, halved = 400, 0, 0
    for bucket in assignments(n, seed=12):
        buckets = buckets_of(bucket, VALUE)
        sums, targets = one_target(buckets, POSITIVE, WEIGHTS)
        found = Regression(geometry=Geometry.of(buckets)).estimate(sums, targets)
        low, high = found.intervals(confidence)
        hits += bool(low[0] <= 45 <= high[0])
        halved += bool(abs(found.estimate[0] - 45) <= (high[0] - low[0]) / 4)
    fewest = stats.binom.ppf(FALSE_ALARM, n, confidence)
    assert hits >= fewest
    assert halved < fewest


def test_mixture_quantiles() -> None:
    """Two far-apart halves: the quantiles of a mixture are not those of a normal distribution."""
    mixture = Estimates(
        mean=np.array([[-10.0, 10.0]]), variance=np.ones((1, 2)), weight=np.array([[0.5, 0.5]])
    )
    low, high = intervals(mixture, 0.9)
    assert (low[0], high[0]) == pytest.approx((-11.2816, 11.2816), abs=1e-3)
    assert mixture.std_error[0] == pytest.approx(np.sqrt(101))
