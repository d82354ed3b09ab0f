"""Estimates are unbiased, their variance is right, and their intervals cover."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dalenius.mechanisms.perturb.apply import perturb_batch
from dalenius.mechanisms.perturb.bounds import hoeffding_bound
from dalenius.mechanisms.perturb.estimate import estimate_product, estimate_rows, exact_variance
from dalenius.mechanisms.perturb.interval import hoeffding_interval, score_interval
from dalenius.mechanisms.perturb.matrix import Channel, reconstruct
from dalenius.mechanisms.perturb.plan import plan_as_in_paper
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness

from .histograms import EXAMPLE, FALSE_ALARM

PLAN = plan_as_in_paper(tuple(10 * count for count in EXAMPLE), RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
CODES = np.repeat(np.arange(10), PLAN.counts)
CHOSEN = np.arange(len(CODES)) % 3 == 0
ASKED = np.isin(np.arange(10), (0, 3, 7)).astype(float)
Z = float(stats.norm.isf(FALSE_ALARM / 2))


@st.composite
def laws(draw: st.DrawFn) -> Channel:
    codes = draw(st.sets(st.integers(0, 7), min_size=2))
    return Channel(codes=tuple(sorted(codes)), gamma=draw(st.fractions(Fraction(11, 10), 20)))


def tables(parts: np.ndarray, values: np.ndarray, n_parts: int, n_values: int) -> np.ndarray:
    table = np.zeros((n_parts, n_values))
    np.add.at(table, (parts, values), 1)
    return table


def draw_release(seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = Randomness.seeded(seed)
    return perturb_batch(CODES, PLAN.quota(), PLAN, random.stream("part"), random.stream("value"))


RELEASES = [draw_release(seed) for seed in range(2_500)]


@given(laws(), st.lists(st.integers(-5, 5), min_size=8, max_size=8))
@settings(max_examples=60)
def test_one_record_is_unbiased_with_the_stated_variance(channel: Channel, asked: list[int]) -> None:
    """All of the mechanism's coins by enumeration, for each true value of the part."""
    for true in channel.codes:
        chance = {
            y: float(channel.retention) * (y == true) + float(channel.replacement) for y in channel.codes
        }
        found = {y: estimate_product([channel], np.eye(8)[[y]], asked) for y in channel.codes}
        assert min(estimate.variance for estimate in found.values()) >= 0
        mean = sum(chance[y] * found[y].value for y in channel.codes)
        variance = sum(chance[y] * found[y].value ** 2 for y in channel.codes) - mean**2
        scale = max(1.0, variance)
        assert mean == pytest.approx(asked[true], abs=1e-7 * scale)
        assert exact_variance([channel], np.eye(8)[[true]], asked) == pytest.approx(
            variance, abs=1e-6 * scale
        )
        claimed = sum(chance[y] * found[y].variance for y in channel.codes)
        assert claimed == pytest.approx(variance, abs=1e-6 * scale)


@given(laws(), st.lists(st.integers(0, 50), min_size=8, max_size=8))
def test_a_value_outside_a_part_weighs_nothing_and_inside_it_is_reconstructed(
    channel: Channel, published: list[int]
) -> None:
    observed = np.array([[n if x in channel.codes else 0 for x, n in enumerate(published)]])
    inside = iter(reconstruct(observed[0, list(channel.codes)], channel))
    for x in range(8):
        estimate = estimate_product([channel], observed, np.eye(8)[x])
        expected = next(inside) if x in channel.codes else 0.0
        assert estimate.value == pytest.approx(expected, abs=1e-6)
        assert x in channel.codes or estimate.variance == 0


@given(st.lists(laws(), min_size=1, max_size=3), st.integers(0, 2**32))
@settings(max_examples=40)
def test_rows_and_products_agree(channels: Sequence[Channel], seed: int) -> None:
    stream = Randomness.seeded(seed).stream("rows")
    parts = stream.integers(len(channels), size=30)
    published = np.array([stream.choice(channels[j].codes) for j in parts])
    asked = stream.normal(size=8)
    product = estimate_product(channels, tables(parts, published, len(channels), 8), asked)
    rows = estimate_rows(channels, parts, published, np.tile(asked, (30, 1)))
    assert rows.value == pytest.approx(product.value)
    assert rows.variance == pytest.approx(product.variance)


def test_over_dealing_and_drawing_the_mean_and_the_variance_are_right() -> None:
    truth = ASKED[CODES[CHOSEN]].sum()
    found, exact = [], []
    for parts, published in RELEASES:
        found.append(estimate_product(PLAN.channels, tables(parts[CHOSEN], published[CHOSEN], 2, 10), ASKED))
        exact.append(exact_variance(PLAN.channels, tables(parts[CHOSEN], CODES[CHOSEN], 2, 10), ASKED))
    values, variances = np.array([(f.value, f.variance) for f in found]).T
    n_runs = len(values)
    # Dealing adds no variance: the mean of the variances given the parts is the whole variance.
    variance = np.mean(exact)
    assert abs(values.mean() - truth) < Z * np.sqrt(variance / n_runs)
    assert abs(variances.mean() - variance) < Z * variances.std() / np.sqrt(n_runs)
    spread = (n_runs - 1) * values.var(ddof=1)
    tail = stats.chi2(n_runs - 1)
    assert tail.isf(1 - FALSE_ALARM / 2) < spread / variance < tail.isf(FALSE_ALARM / 2)
    # A variance a quarter off, or the answer of one record more or less, would not pass.
    assert not tail.isf(1 - FALSE_ALARM / 2) < spread / (1.25 * variance) < tail.isf(FALSE_ALARM / 2)
    assert abs(values.mean() - (truth + 10)) > Z * np.sqrt(variance / n_runs)


def test_a_predicate_that_mixes_columns_is_unbiased() -> None:
    rows = (np.arange(len(CODES))[:, np.newaxis] + np.arange(10)) % 4 == 0  # which values each row asks for
    truth = rows[np.arange(len(CODES)), CODES].sum()
    found = [estimate_rows(PLAN.channels, *release, rows) for release in RELEASES[:600]]
    values, variances = np.array([(f.value, f.variance) for f in found]).T
    assert abs(values.mean() - truth) < Z * np.sqrt(variances.mean() / len(values))
    assert abs(values.var() / variances.mean() - 1) < Z * np.sqrt(2 / len(values))
    assert abs(values.mean() - truth * 1.1) > Z * np.sqrt(variances.mean() / len(values))


def test_hoeffdings_bound_holds_at_its_confidence_and_a_quarter_of_it_does_not() -> None:
    sizes = [part.n_rows for part in PLAN.parts]
    bound = hoeffding_bound(sizes, [part.retention for part in PLAN.parts], delta=0.05)
    errors = []
    for parts, published in RELEASES:
        table = tables(parts, published, 2, 10)
        found = [estimate_product(PLAN.channels, table, asked).value for asked in np.eye(10)]
        errors.append(np.abs(np.array(found) - PLAN.counts) / PLAN.n_rows)
    most_misses = stats.binom.isf(FALSE_ALARM, len(RELEASES), 0.05)
    assert (np.array(errors) > bound).sum(axis=0).max() <= most_misses
    assert (np.array(errors) > bound / 4).sum(axis=0).max() > most_misses


def coverage(channel: Channel, n_rows: int, n_asked: int, kind: str) -> list[float]:
    """The exact probability, for each possible true count, that the interval holds it."""
    is_asked = np.arange(channel.n_values) < n_asked
    ends = []
    for n_seen in range(n_rows + 1):
        observed = np.zeros((1, channel.n_values))
        observed[0, [0, -1]] = n_seen, n_rows - n_seen
        if kind == "plain":
            found = estimate_product([channel], observed, is_asked)
            ends.append((found.value - 1.96 * found.std_error, found.value + 1.96 * found.std_error))
        else:
            interval = score_interval if kind == "score" else hoeffding_interval
            ends.append(interval([channel], observed, is_asked))
    low, high = np.array(ends).T
    p, q = float(channel.retention), float(channel.replacement)
    covered = []
    for true in range(n_rows + 1):
        hits = stats.binom.pmf(np.arange(true + 1), true, p + q * n_asked)
        law = np.convolve(hits, stats.binom.pmf(np.arange(n_rows - true + 1), n_rows - true, q * n_asked))
        covered.append(float(law[(low <= true + 1e-9) & (high >= true - 1e-9)].sum()))
    return covered


@pytest.mark.parametrize("n_rows", [2, 5, 20, 100])
@pytest.mark.parametrize(
    ("n_values", "gamma", "n_asked"), [(6, 4, 1), (17, "13/5", 5), (50, "5/2", 1), (2, 3, 1), (11, 12, 1)]
)
def test_intervals_cover_small_counts(n_values: int, gamma: int | str, n_asked: int, n_rows: int) -> None:
    channel = Channel(codes=tuple(range(n_values)), gamma=Fraction(gamma))
    score = coverage(channel, n_rows, n_asked, "score")
    assert np.mean(score) > 0.93
    assert min(score) > (0.85 if n_rows < 100 else 0.92)
    assert min(coverage(channel, n_rows, n_asked, "hoeffding")) >= 0.95


def test_the_plain_interval_fails_at_small_counts() -> None:
    channel = Channel(codes=tuple(range(50)), gamma=Fraction(5, 2))
    assert min(coverage(channel, 20, 1, "plain")) < 0.5


def test_score_intervals_cover_over_several_parts() -> None:
    truth = ASKED[CODES[CHOSEN]].sum()
    hits = 0
    for parts, published in RELEASES:
        low, high = score_interval(PLAN.channels, tables(parts[CHOSEN], published[CHOSEN], 2, 10), ASKED)
        assert 0 <= low <= high <= CHOSEN.sum()
        hits += low <= truth <= high
    assert stats.binomtest(hits, len(RELEASES), 0.95).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, len(RELEASES), 0.90).pvalue < FALSE_ALARM


def test_certain_answers_have_no_width() -> None:
    channels = [Channel(codes=(0, 1), gamma=Fraction(3)), Channel(codes=(1, 2), gamma=Fraction(3))]
    observed = [[4, 3, 0], [0, 5, 6]]
    for interval in (score_interval, hoeffding_interval):
        assert interval(channels, observed, [1, 1, 1]) == (18, 18)
        assert interval(channels, observed, [0, 0, 0]) == (0, 0)
        low, high = interval(channels, observed, [1, 1, 0])  # the first part for certain, at most all
        assert 7 <= low <= high <= 18
