"""Plans: what each method will do, said before a coin is tossed."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction as Fr
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.dealing import deal
from dalenius.mechanisms.suppress import plan as plan_module
from dalenius.mechanisms.suppress.d_suppression import is_eligible, minimal_suppression
from dalenius.mechanisms.suppress.plan import METHODS, expect_costs, plan_suppression
from dalenius.randomness import Randomness
from dalenius.reproduce.suppression import suppression_rates
from tests.chance import FALSE_ALARM


@given(
    counts=st.lists(st.integers(1, 25), min_size=2, max_size=6),
    ell=st.integers(1, 6),
    method=st.sampled_from(sorted(METHODS)),
    seed=st.integers(0, 99),
)
@example(counts=[2, 1, 3], ell=2, method="safe", seed=1)  # needs no suppression
@settings(max_examples=60, deadline=None)
def test_every_plan_keeps_an_eligible_part(counts: list[int], ell: int, method: str, seed: int) -> None:
    ell = min(ell, len(counts))
    plan = plan_suppression(counts, ell, method)
    kept = plan.draw(Randomness.seeded(seed).stream("suppress"))
    assert is_eligible(kept, ell)
    assert all(0 <= left <= count for left, count in zip(kept, counts, strict=True))
    assert plan.law is None or sum(probability for _, probability in plan.law) == 1
    if is_eligible(counts, ell):
        assert (kept, plan.expected_suppressed) == (tuple(counts), Fr(0))
        assert plan.worst_posterior is None
    else:
        assert plan.worst_posterior is not None
        assert plan.worst_posterior.value <= 1
        assert method == "randomized" or plan.worst_posterior.high <= Fr(1, ell)
        assert plan.expected_suppressed >= sum(counts) - sum(minimal_suppression(counts, ell))


def test_draws_follow_the_law_under_any_order_of_the_values() -> None:
    plan = plan_suppression((1, 2, 10, 1, 4), 3, "randomized")
    assert plan.law is not None
    law = {(d, c, a, e, b): p for (a, b, c, d, e), p in plan.law}
    stream = Randomness.seeded(11).stream("suppress")
    seen = Counter(plan.draw(stream) for _ in range(5_000))
    expected = [float(p) * 5_000 for p in law.values()]
    assert stats.chisquare([seen[kept] for kept in law], expected).pvalue > FALSE_ALARM
    wrong = [expected[0] - 400, expected[1] + 400, *expected[2:]]
    assert stats.chisquare([seen[kept] for kept in law], wrong).pvalue < FALSE_ALARM


def test_which_of_two_equally_common_values_is_cut_is_a_secret_coin() -> None:
    plan = plan_suppression((9, 9, 3, 2, 1), 3, "randomized")
    stream = Randomness.seeded(5).stream("suppress")
    seen = Counter(plan.draw(stream) for _ in range(2_000))
    uneven = [kept for kept in seen if kept[0] != kept[1]]
    assert uneven
    for kept in uneven:
        pair = [seen[kept], seen[kept[1], kept[0], *kept[2:]]]
        assert stats.binomtest(pair[0], sum(pair)).pvalue > FALSE_ALARM


def test_the_example_of_the_paper() -> None:
    table = (10, 4, 2, 1, 1)
    safe, randomized, exact = (plan_suppression(table, 3, m) for m in ("safe", "randomized", "exact"))
    assert safe.expected_suppressed == 10
    assert randomized.expected_suppressed == Fr(71, 9)
    assert exact.expected_suppressed == 6  # no method can withhold less (theorem 2)
    assert [plan.safe_suppressed for plan in (safe, randomized, exact)] == [10, 10, 10]
    worst = [plan.worst_posterior for plan in (safe, randomized, exact)]
    assert [w and w.value > Fr(1, 3) for w in worst] == [False, True, False]
    assert "withheld (expected)     7.9 (43.83%)" in str(randomized)


def test_no_release_is_said_as_such() -> None:
    assert plan_suppression((10, 4, 2), 3, "randomized").probability_of_no_release == Fr(1, 9)
    assert plan_suppression((10, 4, 2), 3, "safe").probability_of_no_release == 0


def test_costs_of_all_methods() -> None:
    found = expect_costs((10, 4, 2, 1, 1), 3)
    assert found == {
        "minimal": 6,
        "lower bound": 6,
        "exact": 6,
        "randomized": Fr(71, 9),
        "safe": 10,
        "all": 18,
    }
    assert expect_costs((2, 2, 2), 3) == dict.fromkeys(found, 0) | {"all": 6}


def test_what_cannot_be_planned_is_refused() -> None:
    with pytest.raises(PromiseNotMet, match="l = 3 is more than the 2 different values") as caught:
        plan_suppression((5, 1), 3)
    assert caught.value.hint == "the largest l that any release can keep is 2"
    with pytest.raises(InputError, match="did you mean 'safe'"):
        plan_suppression((5, 1, 1), 2, "saef")


def test_a_law_too_long_to_list_is_drawn_from_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "N_LISTED", 2)
    plan = plan_suppression((10, 4, 2, 1, 1), 3, "randomized")
    assert plan.law is None
    assert plan.expected_suppressed == Fr(71, 9)
    kept = {plan.draw(Randomness.seeded(run).stream("suppress")) for run in range(200)}
    assert kept == {(4, 4, 2, 1, 1), (2, 3, 2, 1, 1), (3, 3, 2, 1, 1), (1, 2, 2, 1, 1)}


def test_billions_of_rows_are_planned_and_drawn() -> None:
    zipf = tuple(10**9 // i for i in range(1, 21))
    for method in ("safe", "exact"):
        kept = plan_suppression(zipf, 5, method).draw(Randomness.seeded(1).stream("suppress"))
        assert is_eligible(kept, 5)
    assert is_eligible(plan_suppression(zipf, 5, "randomized").draw(Randomness.seeded(1).stream("s")), 5)


def test_a_plan_deals_records_to_keep_and_to_withhold() -> None:
    counts = np.array([10, 4, 2, 1, 1])
    stream = Randomness.seeded(2).stream("suppress")
    kept = np.array(plan_suppression(counts.tolist(), 3, "safe").draw(stream))
    codes = np.repeat(np.arange(5), counts)
    withheld = deal(codes, np.stack([kept, counts - kept], axis=1), stream)
    assert np.bincount(codes[withheld == 0]).tolist() == [2, 2, 2, 1, 1]


def test_zipf_tables_start_to_violate_at_the_stated_exponent() -> None:
    def violates(a: float) -> bool:
        return not is_eligible([round(10**9 / i**a) for i in range(1, 21)], 5)

    assert not violates(0.7585)
    assert violates(0.7595)


@pytest.fixture(scope="module")
def occupation_codes(real_data: Path) -> np.ndarray:
    with (real_data / "adult.csv").open() as lines:
        column = next(lines).strip().split(",").index("occupation")
        occupations = [line.strip().split(",")[column] for line in lines]
    return np.unique(occupations, return_inverse=True)[1]


def test_adult_samples(occupation_codes: np.ndarray) -> None:
    assert len(occupation_codes) == 30_162
    stream = Randomness.seeded(1).stream("samples")
    samples = np.array(
        [np.bincount(stream.choice(occupation_codes, 150, replace=False), minlength=14) for _ in range(1_500)]
    )
    rates = suppression_rates(samples, 6)
    mean = {name: float(rate.mean()) for name, rate in rates.items()}
    # Ours over many samples: 35 % violate; R 3.4 %, unsafe D 3.06 %, safe D 8.8 %. The tolerances are five
    # standard errors of 1,500 samples.
    errors = {name: 5 * float(rate.std()) / 1_500**0.5 for name, rate in rates.items()}
    stated = {"all": 0.35, "randomized": 0.034, "unsafe": 0.0306, "safe": 0.088}
    assert all(abs(mean[name] - share) < errors[name] for name, share in stated.items())
    assert mean["unsafe"] < mean["randomized"] < mean["grouped"] < 0.6 * mean["safe"]


def test_rates_of_single_samples() -> None:
    samples = np.array([[1, 10, 4, 2, 1], [2, 2, 2, 2, 2], [9, 1, 0, 0, 0]])
    rates = suppression_rates(samples, 3)
    assert rates["unsafe"] == pytest.approx([6 / 18, 0, 1])
    assert rates["randomized"] == pytest.approx([71 / 162, 0, 1])
    assert rates["safe"] == pytest.approx([10 / 18, 0, 1])
    assert rates["grouped"] == pytest.approx([6 / 18, 0, 1])
    assert rates["all"] == pytest.approx([1, 0, 1])
