"""Two numbers that make a third one, among many columns: ruled out by few people, or by all of them."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.arrays import Floats
from dalenius.tables.giveaways import sums
from dalenius.tables.giveaways.sums import find_formula

MAKING = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: 3 * a - 2 * b + 7,
    "product": lambda a, b: a * b,
    "ratio": lambda a, b: a / np.where(b == 0, np.nan, b),
    "nothing": lambda a, b: b[::-1] * 0 + np.random.default_rng(9).random(len(a)),
}


def columns_of(rng: np.random.Generator, n_columns: int, n_people: int) -> dict[str, Floats]:
    """Whole numbers, some of them few or always the same, and positive ones; some are not known of all."""
    found = {}
    for i in range(n_columns):
        whole = rng.integers(rng.integers(1, 40), size=n_people).astype(np.float64)
        column = whole if i % 2 else rng.lognormal(0, 1.5 * rng.random(), n_people)
        if i % 3 == 0:
            column[rng.random(n_people) < 0.7 * rng.random()] = np.nan
        found[f"q{i}"] = column
    return found | {"again": found["q0"].copy()}


@pytest.mark.parametrize("n_people", [450, 2000])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.09, 0.11])
@pytest.mark.parametrize("making", MAKING)
def test_few_people_rule_out_no_pair_that_makes_the_number(
    making: str, noise: float, n_people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng([n_people, round(100 * noise)])
    known = columns_of(rng, 60, n_people)
    made = MAKING[making](known["q11"], known["q46"])
    told = made + noise * np.nanstd(made) * rng.normal(size=n_people)
    with np.errstate(invalid="ignore"):
        found = find_formula(known, told)
        monkeypatch.setattr(sums, "_MANY", 100)
        assert find_formula(known, told) == found  # by all people
    if (making in ("sum", "difference") and noise < 0.06) or (making in ("product", "ratio") and noise == 0):
        assert found is not None


def test_most_columns_are_ruled_out() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(2000, 100))
    told = known[:, 3] - known[:, 70]
    assert sums._may_explain(known, told).tolist() == [3, 70]
