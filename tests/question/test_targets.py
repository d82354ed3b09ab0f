"""Intervals of mixtures, beside a search for each end by halving."""

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
