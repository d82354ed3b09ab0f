"""The exact method: no posterior above 1/ℓ, in Fractions, on every small table; less than R withholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction as Fr
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.errors import InternalError
from dalenius.mechanisms.suppress import exact
from dalenius.mechanisms.suppress import exact as exact_programme
from dalenius.mechanisms.suppress.d_suppression import (
    beliefs_from,
    expect_suppressed,
    n_arrangements,
    safe_d,
    unsafe_d,
)
from dalenius.mechanisms.suppress.exact import (
    _withheld_from_group_by_safe_d,
    best_laws,
    exact_law,
    exact_posterior,
    keep_grouped,
    level_views,
    tables_like,
)
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from tests.mechanisms.suppress import brute
from tests.mechanisms.suppress.brute import (
    beliefs_if_histogram_is_known,
    beliefs_of_uniform_prior,
    violating_partitions,
)

Counts = tuple[int, ...]
Law = Mapping[Counts, Fr]
SMALL = [
    (n_rows, n_values, ell)
    for n_values in range(2, 6)
    for ell in range(2, min(n_values, 4) + 1)
    for n_rows in range(n_values, 17)
    if any(violating_partitions(n_rows, n_values, ell))
]


def r_law(table: Counts, ell: int) -> Law:
    return RSuppression(table, ell).law()


def safe_law(table: Counts, ell: int) -> Law:
    return {safe_d(table, ell): Fr(1)}


def unsafe_law(table: Counts, ell: int) -> Law:
    return {unsafe_d(table, ell): Fr(1)}


def grouped_law(table: Counts, ell: int) -> Law:
    return {keep_grouped(table, ell): Fr(1)}


def average_share(n_rows: int, n_values: int, ell: int, law_of: Callable[[Counts, int], Law]) -> Fr:
    """The expected share withheld, under the uniform prior."""
    tables = list(violating_partitions(n_rows, n_values, ell))
    total = sum((n_arrangements(t) * expect_suppressed(law_of(t, ell), n_rows) for t in tables), Fr(0))
    return total / sum(map(n_arrangements, tables)) / n_rows


def optimum_share(n_rows: int, n_values: int, ell: int) -> float:
    """The linear programme over all pairs of a table and an eligible view below it."""
    tables = list(violating_partitions(n_rows, n_values, ell))
    laws = best_laws(tables, ell, all_views_up_to_relabelling)
    assert beliefs_from(zip(map(n_arrangements, tables), laws, strict=True)).worst() <= Fr(1, ell)
    return float(average_share(n_rows, n_values, ell, lambda table, _: laws[tables.index(table)]))


def all_views_up_to_relabelling(table: Counts, ell: int) -> set[Counts]:
    """Every view, one for each way of exchanging values that have equal counts in the table."""
    canonical = set()
    for view in brute.all_views(table, ell):
        pairs = zip(table[1:], view[1:], strict=True)
        ties = [sorted((kept for _, kept in tie), reverse=True) for _, tie in groupby(pairs, lambda p: p[0])]
        canonical.add((view[0], *(kept for tie in ties for kept in tie)))
    return canonical


def test_no_posterior_exceeds_the_bound_on_any_small_table() -> None:
    for n_rows, n_values, ell in SMALL:
        for law_of in (exact_law, grouped_law):
            beliefs = beliefs_of_uniform_prior(n_rows, n_values, ell, law_of)
            assert beliefs.worst() <= Fr(1, ell), (n_rows, n_values, ell)


def test_laws_add_up_and_publish_only_eligible_parts_of_the_table() -> None:
    for table, ell in brute.small_tables(14, (3, 4, 5)):
        for law in (exact_law(table, ell), grouped_law(table, ell)):
            assert sum(law.values()) == 1
            assert min(law.values()) > 0
            for kept in law:
                assert brute.eligible(kept, ell)
                assert all(left <= count for left, count in zip(kept, table, strict=True))


def test_it_costs_less_than_r_and_than_safe_d_on_average() -> None:
    for n_rows, n_values, ell in SMALL:
        ours = average_share(n_rows, n_values, ell, exact_law)
        slack = Fr(1, 10**9)  # what rounding the solver's answer may cost
        assert ours <= average_share(n_rows, n_values, ell, safe_law) + slack
        assert ell == 2 or ours <= average_share(n_rows, n_values, ell, r_law) + slack
        assert average_share(n_rows, n_values, ell, grouped_law) >= ours - slack


def test_with_l_2_even_the_optimum_can_cost_more_than_r_which_breaks_the_bound() -> None:
    ours, randomized = average_share(16, 5, 2, exact_law), average_share(16, 5, 2, r_law)
    assert optimum_share(16, 5, 2) == pytest.approx(float(ours), abs=1e-9)
    assert ours > randomized
    assert beliefs_of_uniform_prior(16, 5, 2, r_law).worst() > Fr(3, 4)


@pytest.mark.parametrize(
    ("n_rows", "n_values", "ell", "shares"),
    [
        (14, 5, 3, (0.294, 0.301, 0.374, 0.252)),
        (12, 4, 3, (0.399, 0.412, 0.470, 0.348)),
        (14, 4, 3, (0.369, 0.389, 0.438, 0.328)),
    ],
)
def test_the_optimum_and_the_other_methods(
    n_rows: int, n_values: int, ell: int, shares: tuple[float, ...]
) -> None:
    others = [average_share(n_rows, n_values, ell, law) for law in (r_law, safe_law, unsafe_law)]
    found = (optimum_share(n_rows, n_values, ell), *map(float, others))
    assert tuple(round(share, 3) for share in found) == shares
    ours = float(average_share(n_rows, n_values, ell, exact_law))
    assert found[0] - 1e-9 <= ours < min(found[0] * 1.005, found[1])


def test_whatever_the_solver_returns_the_bound_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = list(violating_partitions(14, 5, 3))

    def cheapest_view_only(
        tables: list[Counts], weights: list[int], pairs: list[tuple[int, Counts]], ell: int
    ) -> list[float]:
        best = {number: max(sum(v) for k, v in pairs if k == number) for number, _ in pairs}
        return [1.000001 if sum(view) == best[number] else -0.1 for number, view in pairs]

    monkeypatch.setattr(exact_programme, "_solve", cheapest_view_only)
    beliefs = beliefs_from(zip(map(n_arrangements, tables), best_laws(tables, 3), strict=True))
    assert beliefs.worst() <= Fr(1, 3)
    monkeypatch.setattr(exact_programme, "_trim", untrimmed)  # the control: the repair left out
    beliefs = beliefs_from(zip(map(n_arrangements, tables), best_laws(tables, 3), strict=True))
    assert beliefs.worst() > Fr(1, 3)


def untrimmed(
    shares: dict[tuple[int, Counts], int], weights: list[int], ell: int
) -> dict[tuple[int, Counts], Fr]:
    return {pair: Fr(grains, 2**40) for pair, grains in shares.items()}


@given(top=st.lists(st.integers(0, 60), min_size=2, max_size=5), data=st.data())
@settings(max_examples=200, deadline=None)
def test_a_group_of_tables_leaves_one_view(top: list[int], data: st.DataObject) -> None:
    """Each of the ℓ largest values of the view may have been S_1: its table leaves the same view."""
    tail = data.draw(st.lists(st.integers(1, 20), max_size=4).map(lambda t: sorted(t, reverse=True)))
    base, ell = (tail[0] if tail else 1), len(top)
    others = [base + more for more in sorted(top, reverse=True)[1:]]
    ranked = (data.draw(st.integers(max(others), 300)), *others, *tail)
    if ranked[0] * ell <= sum(ranked) or keep_grouped(ranked, ell) == safe_d(ranked, ell):
        return
    view = tuple(sorted(keep_grouped(ranked, ell), reverse=True))
    sources = set()
    for n_removed in range(1, ranked[0] + 1):
        left = sorted((ranked[0] - n_removed, *ranked[1:]), reverse=True)
        tables = [(*left[:i], left[i] + n_removed, *left[i + 1 :]) for i in range(ell)]
        kept = [keep_grouped(tuple(sorted(t, reverse=True)), ell) for t in tables]
        if all(tuple(sorted(k, reverse=True)) == view for k in kept) and all(
            t[i] == max(t) and t.count(t[i]) == 1 for i, t in enumerate(tables)
        ):
            sources.add(n_removed)
    assert sources


@given(st.lists(st.integers(1, 40), min_size=2, max_size=6), st.integers(2, 4), st.integers(1, 20))
def test_what_safe_suppression_withholds_of_a_group_is_that_of_its_tables(
    counts: list[int], ell: int, more: int
) -> None:
    """From each of the ℓ largest values of the view so much was removed that it was the largest."""
    left = sorted((counts * ell)[: max(len(counts), ell)], reverse=True)
    n_removed = left[0] - left[ell - 1] + more
    withheld = 0
    for place in range(ell):
        table = sorted((*left[:place], left[place] + n_removed, *left[place + 1 :]), reverse=True)
        withheld += sum(table) - sum(safe_d(table, ell))
    assert _withheld_from_group_by_safe_d(left, n_removed, ell) == withheld


def group_of(ranked: Counts, ell: int) -> list[Counts] | None:
    """The ℓ tables that leave one view together, this one among them, before the view is made eligible."""
    base, count = (*ranked, 0)[ell], sum(ranked) // ell + 1
    starts = [count]
    while starts[-1] <= ranked[0]:
        starts.append(2 * starts[-1] - base)
    start = starts[-2]
    if ranked[1] >= start:
        return None
    left = sorted((ranked[0] - (start - base), *ranked[1:]), reverse=True)
    return [(*left[:i], left[i] + start - base, *left[i + 1 :]) for i in range(ell)]


def test_a_group_is_kept_unless_safe_suppression_withholds_less_of_it() -> None:
    n_kept = n_left = 0
    for table, ell in brute.small_tables(13):
        tables, kept = group_of(table, ell), keep_grouped(table, ell)
        if tables is None:
            assert kept == safe_d(table, ell)
            continue
        assert table in {tuple(sorted(one, reverse=True)) for one in tables}
        by_safe = sum(sum(one) - sum(safe_d(sorted(one, reverse=True), ell)) for one in tables)
        left = tuple(map(min, *tables))
        view = next(
            state for state in brute.d_states(sorted(left, reverse=True)) if brute.eligible(state, ell)
        )
        if ell * (sum(table) - sum(view)) <= by_safe:
            assert sorted(kept, reverse=True) == sorted(view, reverse=True)
            n_kept += 1
        else:
            assert kept == safe_d(table, ell)
            n_left += 1
    assert min(n_kept, n_left) > 20


def test_one_who_knows_the_sorted_counts_may_learn_more() -> None:
    law = exact_law((10, 4, 2, 1, 1), 3)
    assert beliefs_if_histogram_is_known(law).worst() > Fr(1, 3)


def test_the_stated_posterior_is_that_of_the_enumeration() -> None:
    beliefs = beliefs_of_uniform_prior(14, 5, 3, exact_law)
    for table in violating_partitions(14, 5, 3):
        stated = exact_posterior(table, 3)
        assert (stated.how, stated.value) == ("exact", beliefs.worst_of(exact_law(table, 3)))


def test_both_forms_keep_the_bound_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "N_SOLVED", 8)  # so that some classes are solved and some are grouped
    sizes = {len(tables_like(table[3:], 16, 3, 100)) > 8 for table in violating_partitions(16, 5, 3)}
    assert sizes == {True, False}
    assert beliefs_of_uniform_prior(16, 5, 3, exact_law).worst() == Fr(1, 3)
    stated = exact_posterior((10, 3, 1, 1, 1), 3)
    assert (stated.how, stated.high) == ("closed form", Fr(1, 3))


def test_large_tables() -> None:
    zipf = tuple(10**9 // i for i in range(1, 21))
    law = exact_law(zipf, 5)
    ours = expect_suppressed(law, sum(zipf))
    assert ours < RSuppression(zipf, 5).expected_suppressed()
    assert ours < sum(zipf) - sum(safe_d(zipf, 5))


def test_a_solver_that_gives_up_is_an_internal_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoAnswer:
        x = None
        message = "gave up"

    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: NoAnswer)
    with pytest.raises(InternalError, match="gave up"):
        best_laws([(4, 1, 1)], 2)


@pytest.mark.parametrize("table", [(3, 1), (5, 4), (4, 1, 1)])
def test_with_no_more_values_than_the_law_needs_all_may_be_withheld(table: tuple[int, ...]) -> None:
    """There is no value after the ℓ-th: S_1 may be cut to nothing, and then everything is."""
    views = level_views(table, len(table))
    assert (0,) * len(table) in views
    assert table not in views
