"""The search for the least of a function, beside scipy's and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dalenius.arrays import Floats
from dalenius.mechanisms.rows.climbing import Pairs, descend, no_pairs, settle

RNG = np.random.default_rng(21)
ROOT = RNG.normal(size=(12, 12))
CURVED = ROOT @ ROOT.T + 0.05 * np.eye(12)
LEAST = RNG.normal(size=12)


class Counted:
    """A function that counts how often it is asked."""

    def __init__(self, times: float = 1.0) -> None:
        self.n_asked, self.times = 0, times

    def quadratic(self, x: Floats) -> tuple[float, Floats]:
        self.n_asked += 1
        slope = self.times * CURVED @ (x - LEAST)
        return 0.5 * float((x - LEAST) @ slope), slope

    def banana(self, x: Floats) -> tuple[float, Floats]:
        """Rosenbrock's: a valley that bends."""
        self.n_asked += 1
        a, b = x[1:] - x[:-1] ** 2, 1 - x[:-1]
        slope = np.zeros_like(x)
        slope[1:] += 200 * a
        slope[:-1] += -400 * a * x[:-1] - 2 * b
        return float((100 * a**2 + b**2).sum()), slope


def test_the_least_of_a_quadratic_is_found() -> None:
    assert descend(Counted().quadratic, np.zeros(12), 200, 1e-12) == pytest.approx(LEAST, abs=1e-4)


def test_a_valley_that_bends_is_followed_as_scipy_follows_it() -> None:
    start = np.full(6, -1.2)
    found, scipys = Counted(), Counted()
    place = descend(found.banana, start, 500, 1e-12)
    theirs = minimize(scipys.banana, start, method="L-BFGS-B", jac=True, options={"ftol": 1e-15})
    assert found.banana(place)[0] == pytest.approx(float(theirs.fun), abs=1e-8)
    assert found.n_asked < 3 * scipys.n_asked


def test_it_ends_where_the_last_steps_gain_little_and_at_once_where_nothing_is_left() -> None:
    exact, loose, nothing = Counted(), Counted(), Counted()
    descend(exact.quadratic, np.zeros(12), 200, 1e-12)
    place = descend(loose.quadratic, np.zeros(12), 200, 1.0)
    assert loose.n_asked < exact.n_asked
    assert loose.quadratic(place)[0] < 5.0
    assert descend(nothing.quadratic, LEAST, 200, 1.0).tolist() == LEAST.tolist()
    assert nothing.n_asked == 1


def test_steps_on_a_function_that_curves_alike_are_remembered() -> None:
    """With the steps of a hundredth of the function, times a hundred, the whole one takes fewer."""
    pairs, alone, after = no_pairs(), Counted(), Counted()
    descend(Counted(0.01).quadratic, np.zeros(12), 200, 1e-12, pairs)
    kept: Pairs = no_pairs()
    kept.extend((moved, 100 * change) for moved, change in pairs)
    start = LEAST + 1
    first = descend(alone.quadratic, start, 200, 1e-6)
    second = descend(after.quadratic, start, 200, 1e-6, kept)
    assert after.n_asked < alone.n_asked / 2
    assert second == pytest.approx(first, abs=0.1)


def test_a_step_too_long_is_shortened_and_rounding_errors_do_not_end_the_search() -> None:
    def steep(x: Floats) -> tuple[float, Floats]:
        """Large beside what there is to gain: the last digits of values are noise."""
        return 1e9 + float(np.cosh(x).sum()), np.sinh(x)

    assert np.abs(descend(steep, np.full(3, 5.0), 200, 1e-7)).max() < 0.01


def test_steps_settle_where_many_more_would_lead() -> None:
    """Downhill by a fixed part of the slope: along the flattest direction that takes many steps."""
    curved, n_steps = CURVED + np.eye(12), 0
    length = 1 / np.linalg.eigvalsh(curved).max()

    def step(x: Floats) -> Floats:
        nonlocal n_steps
        n_steps += 1
        return np.asarray(x - length * curved @ (x - LEAST))

    assert settle(step, np.zeros(12), 200, 1e-9) == pytest.approx(LEAST, abs=1e-6)
    plain = np.zeros(12)
    for _ in range(n_steps):
        plain = step(plain)
    assert np.abs(plain - LEAST).max() > 0.01
    assert settle(step, LEAST, 5, 1e-9) == pytest.approx(LEAST)
