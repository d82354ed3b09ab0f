"""Combinations of the same totals are estimated as each is by itself, and their totals looked at once."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows import together
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.targets import Score, Targets
from tests.mechanisms.bucketize.estimate.test_estimate import buckets_of

N, VALUES = 600, 6
RNG = np.random.default_rng(17)
BUCKETS = buckets_of(RNG.permutation(np.repeat(np.arange(N // 4), 4)), RNG.integers(VALUES, size=N))
SEX = RNG.integers(2, size=N)
SUMS = ScoreSums.of(
    BUCKETS,
    [
        Score(rows=np.flatnonzero(SEX == 0)),
        Score(rows=np.flatnonzero(SEX == 1)),
        Score(rows=np.arange(N), values=RNG.normal(size=N)),
    ],
)
CELLS = {
    "a table": [(score, own) for score in (0, 1) for own in np.eye(VALUES)],
    "part of one": [(score, own) for score in (0, 1) for own in np.eye(VALUES)[:2]],
    "numbers": [(score, own) for score in (0, 1, 2) for own in np.tri(VALUES)[[0, 2, 3]]],
}


def posterior() -> Posterior:
    return Posterior.of(BUCKETS, [Quasi(codes=SEX), Quasi(codes=RNG.integers(4, size=N))], None)


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("at_once", [2_000_000, 500])
def test_variances_are_those_of_each_by_itself(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, made = CELLS[name], posterior()
    listed = [
        [(score, times * own) for (score, own), times in zip(cells, factors, strict=True)]
        for factors in np.random.default_rng(3).normal(size=(5, len(cells)))
    ]
    alone = [made.parts(SUMS, Targets.of([terms])) for terms in listed]
    monkeypatch.setattr(together, "_CELLS_AT_ONCE", at_once)
    monkeypatch.setattr(Posterior, "_together", None)  # not called: the totals are looked at once
    found = made.parts(SUMS, Targets.of(listed))
    assert found.mean == pytest.approx([one.mean[0] for one in alone])
    assert found.match == pytest.approx([one.match[0] for one in alone], rel=1e-6)
    assert found.moved == pytest.approx([one.moved[0] for one in alone], rel=1e-6)
    assert (found.match > 0).all()


def test_what_no_matching_changes_is_certain() -> None:
    """Everybody once, in parts by sex and value."""
    cells = CELLS["a table"]
    listed = [[(score, times * own) for score, own in cells] for times in (1.0, 2.0, -3.0)]
    found = posterior().parts(SUMS, Targets.of(listed))
    assert found.mean == pytest.approx([N, 2 * N, -3 * N], rel=1e-4)
    assert found.match == pytest.approx(np.zeros(3), abs=1e-2)


def test_few_and_other_combinations_are_left_to_others() -> None:
    one, two = np.eye(VALUES)[:2]
    pair = [(0, one), (1, two)]
    assert not list(together.find_alike(Targets.of([pair, pair]), [0, 1]))
    targets = Targets.of([pair, pair, pair, [(0, one), (1, 2 * one)], [(0, two)]])
    (alike,) = together.find_alike(targets, [0, 1, 2, 3])
    assert sorted(alike.factors) == [0, 1, 2]
    assert alike.cells == ((0, 0), (1, 1))
