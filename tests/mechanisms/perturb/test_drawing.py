"""Original values drawn given a perturbed release: associations with other columns, shares, their limits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dalenius.arrays import Floats
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.estimate.drawing import (
    Effects,
    Records,
    _cap,
    _DrawingFit,
    draw_alike,
    draw_codes,
)
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness

N = 6_000
GAMMA = Fraction(4)


def people(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A column, and one of four values that goes with it."""
    rng = np.random.default_rng(seed)
    column = rng.integers(3, size=N)
    logits = np.array([0.5, 0.2, 0.0, -0.4]) + np.outer(column - 1, [0.9, 0.0, -0.6, 0.3])
    return column, (logits + rng.gumbel(size=(N, 4))).argmax(axis=1)


def publish(value: np.ndarray, seed: int) -> tuple[PublishedParts, np.ndarray, np.ndarray]:
    """Two parts: of values 0 to 2, and of all four; a record of a shared value is in either by chance."""
    rng = np.random.default_rng([seed, 1])
    part = np.where(value == 3, 1, rng.integers(2, size=N))
    channels = (Channel(codes=(0, 1, 2), gamma=GAMMA), Channel(codes=(0, 1, 2, 3), gamma=GAMMA))
    size = np.where(part == 0, 3, 4)
    kept = rng.random(N) < float(GAMMA) / (size - 1 + float(GAMMA))
    other = rng.integers(size - 1)
    shown = np.where(kept, value, other + (other >= value))
    promise = RhoPrivacy(rho1=Fraction(1, 3), rho2=Fraction(1, 2))
    texts = [(str(k),) for k in range(4)]
    stated = PublishedParts(
        columns=("v",), texts=texts, channels=channels, promise=promise, prior_at_most=None
    )
    return stated, part, shown


def cross(column: np.ndarray, value: np.ndarray) -> Floats:
    found = np.zeros((3, 4))
    np.add.at(found, (column, value), 1)
    return found


def test_associations_are_drawn_as_strong_as_they_are_and_as_uncertain() -> None:
    z, alike = [], []
    for seed in range(4):
        column, value = people(seed)
        stated, part, shown = publish(value, seed)
        records = Records.of(stated, part, shown, [Quasi(codes=column)])
        effects, stream = Effects.of(records, None), Randomness.seeded(seed).stream("complete")
        drawn = np.stack([cross(column, draw_codes(records, effects, stream)) for _ in range(12)])
        z.append((drawn.mean(axis=0) - cross(column, value)) / drawn.std(axis=0, ddof=1))
        twin = np.stack([cross(column, draw_alike(records, stream)) for _ in range(6)])
        alike.append((twin.mean(axis=0) - cross(column, value)) / twin.std(axis=0, ddof=1))
    assert 0.5 < np.sqrt(np.mean(np.square(z))) < 1.8
    assert np.sqrt(np.mean(np.square(alike))) > 3, "a draw that ignores the columns is caught"


def test_the_gradient_is_that_of_the_likelihood() -> None:
    column, value = people(9)
    stated, part, shown = publish(value, 9)
    records = Records.of(stated, part, shown, [Quasi(codes=column)])
    made, shares = Effects.of(records, None), records.likely_shares()
    f = records.in_all(shares)
    fit = _DrawingFit(
        indicators=made.features.indicators,
        chances=records.chances(shares) / f,
        log_share=np.log(f),
        means=made.features.means[0],
        cell=records.cell,
    )
    rng = np.random.default_rng(2)
    effects, direction = 0.3 * rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    step = 1e-4
    slope = (fit.gain(effects + step * direction)[0] - fit.gain(effects - step * direction)[0]) / (2 * step)
    assert float((fit.gain(effects)[1] * direction).sum()) == pytest.approx(slope, rel=1e-3)


def test_the_likelihood_is_that_of_the_part_and_the_published_value() -> None:
    """By hand, for one record: the sum over its values of how likely each is, its part and what is shown."""
    column, value = people(4)
    stated, part, shown = publish(value, 4)
    records = Records.of(stated, part, shown, [Quasi(codes=column)])
    shares = records.likely_shares()
    f, chances = records.in_all(shares), records.chances(shares)
    assert shares.sum() == pytest.approx(1)
    for cell, (number, y) in enumerate(zip(records.laws.part, records.laws.code, strict=True)):
        codes = stated.channels[number].codes
        for z in range(4):
            own = shares[np.flatnonzero((records.laws.part == number) & (records.laws.code == z))]
            expected = (float(GAMMA) if z == y else 1.0) * own[0] if z in codes else 0.0
            assert chances[cell, z] == pytest.approx(expected)
    assert f == pytest.approx(np.bincount(value, minlength=4) / N, abs=0.05)


def test_shares_stay_below_what_gamma_gives_back() -> None:
    shares = np.array([0.5, 0.3, 0.1, 0.1])
    for most in (0.25, 0.3, 0.4, 0.6):
        capped = _cap(shares, most)
        assert capped.sum() == pytest.approx(1)
        assert (capped <= most + 1e-9).all()
    assert _cap(shares, 0.6).tolist() == shares.tolist()
