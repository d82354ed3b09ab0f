"""The suppression and αβ papers on made-up data: rates, counts and estimates worked out by hand."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from dalenius.evaluate.metrics import Spread
from dalenius.mechanisms.alphabeta.plan.law import USUAL_RETENTION, ViewLaw, choose_law, usual_decay
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.reproduce import alphabeta, suppression
from dalenius.reproduce.alphabeta import Queries
from dalenius.reproduce.suppression import (
    METHODS,
    RATE_COLUMNS,
    adult_samples,
    first_violating_exponent,
    linear,
    suppression_rates,
    violating,
    zipf,
)
from tests.reproduce.conftest import ADULT


def test_rates_of_the_papers_table() -> None:
    """T = {10, 4, 2, 1, 1}, ℓ = 3: Unsafe D withholds 6 of 18, Safe D 10; R by its exact law."""
    rates = suppression_rates(np.array([[10, 4, 2, 1, 1], [1, 1, 10, 2, 4]]), 3)
    assert set(rates) == set(RATE_COLUMNS)
    for name, withheld in (("unsafe", 6), ("safe", 10), ("all", 18)):
        assert rates[name] == pytest.approx([withheld / 18] * 2)
    # {4,4,2,1,1} 4/9, {2,3,2,1,1} 5/18, {3,3,2,1,1} 1/9, {1,2,2,1,1} 1/6: kept 12, 9, 10 and 7 of 18
    kept = Fraction(4, 9) * 12 + Fraction(5, 18) * 9 + Fraction(1, 9) * 10 + Fraction(1, 6) * 7
    assert rates["randomized"] == pytest.approx([float(1 - kept / 18)] * 2)
    assert sum(RSuppression((10, 4, 2, 1, 1), 3).law().values()) == 1
    assert (rates["unsafe"] <= rates["grouped"]).all()


def test_eligible_samples_cost_nothing_and_samples_of_few_values_everything() -> None:
    rates = suppression_rates(np.array([[4, 4, 4, 0], [9, 1, 0, 0], [3, 3, 3, 3]]), 3)
    for name in RATE_COLUMNS:
        assert rates[name].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(("ell", "broken"), [(2, [False, True, False]), (3, [False, True, True])])
def test_a_histogram_breaks_eligibility_above_one_in_l(ell: int, broken: list[bool]) -> None:
    """3 of 9 are exactly a third, 5 of 9 above a half, 4 of 9 above a third."""
    samples = np.array([[3, 3, 3], [5, 2, 2], [4, 3, 2]])
    assert violating(samples, ell).tolist() == broken


def test_formulas_of_histograms() -> None:
    assert zipf(2.0, n_values=4, scale=144).tolist() == [144, 36, 16, 9]
    assert zipf(0.0, n_values=3).tolist() == [1_000] * 3
    assert linear(5, scale=100).tolist() == [100, 80, 60, 40, 20]


def test_where_zipfs_law_begins_to_violate() -> None:
    """Just above the exponent a table of 20 values is too skewed for 5, just below it is not."""
    found = first_violating_exponent()
    assert found == pytest.approx(0.759, abs=1e-3)
    shares = [1 / i**found for i in range(1, 21)]
    assert shares[0] / sum(shares) == pytest.approx(0.2, abs=1e-4)
    assert first_violating_exponent(4) > found


@pytest.fixture
def few_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = adult_samples
    monkeypatch.setattr(suppression, "N_SAMPLES", 200)
    monkeypatch.setattr(suppression, "adult_samples", lambda share, n=200: honest(share * 20, n))


@pytest.mark.usefixtures("made_up")
def test_samples_are_drawn_without_replacement() -> None:
    samples = adult_samples(10.0, 50)
    assert samples.shape == (50, 5)
    assert (samples.sum(axis=1) == 20).all()
    assert (samples <= np.array(ADULT)).all()
    whole = adult_samples(100.0, 3)
    assert whole.tolist() == [list(ADULT)] * 3
    assert (adult_samples(10.0, 50) == samples).all()


@pytest.mark.usefixtures("made_up")
def test_figure_4_finds_the_least_skewed_attribute() -> None:
    outcome = suppression._figure4()
    shares = {(row[0], row[1]): float(row[2]) for row in outcome.rows}
    assert [shares["occupation", rank] for rank in range(1, 6)] == pytest.approx([n / 2 for n in ADULT])
    top = {name: share for (name, rank), share in shares.items() if rank == 1}
    least = min((name for name in top if name != "age"), key=lambda name: top[name])
    assert outcome.differs.startswith(f"{least} is the least skewed except for age")
    assert f"age's {top['age']:.1f} %" in outcome.differs


@pytest.mark.usefixtures("made_up", "few_samples")
def test_figures_5_to_7_have_every_share_and_diversity() -> None:
    figure_5 = suppression._figure5()
    assert len(figure_5.rows) == 6 * 5
    by_place = {(row[0], row[1]): float(row[2]) for row in figure_5.rows}
    for share in suppression.SHARES:
        ordered = [by_place[share, f"l = {ell}"] for ell in suppression.DIVERSITIES]
        assert ordered == sorted(ordered)  # a larger l is broken more often
    figure_6, figure_7 = suppression._figure6(), suppression._figure7()
    assert len(figure_6.rows) == 6 * len(METHODS)
    assert len(figure_7.rows) == 5 * len(METHODS)
    at = suppression._of(list(figure_7.rows), 6)
    # the made-up adults have five occupations: for l = 6 nothing can be published
    assert set(at.values()) == {100.0}
    assert suppression._summary({"Suppress-All": 1.0, "Safe D": 2.0, "x": 3.5}) == "Safe D 2.00 %, x 3.50 %"


def test_rates_are_means_over_samples_in_per_cent() -> None:
    samples = np.array([[10, 4, 2, 1, 1], [4, 4, 4, 3, 3]])
    rows = suppression._rates([(7.0, samples, 3)], {7.0: {"safe": "so much"}})
    assert len(rows) == len(METHODS)
    named = {row[1]: row for row in rows}
    at, _, rate, stated = named["Safe D"]
    assert (at, stated) == (7.0, "so much")
    assert rate == pytest.approx(100 * 10 / 18 / 2)
    assert named["Unsafe D (bound)"][3] == "-"
    assert suppression._of(rows, 8.0) == {}


DOMAIN = Domain.of({"a": range(2), "b": range(3), "c": range(2), "d": range(2)})


def test_queries_of_up_to_three_attributes_are_counted_cell_by_cell() -> None:
    rng = np.random.default_rng(1)
    rows = tuple(rng.integers(0, size, 20) for size in DOMAIN.sizes)
    counted = alphabeta._counts(DOMAIN, rows)
    chosen = [own for k in (1, 2, 3) for own in combinations(range(4), k)]
    assert len(counted) == len(chosen) == 14
    for (found, n_domain), columns in zip(counted, chosen, strict=True):
        cells = list(product(*(range(DOMAIN.sizes[c]) for c in columns)))
        by_hand = [
            sum(all(rows[c][i] == v for c, v in zip(columns, cell, strict=True)) for i in range(20))
            for cell in cells
        ]
        assert found.tolist() == by_hand
        assert set(n_domain.tolist()) == {24 / len(cells)}


def test_example_4_1_has_549_such_tuples_and_not_190() -> None:
    """score < 3·age over ages 20–39, three nations and scores 81–100, counted one by one."""
    domain, table = alphabeta._scores()
    assert domain.size == 1_200
    every = tuple(axis.ravel() for axis in np.indices(domain.sizes))
    by_hand = 3 * sum(score < 3 * age for age in range(20, 40) for score in range(81, 101))
    assert alphabeta._count_satisfying(every) == by_hand == 549
    assert (
        alphabeta._count_satisfying(table) == sum(score < 3 * age for age, _, score in alphabeta.SCORES) == 4
    )


@pytest.mark.parametrize(("views", "posterior"), [(2, 0.333), (8, 0.97)])
def test_who_joins_at_the_last_view_and_appears_there(views: int, posterior: float) -> None:
    """SPEC: 0.333 at v = 2 and 0.97 at v = 8, by Bayes on the last view alone."""
    single = choose_law(alphabeta._D, alphabeta._GAMMA, retention=USUAL_RETENTION)
    law = ViewLaw(retention=single.retention, beta=single.beta, views=views, decay=usual_decay(views))
    found = alphabeta._posterior_of_joining(law)
    assert float(found) == pytest.approx(posterior, abs=5e-3)
    s, d = law.retention, alphabeta._D
    rate = (1 - s) ** (views - 1) * law.beta
    assert float(found) == pytest.approx(float(d * s / (d * s + (1 - d) * rate)))


MADE_UP = Queries(
    truth=np.array([0.0, 1.0, 4.0, 10.0, 100.0]),
    estimates={
        "alpha-beta": np.array([1.0, 2.0, 5.0, 11.0, 101.0]),
        "FRAPP": np.array([-4.0, 5.0, 0.0, 14.0, 90.0]),
    },
)


def test_mean_errors_and_their_ratio_are_over_counts_of_at_least_so_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """αβ errs by 1 everywhere; FRAPP by 4, 4, 4, 4 and 10: 5.2 over all, 6 from 4 on, 10 from 100 on."""
    monkeypatch.setattr(alphabeta, "all_queries", lambda _seed=1: MADE_UP)
    assert alphabeta.mean_errors(0)["alpha-beta"] == Spread.of([1.0] * 4)
    assert [alphabeta.mean_errors(least)["FRAPP"].mean for least in (0, 4, 100)] == pytest.approx(
        [5.2, 6, 10]
    )
    assert [alphabeta.ratio(least).mean for least in (0, 4, 100)] == pytest.approx([5.2, 6, 10])


def test_figures_2_and_3_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alphabeta, "all_queries", lambda _seed=1: MADE_UP)
    monkeypatch.setattr(alphabeta, "_EDGES", (1, 2, 5, 20, 100, 900))
    figure_2 = alphabeta._run_fig2()
    # a query in each of four ranges, none from 20 to 100, and the one with a count of 0 in none of them
    assert len(figure_2.rows) == 2 * 4 * 3
    assert figure_2.rows[0] == ("alpha-beta", "5%", 1.0, 2.0, 1)
    assert ("FRAPP", "50%", 100.0, 90.0, 1) in figure_2.rows
    assert "the mean error is 1 for alpha-beta and 5 for FRAPP" in figure_2.differs
    figure_3 = alphabeta._run_fig3()
    assert [row[1] for row in figure_3.rows[::2]] == [0, 1, 2, 5, 20, 100]
    assert figure_3.rows[1] == ("FRAPP", 0, 5.2, 0.0, 5)
    assert "FRAPP errs 5.20 ± 0.00 times as much over all 5 queries" in figure_3.differs


@pytest.mark.usefixtures("made_up")
def test_estimates_of_both_methods_are_right_on_average() -> None:
    """Over seeds, the estimates of the ages of the made-up adults near their true counts."""
    off: dict[str, list[float]] = {"alpha-beta": [], "FRAPP": []}
    for seed in range(1, 13):
        queries = alphabeta.all_queries(seed)
        common = np.argsort(-queries.truth)[:40]
        for name, own in off.items():
            own.append(float((queries.estimates[name] - queries.truth)[common].mean()))
    for own in off.values():
        values = np.array(own)
        assert abs(values.mean()) < 5 * values.std(ddof=1) / len(values) ** 0.5 + 1e-9
    assert queries.truth.max() <= sum(ADULT)
