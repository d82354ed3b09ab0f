"""The law of views at its edges, where a comparison or a formula could be off by one step."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from scipy import stats

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.alphabeta.apply import shaped_hits, uniform_hits
from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, LawChoice, ViewLaw, WantedLaw
from dalenius.mechanisms.alphabeta.plan.views import plan_alphabeta
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw, read_noise
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM

DOMAIN = Domain.of({"sex": ["F", "M"], "ill": [f"i{n}" for n in range(50)]})
PROMISE = DGammaPrivacy(gamma=Fraction(1, 2), d=Fraction(1, 10))


def test_the_least_beta_against_one_of_a_set_is_where_the_ratio_is_as_allowed() -> None:
    """s/β · (1−β)/(1−s) = 1/X there, and less noise shows more."""
    d, gamma = Fraction(1, 10), Fraction(1, 2)
    wanted = WantedLaw(d=d, gamma=gamma, adversary="exclusive")
    for retention in (Fraction(1, 3), Fraction(3, 4)):
        beta = wanted.least_beta(retention)
        allowed = gamma * (1 - d) / (d * (1 - gamma))
        assert retention / beta * (1 - beta) / (1 - retention) == allowed
        assert not wanted.law(retention, beta * 999 / 1000).hides_presence(d, gamma, "exclusive")
        assert wanted.law(retention, beta * 1001 / 1000).hides_presence(d, gamma, "exclusive")


def test_absence_may_say_exactly_as_much_as_is_promised() -> None:
    law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 8))
    ratio = law.smallest_ratio()
    assert ratio == Fraction(4, 7)
    assert law.hides_absence(ratio / 4, Fraction(1, 4))
    assert not law.hides_absence(ratio / 4 + Fraction(1, 10**12), Fraction(1, 4))


@pytest.mark.parametrize("kind", [ViewLaw, ChangingLaw])
def test_a_view_of_every_row_tells_who_is_not_in_the_table(kind: type[ViewLaw]) -> None:
    """α+β = 1: nothing of what a view lacks is in the table, whatever noise it has."""
    law = kind(retention=Fraction(1), beta=Fraction(1, 4))
    assert law.smallest_ratio() == 0
    assert math.isinf(law.epsilon())
    assert not law.hides_absence(Fraction(1, 10), Fraction(1, 2))
    choice = LawChoice(alpha=Fraction(3, 4), beta=Fraction(1, 4))
    with pytest.raises(PromiseNotMet, match="keeps 0 of its prior"):
        plan_alphabeta(60, DOMAIN, PROMISE, kind=kind, choice=choice)


def test_the_error_bound_of_even_noise_is_that_of_its_own_variance() -> None:
    """Where noise is not even, a tuple's s(t) may be 1/2, which varies most."""
    plan = plan_alphabeta(60, DOMAIN, PROMISE, choice=LawChoice(retention=Fraction(3, 5)))
    assert plan.law.retention == Fraction(3, 5)
    noise = NoiseLaw.of(DOMAIN, {})
    other = replace(plan, noise=noise)
    assert noise.largest_share == Fraction(1, DOMAIN.size)
    assert other.noise_rows == plan.noise_rows == pytest.approx(float(plan.law.beta * DOMAIN.size))
    assert plan.rho < other.rho
    half = replace(plan, law=replace(plan.law, retention=Fraction(1, 2)))
    assert half.rho == pytest.approx(replace(half, noise=noise).rho)


def test_noise_that_is_not_even_is_for_one_view() -> None:
    noise = NoiseLaw.of(DOMAIN, {"sex": ["1/3", "2/3"]})
    assert plan_alphabeta(60, DOMAIN, PROMISE, noise=noise).noise == noise
    with pytest.raises(PolicyError, match="for a single view"):
        plan_alphabeta(60, DOMAIN, PROMISE, noise=noise, views=2)


def test_as_many_rows_of_noise_as_are_allowed_may_be_given() -> None:
    alpha, beta = Fraction(1, 5), Fraction(1, 4)
    promise = DGammaPrivacy(gamma=Fraction(3, 4), d=Fraction(1, 10))
    choice = LawChoice(alpha=alpha, beta=beta, max_noise_rows=25)  # a quarter of a hundred tuples
    assert plan_alphabeta(60, DOMAIN, promise, choice=choice).noise_rows == 25
    with pytest.raises(PolicyError, match="more noise than max_noise_rows"):
        plan_alphabeta(60, DOMAIN, promise, choice=replace(choice, max_noise_rows=24))


def test_the_last_of_several_views_has_the_noise_of_its_own_rate() -> None:
    plan = plan_alphabeta(60, DOMAIN, PROMISE, views=3)
    assert plan._noise_of_last == pytest.approx(float(plan.law.noise_rate(3)) * 100)


def two_sided(n: int, mean: float) -> float:
    """How likely a Poisson number is to be as far from its mean."""
    return float(2 * min(stats.poisson.cdf(n, mean), stats.poisson.sf(n - 1, mean)))


@pytest.mark.parametrize("pieces", [None, 4])
@pytest.mark.parametrize("shares", [{}, {"sex": ["1/5", "4/5"]}], ids=["even", "declared"])
def test_pieces_of_the_noise_are_together_all_of_it(shares: dict[str, list[str]], pieces: int | None) -> None:
    """Σ −ln(1−β(t)) tuples are drawn on average, however many tasks draw them; a tenth more is noticed."""
    noise, beta, runs = NoiseLaw.of(DOMAIN, shares), Fraction(1, 3), 400
    rates = [float(beta * share / max(noise.shares[0])) for share in noise.shares[0]]
    mean = sum(50 * -math.log1p(-rate) for rate in rates) * runs
    stream, drawn = Randomness.seeded(1).stream("pieces"), 0
    told = () if pieces is None else (pieces,)
    for _ in range(runs * (pieces or 1)):
        if shares:
            drawn += sum(map(len, shaped_hits(DOMAIN, noise, beta, stream, *told)))
        else:
            drawn += sum(map(len, uniform_hits(DOMAIN, beta, stream, *told)))
    for off in (0.9, 1.1):
        assert two_sided(drawn, off * mean) < FALSE_ALARM < two_sided(drawn, mean)


def test_a_plan_says_what_its_law_gives() -> None:
    """Every number worked out by hand for α = 1/5, β = 1/4, 60 of 100 tuples."""
    promise = DGammaPrivacy(gamma=Fraction(1, 2), d=Fraction(1, 20))
    choice = LawChoice(alpha=Fraction(1, 5), beta=Fraction(1, 4))
    plan = plan_alphabeta(60, DOMAIN, promise, views=2, kind=ChangingLaw, choice=choice)
    third = math.log(2 / 0.05) / 3
    variance = 60 * 0.45 * 0.55 + 0.25 * 100
    rho = (third + math.sqrt(third**2 + 2 * variance * 3 * third)) / 0.2 / math.sqrt(60)
    decay = 0.606531  # exp(−1/2), rounded up
    told = {
        "alpha": 0.2,
        "beta": 0.25,
        "domain_size": 100,
        "noise_rows": 25.0,
        "rho": rho,
        "views": 2,
        "changing": True,
        "retention": 0.45,
        "d": 0.05,
        "gamma": 0.5,
        "epsilon": math.log(0.45 / 0.25 / decay),
    }
    assert plan.to_dict() == {name: pytest.approx(value) for name, value in told.items()}
    assert plan.public_parameters() == {
        "method": "alpha-beta",
        "alpha": "1/5",
        "beta": "1/4",
        "decay": "606531/1000000",
        "views": 2,
        "domain_size": "100",
        "d": "1/20",
        "gamma": "1/2",
        "adversary": "independent",
        "changing": True,
        "epsilon": plan.epsilon(),
    }
    odds = 0.45 / 0.25 / decay / 19
    last = 100 * (0.25 * 0.45 * decay + 0.75 * 0.25)
    assert str(plan).splitlines() == [
        "alpha-beta      2 view(s) of 60 tuples out of 100",
        "promise         prior ≤ 0.05 gives posterior ≤ 0.5 (independent adversary); "
        f"worst {odds / (1 + odds):.6g}",
        "alpha, beta     0.2, 0.25",
        f"noise           25 tuples expected in the first view, {last:.0f} in the last",
        f"error           one count is within ±{rho * math.sqrt(60):.0f} with probability 0.95 "
        f"(rho = {rho:.3g})",
        f"differential    epsilon = {math.log(0.45 / 0.25 / decay):.3g} for one tuple",
    ]
    one = plan_alphabeta(60, DOMAIN, promise, choice=choice)
    assert "noise           25 tuples expected" in str(one).splitlines()


@pytest.mark.parametrize(
    ("retention", "most", "told"),
    [(Fraction(3, 5), None, ""), (Fraction(3, 5), 30, " within max_noise_rows")],
)
def test_why_a_retention_cannot_be_is_said(retention: Fraction, most: int | None, told: str) -> None:
    promise = DGammaPrivacy(gamma=Fraction(1, 2), d=Fraction(49, 100))
    choice = LawChoice(retention=retention, max_noise_rows=most)
    with pytest.raises(PromiseNotMet, match=rf"over 1 view\(s\) with retention = 0\.6{told}$"):
        plan_alphabeta(60, DOMAIN, promise, choice=choice)


def test_noise_bounds_that_bind_and_that_do_not() -> None:
    """As many rows as the law has are enough, one fewer lowers α+β; as many as the domain bound nothing."""
    free = plan_alphabeta(60, DOMAIN, PROMISE)
    rows = math.ceil(free.law.most_noise() * 100)
    for most, same in ((rows, True), (rows - 1, False), (100, True), (10**9, True)):
        bound = plan_alphabeta(60, DOMAIN, PROMISE, choice=LawChoice(max_noise_rows=most))
        assert (bound.law == free.law) == same
        assert bound.law.most_noise() * 100 <= most


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("sex,F,1\nsex,M\n", r"line 3: expected 3 fields \(column, value, share\), found 2"),
        ("sex,F,1,0\n", "line 2: expected 3 fields .*, found 4"),
        ("sex,F,1\nsex,M,2\nsex,F,1\n", "line 4: 'F' of 'sex' is listed twice"),
    ],
)
def test_the_line_of_a_noise_file_that_cannot_be_read_is_named(
    rows: str, message: str, tmp_path: Path
) -> None:
    """As an editor counts them: the first line is the header's."""
    (tmp_path / "noise.csv").write_text("column,value,share\n" + rows)
    with pytest.raises(PolicyError, match=message):
        read_noise(tmp_path / "noise.csv", DOMAIN)


def test_shares_of_one_column_leave_the_others_even(tmp_path: Path) -> None:
    (tmp_path / "noise.csv").write_text("column,value,share\nsex,M,3\nsex,F,1\n")
    law = read_noise(tmp_path / "noise.csv", DOMAIN)
    assert (law.largest_share, law.smallest_share) == (Fraction(3, 200), Fraction(1, 200))
