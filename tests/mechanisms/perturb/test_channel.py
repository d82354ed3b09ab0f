"""The law of uniform perturbation, against the paper's tables and against the matrix itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.mechanisms.perturb.channel import Channel, Laws, gamma_of, largest_posterior, reconstruct


def channel_of(n_values: int, gamma: Fraction | int) -> Channel:
    return Channel(codes=tuple(range(n_values)), gamma=Fraction(gamma))


@pytest.mark.parametrize(
    ("n_values", "p", "q"),
    [(77, 5, 1), (70, 5, 1), (50, 7, 2), (14, 22, 6), (9, 31, 8), (7, 36, 9), (6, 40, 10), (2, 67, 17)],
)
def test_table_1(n_values: int, p: int, q: int) -> None:
    channel = channel_of(n_values, 5)
    assert round(100 * float(channel.retention)) == p
    assert round(100 * float(channel.replacement)) == q


@pytest.mark.parametrize(("n_values", "q", "diagonal"), [(15_000, 6.7e-5, 3.3e-4), (5_390, 1.9e-4, 9.3e-4)])
def test_large_domains_of_section_1(n_values: int, q: float, diagonal: float) -> None:
    # The text prints p + q = 7.4e-4 for 5,390 values; that is p, and p + q = 5/5394 is 9.3e-4.
    channel = channel_of(n_values, 5)
    assert float(channel.replacement) == pytest.approx(q, rel=0.03)
    assert float(channel.diagonal) == pytest.approx(diagonal, rel=0.03)


@given(n_values=st.integers(2, 40), gamma=st.fractions(Fraction(101, 100), 50))
def test_rows_sum_to_one_and_the_ratio_is_gamma(n_values: int, gamma: Fraction) -> None:
    channel = channel_of(n_values, gamma)
    assert channel.diagonal + (n_values - 1) * channel.replacement == 1
    assert channel.diagonal == channel.retention + channel.replacement
    assert channel.diagonal / channel.replacement == gamma


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=8), st.fractions(Fraction(11, 10), 20))
def test_reconstruction_is_the_inverse_of_the_matrix(counts: list[int], gamma: Fraction) -> None:
    channel = channel_of(len(counts), gamma)
    expected = [channel.retention * count + channel.replacement * sum(counts) for count in counts]
    np.testing.assert_allclose(reconstruct([float(e) for e in expected], channel), counts, atol=1e-6)


@pytest.mark.parametrize(
    ("codes", "gamma", "said"),
    [
        ((3,), 2, "domain of 1 values"),
        ((0, 1), 1, "gamma"),
        ((1, 0), 2, "ascending"),
        ((1, 1), 2, "ascending"),
    ],
)
def test_what_is_no_law_is_refused(codes: tuple[int, ...], gamma: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Channel(codes=codes, gamma=Fraction(gamma))


@given(
    counts=st.lists(st.integers(1, 30), min_size=2, max_size=5),
    gamma=st.fractions(Fraction(11, 10), 9),
    targets=st.sets(st.integers(0, 6)),
)
def test_the_largest_posterior_is_the_largest_of_bayes(
    counts: list[int], gamma: Fraction, targets: set[int]
) -> None:
    """By enumeration: every value that can be published, every value that is protected."""
    codes = range(len(counts))
    evidence = [sum(n * (gamma if x == y else 1) for x, n in enumerate(counts)) for y in codes]
    posteriors = [
        counts[x] * (gamma if x == y else 1) / evidence[y] for y in codes for x in codes if x in targets
    ]
    assert largest_posterior(codes, counts, gamma, targets) == max(posteriors, default=0)


def test_cells_are_found_by_part_and_value_and_summed_by_part() -> None:
    channels = [Channel(codes=(0, 2), gamma=Fraction(3)), Channel(codes=(1, 2, 4), gamma=Fraction(2))]
    laws = Laws.of(channels, 5)
    assert laws.first.tolist() == [0, 2]
    assert laws.part.tolist() == [0, 0, 1, 1, 1]
    assert laws.cells(np.array([1, 0, 1, 0, 1]), np.array([4, 2, 1, 0, 2])).tolist() == [4, 1, 2, 0, 3]
    assert laws.per_part(np.array([1.0, 2.0, 4.0, 8.0, 16.0])).tolist() == [3.0, 28.0]
    assert laws.per_part(np.ones((2, 5))).tolist() == [[2.0, 3.0]] * 2
    for part, code in ((0, 1), (1, 0), (1, 3), (2, 4)):
        with pytest.raises(InputError, match="its part does not have"):
            laws.cells(np.array([part]), np.array([code]))


@pytest.mark.parametrize(
    ("channel", "drawn", "replaced", "kept"),
    [
        (
            Channel(codes=(0, 1), gamma=Fraction(3), weights=(1, 3)),
            [1 / 4, 3 / 4],
            [1 / 8, 3 / 8],
            [5 / 8, 7 / 8],
        ),
        (Channel(codes=(0, 1), gamma=Fraction(3), weights=(2, 2)), [1 / 2] * 2, [1 / 4] * 2, [3 / 4] * 2),
        (Channel(codes=(0, 1), gamma=Fraction(3)), [1 / 2] * 2, [1 / 4] * 2, [3 / 4] * 2),
        (Channel(codes=(1, 2, 7), gamma=Fraction(4)), [1 / 3] * 3, [1 / 6] * 3, [2 / 3] * 3),
    ],
)
def test_what_a_record_becomes_by_hand(
    channel: Channel, drawn: list[float], replaced: list[float], kept: list[float]
) -> None:
    """γ = 3 of two values keeps half of the records; of each value's column, what it adds up to is 1."""
    np.testing.assert_allclose(channel.drawn(), drawn)
    np.testing.assert_allclose(channel.replaced(), replaced)
    np.testing.assert_allclose(channel.kept(), kept)
    ratios = [float(channel.amplification(place)) for place in range(channel.n_values)]
    np.testing.assert_allclose(ratios, np.array(kept) / replaced)
    np.testing.assert_allclose(channel.amplifications(), ratios)
    assert gamma_of(channel.retention, channel.n_values) == channel.gamma


@pytest.mark.parametrize("weights", [(1,), (1, 1, 1), (0, 1), (-1, 2)])
def test_every_value_of_a_part_has_a_weight(weights: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="a weight of 1 or more"):
        Channel(codes=(0, 1), gamma=Fraction(3), weights=weights)


def test_what_a_replaced_record_comes_to_on_average() -> None:
    even = [Channel(codes=(0, 2), gamma=Fraction(3)), Channel(codes=(1, 2, 4), gamma=Fraction(2))]
    worth = np.array([1.0, 3.0, 3.0, 6.0, 9.0])
    assert Laws.of(even, 5).average(worth).tolist() == [2.0, 6.0]
    uneven = [Channel(codes=(0, 2), gamma=Fraction(3), weights=(1, 3)), even[1]]
    np.testing.assert_allclose(Laws.of(uneven, 5).average(worth), [1 / 4 + 9 / 4, 6.0])
    np.testing.assert_allclose(Laws.of(uneven[:1], 5).average(worth[:2]), [1 / 4 + 9 / 4])


@pytest.mark.parametrize("weights", [None, (1, 3, 2)])
def test_counts_come_back_from_what_is_expected_of_them(weights: tuple[int, ...] | None) -> None:
    channel = Channel(codes=(0, 1, 2), gamma=Fraction(4), weights=weights)
    counts, p = np.array([50.0, 30.0, 20.0]), float(channel.retention)
    observed = p * counts + (1 - p) * counts.sum() * channel.drawn()
    np.testing.assert_allclose(reconstruct(observed, channel), counts)
