"""The common axis: what each promise bounds, and the ε that gives the same bound."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.evaluate.contender import matched_epsilon, noisy_counts, promised_bound
from dalenius.policy import Policy
from dalenius.tables.histogram import Histogram

TABLE = pa.table({"age": [1, 2, 3, 4], "disease": ["Flu", "Flu", "Cold", "HIV"]})
HISTOGRAM = Histogram.of(("disease",), {("Flu",): 2, ("Cold",): 1, ("HIV",): 1})


@pytest.mark.parametrize(
    ("promise", "bound", "symbol"),
    [
        ({"kind": "l-diversity", "l": 2}, Fraction(1, 2), "1/l"),
        ({"kind": "rho-privacy", "rho1": "max", "rho2": "2/3"}, Fraction(2, 3), "rho2"),
        ({"kind": "d-gamma-privacy", "k": 2, "gamma": "0.3"}, Fraction(3, 10), "gamma"),
        (
            {"kind": "f-privacy", "default": "0.4", "values": {"HIV": "0.3", "Flu": 1}},
            Fraction(2, 5),
            "largest f'",
        ),
        ({"kind": "f-privacy", "default": {"times": "0.9", "plus": 0}}, Fraction(1, 2), "largest f'"),
        (
            {"kind": "f-privacy", "values": {"Flu": 1, "Cold": 1, "HIV": 1}},
            Fraction(1),
            "largest f'",
        ),
    ],
)
def test_every_promise_has_its_place_on_the_axis(
    promise: dict[str, Any], bound: Fraction, symbol: str
) -> None:
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    policy = Policy.from_dict({"source": TABLE, "columns": columns, "promise": promise})
    found = promised_bound(policy, HISTOGRAM)
    assert (found.largest, found.symbol) == (bound, symbol)


def test_thresholds_of_their_own_have_a_smallest_one() -> None:
    promise = {"kind": "f-privacy", "default": "0.6", "values": {"Flu": 1, "HIV": "0.3"}}
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    policy = Policy.from_dict({"source": TABLE, "columns": columns, "promise": promise})
    found = promised_bound(policy, HISTOGRAM)
    assert (found.largest, found.smallest) == (Fraction(3, 5), Fraction(3, 10))


@given(st.fractions(Fraction(1, 50), Fraction(4, 5)), st.fractions(Fraction(1, 50), Fraction(49, 50)))
def test_bayes_with_the_matched_epsilon_ends_at_the_bound(prior: Fraction, bound: Fraction) -> None:
    """Somebody who believes a value with `prior` and sees what is e^ε times likelier with it."""
    ratio = math.exp(matched_epsilon(prior, bound))
    posterior = prior * ratio / (prior * ratio + (1 - prior))
    assert posterior == pytest.approx(float(bound))


def test_noise_has_the_scale_that_was_asked_for() -> None:
    """The mean magnitude of 4,000 draws; false alarms below 1e-6, and a scale off by a fifth is noticed."""
    scale, n = 30.0, 4_000
    noise = np.abs(noisy_counts([100] * n, scale) - 100)
    # discrete Laplace with p = e^(−1/s): E|X| = 2p/(1−p²), which is near s; its deviation is near s too
    p = math.exp(-1 / scale)
    expected = 2 * p / (1 - p * p)
    reach = 5.0 * scale / math.sqrt(n)
    assert abs(noise.mean() - expected) < reach
    assert abs(noise.mean() - 1.2 * expected) > reach
    assert abs(noise.mean() - expected / 1.2) > reach
