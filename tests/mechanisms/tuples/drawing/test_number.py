"""How many rows a table has, as the size of a view tells it: against enumeration, and drawn in copies."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.mechanisms.alphabeta.export import view_evidence
from dalenius.mechanisms.alphabeta.published import marginal_law, read
from dalenius.mechanisms.tuples.answer.estimation import read_codes
from dalenius.mechanisms.tuples.drawing.number import ViewSize, _positive_normal
from tests.chance import FALSE_ALARM


def enumerated(m: int, n_shown: int, s: float, beta: float) -> dict[int, tuple[float, float]]:
    """Of every number of people its chance, all as likely beforehand, and how many of them are shown."""
    shown = frozenset(range(n_shown))
    found = {}
    for n in range(m + 1):
        likelihood = people = 0.0
        for table in itertools.combinations(range(m), n):
            seen = len(shown & set(table))
            chance = s**seen * (1 - s) ** (n - seen)
            chance *= beta ** (n_shown - seen) * (1 - beta) ** (m - n - n_shown + seen)
            likelihood += chance
            people += chance * seen
        found[n] = (likelihood / math.comb(m, n), people / likelihood)
    total = sum(chance for chance, _ in found.values())
    return {n: (chance / total, people) for n, (chance, people) in found.items()}


@pytest.mark.parametrize("n_shown", [0, 1, 3, 6, 9])
@pytest.mark.parametrize(("s", "beta"), [(0.7, 0.2), (0.5, 0.05)])
def test_numbers_are_those_of_all_tables(n_shown: int, s: float, beta: float) -> None:
    m = 9
    size = ViewSize(n_shown=n_shown, n_noise=m * beta, retention=s, beta=beta)
    exact = enumerated(m, n_shown, s, beta)
    mean = sum(n * chance for n, (chance, _) in exact.items())
    variance = sum((n - mean) ** 2 * chance for n, (chance, _) in exact.items())
    assert size.number() == pytest.approx((mean, math.sqrt(variance)))
    for n, (_, people) in exact.items():  # where both kinds of rows are as normal laws have it
        assert size.shown_people(n) == pytest.approx(people, abs=0.35)


@pytest.mark.parametrize("n_shown", [500, 560, 630, 700])
def test_of_many_rows_the_normal_law_is_near(n_shown: int) -> None:
    """Of noise of 600 rows, in a domain of any size."""
    of_sizes = [
        ViewSize(n_shown=n_shown, n_noise=600.0, retention=0.8, beta=600 / m).number()
        for m in (1e5, 1e9, 1e25)
    ]
    assert of_sizes[1] == pytest.approx(of_sizes[2], rel=1e-6)
    assert of_sizes[0] == pytest.approx(of_sizes[1], rel=0.02)
    usual = _positive_normal((n_shown - 600) / 0.8, math.sqrt(600 + max(n_shown - 600, 0) * 0.2) / 0.8)
    assert of_sizes[1] == pytest.approx(usual, rel=0.2 if n_shown < 600 else 0.06)


def test_a_number_that_may_well_be_none_has_an_exponential_law() -> None:
    assert _positive_normal(-50.0, 2.0) == pytest.approx(
        _positive_normal(-60.1, math.sqrt(4 * 60.1 / 50)), rel=0.01
    )
    assert _positive_normal(1_000.0, 3.0) == pytest.approx((1_000, 3))


def test_copies_of_a_view_of_three_people_have_as_many_rows_as_it_leaves_possible(tmp_path: Path) -> None:
    """The view shows 58 rows, fewer than the noise alone would be: copies had 19 on average, and up to 60."""
    rng = np.random.default_rng(3)
    policy = {
        "source": pa.table({"a": rng.integers(90, size=3), "b": rng.choice(list("wxyz"), size=3)}),
        "release": tmp_path / "r.release",
        "columns": {"quasi": ["a", "b"], "sensitive": []},
        "domains": {"a": "0..89", "b": list("wxyz")},
        "promise": {"kind": "d-gamma-privacy", "k": 2, "gamma": 0.2},
        "mechanism": {"kind": "alpha-beta", "duplicates": "distinct"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=3)
    view = read(release.stored.manifest)
    codes = read_codes(release.stored, view.domain)
    law = marginal_law(view.law, 1)
    size = ViewSize(
        n_shown=len(codes[0]),
        n_noise=float(law.beta) * 360,
        retention=float(law.retention),
        beta=float(law.beta),
    )
    mean, deviation = size.number()
    told = view_evidence(view, law, codes)
    assert (told.n_people, told.deviation) == pytest.approx((mean, deviation))
    assert mean < 8
    n_copies = 60
    drawn = [copy.num_rows for copy in release.complete(n_copies, seed=1)]
    # exponential tails: the mean of 60 is beyond seven standard errors once in 10⁷ times
    assert FALSE_ALARM >= 1e-6
    assert np.mean(drawn) == pytest.approx(mean, abs=7 * deviation / math.sqrt(n_copies))
    assert np.std(drawn) < 2 * deviation
