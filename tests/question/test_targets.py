"""Intervals of mixtures, beside a search for each end by halving; intervals cut to what is possible."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.arrays import normal_cdf
from dalenius.question.targets import Estimates, intervals


def halve(mean: np.ndarray, sd: np.ndarray, weight: np.ndarray, q: float) -> float:
    """The quantile of one mixture."""
    low, high = float((mean - 40 * sd).min()), float((mean + 40 * sd).max())
    for _ in range(200):
        middle = (low + high) / 2
        below = float(weight @ normal_cdf((middle - mean) / sd)) < q
        low, high = (middle, high) if below else (low, middle)
    return (low + high) / 2


def test_ends_of_mixtures_are_found_all_together_as_each_by_itself() -> None:
    """Some are found in a few steps, and left alone while those of very different parts are sought."""
    rng = np.random.default_rng(5)
    mean = rng.normal(size=(60, 4)) * np.where(np.arange(60) % 3, 1.0, 50.0)[:, None]
    variance = np.exp(3 * rng.normal(size=(60, 4)))
    weight = rng.dirichlet(np.ones(4), size=60)
    for confidence in (0.5, 0.95, 0.999):
        ends = intervals(Estimates(mean=mean, variance=variance, weight=weight), confidence)
        for end, q in zip(ends, ((1 - confidence) / 2, (1 + confidence) / 2), strict=True):
            sought = [halve(*one, q) for one in zip(mean, np.sqrt(variance), weight, strict=True)]
            assert end == pytest.approx(sought, rel=1e-7, abs=1e-7)


def one_normal(mean: np.ndarray, sd: float) -> Estimates:
    ones = np.ones((len(mean), 1))
    return Estimates(mean=mean[:, None], variance=sd**2 * ones, weight=ones)


def test_a_cut_interval_is_never_empty_and_keeps_its_tails() -> None:
    estimate, error = np.array([-6.0, -3.0, 0.0, 4.0, 50.0, 104.0]), 2.0
    low, high = one_normal(estimate, error).intervals(0.95, (np.zeros(6), np.full(6, 100.0)))
    assert (np.minimum(high, 100.0) > np.maximum(low, 0.0)).all()
    assert (high >= estimate + 3.919).all()
    inside = normal_cdf(estimate / error)
    assert normal_cdf((estimate - high) / error)[:4] == pytest.approx(0.025 * inside[:4], rel=2e-3)
    assert (low[4], high[4]) == pytest.approx((50 - 3.92, 50 + 3.92), abs=0.01)
    exact = one_normal(np.ones(1), 0.0).intervals(0.95, (np.zeros(1), np.ones(1)))
    assert (exact[0][0], exact[1][0]) == pytest.approx((1.0, 1.0))


def test_far_from_what_is_impossible_an_interval_is_the_one_without_limits() -> None:
    """Of a mixture with heavy tails too, whose 90 % are narrower than those of a normal law as uncertain."""
    one = Estimates(
        mean=np.full((1, 3), 1_000.0),
        variance=np.array([[1.0, 25.0, 400.0]]),
        weight=np.array([[0.4, 0.5, 0.1]]),
    )
    for confidence in (0.5, 0.9, 0.99):
        free, cut = one.intervals(confidence), one.intervals(confidence, (np.zeros(1), np.full(1, 5e3)))
        assert np.concatenate(cut) == pytest.approx(np.concatenate(free), abs=1e-9)
    assert one.intervals(0.9)[1] < 1_000 + 1.5 * one.std_error


@pytest.mark.parametrize("mean", [-4.0, -1.0, 0.5, 9.0])
def test_ends_of_a_mixture_near_what_is_impossible_have_the_tails_of_the_cut_law(mean: float) -> None:
    mixed = Estimates(
        mean=np.array([[mean, mean + 1]]), variance=np.array([[1.0, 16.0]]), weight=np.array([[0.7, 0.3]])
    )
    (low,), (high,) = mixed.intervals(0.9, (np.zeros(1), np.full(1, 10.0)))
    sd, weight = np.sqrt(mixed.variance[0]), mixed.weight[0]

    def above(x: float) -> float:
        return float(weight @ normal_cdf((mixed.mean[0] - x) / sd))

    assert above(high) == pytest.approx(0.05 * above(0.0), rel=1e-6)
    assert 1 - above(low) == pytest.approx(0.05 * (1 - above(10.0)), rel=1e-6)
