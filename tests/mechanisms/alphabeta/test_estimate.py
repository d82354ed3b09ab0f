"""Estimates are unbiased, their variances exact, their intervals cover; measured or summed exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dalenius.mechanisms.alphabeta.answer import (
    NEVER,
    combine_views,
    estimate_count,
    working_share,
)
from dalenius.mechanisms.alphabeta.apply import next_view
from dalenius.mechanisms.alphabeta.changing import DateKernel
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw, alphabeta_rho, usual_decay
from dalenius.mechanisms.frapp.answer import estimate_frapp
from dalenius.mechanisms.frapp.plan import FrappLaw
from dalenius.mechanisms.tuples import interval
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.interval import (
    bernstein_interval,
    count_interval,
    exact_interval,
    score_interval,
)
from dalenius.mechanisms.tuples.weighted import ClassLaw
from dalenius.randomness import Randomness
from tests.chance import Z

LAW = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 20))
SERIES = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 100), views=3, decay=usual_decay(3))
RATES = st.fractions(min_value=Fraction(1, 20), max_value=Fraction(19, 20), max_denominator=20)


def binomial(n: int, p: Fraction) -> list[Fraction]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


def sum_law(inside: int, p: Fraction, outside: int, q: Fraction) -> list[Fraction]:
    """The exact law of Binomial(inside, p) + Binomial(outside, q)."""
    law = [Fraction(0)] * (inside + outside + 1)
    for (i, x), (j, y) in product(enumerate(binomial(inside, p)), enumerate(binomial(outside, q))):
        law[i + j] += x * y
    return law


@given(count=st.integers(0, 4), extra=st.integers(0, 4), retention=RATES, relative=RATES)
@settings(deadline=None, max_examples=30)
def test_the_count_is_unbiased_with_its_variance(
    count: int, extra: int, retention: Fraction, relative: Fraction
) -> None:
    law = ViewLaw(retention=retention, beta=retention * relative)
    chances = sum_law(count, law.retention, extra, law.beta)
    estimates = [estimate_count(n_view, count + extra, law) for n_view in range(len(chances))]
    assert sum(p * e.value for p, e in zip(chances, estimates, strict=True)) == count
    variance = sum(p * (e.value - count) ** 2 for p, e in zip(chances, estimates, strict=True))
    assert variance == estimates[0].tuple_variance.total(count, count + extra)


@given(count=st.integers(0, 3), others=st.integers(0, 3), n_domain=st.integers(1, 6), gamma_f=RATES)
@settings(deadline=None, max_examples=30)
def test_frapp_is_unbiased_with_its_variance(
    count: int, others: int, n_domain: int, gamma_f: Fraction
) -> None:
    law = FrappLaw(k=Fraction(1), gamma_f=gamma_f, domain_size=7)
    inside, outside = law.rates(n_domain)
    chances = sum_law(count, inside, others, outside)
    if gamma_f == Fraction(1, 7):
        return
    n_rows = count + others
    estimates = [estimate_frapp(y, n_domain, law, n_rows) for y in range(n_rows + 1)]
    assert sum(p * e.value for p, e in zip(chances, estimates, strict=True)) == count
    variance = sum(p * (e.value - count) ** 2 for p, e in zip(chances, estimates, strict=True))
    assert variance == estimates[0].tuple_variance.total(count, n_rows)


def test_frapp_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(ZeroDivisionError):
        estimate_frapp(1, 1, FrappLaw(k=Fraction(1), gamma_f=Fraction(1, 2), domain_size=2), n_rows=2)


def test_a_count_over_ten_to_the_twenty_tuples_loses_no_digits() -> None:
    law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10**14))
    assert estimate_count(10**6 + 50, 10**20, law).value == 50 / law.alpha


def test_a_negative_estimate_keeps_its_sign_and_a_variance() -> None:
    estimate = estimate_count(0, 1_000, LAW)
    assert estimate.value < 0 < estimate.variance
    assert estimate.std_error == math.sqrt(estimate.variance)


# ---- several views --------------------------------------------------------------------------------------


def pattern_law(law: ViewLaw, in_table: bool) -> dict[tuple[int, ...], Fraction]:
    result = {}
    for pattern in product((0, 1), repeat=law.views):
        probability, shown = Fraction(1), False
        for view, appears in enumerate(pattern, start=1):
            rate = law.retention if in_table else law.seen_rate if shown else law.fresh_rate(view)
            probability *= rate if appears else 1 - rate
            shown = shown or bool(appears)
        result[pattern] = probability
    return result


def as_class(pattern: tuple[int, ...]) -> tuple[int, int]:
    return (pattern.index(1) + 1, sum(pattern) - 1) if any(pattern) else NEVER


@pytest.mark.parametrize("share", [Fraction(1, 10**6), Fraction(1, 100), Fraction(1, 2)])
def test_combined_views_are_unbiased_for_any_working_share(share: Fraction) -> None:
    weights = combine_views(SERIES, 3, share)
    for in_table in (True, False):
        law = pattern_law(SERIES, in_table)
        mean = sum(p * weights.weights[as_class(pattern)] for pattern, p in law.items())
        square = sum(p * weights.weights[as_class(pattern)] ** 2 for pattern, p in law.items())
        assert mean == int(in_table)
        variance = weights.tuple_variance.inside if in_table else weights.tuple_variance.outside
        assert variance == square - mean**2


def test_one_view_gets_algorithm_3s_weights_and_more_views_a_smaller_variance() -> None:
    share = Fraction(1, 1_000)
    single = combine_views(SERIES, 1, share)
    first = estimate_count(37, 1_000, SERIES)
    assert single.estimate({(1, 0): 37}, 1_000).value == first.value
    assert single.tuple_variance == first.tuple_variance
    variances = [combine_views(SERIES, n, share).tuple_variance.total(1, 1_000) for n in (1, 2, 3)]
    assert variances == sorted(variances, reverse=True)
    assert variances[2] < Fraction(99, 100) * variances[0]


def test_the_best_weights_beat_their_neighbours() -> None:
    share = Fraction(1, 50)
    best = combine_views(SERIES, 3, share).tuple_variance.total(1, 50)
    for other in (share / 2, share * 2, share / 20):
        assert combine_views(SERIES, 3, other).tuple_variance.total(1, 50) > best


@pytest.mark.parametrize("view", [2, 3])
def test_the_last_view_of_a_series_is_unbiased_alone_and_the_printed_estimator_is_not(view: int) -> None:
    """Over all patterns of a tuple's views: what it counts on average, and its variance, exactly summed."""
    patterns = list(product((0, 1), repeat=view))
    kernel = DateKernel.of(np.array(patterns).T, SERIES, view)
    counted = np.where(np.any(patterns, axis=1), kernel.weights, 0.0) + kernel.fresh.miss
    s, seen, fresh = SERIES.retention, SERIES.seen_rate, SERIES.fresh_rate(view)
    printed = {
        (*before, last): (last - seen * any(before) - fresh) / (s - seen) for *before, last in patterns
    }
    biases = []
    for in_table in (True, False):
        chances = dict.fromkeys(patterns, Fraction(0))
        for pattern, chance in pattern_law(SERIES, in_table).items():
            chances[pattern[:view]] += chance
        p = np.array(list(chances.values()), dtype=float)
        assert p @ counted == pytest.approx(int(in_table))
        before = p @ kernel.before  # given what was shown, its mean is the same
        parts = [kind.covariance(np.ones(1), np.full(1, in_table)) for kind in (kernel.seen, kernel.fresh)]
        seen_variance, fresh_variance = (part.known[0] + part.estimated[0] for part in parts)
        variance = before * seen_variance + (1 - before) * fresh_variance
        assert p @ counted**2 - (p @ counted) ** 2 == pytest.approx(variance)
        mean = sum((chance * printed[pattern] for pattern, chance in chances.items()), Fraction(0))
        biases.append(abs(mean - in_table))
    assert max(biases) > Fraction(1, 20)


def test_drawn_views_are_estimated_within_their_error() -> None:
    domain = Domain.of({"a": range(300), "b": range(300)})
    ranks = np.arange(0, 90_000, 30)
    table = domain.unpack(ranks[:, None])
    views: list[tuple[np.ndarray, ...]] = []
    for number in range(3):
        views.append(next_view(domain, table, views, SERIES, Randomness.seeded(1).stream("view", number)))
    shown = np.zeros((3, domain.size), dtype=np.int64)
    for row, view in zip(shown, views, strict=True):
        row[domain.pack(view)[:, 0]] = 1
    query = np.arange(domain.size) < 60_000
    share = working_share(len(views[0][0]), domain.size, SERIES)
    first = np.argmax(shown, axis=0) + 1
    counts = {
        (i, k): int((query & (shown.sum(axis=0) == k + 1) & (first == i) & shown.any(axis=0)).sum())
        for i in (1, 2, 3)
        for k in range(4 - i)
    }
    estimate = combine_views(SERIES, 3, share).estimate(counts, 60_000)
    assert abs(float(estimate.value) - 2_000) < Z * estimate.std_error
    assert estimate.std_error < estimate_count(int(shown[0][query].sum()), 60_000, SERIES).std_error
    assert share == pytest.approx(1 / 30, rel=0.2)


# ---- intervals ------------------------------------------------------------------------------------------


def coverage(count: int, population: int, law: ViewLaw, confidence: float) -> float:
    """Summed over every view size that is not negligible."""
    s, beta = float(law.retention), float(law.beta)
    mean = count * s + (population - count) * beta
    reach = math.ceil(mean + 8 * math.sqrt(mean) + 12)
    inside = stats.binom.pmf(np.arange(reach + 1), count, s)
    outside = stats.binom.pmf(np.arange(reach + 1), population - count, beta)
    covered = 0.0
    for n_view, chance in enumerate(np.convolve(inside, outside)[: reach + 1]):
        low, high = exact_interval(n_view, population, s, beta, confidence)
        covered += float(chance) * (low <= count <= high)
    return covered


@pytest.mark.parametrize("count", [0, 1, 2, 5, 20])
@pytest.mark.parametrize(
    ("population", "beta"), [(40, Fraction(1, 20)), (10**7, Fraction(1, 10**7)), (10**7, Fraction(1, 10**6))]
)
def test_exact_intervals_cover_small_counts(count: int, population: int, beta: Fraction) -> None:
    law = ViewLaw(retention=Fraction(1, 2), beta=beta)
    assert coverage(count, population, law, 0.95) >= 0.95
    assert coverage(count, population, law, 0.5) < 0.95  # a wider one is not given


def test_the_normal_interval_would_not_cover_there() -> None:
    """One real tuple, 0.01 noise tuples expected: half of the time nothing is seen."""
    law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10**7))
    chances = np.convolve([0.5, 0.5], stats.binom.pmf(np.arange(9), 10**5 - 1, 1e-7))
    estimates = [estimate_count(n_view, 10**5, law) for n_view in range(len(chances))]
    normal = [abs(float(e.value) - 1) <= 1.96 * e.std_error for e in estimates]
    assert chances @ np.array(normal) < 0.6
    assert coverage(1, 10**5, law, 0.95) >= 0.95


def simulated_coverage(count: int, population: int, law: ViewLaw, seed: int) -> tuple[float, float]:
    """Coverage of 95 % intervals over 4,000 drawn view sizes: ours, and one a fifth narrower."""
    stream = Randomness.seeded(seed).stream("coverage")
    sizes = stream.binomial(count, float(law.retention), 4_000)
    sizes += stream.binomial(population - count, float(law.beta), 4_000)
    ours = narrow = 0
    for size in sizes.tolist():
        estimate = estimate_count(size, population, law)
        low, high = count_interval(size, estimate, law.retention, law.beta, 0.95)
        ours += low <= count <= high
        narrow += abs(float(estimate.value) - count) <= 0.8 * (high - low) / 2
    return ours / 4_000, narrow / 4_000


@pytest.mark.parametrize(("count", "population", "beta"), [(5_000, 10**8, "0.0003"), (60_000, 10**6, "0.01")])
def test_score_intervals_cover_large_counts(count: int, population: int, beta: str) -> None:
    law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(beta))
    ours, narrow = simulated_coverage(count, population, law, 3)
    spread = 5 * math.sqrt(0.95 * 0.05 / 4_000)
    assert abs(ours - 0.95) < spread
    assert narrow < 0.95 - spread


def test_bernstein_covers_a_weighted_sum_of_few_tuples() -> None:
    weights = combine_views(SERIES, 3, Fraction(1, 200))
    inside, outside = pattern_law(SERIES, True), pattern_law(SERIES, False)
    patterns = list(inside)
    stream = Randomness.seeded(4).stream("patterns")
    real = stream.multinomial(2, [float(p) for p in inside.values()], 1_500)
    noise = stream.multinomial(100, [float(p) for p in outside.values()], 1_500)
    covered = 0
    for row in real + noise:
        counts: dict[tuple[int, int], int] = {}
        for pattern, n in zip(patterns, row.tolist(), strict=True):
            if any(pattern):
                counts[as_class(pattern)] = counts.get(as_class(pattern), 0) + n
        estimate = weights.estimate(counts, 102)
        low, high = interval.weighted_interval(estimate, weights.spread, 0.95)
        assert (low, high) == bernstein_interval(estimate, float(weights.spread), 0.95)
        covered += low <= 2 <= high
    assert covered / 1_500 >= 0.95


@pytest.mark.parametrize("observed", [0, 1, 7, 40, 300])
@pytest.mark.parametrize("population", [1_000, 10**9])
def test_weighted_intervals_of_one_class_are_the_exact_ones(observed: int, population: int) -> None:
    beta = Fraction(20, population)
    law = ClassLaw.of([(Fraction(2), Fraction(1, 2), beta), (Fraction(0), Fraction(1, 2), 1 - beta)])
    for confidence in (0.9, 0.99):
        low, high = law.intervals(np.array([2.0 * observed]), np.array([float(population)]), confidence)
        exact = exact_interval(observed, population, 0.5, float(beta), confidence)
        assert abs(low[0] - exact[0]) <= 1
        assert abs(high[0] - exact[1]) <= 1


@pytest.mark.parametrize(("count", "population"), [(3, 500), (30, 300), (100, 1_000)])
def test_counts_of_a_series_hold_as_often_as_they_say(count: int, population: int) -> None:
    """Not more often either: Bernstein's inequality, which they once had, holds 100 in 100."""
    inside, outside = pattern_law(SERIES, True), pattern_law(SERIES, False)
    stream, n = Randomness.seeded(7).stream("series"), 4_000
    weights = combine_views(SERIES, 3, Fraction(1, 10))
    more = [weights.weights[as_class(pattern)] - weights.weights[NEVER] for pattern in inside]
    law = ClassLaw.of(zip(more, inside.values(), outside.values(), strict=True))
    drawn = stream.multinomial(count, [float(p) for p in inside.values()], n)
    drawn += stream.multinomial(population - count, [float(p) for p in outside.values()], n)
    for confidence in (0.9, 0.95, 0.99):
        low, high = law.intervals(
            drawn @ np.array(more, dtype=float), np.full(n, float(population)), confidence
        )
        held = ((low <= count) & (count <= high)).mean()
        chance = Z * math.sqrt(confidence * (1 - confidence) / n)
        assert confidence - chance < held < min(confidence + 0.02 + chance, 1.0)


def test_intervals_stay_within_the_possible_counts() -> None:
    assert exact_interval(0, 10, 0.5, 0.1, 0.95)[0] == 0
    assert exact_interval(10, 10, 0.5, 0.1, 0.95) == (10, 10)
    low, high = score_interval(estimate_count(0, 10**6, LAW), 0.95)
    assert low == high == 0
    assert score_interval(estimate_count(900, 1_000, LAW), 0.95)[1] == 1_000
    large = combine_views(SERIES, 2, Fraction(1, 100))
    estimate = large.estimate({(1, 0): 40_000, (1, 1): 9_000, (2, 0): 20_000}, 10**6)
    assert interval.weighted_interval(estimate, large.spread, 0.95) == score_interval(estimate, 0.95)


# ---- ρ --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "r", "n_rows", "domain_size"),
    [
        ("0.1", "0.01", 5_000, 10**6),
        ("0.1", "1", 5_000, 10**6),
        ("0.45", "2", 20_000, 10**7),
        ("0.02", "1", 300, 10**4),
    ],
)
def test_the_error_stays_within_rho_at_its_confidence(
    alpha: str, r: str, n_rows: int, domain_size: int
) -> None:
    """For the worst query, which counts everything, over 20,000 views."""
    a = Fraction(alpha)
    beta = Fraction(r) * a**2 * n_rows / domain_size
    s = a + beta
    stream = Randomness.seeded(5).stream("rho")
    sizes = stream.binomial(n_rows, float(s), 20_000)
    sizes += stream.binomial(domain_size - n_rows, float(beta), 20_000)
    errors = np.abs((sizes - float(beta * domain_size)) / float(a) - n_rows) / math.sqrt(n_rows)
    kept, noise = float(s * (1 - s)), float(beta * domain_size)
    rho = alphabeta_rho(alpha=a, kept_variance=kept, noise_variance=noise, n_rows=n_rows)
    assert (errors > rho).mean() <= 0.05
    assert (errors > 0.5 * rho).mean() > 0.05  # half of it would not hold
    printed = math.sqrt(2 * (float(Fraction(r)) + 1) * math.log(2 / 0.05))
    if (alpha, r) == ("0.1", "0.01"):
        assert (errors > printed).mean() == pytest.approx(0.36, abs=0.02)  # and not the promised 0.05


def test_probabilities_one_after_the_other_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of views of all sizes; a sum of probabilities of single counts beside an integral for each."""
    rng = np.random.default_rng(8)
    asked = []
    for population in (1, 7, 300, 40_000):
        count, inside = int(rng.integers(population + 1)), rng.uniform(0.3, 1)
        expected = count * inside + (population - count) * inside / 3
        observed = (-1, 0, int(0.95 * expected), int(expected), int(1.05 * expected), population)
        asked += [(seen, count, population, inside, inside / 3) for seen in observed]
    found = [interval._cdf(*one) for one in asked]
    monkeypatch.setattr(interval, "_MANY_OUTSIDE", -1)
    assert found == pytest.approx([interval._cdf(*one) for one in asked], rel=1e-7, abs=1e-12)
    assert any(0.01 < one < 0.99 for one in found)
