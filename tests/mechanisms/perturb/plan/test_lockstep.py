"""Several partitions moved at once, beside each of them moved by itself, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan import lockstep
from dalenius.mechanisms.perturb.plan.layout import LayoutMeasure, Objective
from dalenius.mechanisms.perturb.plan.lockstep import improve_all, improve_by_moves
from dalenius.mechanisms.perturb.plan.moves import improve_plainly
from dalenius.mechanisms.perturb.plan.starts import band_partitions


def starts_of(random: np.random.Generator, objective: Objective) -> list[Ints]:
    """Random partitions into 1 to 12 parts, with many zeros and equal counts, and bands of one table."""
    n_values = len(objective.protected)
    n_parts = random.integers(1, 13, size=5).tolist()
    dealt = [
        random.integers(0, 30, size=(k, n_values)) * random.integers(0, 2, (k, n_values)) for k in n_parts
    ]
    for quotas in dealt:  # else few of them would be parts that may be
        quotas[:, :6] += random.integers(31, 34, size=(len(quotas), 6))
    counts = np.sort(random.integers(1, 5_000, size=n_values))[::-1].copy()
    return [*dealt, *band_partitions(counts, objective, 2)]


@pytest.mark.parametrize("measure", LayoutMeasure)
@pytest.mark.parametrize("least_top", [1, 30])
@pytest.mark.parametrize("n_free", [0, 3])
def test_partitions_come_out_as_if_each_were_moved_plainly(
    measure: LayoutMeasure, least_top: int, n_free: int
) -> None:
    """To the last record: also starts of infinite cost, and with values that need no protection."""
    random = np.random.default_rng([least_top, n_free])
    n_moved = 0
    for n_values in (7, 12):
        protected = np.arange(n_values) >= n_free
        objective = Objective(protected=protected, rho2=0.3, measure=measure, least_top=least_top)
        starts = starts_of(random, objective)
        with np.errstate(invalid="ignore"):  # the plain steps of a start that costs ∞
            found = improve_all(starts, objective)
            plain = [improve_plainly(start, objective) for start in starts]
        for start, one, other in zip(starts, found, plain, strict=True):
            assert np.array_equal(one, other)
            assert one.dtype == other.dtype
            n_moved += not np.array_equal(one, start)
        assert np.array_equal(improve_by_moves(starts[-1], objective), plain[-1])
    assert n_moved > 3


def test_large_partitions_are_moved_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = Objective(protected=np.ones(9, dtype=bool), rho2=0.3)
    starts = starts_of(np.random.default_rng(5), objective)[-5:]
    found = improve_all(starts, objective)
    monkeypatch.setattr(lockstep, "CELLS_AT_ONCE", 40)
    assert all(map(np.array_equal, improve_all(starts, objective), found))
    monkeypatch.setattr(lockstep, "MOST_CELLS", 3 * 12**2 * 9)  # and each for a few steps only
    monkeypatch.setattr("dalenius.mechanisms.perturb.plan.moves.MOST_CELLS", 3 * 12**2 * 9)
    assert len([*lockstep._in_batches(range(len(starts)), starts)]) > 1
    few_steps = improve_all(starts, objective)
    assert all(map(np.array_equal, few_steps, [improve_plainly(start, objective) for start in starts]))
    assert not all(map(np.array_equal, few_steps, found))
