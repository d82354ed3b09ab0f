"""Estimates are unbiased, their variance is right, and their intervals cover."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dalenius.errors import InputError
from dalenius.mechanisms.perturb.channel import Channel, Laws, reconstruct
from dalenius.mechanisms.perturb.estimate import (
    Term,
    Totals,
    hoeffding_ends,
    score_ends,
    total_of_terms,
    totals_of_products,
)
from dalenius.mechanisms.perturb.plan.layout import hoeffding_bound
from dalenius.mechanisms.perturb.plan.methods import plan_as_in_paper
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM, Z

from .histograms import EXAMPLE
from .reference import estimate_product, estimate_rows, exact_variance, perturb_batch

PLAN = plan_as_in_paper(tuple(10 * count for count in EXAMPLE), RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
CODES = np.repeat(np.arange(10), PLAN.counts)
CHOSEN = np.arange(len(CODES)) % 3 == 0
ASKED = np.isin(np.arange(10), (0, 3, 7)).astype(float)


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


@st.composite
def published(draw: st.DrawFn) -> tuple[list[Channel], np.ndarray, np.ndarray]:
    """Parts, and records published in them."""
    channels = draw(st.lists(laws(), min_size=1, max_size=3))
    pairs = [(j, code) for j, channel in enumerate(channels) for code in channel.codes]
    records = np.array(draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=12)))
    return channels, records[:, 0], records[:, 1]


weights = st.lists(st.sampled_from([0.0, 0.0, 1.0, -2.0, 3.5]), min_size=8, max_size=8)


def assert_is(
    found: Totals, channels: list[Channel], parts: np.ndarray, asked: np.ndarray, y: np.ndarray
) -> None:
    """Compare one total with the reference, `asked` being a_r(x) of every record and value."""
    expected = estimate_rows(channels, parts, y, asked)
    scale = max(1.0, expected.variance)
    assert found.estimate[0] == pytest.approx(expected.value, abs=1e-9 * scale)
    assert found.variance[0] == pytest.approx(expected.variance, abs=1e-7 * scale)
    within = [asked[r, list(channels[j].codes)] for r, j in enumerate(parts)]
    assert found.low[0] == pytest.approx(sum(own.min() for own in within))
    assert found.high[0] == pytest.approx(sum(own.max() for own in within))
    retention = np.array([float(channels[j].retention) for j in parts])
    spreads = np.array([own.var() for own in within])
    assert found.floor[0] == pytest.approx(((1 - retention) / retention**2 * spreads).sum())
    ranges = np.array([np.ptp(own) for own in within])
    assert found.squared_ranges[0] == pytest.approx(((ranges / retention) ** 2).sum())
    third = np.array([((own - own.mean()) ** 3).mean() for own in within])
    steep = ((1 - retention) / retention * third).sum()
    assert found.slope[0] * spreads.sum() == pytest.approx(steep, abs=1e-7 * scale)
    heavy = (spreads / retention**2).sum()
    steps = (spreads * ranges / retention**3).sum()
    assert 2 * found.half_step[0] * heavy == pytest.approx(steps)


@given(published(), weights, st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5]), min_size=12, max_size=12))
def test_products_equal_the_sum_over_records(
    release: tuple[list[Channel], np.ndarray, np.ndarray], asked: list[float], scores: list[float]
) -> None:
    channels, parts, y = release
    law, own = Laws.of(channels, 8), np.array(scores[: len(y)])
    found = totals_of_products(law, law.cells(parts, y), own, np.array([asked]))
    assert_is(found, channels, parts, own[:, np.newaxis] * np.array(asked), y)
    ones = totals_of_products(law, law.cells(parts, y), None, np.array([asked]))
    assert_is(ones, channels, parts, np.tile(asked, (len(y), 1)), y)


@given(published(), st.lists(weights, min_size=1, max_size=3), st.integers(0, 2**32))
def test_terms_equal_the_sum_over_records(
    release: tuple[list[Channel], np.ndarray, np.ndarray], asked: list[list[float]], seed: int
) -> None:
    channels, parts, y = release
    stream = Randomness.seeded(seed).stream("terms")
    owner = stream.integers(len(asked), size=8)  # no value belongs to two terms
    law, table, terms = Laws.of(channels, 8), np.zeros((len(y), 8)), []
    for number, values in enumerate(asked):
        places = np.flatnonzero(stream.random(len(y)) < 0.7)
        scores = stream.choice([0.0, 1.0, -1.0, 2.5], size=len(places))
        own = np.where(owner == number, values, 0.0)
        table[places] += scores[:, np.newaxis] * own
        terms.append(Term(places=places, scores=scores, weights=own))
    assert_is(total_of_terms(law, law.cells(parts, y), terms), channels, parts, table, y)


def test_a_record_outside_its_parts_domain_is_noticed() -> None:
    law = Laws.of([Channel(codes=(0, 2), gamma=Fraction(3))], 3)
    with pytest.raises(InputError):
        law.cells(np.array([0]), np.array([1]))


def one_part(channel: Channel, n_seen: int, n_rows: int, n_asked: int) -> Totals:
    law = Laws.of([channel], channel.n_values)
    cells = np.repeat([0, channel.n_values - 1], [n_seen, n_rows - n_seen])
    asked = (np.arange(channel.n_values) < n_asked).astype(float)
    return totals_of_products(law, cells, None, asked[np.newaxis])


def coverage(channel: Channel, n_rows: int, n_asked: int, kind: str, confidence: float = 0.95) -> list[float]:
    """The exact probability, for each possible true count, that the interval holds it."""
    ends = []
    for n_seen in range(n_rows + 1):
        found = one_part(channel, n_seen, n_rows, n_asked)
        if kind == "plain":
            reach = stats.norm.ppf((1 + confidence) / 2) * np.sqrt(found.variance[0])
            ends.append((found.estimate[0] - reach, found.estimate[0] + reach))
        else:
            low, high = (score_ends if kind == "score" else hoeffding_ends)(found, confidence)
            ends.append((np.floor(low[0] + 1e-6), np.ceil(high[0] - 1e-6)))
    low, high = np.array(ends).T
    p, q = float(channel.retention), float(channel.replacement)
    covered = []
    for true in range(n_rows + 1):
        hits = stats.binom.pmf(np.arange(true + 1), true, p + q * n_asked)
        law = np.convolve(hits, stats.binom.pmf(np.arange(n_rows - true + 1), n_rows - true, q * n_asked))
        covered.append(float(law[(low <= true + 1e-9) & (high >= true - 1e-9)].sum()))
    return covered


LAWS = [(6, 4, 1), (17, "13/5", 5), (50, "5/2", 1), (2, 3, 1), (11, 12, 1), (50, "5/2", 40), (9, 30, 2)]


@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
@pytest.mark.parametrize("n_rows", [2, 5, 20, 100])
@pytest.mark.parametrize(("n_values", "gamma", "n_asked"), LAWS)
def test_intervals_cover_every_count(
    n_values: int, gamma: int | str, n_asked: int, n_rows: int, confidence: float
) -> None:
    channel = Channel(codes=tuple(range(n_values)), gamma=Fraction(gamma))
    assert min(coverage(channel, n_rows, n_asked, "score", confidence)) > confidence - 0.01
    assert min(coverage(channel, n_rows, n_asked, "hoeffding", confidence)) >= confidence


def test_the_plain_interval_fails_at_small_counts() -> None:
    channel = Channel(codes=tuple(range(50)), gamma=Fraction(5, 2))
    assert min(coverage(channel, 20, 1, "plain")) < 0.5


GROUPS = [np.arange(420)[start::step] for start, step in ((0, 1), (1, 3), (2, 20), (3, 80))]
COUNTED = np.stack([ASKED, np.eye(10)[0], np.eye(10)[9], np.arange(10) < 5])
NUMBERS = np.arange(10.0)[np.newaxis]
MONEY = (np.arange(420) * 7919 % 50 + 1).astype(np.float64)


def hits_of(confidence: float, shrink: float) -> tuple[np.ndarray, np.ndarray]:
    """Over the releases, how often counts and weighted sums of small and large groups are covered."""
    law = Laws.of(PLAN.channels, 10)
    counts: list[np.ndarray] = []
    sums: list[np.ndarray] = []
    for parts, values in RELEASES[:500]:
        cells = law.cells(parts, values)
        for rows in GROUPS:
            for scores, asked, hits in (
                (None, COUNTED, counts),
                (MONEY[rows], COUNTED, sums),
                (None, NUMBERS, sums),
                (MONEY[rows], NUMBERS, sums),
            ):
                truth = (asked[:, CODES[rows]] * (1.0 if scores is None else scores)).sum(axis=1)
                low, high = score_ends(totals_of_products(law, cells[rows], scores, asked), confidence)
                middle, reach = (low + high) / 2, shrink * (high - low) / 2 + 1e-9
                hits.append(np.abs(truth - middle) <= reach)
    return np.concatenate(counts).reshape(500, -1), np.concatenate(sums).reshape(500, -1)


@pytest.mark.parametrize("confidence", [0.90, 0.95, 0.99])
def test_intervals_cover_over_several_parts(confidence: float) -> None:
    fewest = stats.binom.ppf(FALSE_ALARM, 500, confidence)
    for hits in hits_of(confidence, 1.0):
        assert hits.sum(axis=0).min() >= fewest
    for hits in hits_of(confidence, 0.6):  # an interval two fifths shorter would be noticed
        assert hits.sum(axis=0).min() < fewest


def test_certain_answers_have_no_width() -> None:
    channels = [Channel(codes=(0, 1), gamma=Fraction(3)), Channel(codes=(1, 2), gamma=Fraction(3))]
    law = Laws.of(channels, 3)
    cells = np.repeat(np.arange(4), [4, 3, 5, 6])
    asked = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    found = totals_of_products(law, cells, None, asked)
    assert found.variance.tolist()[:2] == [0, 0]
    for ends in (score_ends, hoeffding_ends):
        low, high = ends(found, 0.95)
        assert (low[0], high[0], low[1], high[1]) == (18, 18, 0, 0)
        assert 7 <= low[2] <= high[2] <= 18  # the first part for certain, at most all
