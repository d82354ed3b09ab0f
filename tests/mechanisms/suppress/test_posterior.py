"""The attacker: exact Bayes by enumeration, its faster twins, and mechanisms that must be caught."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from fractions import Fraction as Fr
from itertools import product

import numpy as np
import pytest

from dalenius.mechanisms.suppress import r_posterior
from dalenius.mechanisms.suppress.d_suppression import (
    beliefs_from,
    cut_to_level,
    minimal_suppression,
    n_arrangements,
    safe_d,
    safe_posterior,
)
from dalenius.mechanisms.suppress.r_posterior import r_posteriors, work_of, worst_r_posterior
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from dalenius.randomness import Randomness
from tests.mechanisms.suppress import brute
from tests.mechanisms.suppress.brute import (
    beliefs_if_histogram_is_known,
    beliefs_of_uniform_prior,
    mass_above,
    violating_partitions,
)

Counts = tuple[int, ...]
Law = dict[Counts, Fr]
SIZES = [(18, 5, 3), (12, 4, 3), (10, 3, 2), (14, 4, 3), (13, 4, 4), (15, 5, 4), (11, 5, 2), (16, 5, 5)]


def stream() -> np.random.Generator:
    return Randomness.seeded(0).stream("posterior")


def r_law(table: Counts, ell: int) -> Law:
    return RSuppression(table, ell).law()


def safe_law(table: Counts, ell: int) -> Law:
    return {safe_d(table, ell): Fr(1)}


def safe_law_one_level_early(table: Counts, ell: int) -> Law:
    return {cut_to_level(table, table[ell - 1] + 1): Fr(1)}


def minimal_law(table: Counts, ell: int) -> Law:
    return {minimal_suppression(table, ell): Fr(1)}


@pytest.mark.parametrize(
    ("n_rows", "n_values", "ell", "worst"), [(18, 5, 3, 0.717), (12, 4, 3, 0.541), (10, 3, 2, 0.714)]
)
def test_r_suppression_breaks_the_bound_that_theorem_3_prints(
    n_rows: int, n_values: int, ell: int, worst: float
) -> None:
    beliefs = beliefs_of_uniform_prior(n_rows, n_values, ell, r_law)
    assert round(float(beliefs.worst()), 3) == worst
    assert beliefs.worst() > Fr(1, ell)


def test_most_of_what_r_suppression_publishes_breaks_the_bound() -> None:
    beliefs = beliefs_of_uniform_prior(18, 5, 3, r_law)
    assert round(float(mass_above(beliefs, Fr(1, 3))), 2) == 0.60
    assert mass_above(beliefs, Fr(3, 4)) == 0


@pytest.mark.parametrize(("n_rows", "n_values", "ell"), SIZES)
def test_safe_d_keeps_the_bound_and_stopping_early_is_caught(n_rows: int, n_values: int, ell: int) -> None:
    assert beliefs_of_uniform_prior(n_rows, n_values, ell, safe_law).worst() <= Fr(1, ell)
    assert beliefs_of_uniform_prior(n_rows, n_values, ell, safe_law_one_level_early).worst() > Fr(1, ell)


@pytest.mark.parametrize("ell", [2, 3, 4])
def test_cutting_to_eligibility_alone_is_caught(ell: int) -> None:
    assert beliefs_of_uniform_prior(18, 5, ell, minimal_law).worst() > Fr(1, ell)


def test_safe_d_keeps_the_bound_for_any_prior_that_treats_labels_alike() -> None:
    draws = stream()
    for _ in range(30):
        laws = [
            (int(draws.integers(1, 10**6)), safe_law(table, 3)) for table in violating_partitions(18, 5, 3)
        ]
        assert beliefs_from(laws).worst() <= Fr(1, 3)
    for table, ell in brute.small_tables(12):
        worst = beliefs_if_histogram_is_known(safe_law(table, ell)).worst()
        assert worst == safe_posterior(table, ell).value <= Fr(1, ell)


def test_r_suppression_against_one_who_knows_the_sorted_counts() -> None:
    beliefs = beliefs_if_histogram_is_known(r_law((10, 4, 2, 1, 1), 3))
    assert beliefs.worst() == Fr(1, 2)
    assert beliefs.of_view((2, 3, 2, 1, 1)) == {3: 0, 2: Fr(1, 2), 1: 0}


def worst_if_ties_are_broken_by_label(n_rows: int, n_values: int, ell: int) -> Fr:
    """Safe D-suppression where, of equally common values, the one with the lowest label is S_1."""
    joint: dict[Counts, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for rest in product(range(1, n_rows), repeat=n_values - 1):
        table = (n_rows - sum(rest), *rest)
        if table[0] >= 1 and max(table) * ell > n_rows:
            level = sorted(table, reverse=True)[ell - 1]
            joint[cut_to_level(table, level)][table.index(max(table))] += 1
    return max(Fr(max(by_label.values()), sum(by_label.values())) for by_label in joint.values())


def test_a_public_order_of_equal_counts_leaks_under_safe_d() -> None:
    assert round(float(worst_if_ties_are_broken_by_label(18, 5, 3)), 3) == 0.367


def test_relabelling_loses_nothing() -> None:
    """Beliefs on sorted tables equal those over every labelled table and every order of ties."""
    n_rows, n_values, ell = 9, 3, 3
    joint: dict[Counts, dict[int, Fr]] = defaultdict(lambda: defaultdict(Fr))
    for first, second in product(range(1, n_rows), repeat=2):
        table = (first, second, n_rows - first - second)
        if min(table) < 1 or max(table) * ell <= n_rows:
            continue
        orders = [
            (a, b, 3 - a - b)
            for a, b in product(range(3), repeat=2)
            if a != b and table[a] >= table[b] >= table[3 - a - b]
        ]
        for order in orders:
            for kept, p in r_law(tuple(table[value] for value in order), ell).items():
                view = tuple(dict(zip(order, kept, strict=True))[value] for value in range(3))
                joint[view][order[0]] += p / len(orders)
    beliefs = beliefs_of_uniform_prior(n_rows, n_values, ell, r_law)
    for view, by_label in joint.items():
        total = sum(by_label.values())
        expected = beliefs.of_view(view)
        assert all(by_label[value] / total == expected[view[value]] for value in range(3))


@pytest.mark.parametrize(("n_rows", "n_values", "ell"), SIZES)
def test_the_posterior_of_one_view_is_that_of_the_enumeration(n_rows: int, n_values: int, ell: int) -> None:
    beliefs = beliefs_of_uniform_prior(n_rows, n_values, ell, r_law)
    for view in beliefs.joint:
        found = r_posteriors(view, n_rows, ell, stream())
        assert {count: posterior.value for count, posterior in found.items()} == beliefs.of_view(view)
        assert all(posterior.how in {"exact", "closed form"} for posterior in found.values())
        assert all(posterior.low == posterior.value == posterior.high for posterior in found.values())


def test_the_worst_over_a_law_is_that_of_the_enumeration() -> None:
    beliefs = beliefs_of_uniform_prior(14, 4, 3, r_law)
    for table in violating_partitions(14, 4, 3):
        worst = worst_r_posterior(RSuppression(table, 3), 40, stream())
        assert worst is not None
        assert worst.value == beliefs.worst_of(r_law(table, 3))


def test_a_simulated_posterior_says_so_and_its_interval_holds_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beliefs = beliefs_of_uniform_prior(18, 5, 3, r_law)
    monkeypatch.setattr(r_posterior, "N_LISTED", 1)
    hows = set()
    for view in beliefs.joint:
        exact = beliefs.of_view(view)
        for count, found in r_posteriors(view, 18, 3, stream()).items():
            assert found.low <= exact[count] <= found.high
            hows.add(found.how)
    assert hows == {"simulated", "closed form"}


def test_what_was_not_looked_at_may_be_worse() -> None:
    table = RSuppression((2_000, 500, 333, 250, 200, 166), 3)
    worst = worst_r_posterior(table, 4, stream())
    assert worst is not None
    assert (worst.how, worst.high) == ("simulated", Fr(1))
    assert worst.value > Fr(1, 3)


def test_what_is_too_laborious_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = RSuppression((10, 4, 2, 1, 1), 3)
    works = [work_of(view, 18, 3) for view in table.law()]
    monkeypatch.setattr(r_posterior, "MOST_WORK", min(works) - 1)
    assert worst_r_posterior(table, 40, stream()) is None
    monkeypatch.setattr(r_posterior, "MOST_WORK", min(works))
    worst = worst_r_posterior(table, 40, stream())
    assert worst is not None
    assert (worst.how, worst.high) == ("simulated", Fr(1))


def test_large_tables_in_closed_form_where_only_the_commonest_value_was_cut() -> None:
    # S_1 was cut to 382 of 1,000 million; no other cut is possible, and Bayes has one table per value.
    table = RSuppression([10**9 // i for i in range(1, 21)], 5)
    view = table.outcome(382_372_912)
    assert sum(view) == table.n_rows - (10**9 - 382_372_912)
    found = r_posteriors(view, table.n_rows, 5, stream())
    assert {posterior.how for posterior in found.values()} == {"closed form"}
    assert sum(posterior.value for posterior in found.values()) == 1
    # S_1 = 382 or 333 million: the widths of the intervals [F_{h+1}, F_h] from which F was picked.
    suspect, other = found[382_372_912].value, found[333_333_333].value
    assert suspect / other == Fr(382_372_912 - 250_000_000 + 1, 500_000_000 - 333_333_333 + 1)


def test_sizes_of_the_prior() -> None:
    tables = list(violating_partitions(18, 5, 3))
    labelled = [t for t in product(range(1, 15), repeat=5) if sum(t) == 18 and max(t) * 3 > 18]
    assert sum(map(n_arrangements, tables)) == len(labelled)


@pytest.mark.parametrize("n_views", [2, 5, 24])
def test_views_are_spread_from_the_highest_level_to_the_lowest(n_views: int) -> None:
    """Of 25 levels, 29 to 5, as many as may be looked at, in even steps."""
    table = RSuppression((40, 30, 5, 5), 2)
    views = r_posterior._spread_views(table, n_views)
    assert len(views) == n_views < table.n_outcomes() == 25
    assert (views[0], views[-1]) == (table.outcome(29), table.outcome(5))
    if n_views == 5:
        assert views == [table.outcome(level) for level in (29, 23, 17, 11, 5)]


def test_a_table_with_one_outcome_has_one() -> None:
    table = RSuppression((4, 1, 1), 2)
    assert table.n_outcomes() == len(table.law()) == 1


def test_a_mean_that_no_draw_shows_is_bounded_with_a_miss_of_one_in_a_thousand() -> None:
    """A mean of c/N is missed by N draws with at most e^-c: the least whole c for one in a thousand."""
    assert math.exp(-r_posterior._NO_HIT) < 0.001 < math.exp(1 - r_posterior._NO_HIT)


@pytest.mark.parametrize(("n_rows", "n_values", "ell"), SIZES)
def test_the_work_is_never_less_than_the_tables_that_can_have_left_the_view(
    n_rows: int, n_values: int, ell: int
) -> None:
    """Every choice of values that lost records, up to relabelling, with every way to have lost so many."""
    for view in beliefs_of_uniform_prior(n_rows, n_values, ell, r_law).joint:
        strata = [s for count in set(view) for s in r_posterior._strata(view, count, n_rows, ell)]
        n_withheld, top = n_rows - sum(view), view[0]
        assert work_of(view, n_rows, ell) == n_values * sum(math.comb(n_withheld, len(s.cut)) for s in strata)
        assert len({(s.suspect, s.cut) for s in strata}) == len(strata)  # nothing is looked at twice
        for stratum in strata:
            near = Counter(view[value] for value in range(n_values) if value != stratum.suspect)
            cut = Counter(view[value] for value in stratum.cut)
            assert set(cut) <= {top, top - 1}
            assert stratum.n_alike == math.prod(math.comb(near[kept], n) for kept, n in cut.items())


@pytest.mark.parametrize(("fewer", "how"), [(0, "exact"), (1, "simulated")])
def test_who_looks_at_as_many_views_as_there_are_is_sure(fewer: int, how: str) -> None:
    table = RSuppression((10, 4, 2, 1, 1), 3)
    worst = worst_r_posterior(table, table.n_outcomes() - fewer, stream())
    assert worst is not None
    assert (worst.how, worst.high == 1) == (how, bool(fewer))
