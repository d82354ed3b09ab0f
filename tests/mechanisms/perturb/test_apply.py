"""Published values follow each part's law exactly, whatever the batches."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius.mechanisms.dealing import draw_quota
from dalenius.mechanisms.perturb.apply import DataGroups, Perturber, data_rows, exact_coin, perturb_values
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.plan.methods import PerturbPlan, plan_as_in_paper
from dalenius.mechanisms.sharding import Census
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from dalenius.tables.codes import Encoder
from tests.chance import FALSE_ALARM

from .histograms import EXAMPLE
from .reference import perturb_batch

PLAN = plan_as_in_paper(tuple(4_000 * count for count in EXAMPLE), RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
TRUE_CODES = Randomness.seeded(1).stream("rows").permutation(np.repeat(np.arange(10), PLAN.counts))


def perturbed(plan: PerturbPlan, batch_size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random, remaining, batches = Randomness.seeded(seed), plan.quota(), []
    for number, start in enumerate(range(0, len(TRUE_CODES), batch_size)):
        codes = TRUE_CODES[start : start + batch_size]
        counts = np.bincount(codes, minlength=plan.n_values)
        quota = draw_quota(remaining, counts, random.stream("quota", number))
        remaining = remaining - quota
        streams = random.stream("part", number), random.stream("value", number)
        batches.append(perturb_batch(codes, quota, plan, *streams))
    assert not remaining.any()
    parts, published = zip(*batches, strict=True)
    return np.concatenate(parts), np.concatenate(published)


def transition_p_value(channel: Channel, true: np.ndarray, published: np.ndarray, retention: float) -> float:
    """Of the chi-squared test that the pairs of one part follow the matrix with that retention."""
    index = np.full(10, -1)
    index[list(channel.codes)] = np.arange(channel.n_values)
    assert (index[published] >= 0).all()
    seen = np.zeros((channel.n_values, channel.n_values))
    np.add.at(seen, (index[true], index[published]), 1)
    rows = seen.sum(axis=1, keepdims=True)
    expected = rows * (retention * np.eye(channel.n_values) + (1 - retention) / channel.n_values)
    statistic = ((seen - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, channel.n_values * (channel.n_values - 1)))


@pytest.mark.parametrize("batch_size", [200_000, 10_000])
def test_quotas_are_kept_and_transitions_follow_each_parts_matrix(batch_size: int) -> None:
    parts, published = perturbed(PLAN, batch_size, seed=3)
    np.testing.assert_array_equal(np.bincount(parts), [part.n_rows for part in PLAN.parts])
    for number, part in enumerate(PLAN.parts):
        rows = parts == number
        np.testing.assert_array_equal(np.bincount(TRUE_CODES[rows], minlength=10), PLAN.quota()[:, number])
        p_value = transition_p_value(part.channel, TRUE_CODES[rows], published[rows], float(part.retention))
        assert p_value > FALSE_ALARM


def test_a_retention_two_percent_off_is_rejected_on_enough_records() -> None:
    channel = Channel(codes=(0, 2, 5), gamma=Fraction(4))
    codes = np.tile(np.array([0, 2, 5]), 500_000)
    parts = np.zeros(len(codes), dtype=np.int32)
    published = perturb_values(codes, parts, [channel], Randomness.seeded(8).stream("value"))
    p = float(channel.retention)
    assert transition_p_value(channel, codes, published, p) > FALSE_ALARM
    for wrong in (0.98 * p, 1.02 * p):
        assert transition_p_value(channel, codes, published, wrong) < FALSE_ALARM


def test_streams_make_it_repeatable_and_independent_of_type() -> None:
    once, again, other = (perturbed(PLAN, 50_000, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(once, again)
    assert (once[1] != other[1]).any()
    assert once[0].dtype == once[1].dtype == np.int32


def test_an_empty_batch_is_perturbed_to_nothing() -> None:
    streams = Randomness.seeded(1).stream("a"), Randomness.seeded(1).stream("b")
    quota = np.zeros_like(PLAN.quota())
    parts, published = perturb_batch(np.zeros(0, dtype=np.int64), quota, PLAN, *streams)
    assert len(parts) == len(published) == 0


@given(st.fractions(0, 1), st.integers(1, 2**90))
def test_coins_are_exact_or_rounded_down(share: Fraction, stretch: int) -> None:
    probability = share * stretch / (stretch + 1)
    heads, sides = exact_coin(probability)
    assert 0 <= heads <= sides <= 2**63 - 1
    if probability.denominator < 2**63:
        assert Fraction(heads, sides) == probability
    assert 0 <= probability - Fraction(heads, sides) < Fraction(1, 2**62)


def test_a_denominator_beyond_63_bits_still_draws() -> None:
    channel = Channel(codes=(0, 1), gamma=Fraction(3 * 10**30 + 1, 10**30))
    codes = np.zeros(200_000, dtype=np.int64)
    published = perturb_values(codes, codes.astype(np.int32), [channel], Randomness.seeded(4).stream("v"))
    assert channel.retention.denominator > 2**63
    assert stats.binomtest(int((published == 0).sum()), len(codes), 0.75).pvalue > FALSE_ALARM


@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_coin_is_exact_as_long_as_its_sides_fit_in_63_bits(beyond: int) -> None:
    """What NumPy draws below is a number of 63 bits."""
    sides = 2**63 - 1 + beyond
    found = exact_coin(Fraction(sides - 1, sides))
    assert found == ((sides - 1, sides) if beyond <= 0 else (2**62 - 1, 2**62))


def test_a_perturber_uses_quotas_up_and_draws_each_batch_from_streams_of_its_own() -> None:
    """Two batches of the same records: the same law with other coins, and no quota is left."""
    codes = np.repeat(np.arange(10), [c // 2 for c in PLAN.counts]).astype(np.int32)
    perturber = Perturber(PLAN, Randomness.seeded(2))
    first, second = perturber.perturb(codes), perturber.perturb(codes)
    perturber.finish()
    together = np.concatenate([first[0], second[0]])
    np.testing.assert_array_equal(np.bincount(together), [part.n_rows for part in PLAN.parts])
    assert (first[1] != second[1]).any()
    halves = Perturber(PLAN, Randomness.seeded(2), PLAN.quota() // 2)  # a partition has a quota of its own
    halves.perturb(codes)
    halves.finish()
    again = Randomness.seeded(2)
    for number, (parts, published) in enumerate((first, second)):
        drawn = perturb_values(codes, parts, PLAN.channels, again.stream("perturb", "value", number))
        np.testing.assert_array_equal(drawn, published)


def _small() -> tuple[PerturbPlan, pa.RecordBatch, Encoder]:
    plan = plan_as_in_paper((4, 3, 3, 2), RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
    ill = [value for value, n in zip("abcd", plan.counts, strict=True) for _ in range(n)]
    batch = pa.RecordBatch.from_pydict({"age": list(range(12)), "ill": ill})
    return plan, batch, Encoder.of({"ill": pa.array(list("abcd"))})


def test_published_rows_number_their_parts_from_one() -> None:
    plan, batch, encoder = _small()
    perturber = Perturber(plan, Randomness.seeded(1))
    (published,) = data_rows(iter([batch]), ("age",), encoder, perturber, "tag")
    census = Census(counts=np.array([plan.counts]), group_rows=100)
    groups = DataGroups(
        plan=plan,
        census=census,
        encoder=encoder,
        quasi=("age",),
        schema=batch.schema,
        randomness=Randomness.seeded(1),
    )
    ((_, scattered),) = groups.scatter(0, iter([batch]))
    for found in (published, scattered):
        numbers = found.column("part").to_numpy()
        assert np.bincount(numbers).tolist() == [0, *(part.n_rows for part in plan.parts)]
        for number, part in enumerate(plan.parts, start=1):
            shown = set(pc.filter(found.column("ill"), pa.array(numbers == number)).to_pylist())
            assert shown <= {"abcd"[code] for code in part.channel.codes}
