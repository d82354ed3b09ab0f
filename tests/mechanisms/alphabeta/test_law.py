"""The promise, by exact Bayes over every pattern of appearance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.alphabeta.plan.law import (
    SAMPLING_MARGIN,
    ChangingLaw,
    ViewLaw,
    WantedLaw,
    bernstein_deviation,
    choose_law,
    law_at,
    usual_decay,
)
from dalenius.promises.d_gamma_privacy import Adversary

GAMMA = Fraction(1, 5)
ADULT_D = Fraction(10 * 30_162, 648_023_040)


def pattern_probability(law: ViewLaw, pattern: tuple[int, ...], *, in_table: bool) -> Fraction:
    """Algorithm 4, read off view by view."""
    probability, shown = Fraction(1), False
    for view, appears in enumerate(pattern, start=1):
        if in_table:
            rate = law.retention
        else:
            rate = law.retention * law.decay if shown else (1 - law.retention) ** (view - 1) * law.beta
        probability *= rate if appears else 1 - rate
        shown = shown or bool(appears)
    return probability


def pattern_ratios(law: ViewLaw, views: int) -> list[Fraction]:
    patterns = product((0, 1), repeat=views)
    return [
        pattern_probability(law, p, in_table=True) / pattern_probability(law, p, in_table=False)
        for p in patterns
    ]


def keeps_by_enumeration(law: ViewLaw, d: Fraction, gamma: Fraction) -> bool:
    """Both sides of the promise for priors from almost 0 to d, after each number of views."""
    for views in range(1, law.views + 1):
        for ratio in pattern_ratios(law, views):
            for prior in (d, d / 2, d / 10**12):
                posterior = prior * ratio / (prior * ratio + 1 - prior)
                if posterior > gamma or posterior / prior < d / gamma * (1 - Fraction(1, 10**9)):
                    return False
    return True


def printed_law(views: int) -> ViewLaw:
    """The single view's parameters, which the paper uses for every view."""
    beta = Fraction(1, 2) * ADULT_D * (1 - GAMMA) / (GAMMA * (1 - ADULT_D))
    return ViewLaw(retention=Fraction(1, 2), beta=beta, views=views, decay=usual_decay(views))


RATES = st.fractions(min_value=Fraction(1, 50), max_value=Fraction(49, 50), max_denominator=50)


@given(retention=RATES, relative=RATES, decay=RATES, views=st.integers(1, 5))
@example(
    retention=Fraction(1, 2), relative=Fraction(49, 50), decay=Fraction(1, 50), views=3
)  # once, never again
@settings(deadline=None, max_examples=60)
def test_the_extreme_ratios_are_those_of_all_patterns(
    retention: Fraction, relative: Fraction, decay: Fraction, views: int
) -> None:
    law = ViewLaw(retention=retention, beta=retention * relative, views=views, decay=decay)
    ratios = pattern_ratios(law, views)
    assert law.largest_ratio() == max(ratios)
    assert law.smallest_ratio() == min(ratios)
    assert law.epsilon() == pytest.approx(math.log(max(*ratios, 1 / min(ratios))))


@pytest.mark.parametrize(("views", "posterior"), [(1, 0.2), (2, 0.292), (3, 0.3275), (8, 0.375)])
def test_the_printed_parameters_break_the_promise_with_several_views(views: int, posterior: float) -> None:
    law = printed_law(views)
    worst = max(ADULT_D * r / (ADULT_D * r + 1 - ADULT_D) for r in pattern_ratios(law, views))
    assert float(worst) == pytest.approx(posterior, abs=5e-4)
    assert law.worst_posterior(ADULT_D) == worst
    assert law.keeps(ADULT_D, GAMMA, "independent") == (views == 1)
    assert keeps_by_enumeration(law, ADULT_D, GAMMA) == (views == 1)


@pytest.mark.parametrize("views", range(1, 9))
def test_the_planned_parameters_keep_it(views: int) -> None:
    law = choose_law(ADULT_D, GAMMA, views=views, retention=Fraction(1, 2))
    assert law.retention == Fraction(1, 2)
    assert law.keeps(ADULT_D, GAMMA, "independent")
    assert keeps_by_enumeration(law, ADULT_D, GAMMA)
    expected = math.exp((views - 1) / views) * float(ADULT_D * (1 - GAMMA) / (GAMMA * (1 - ADULT_D)))
    assert float(law.beta / law.retention) == pytest.approx(expected, rel=1e-4)
    one_percent_less = ViewLaw(
        retention=law.retention, beta=law.beta * 99 / 100, views=views, decay=law.decay
    )
    assert not one_percent_less.keeps(ADULT_D, GAMMA, "independent")
    assert not keeps_by_enumeration(one_percent_less, ADULT_D, GAMMA)


def test_nine_views_need_a_smaller_retention() -> None:
    law = choose_law(
        ADULT_D, GAMMA, views=9, retention=Fraction(1, 2)
    )  # (1/2)^9 < d/γ: nine times absent would say too much
    assert law.retention < Fraction(1, 2)
    assert law.beta / law.retention < Fraction(1, 200)
    assert keeps_by_enumeration(law, ADULT_D, GAMMA)


@pytest.mark.parametrize(("view", "posterior"), [(2, 0.333), (8, 0.97)])
def test_a_tuple_that_joins_later_is_given_away(view: int, posterior: float) -> None:
    """Why a series is bound to one unchanged table: fresh noise is rarer in view i by (1−s)^(i−1)."""
    law = printed_law(view)
    ratio = law.retention / law.fresh_rate(view)
    found = ADULT_D * ratio / (ADULT_D * ratio + 1 - ADULT_D)
    assert float(found) == pytest.approx(posterior, abs=5e-3)


PRIORS = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(9, 10), max_denominator=1000)


RISING = st.tuples(PRIORS, PRIORS).filter(lambda pair: pair[0] != pair[1]).map(sorted)


@given(pair=RISING, views=st.integers(1, 4))
@settings(deadline=None, max_examples=20)
def test_a_prior_that_reaches_gamma_is_refused(pair: list[Fraction], views: int) -> None:
    lower, d = pair
    for gamma in (lower, d):
        with pytest.raises(PromiseNotMet, match="not below gamma"):
            choose_law(d, gamma, views=views)


@given(pair=RISING, views=st.integers(1, 4), adversary=st.sampled_from(["independent", "exclusive"]))
@settings(deadline=None, max_examples=60)
def test_any_feasible_promise_gets_parameters_that_keep_it(
    pair: list[Fraction], views: int, adversary: str
) -> None:
    d, gamma = pair
    try:
        law = choose_law(d, gamma, views=views, adversary=adversary)  # type: ignore[arg-type]
    except PromiseNotMet:
        x = d * (1 - gamma) / (gamma * (1 - d)) / usual_decay(views) ** (views - 1)
        assert x > Fraction(9, 10)  # noise would have to be as frequent as the table's tuples
        return
    assert keeps_by_enumeration(law, d, gamma)


@given(d=PRIORS, gamma=PRIORS, retention=RATES, relative=RATES)
@settings(deadline=None, max_examples=60)
def test_one_view_keeps_the_promise_iff_the_two_exact_conditions_hold(
    d: Fraction, gamma: Fraction, retention: Fraction, relative: Fraction
) -> None:
    law = ViewLaw(retention=retention, beta=retention * relative)
    first = law.beta / retention >= d * (1 - gamma) / (gamma * (1 - d))
    second = 1 - retention >= d / gamma * (1 - law.beta)
    assert law.keeps(d, gamma, "independent") == (first and second)


def exclusive_posterior(law: ViewLaw, d: Fraction, size: int) -> Fraction:
    """One of `size` + 1 tuples is real, the first with prior d: its worst posterior over all patterns."""
    worst = Fraction(0)
    ratios = sorted(set(pattern_ratios(law, law.views)))
    for own, *others in product(ratios, repeat=size + 1):
        rest = sum(((1 - d) / size * ratio for ratio in others), Fraction(0))
        worst = max(worst, d * own / (d * own + rest))
    return worst


@pytest.mark.parametrize("views", [1, 2])
def test_the_exclusive_adversary_is_bounded_and_one_percent_less_noise_is_caught(views: int) -> None:
    d = Fraction(1, 100)
    law = choose_law(d, GAMMA, adversary="exclusive", views=views)
    assert exclusive_posterior(law, d, 3) <= GAMMA
    less = ViewLaw(retention=law.retention, beta=law.beta * 99 / 100, views=views, decay=law.decay)
    assert exclusive_posterior(less, d, 3) > GAMMA
    assert less.keeps(d, GAMMA, "independent")  # it is the exclusive knowledge that needs more
    assert not less.keeps(d, GAMMA, "exclusive")
    x = d * (1 - GAMMA) / (GAMMA * (1 - d))
    if views == 1:
        assert float(law.beta) == pytest.approx(float(x / (1 + x)), rel=1e-5)


def test_the_negative_side_binds_where_d_is_near_gamma() -> None:
    d, gamma = Fraction(9, 50), Fraction(1, 5)
    law = choose_law(d, gamma)
    delta, x = d / gamma, d * (1 - gamma) / (gamma * (1 - d))
    assert float(law.retention) == pytest.approx(float((1 - delta) / (1 - delta * x)), abs=2e-3)
    more = law.retention * Fraction(101, 100)
    assert not ViewLaw(retention=more, beta=x * more).keeps(d, gamma, "independent")


@pytest.mark.parametrize(
    "values",
    [
        {"retention": Fraction(1, 2), "beta": Fraction(1, 2)},
        {"retention": Fraction(1, 2), "beta": Fraction(0)},
        {"retention": Fraction(3, 2), "beta": Fraction(1, 4)},
        {"retention": Fraction(1, 2), "beta": Fraction(1, 9), "views": 2, "decay": Fraction(0)},
        {"retention": Fraction(1, 2), "beta": Fraction(1, 9), "views": 0},
        {"retention": Fraction(1, 2), "beta": Fraction(1, 9), "views": 2},
    ],
)
def test_a_law_that_cannot_be_is_refused(values: dict[str, Fraction]) -> None:
    with pytest.raises(PolicyError):
        ViewLaw(**values)  # type: ignore[arg-type]


def test_a_law_at_the_edge_of_what_can_be() -> None:
    """Every tuple of the table appears; the first of two views already tells nothing of its own."""
    assert ViewLaw(retention=Fraction(1), beta=Fraction(1, 4)).alpha == Fraction(3, 4)
    assert ViewLaw(retention=Fraction(1), beta=Fraction(1, 4), views=2, decay=Fraction(1, 2)).views == 2


def noise_by_enumeration(law: ViewLaw, view: int) -> Fraction:
    """Over all patterns of the views before it: how likely a tuple of noise appears in a view."""
    fades = Fraction(1) if isinstance(law, ChangingLaw) else 1 - law.retention
    total = Fraction(0)
    for pattern in product((False, True), repeat=view - 1):
        probability, seen = Fraction(1), False
        for number, appears in enumerate(pattern, start=1):
            rate = law.retention * law.decay if seen else law.beta * fades ** (number - 1)
            probability *= rate if appears else 1 - rate
            seen = seen or appears
        total += probability * (law.retention * law.decay if seen else law.beta * fades ** (view - 1))
    return total


@pytest.mark.parametrize("kind", [ViewLaw, ChangingLaw])
@pytest.mark.parametrize("beta", [Fraction(1, 10), Fraction(1, 100), Fraction(2, 5)])
@pytest.mark.parametrize("views", [1, 2, 4])
def test_noise_of_every_view_is_that_of_all_patterns(kind: type[ViewLaw], beta: Fraction, views: int) -> None:
    law = kind(retention=Fraction(1, 2), beta=beta, views=views, decay=Fraction(9, 10))
    expected = [noise_by_enumeration(law, view) for view in range(1, views + 1)]
    assert [law.noise_rate(view) for view in range(1, views + 1)] == expected
    assert law.most_noise() == max(expected)


@pytest.mark.parametrize("views", [2, 3, 7])
def test_the_decay_is_the_papers_rounded_up_to_six_decimals(views: int) -> None:
    decay = usual_decay(views)
    assert 0 <= decay - Fraction(math.exp(-1 / views)) < Fraction(1, 10**6)
    assert 10**6 % decay.denominator == 0


@pytest.mark.parametrize(("variance", "miss"), [(0.1, 0.05), (50.0, 0.05), (50.0, 1e-9)])
def test_the_deviation_solves_bernsteins_inequality(variance: float, miss: float) -> None:
    x = bernstein_deviation(variance, miss)
    assert 2 * math.exp(-(x**2) / (2 * (variance + x / 3))) == pytest.approx(miss)


def test_a_margin_makes_a_bound_stricter() -> None:
    """Seen tuples are five times as likely in the table, which takes 1/6 to 1/2 exactly; unseen ones 5/9."""
    law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10))
    little = Fraction(1, 10**9)
    for margin in (Fraction(0), little):
        assert law.hides_presence(Fraction(1, 6), Fraction(1, 2), "independent", margin) == (margin == 0)
        assert law.hides_absence(Fraction(5, 18), Fraction(1, 2), margin) == (margin == 0)


@pytest.mark.parametrize(
    ("adversary", "kind", "views"),
    [
        ("independent", ViewLaw, 1),
        ("exclusive", ViewLaw, 1),
        ("independent", ChangingLaw, 3),
        ("exclusive", ChangingLaw, 1),
    ],
)
@given(pair=RISING, retention=RATES)
@settings(deadline=None, max_examples=20)
def test_below_the_least_beta_presence_shows_and_from_it_on_it_does_not(
    adversary: Adversary, kind: type[ViewLaw], views: int, pair: list[Fraction], retention: Fraction
) -> None:
    """For one view, and for several of a changing table, the bound at which the search begins is exact."""
    d, gamma = pair
    wanted = WantedLaw(d=d, gamma=gamma, adversary=adversary, views=views, kind=kind)
    least = wanted.least_beta(retention)
    if least < retention:
        assert wanted.law(retention, least).hides_presence(d, gamma, adversary)
    if least * (1 - Fraction(1, 10**9)) < retention:
        below = wanted.law(retention, least * (1 - Fraction(1, 10**9)))
        assert not below.hides_presence(d, gamma, adversary)


def test_a_beta_that_is_all_of_the_retention_once_it_is_rounded_is_none() -> None:
    """Prior and posterior that differ in the seventh digit: β would be 0.4999998, and 0.5 is no β for 1/2."""
    wanted = WantedLaw(d=Fraction(1, 5), gamma=Fraction(20_000_024, 10**8))
    with_margin = wanted.least_beta(Fraction(1, 2)) * (1 + SAMPLING_MARGIN)
    assert Fraction("0.499999") < with_margin < Fraction(1, 2)
    assert law_at(Fraction(1, 2), wanted) is None
