"""The regression's geometry and error bars beside dense matrices and every assignment of a small table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.estimate import regression
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.mechanisms.bucketize.estimate.regression import (
    Anatomy,
    Geometry,
    Regression,
    Spectrum,
    assignment_variance,
    ratio,
    score_covariances,
    value_variances,
)
from dalenius.question.targets import Score, Targets
from tests.mechanisms.bucketize.estimate.tables import People, all_assignments, people

RNG = np.random.default_rng(21)
TABLE = People(
    bucket=np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 4]),
    value=np.array([0, 0, 1, 0, 2, 1, 1, 2, 2, 0, 1, 2]),
)
TINY = People(bucket=np.array([0, 0, 1, 1, 1, 2, 2]), value=np.array([0, 0, 0, 1, 1, 1, 1]))
SCATTER = np.array([[1.0, 0.4, 0.0], [0.4, 2.0, -0.3], [0.0, -0.3, 0.5]])


def gram(table: People) -> np.ndarray:
    """M = Σ_g c cᵀ/|g|: from values' mean scores to the expectation of Anatomy's totals."""
    held = table.contents
    return np.asarray(held.T @ (held / held.sum(axis=1, keepdims=True)))


@given(people())
def test_the_spectrum_is_that_of_the_dense_matrix(table: People) -> None:
    found, o = Spectrum.of(table.release()), table.contents.sum(axis=0)
    S = gram(table) / np.sqrt(np.outer(o, o))
    values = np.linalg.eigvalsh(S)
    told = values[values > 1e-9]
    assert np.sort(found.eigenvalues) == pytest.approx(np.sort(told), abs=1e-9)
    assert found.eigenvalues.max() == 1.0  # the total over all values is always known
    assert found.vectors.T @ S @ found.vectors == pytest.approx(np.diag(found.eigenvalues), abs=1e-9)
    assert S @ (found.hidden / np.sqrt(o)[:, None]) == pytest.approx(np.zeros(found.hidden.shape), abs=1e-6)


@pytest.mark.parametrize("scatter", [np.eye(3), SCATTER])
def test_contrasts_are_uncorrelated_for_every_scatter(scatter: np.ndarray) -> None:
    """Cov of Anatomy's totals is v·M + τ²·M Σ M; the contrasts make it v·I + τ²·diag(ω), and add up to 0."""
    g = Geometry.scattered(Spectrum.of(TABLE.release()), scatter)
    M, o = gram(TABLE), TABLE.contents.sum(axis=0)
    n = len(g.spread)
    assert g.contrast @ M @ g.contrast.T == pytest.approx(np.eye(n), abs=1e-8)
    assert g.contrast @ M @ scatter @ M @ g.contrast.T == pytest.approx(np.diag(g.spread), abs=1e-7)
    assert g.contrast @ o == pytest.approx(np.zeros(n), abs=1e-8)  # blind to the overall mean
    assert g.binomial == pytest.approx(M @ g.contrast.T)
    assert g.random == pytest.approx(np.diag(o) @ scatter @ M @ g.contrast.T)


def test_weights_times_scatter_are_the_same_both_ways() -> None:
    weights = RNG.normal(size=(4, 3))
    for scatter in (np.diag([1.0, 2.0, 0.5]), SCATTER):
        g = Geometry.scattered(Spectrum.of(TABLE.release()), scatter)
        assert g.times_scatter(weights) == pytest.approx(weights @ scatter)


def test_centred_weights_have_no_mean_over_people() -> None:
    g = Geometry.of(TABLE.release())
    weights = RNG.normal(size=(5, 3))
    centred = g.centre(weights)
    assert centred @ g.counts == pytest.approx(np.zeros(5), abs=1e-9)
    assert np.ptp(weights - centred, axis=1) == pytest.approx(np.zeros(5), abs=1e-12)


def scored(table: People, score: np.ndarray) -> ScoreSums:
    return ScoreSums.of(table.release(), [Score(rows=np.arange(len(score)), values=score)])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_regression_is_right_on_average_over_all_assignments(seed: int) -> None:
    """Every way to give the records of each value its places: 3 · 6 of them differ, all equally likely."""
    rng = np.random.default_rng(seed)
    score = rng.normal(size=7).round(2)
    truth = np.array([score[TINY.value == z].sum() for z in (0, 1)])
    targets = Targets.of([[(0, np.array([1.0, 0.0]))], [(0, np.array([0.0, 1.0]))]])
    estimates, anatomy, means = [], [], []
    for table in all_assignments(TINY):
        sums = scored(table, score)
        estimates.append(Regression(geometry=Geometry.of(table.release())).estimate(sums, targets).estimate)
        anatomy.append(sums.by_value[:, 0])
        means.append(Anatomy().estimate(sums, targets).estimate)
    assert len(estimates) == 18
    assert np.mean(estimates, axis=0) == pytest.approx(truth)
    assert np.allclose(anatomy, means)
    assert not np.allclose(np.mean(anatomy, axis=0), truth, atol=0.02)


@pytest.mark.parametrize("loads", [(1.0, 0.0), (0.5, -2.0), (1.0, 1.0)])
def test_the_noise_of_the_assignment_is_its_variance_over_all_of_them(loads: tuple[float, float]) -> None:
    """Σ_z v_z·(…): v_z the variance within value z, by o/(o−1) because places are not given twice."""
    score = np.array([3.0, -1.0, 0.5, 2.0, 2.5, -4.0, 1.0])
    totals = [float(np.array(loads) @ scored(t, score).by_value[:, 0]) for t in all_assignments(TINY)]
    within = np.array([score[TINY.value == z].var(ddof=1) for z in (0, 1)])
    found = assignment_variance(TINY.release(), np.array([loads]))[0]
    assert np.var(totals) == pytest.approx(float(within @ found), abs=1e-9)
    if loads == (1.0, 1.0):  # the total of everybody: nothing is left to chance
        assert found.tolist() == [0.0, 0.0]


def test_noise_is_the_same_whatever_is_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    loads = RNG.normal(size=(7, 3))
    whole = assignment_variance(TABLE.release(), loads)
    monkeypatch.setattr(regression, "_CELLS_AT_ONCE", 1)
    assert assignment_variance(TABLE.release(), loads) == pytest.approx(whole)
    assert assignment_variance(TABLE.release(), np.zeros((0, 3))).shape == (0, 3)


@given(people(), st.integers(0, 99))
@settings(max_examples=50)
def test_variances_within_values_are_anatomys(table: People, seed: int) -> None:
    """Each bucket's rows count for a value by its share of the bucket: mean of squares less squared mean."""
    rng = np.random.default_rng(seed)
    n = len(table.bucket)
    numbers, rows = rng.normal(size=n), np.flatnonzero(rng.random(n) < 0.5)
    sums = ScoreSums.of(table.release(), [Score(rows=np.arange(n), values=numbers), Score(rows=rows)])
    found = value_variances(sums, np.array([1, 0, 1]))
    share = (table.contents / table.contents.sum(axis=1, keepdims=True))[table.bucket]  # rows × values
    o = table.contents.sum(axis=0)
    for term, dense in ((0, table.score(rows, None)), (1, numbers), (2, table.score(rows, None))):
        mean, square = share.T @ dense / o, share.T @ dense**2 / o
        assert found[term] == pytest.approx(np.maximum(square - mean**2, 0), abs=1e-9)


@given(people(), st.integers(0, 99))
@settings(max_examples=40)
def test_every_value_at_once_is_each_value_alone(table: People, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = len(table.bucket)
    scores = [Score(rows=np.arange(n), values=rng.normal(size=n)), Score(rows=np.arange(0, n, 2))]
    sums = ScoreSums.of(table.release(), scores)
    made = Regression(geometry=Geometry.of(table.release()))
    means, variances = made.estimate_values(sums)
    for score in (0, 1):
        for value in range(3):
            alone = made.estimate(sums, Targets.of([[(score, np.eye(3)[value])]]))
            assert means[score, value] == pytest.approx(alone.mean[0, 0], abs=1e-7)
            if np.isfinite(variances[score, value]) and sums.variance[score] > 1e-9:
                assert variances[score, value] == pytest.approx(alone.variance[0, 0], rel=1e-6, abs=1e-7)
            assert np.isinf(variances[score, value]) == np.isinf(alone.variance[0, 0])


def test_a_multiple_of_a_target_is_that_multiple() -> None:
    score = RNG.normal(size=12)
    made, sums = Regression(geometry=Geometry.of(TABLE.release())), scored(TABLE, score)
    one, three = np.array([1.0, 0.0, 1.0]), np.array([-3.0, 0.0, -3.0])
    found = made.estimate(sums, Targets.of([[(0, one)], [(0, three)], [(0, one), (0, one)]]))
    assert found.mean[1, 0] == pytest.approx(-3 * found.mean[0, 0])
    assert found.variance[1, 0] == pytest.approx(9 * found.variance[0, 0])
    assert found.mean[2, 0] == pytest.approx(2 * found.mean[0, 0])
    assert found.variance[2, 0] == pytest.approx(4 * found.variance[0, 0])


def test_two_scores_that_cancel_leave_no_error() -> None:
    """A score less itself is 0 for certain; less another one it is not."""
    score, other = RNG.normal(size=12), RNG.normal(size=12)
    rows = np.arange(12)
    sums = ScoreSums.of(TABLE.release(), [Score(rows=rows, values=s) for s in (score, score, other)])
    weights = np.array([1.0, 0.0, 0.0])
    targets = Targets.of([[(0, weights), (1, -weights)], [(0, weights), (2, -weights)]])
    found = Regression(geometry=Geometry.of(TABLE.release())).estimate(sums, targets)
    assert found.mean[0, 0] == pytest.approx(0, abs=1e-9)
    assert found.variance[0, 0] == pytest.approx(0, abs=1e-9)
    assert found.variance[1, 0] > 0.01
    anatomy = Anatomy().estimate(sums, targets)
    assert anatomy.variance[0, 0] == pytest.approx(0, abs=1e-9)
    first, second = targets.pairs()
    expected = [np.cov(score, score, bias=True)[0, 1], np.cov(score, other, bias=True)[0, 1]]
    assert score_covariances(sums, targets, first, second) == pytest.approx(expected)


def test_ratios_of_nothing_are_one() -> None:
    found = ratio(np.array([2.0, 0.0, 0.0]), np.array([4.0, 0.0, 5.0]))
    assert found.tolist() == [0.5, 1.0, 0.0]


def test_what_every_bucket_holds_alike_is_never_told() -> None:
    """Values 0 and 1 once in each bucket: their sum is known, each of them is not."""
    table = People(bucket=np.repeat(np.arange(4), 3), value=np.tile([0, 1, 2], 4))
    made = Regression(geometry=Geometry.of(table.release()))
    sums = scored(table, RNG.normal(size=12))
    found = made.estimate(sums, Targets.of([[(0, np.ones(3))], [(0, np.array([1.0, 0.0, 0.0]))]]))
    assert found.mean[0, 0] == pytest.approx(sums.total[0])
    assert found.variance[0, 0] == pytest.approx(0, abs=1e-9)
    assert np.isinf(found.variance[1, 0])
