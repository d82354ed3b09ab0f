"""Values that mostly share buckets: who is with whom says that they differ, and hardly which is which."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.dates.answer import Leaving
from dalenius.mechanisms.bucketize.estimate import effects
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.drawing import draw_values
from dalenius.mechanisms.bucketize.estimate.effects import Everybody
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows.effects import Basis, Climb, Quasi
from dalenius.question.targets import Estimates, Score, Targets, mix_estimates
from dalenius.randomness import Randomness
from tests.mechanisms.bucketize.estimate.test_estimate import buckets_of

PAIRS, FEW = 1_000, 6
"""Buckets of the values 0 and 1, and buckets of one of these and of 2."""


def release() -> tuple[Buckets, np.ndarray, np.ndarray]:
    """Four in five of who has 0 are men, and one in five of who has 1; beside 2 it is the other way round.

    These few are all that tells 0 from 1, and tell it wrongly.
    """
    rng = np.random.default_rng(4)
    value = np.concatenate([np.tile([0, 1], PAIRS), np.tile([0, 2], FEW), np.tile([1, 2], FEW)])
    is_man = np.where(value == 2, rng.random(len(value)) < 0.5, rng.random(len(value)) < 0.8 - 0.6 * value)
    few = np.arange(len(value)) >= 2 * PAIRS
    is_man[few & (value == 0)] = np.arange(FEW) == 0
    is_man[few & (value == 1)] = np.arange(FEW) != 0
    return buckets_of(np.arange(len(value)) // 2, value), is_man.astype(np.int64), value


@pytest.fixture(scope="module")
def made() -> Posterior:
    buckets, is_man, _ = release()
    return Posterior.of(buckets, [Quasi(codes=is_man)], None)


def asked() -> tuple[ScoreSums, Targets, int]:
    """How many men have 0, as a question and in truth."""
    buckets, is_man, value = release()
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(is_man))])
    return sums, Targets.of([[(0, np.eye(3)[0])]]), int(((value == 0) & (is_man == 1)).sum())


def test_an_interval_holds_what_is_as_likely_with_values_exchanged(made: Posterior) -> None:
    sums, targets, truth = asked()
    low, high = made.estimate(sums, targets).intervals(0.95)
    assert low[0] <= truth <= high[0]
    low, high = replace(made, others=()).estimate(sums, targets).intervals(0.95)
    assert high[0] < truth, "the likeliest effects alone are sure of the wrong one"


def test_dates_heed_it_too(made: Posterior) -> None:
    sums, targets, truth = asked()
    alone = Leaving(posterior=replace(made, others=()), steps=0).estimate(sums, targets)
    found = Leaving(posterior=made, steps=0).estimate(sums, targets)
    assert found.intervals(0.95)[1][0] >= truth > alone.intervals(0.95)[1][0]


def test_copies_have_the_one_or_the_other(made: Posterior) -> None:
    buckets, is_man, value = release()
    stream = Randomness.seeded(1).stream("complete")
    drawn = [draw_values(made, buckets, stream) for _ in range(24)]
    men = np.array([((own == 0) & (is_man == 1)).sum() for own in drawn])
    truth = ((value == 0) & (is_man == 1)).sum()
    assert 0 < (men > 0.8 * truth).sum() < 24
    assert ((men > 0.8 * truth) | (men < 0.4 * truth)).all()


def test_how_likely_each_is_adds_up_and_the_likeliest_is_first(made: Posterior) -> None:
    shares = [share for share, _ in made.others]
    assert shares
    assert 1 - sum(shares) >= max(shares)
    assert shares == sorted(shares, reverse=True)


def test_where_exchanged_values_are_hardly_elsewhere_no_effects_are_sought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sex tells nothing: with effects exchanged it is nearly the same place, which leads back."""
    buckets, is_man, _ = release()
    climbs, climb = list[Climb](), Everybody.climb

    def counted(fit: Everybody, basis: Basis, start: Climb, steps: int, close: float) -> Climb:
        climbs.append(start)
        return climb(fit, basis, start, steps, close)

    monkeypatch.setattr(Everybody, "climb", counted)
    rng = np.random.default_rng(6)
    assert not Posterior.of(buckets, [Quasi(codes=rng.permutation(is_man))], None).others
    assert len(climbs) == 2, "from no effects, and with variances that were learned again"
    assert not climbs[0].place.any()
    climbs.clear()
    assert Posterior.of(buckets, [Quasi(codes=is_man)], None).others
    assert len(climbs) > 2
    assert climbs[2].pairs, "how the likelihood curves is known from the search before"


@pytest.mark.parametrize(("limit", "by"), [("_MOST_ROWS", -1), ("MOST_CELLS", -1), ("_FEWEST_ROWS", 1)])
def test_large_and_small_releases_have_one(limit: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    buckets, is_man, _ = release()
    monkeypatch.setattr(effects, limit, buckets.n_rows + by)
    assert not Posterior.of(buckets, [Quasi(codes=is_man)], None).others


def test_where_other_buckets_tell_values_apart_nothing_is_doubted() -> None:
    rng = np.random.default_rng(5)
    value = rng.permutation(np.arange(2_400) % 6)
    column = np.where(rng.random(2_400) < 0.8, value, rng.integers(6, size=2_400))
    buckets = buckets_of(np.arange(2_400) // 2, value)
    made = Posterior.of(buckets, [Quasi(codes=column)], None)
    assert not made.others


def test_a_mixture_has_the_mean_and_the_spread_of_its_parts() -> None:
    one, two = (
        Estimates(mean=np.array([[m]]), variance=np.array([[1.0]]), weight=np.array([[1.0]]))
        for m in (10.0, 20.0)
    )
    found = mix_estimates([(0.75, one), (0.25, two)])
    assert found.estimate[0] == 12.5
    assert found.std_error[0] ** 2 == pytest.approx(1 + 0.75 * 0.25 * 100)
    assert mix_estimates([(1.0, one)]) is one
