"""R-suppression's closed forms are the printed algorithm; its draws follow its law; theorem 4."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction as Fr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from dalenius.errors import InputError, InternalError, PromiseNotMet
from dalenius.mechanisms.suppress.d_suppression import draw_from, expect_suppressed, integer_below
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM
from tests.mechanisms.suppress import brute

T = (10, 4, 2, 1, 1)
LAW: dict[tuple[int, ...], Fr] = {
    (4, 4, 2, 1, 1): Fr(4, 9),
    (2, 3, 2, 1, 1): Fr(5, 18),
    (3, 3, 2, 1, 1): Fr(1, 9),
    (1, 2, 2, 1, 1): Fr(1, 6),
}

skewed_tables = st.tuples(
    st.lists(st.integers(1, 40), min_size=2, max_size=7), st.integers(2, 7), st.integers(1, 60)
).map(lambda drawn: (tuple(sorted([max(drawn[0]) + drawn[2], *drawn[0]], reverse=True)), drawn[1]))


def test_the_papers_examples() -> None:
    table = RSuppression(T, 3)
    assert table.law() == LAW
    assert table.interval(2) == (2, 4)
    assert table.outcome(3) == (3, 3, 2, 1, 1)  # example 4: h = 2, F = 3


def test_the_law_is_the_printed_algorithms_on_every_small_table() -> None:
    for table, ell in brute.small_tables(15):
        law = RSuppression(table, ell).law()
        assert law == brute.r_law(table, ell)
        assert RSuppression(table, ell).expected_suppressed() == expect_suppressed(law, sum(table))


@given(drawn=skewed_tables)
@example(drawn=((41, 29, 18, 17, 9, 8), 3))  # candidacy asks for more from the first level above F_3 on,
@example(drawn=((38, 30, 19, 18), 3))  # from a later one,
@example(drawn=((27, 26, 26, 15, 10, 3), 4))  # and what it asks for leaves one level that is not eligible
@example(drawn=((25, 23, 22, 20, 16, 11), 5))
@settings(max_examples=150, deadline=None)
def test_expected_suppression_needs_no_list_of_levels(drawn: tuple[tuple[int, ...], int]) -> None:
    ranked, ell = drawn[0], min(drawn[1], len(drawn[0]))
    if ranked[0] * ell <= sum(ranked):
        return
    uniform = (Fr(1, len(ranked)),) * len(ranked)  # of the R* family
    for table in (RSuppression(ranked, ell), RSuppression(ranked, ell, uniform)):
        law = table.law()
        assert sum(law.values()) == 1
        assert len(law) <= table.n_outcomes()
        assert table.expected_suppressed() == expect_suppressed(law, sum(ranked))


def chi_square(seen: Counter[tuple[int, ...]], law: dict[tuple[int, ...], Fr]) -> float:
    total = sum(seen.values())
    assert set(seen) <= set(law)
    return float(stats.chisquare([seen[k] for k in law], [float(p) * total for p in law.values()]).pvalue)


def test_seeded_runs_follow_the_law_and_reject_a_wrong_one() -> None:
    stream, table = Randomness.seeded(7).stream("suppress"), RSuppression(T, 3)
    runs = Counter(table.draw(stream) for _ in range(6_000))
    draws = Counter(draw_from(LAW, stream) for _ in range(6_000))
    wrong = LAW | {(4, 4, 2, 1, 1): Fr(7, 18), (3, 3, 2, 1, 1): Fr(1, 6)}  # off by 1/18
    for seen in (runs, draws):
        assert chi_square(seen, LAW) > FALSE_ALARM
        assert chi_square(seen, wrong) < FALSE_ALARM


def test_a_view_can_come_out_empty() -> None:
    assert RSuppression((10, 4, 2), 3).law()[0, 0, 0] == Fr(1, 9)


def test_theorem_4_no_member_of_the_family_expects_to_withhold_less() -> None:
    # The expectation is linear in the probabilities of h, each at most 1/ℓ: the best member gives 1/ℓ to
    # the ℓ cheapest h. So R is best if what it withholds given h never falls from h to h + 1.
    for table, ell in brute.small_tables(16):
        n_rows = sum(table)
        given_h = []
        for h in range(1, len(table) + 1):
            low, high = RSuppression(table, ell).interval(h)
            outcomes = [RSuppression(table, ell).outcome(level) for level in range(low, high + 1)]
            given_h.append(Fr(sum(n_rows - sum(kept) for kept in outcomes), len(outcomes)))
        assert sorted(given_h) == given_h
        assert RSuppression(table, ell).expected_suppressed() == sum(given_h[:ell]) / ell


def test_the_second_step_of_theorem_4_withholds_the_least_given_the_first() -> None:
    for table, ell in brute.small_tables(11, (2, 3, 4)):
        n_rows, method = sum(table), RSuppression(table, ell)
        for level in range(table[0] + 1):
            views = brute.all_views((level, *table[1:]), ell)
            best = max(sum(view) for view in views if brute.candidate(view, n_rows, ell))
            assert sum(method.outcome(level)) == best


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        ((Fr(1, 2), Fr(1, 4), Fr(1, 4), Fr(0), Fr(0)), PromiseNotMet),
        ((Fr(1, 3), Fr(1, 3), Fr(0), Fr(0), Fr(0)), InputError),
        ((Fr(1, 3),) * 3, InputError),
    ],
)
def test_what_is_not_in_the_family_is_refused(weights: tuple[Fr, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        RSuppression(T, 3, weights)


def test_billions_of_rows_are_planned_and_drawn_in_closed_form() -> None:
    table = RSuppression([10**9 // i for i in range(1, 21)], 5)
    expected = table.expected_suppressed()
    table.draw(Randomness.seeded(1).stream("large"))
    assert expected > table.n_rows - sum(table.unsafe)


def test_integers_beyond_a_machine_word_are_drawn_evenly() -> None:
    stream, bound = Randomness.seeded(3).stream("wide"), 3 * 2**100
    thirds = Counter(integer_below(bound, stream) // 2**100 for _ in range(3_000))
    assert stats.chisquare([thirds[third] for third in range(3)]).pvalue > FALSE_ALARM
    assert integer_below(1, stream) == 0


def test_a_law_that_does_not_add_up_is_a_bug() -> None:
    stream = Randomness.seeded(1).stream("law")
    with pytest.raises(InternalError, match="1/4"):
        [draw_from({"a": Fr(1, 4)}, stream) for _ in range(50)]
