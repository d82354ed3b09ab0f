"""Questions about many values beside dense matrices, and beside shrinkage from all values together."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate import prior as prior_module
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.evidence import Evidence
from dalenius.mechanisms.bucketize.estimate.prior import learn_prior
from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Spectrum
from dalenius.mechanisms.bucketize.estimate.separate import Separate, _Forms, is_alone
from dalenius.mechanisms.bucketize.estimate.shrinkage import RHO, Shrinkage
from dalenius.question.targets import Score, Targets

VALUES, BUCKETS, SIZE = 120, 100, 20
RNG = np.random.default_rng(8)
HELD = np.stack([RNG.permutation(VALUES)[:SIZE] for _ in range(BUCKETS)])
VALUE = HELD.ravel()
BUCKET = np.repeat(np.arange(BUCKETS), SIZE)
RELEASE = Buckets.of(BUCKET, BUCKET, VALUE, np.ones(len(VALUE), dtype=int))
SHARE = RNG.beta(1.5, 1.5, size=VALUES)
COLUMNS = [(RNG.random(len(VALUE)) < SHARE[VALUE]).astype(np.int64), RNG.integers(5, size=len(VALUE))]
SUMS = ScoreSums.of(
    RELEASE,
    [
        Score(rows=np.flatnonzero(COLUMNS[0])),
        Score(rows=np.arange(len(VALUE)), values=COLUMNS[1].astype(np.float64)),
        Score(rows=np.arange(len(VALUE))),
    ],
)


def test_sums_over_sparse_tables_are_forms_of_matrices() -> None:
    o, scatter = RELEASE.counts, RNG.random(VALUES)
    weights = RNG.random((5, VALUES)) * (RNG.random((5, VALUES)) < 0.2)
    forms = _Forms.of(RELEASE, scatter, weights)
    a = weights - (weights @ o / o.sum())[:, None]
    A = RELEASE.composition.gram(RELEASE.copies / RELEASE.type_size)
    assert forms.told == pytest.approx(np.diag(a @ A @ a.T))
    assert forms.scattered == pytest.approx((a @ A) ** 2 @ scatter)
    assert forms.shared == pytest.approx((a * (a @ A)) @ (o * scatter))
    assert forms.binomial == pytest.approx(a**2 @ o)
    assert forms.random == pytest.approx(a**2 @ (o**2 * scatter))
    assert forms.largest == pytest.approx(np.abs(a).max(axis=1))
    within = RNG.random((2, VALUES))
    total, estimated, both = forms.own(RELEASE, within)
    by_bucket = a[:, HELD].mean(axis=2)  # F
    assert total == pytest.approx(a**2 @ (o * within).T)
    assert both == pytest.approx((a * (a @ A)) @ within.T)
    assert estimated == pytest.approx(by_bucket**2 @ within[:, HELD].sum(axis=2).T)
    one, two = np.array([0, 3]), np.array([1, 2])
    binomial, random, told, scattered, left, right = forms.crossed(scatter, o, one, two)
    assert told == pytest.approx(np.diag(a[one] @ A @ a[two].T))
    assert binomial == pytest.approx((a[one] * a[two]) @ o)
    assert random == pytest.approx((a[one] * a[two]) @ (o**2 * scatter))
    assert scattered == pytest.approx(((a[one] @ A) * (a[two] @ A)) @ scatter)
    assert left == pytest.approx((a[one] * (a[two] @ A)) @ (o * scatter))
    assert right == pytest.approx((a[two] * (a[one] @ A)) @ (o * scatter))


def test_the_likelihood_needs_no_eigenvectors() -> None:
    """Every bucket is a type here, and there are fewer than values: Lanczos' steps beside eigenvectors."""
    scatter = 0.5 + RNG.random(VALUES)
    evidence = Evidence.of(RELEASE, scatter)
    geometry = Geometry.scattered(Spectrum.of(RELEASE), np.diag(scatter))
    surprise = evidence.surprise(SUMS)
    values, shares = evidence.squares(surprise)
    z = geometry.contrast @ (SUMS.by_value - np.outer(RELEASE.counts, SUMS.total / RELEASE.n_rows))
    for rho in (0.01, 0.3):
        exact = (z**2 / ((1 - rho) + rho * geometry.spread)[:, None]).sum(axis=0)
        found = evidence.forms((values, shares), np.array([rho]))[:, 0]
        assert found == pytest.approx(exact, rel=1e-6, abs=1e-9)
        nodes, counts = evidence.nodes
        logs = float(counts @ np.log((1 - rho) + rho * nodes))
        assert counts.sum() == pytest.approx(BUCKETS - 1)
        assert logs == pytest.approx(np.log((1 - rho) + rho * geometry.spread).sum(), abs=0.02 * VALUES)


def test_answers_are_near_those_from_all_values_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        prior_module, "MOST_RELATED", 0
    )  # values scatter independently, as where they are many
    assert is_alone(RELEASE)
    geometry, prior = learn_prior(RELEASE, COLUMNS)
    whole = Shrinkage(geometry=geometry, prior=prior)
    separate = Separate.of(RELEASE, COLUMNS, RHO)
    every = np.eye(VALUES)
    single = Targets.of([[(0, one)] for one in every])
    ratios = Targets.of([[(1, one), (2, -3.0 * one)] for one in every])
    mixed = Targets.of([[(0, every[0]), (1, -0.1 * every[1])], [(0, every[2] + every[3])]])
    for targets in (single, ratios, mixed):
        full, found = whole.estimate(SUMS, targets), separate.estimate(SUMS, targets)
        off = np.abs(found.estimate - full.estimate) / full.std_error
        assert off.max() < 1.5
        assert np.sqrt((off**2).mean()) < 0.6
        assert 0.7 < np.median(found.std_error / full.std_error) < 1.6
    truth = np.bincount(VALUE, COLUMNS[0], VALUES)
    error = np.abs(separate.estimate(SUMS, single).estimate - truth)
    assert error.mean() < 0.95 * np.abs(RELEASE.counts * COLUMNS[0].mean() - truth).mean()
    assert (error < 3 * separate.estimate(SUMS, single).std_error).mean() > 0.95


def test_everything_about_everybody_is_known() -> None:
    separate = Separate.of(RELEASE, COLUMNS, RHO)
    found = separate.estimate(SUMS, Targets.of([[(0, np.ones(VALUES))], [(2, np.eye(VALUES)[0])]]))
    assert found.estimate == pytest.approx([SUMS.total[0], RELEASE.counts[0]])
    assert found.std_error == pytest.approx([0, 0], abs=1e-5)
