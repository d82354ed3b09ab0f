"""Widths that a release gives itself: right where the draws are right, and the same every time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate import calibration
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.calibration import Calibrated, Tried, find_scale
from dalenius.mechanisms.bucketize.estimate.posterior import RHO, Parts, Posterior
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.targets import Score, Targets
from tests.mechanisms.bucketize.estimate.test_estimate import buckets_of

N, N_VALUES = 1_600, 5


def release() -> tuple[Posterior, Buckets, np.ndarray]:
    """People in buckets of four, two columns of which one tells much."""
    rng = np.random.default_rng(12)
    group, other = rng.integers(6, size=N), rng.integers(3, size=N)
    lean = rng.normal(size=(6, N_VALUES))
    value = (lean[group] + rng.gumbel(size=(N, N_VALUES))).argmax(axis=1)
    order = np.argsort(value, kind="stable")
    group, other, value = group[order], other[order], value[order]
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(N // 4), 4)), value)
    return Posterior.of(buckets, [Quasi(codes=group), Quasi(codes=other)], None), buckets, value


@pytest.fixture(scope="module")
def made() -> tuple[Posterior, Buckets, np.ndarray]:
    return release()


def test_the_scale_is_what_makes_squared_errors_as_large_as_expected() -> None:
    rng = np.random.default_rng(13)
    matching, effects = rng.random(20_000) + 0.5, rng.random(20_000) + 0.5
    for true in (0.3, 1.0, 4.0):
        square = (matching + true * effects) * rng.normal(size=20_000) ** 2
        assert Tried(square=square, matching=matching, effects=effects).scale() == pytest.approx(
            true, rel=0.1
        )
    # errors that the matching alone explains leave nothing to effects
    none = Tried(square=0.1 * matching, matching=matching, effects=effects)
    assert none.scale() == pytest.approx(calibration._LEAST)


def test_a_release_has_one_scale(made: tuple[Posterior, Buckets, np.ndarray]) -> None:
    posterior, buckets, _ = made
    assert find_scale(posterior, buckets) == find_scale(posterior, buckets)


def test_effects_that_seem_more_certain_than_they_are_are_caught(
    made: tuple[Posterior, Buckets, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twin whose variances by effects are four times too small, or too large, gets its width back."""
    posterior, buckets, _ = made
    monkeypatch.setattr(calibration, "_BELIEVED", 1.0)
    right, parts = find_scale(posterior, buckets), Posterior.parts

    for wrong in (0.25, 4.0):

        def twin(self: Posterior, sums: ScoreSums, targets: Targets, wrong: float = wrong) -> Parts:
            found = parts(self, sums, targets)
            return replace(found, effects=wrong * found.effects, rest=wrong * found.rest)

        with monkeypatch.context() as patched:
            patched.setattr(Posterior, "parts", twin)
            assert find_scale(posterior, buckets) == pytest.approx(right / wrong, rel=1e-6)


def test_asking_uses_the_scale_and_finds_it_once(
    made: tuple[Posterior, Buckets, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior, buckets, _ = made
    sums = ScoreSums.of(buckets, [Score(rows=np.arange(0, N, 3))])
    targets = Targets.of([[(0, np.eye(N_VALUES)[1])]])
    calls = []

    def find(posterior: Posterior, buckets: Buckets) -> float:
        calls.append((posterior, buckets))
        return 2.5

    monkeypatch.setattr(calibration, "find_scale", find)
    estimator = Calibrated(posterior=posterior, buckets=buckets)
    assert not calls, "nothing is tried before anything is asked"
    found = estimator.estimate(sums, targets)
    again = estimator.estimate(sums, targets)
    assert len(calls) == 1
    parts = posterior.parts(sums, targets)
    effects = parts.moved[:, None] * (parts.effects + RHO * parts.rest[:, None])
    assert found.variance == pytest.approx(parts.match[:, None] + 2.5 * effects)
    assert again.variance == pytest.approx(found.variance)
    assert found.estimate == pytest.approx(parts.mean)


def test_dealing_keeps_every_bucket_and_region(made: tuple[Posterior, Buckets, np.ndarray]) -> None:
    posterior, buckets, value = made
    own = calibration._Part.of(posterior, buckets)
    own = replace(own, region=np.arange(len(buckets.size)) % 2)
    # values as they are in the two regions: contents can be dealt again only within them
    dealt = own.deal(value, np.random.default_rng(3))
    assert (own.region[dealt.row_bucket] == own.region[buckets.row_bucket]).all()
    contents = np.zeros((len(buckets.size), N_VALUES))
    np.add.at(contents, (dealt.row_bucket, value), 1)
    assert (contents == buckets.composition.to_dense()[buckets.type_of]).all()
    assert (dealt.row_bucket != buckets.row_bucket).mean() > 0.9


def test_large_releases_try_a_part_of_their_buckets(
    made: tuple[Posterior, Buckets, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior, buckets, _ = made
    monkeypatch.setattr(calibration, "_MOST_CELLS", N * N_VALUES // 3)
    own = calibration._Part.of(posterior, buckets)
    assert len(own.rows) == N // 4, "every fourth bucket"
    assert (np.bincount(own.buckets.row_bucket) == own.buckets.size).all()
    assert find_scale(posterior, buckets) > 0


def test_too_few_people_or_people_who_left_are_not_tried(
    made: tuple[Posterior, Buckets, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior, buckets, _ = made
    monkeypatch.setattr(calibration, "_try", None)
    left = replace(buckets, row_bucket=buckets.row_bucket[1:])
    assert find_scale(posterior, left) == calibration._USUAL
    monkeypatch.setattr(calibration, "_FEWEST_ROWS", N + 1)
    assert find_scale(posterior, buckets) == calibration._USUAL
