"""How wide intervals of the matching are: as what they rest on says, and enough for tables drawn anew."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.posterior import TIMES, Posterior
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.targets import Score, Targets
from tests.chance import FALSE_ALARM
from tests.mechanisms.bucketize.estimate.test_estimate import buckets_of

N, N_VALUES, N_RELEASES = 1_600, 5, 24


def release(seed: int) -> tuple[Posterior, Buckets, np.ndarray, np.ndarray]:
    """People in buckets of four; a value depends on two columns, and a little on both together."""
    rng = np.random.default_rng([12, seed])
    group, other = rng.integers(6, size=N), rng.integers(3, size=N)
    lean = rng.normal(size=(6, N_VALUES))[group] + 0.5 * rng.normal(size=(3, N_VALUES))[other]
    lean += 0.1 * rng.normal(size=(6, 3, N_VALUES))[group, other]
    value = (lean + rng.gumbel(size=(N, N_VALUES))).argmax(axis=1)
    buckets = buckets_of(rng.permutation(np.repeat(np.arange(N // 4), 4)), value)
    made = Posterior.of(buckets, [Quasi(codes=group), Quasi(codes=other)], None)
    return made, buckets, value, np.stack([group, other])


def asked(columns: np.ndarray) -> tuple[list[Score], Targets]:
    """How many people of each group, of each other and of each pair of them have each value."""
    group, other = columns
    masks = [group == g for g in range(6)] + [other == o for o in range(3)]
    masks += [(group == g) & (other == o) for g in range(6) for o in range(3)]
    scores = [Score(rows=np.flatnonzero(mask)) for mask in masks]
    return scores, Targets.of([[(k, own)] for k in range(len(masks)) for own in np.eye(N_VALUES)])


def test_variances_are_of_the_matching_and_of_multiples_of_what_effects_add() -> None:
    made, buckets, _, columns = release(0)
    scores, targets = asked(columns)
    sums = ScoreSums.of(buckets, scores)
    found, parts = made.estimate(sums, targets), made.parts(sums, targets)
    assert sum(share for _, share in TIMES) == pytest.approx(1)
    # on average about as large as learned: the law is about how differently large they are
    assert sum(times * share for times, share in TIMES) == pytest.approx(np.exp(-0.25 + 0.9**2 / 2), abs=0.03)
    for k, (times, share) in enumerate(TIMES):
        assert found.variance[:, k] == pytest.approx(parts.match + times * parts.moved * parts.effects)
        assert (found.weight[:, k] == share).all()
    assert found.estimate == pytest.approx(parts.mean)


def test_intervals_of_tables_drawn_anew_hold_as_often_as_they_say() -> None:
    """Releases are independent, questions on one are not; half the width must fail."""
    held: dict[tuple[float, float], list[float]] = {}
    for seed in range(N_RELEASES):
        made, buckets, value, columns = release(seed)
        scores, targets = asked(columns)
        truth = np.array([np.bincount(value[s.rows], minlength=N_VALUES) for s in scores]).ravel()
        found = made.estimate(ScoreSums.of(buckets, scores), targets)
        for level in (0.9, 0.95):
            low, high = found.intervals(level)
            for width in (1.0, 0.5):
                reach = width * (high - low) / 2
                held.setdefault((level, width), []).append(
                    float((np.abs(found.estimate - truth) <= reach).mean())
                )
    for (level, width), shares in held.items():
        mean, error = np.mean(shares), np.std(shares, ddof=1) / np.sqrt(N_RELEASES)
        reach = float(stats.t.isf(FALSE_ALARM, N_RELEASES - 1)) * error
        assert (mean > level - reach) == (width == 1.0), (level, width, mean, error)
        if width == 1.0:
            assert mean < level + 0.04 + reach / 3, "wider than they need be"
