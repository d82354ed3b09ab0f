"""Plans keep the promise exactly, print themselves, and publish nothing that gives n away."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalenius
from dalenius import Policy
from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.exact import round_down, round_up
from dalenius.mechanisms.alphabeta.plan.law import PAPER, ChangingLaw, LawChoice, ViewLaw, alphabeta_rho
from dalenius.mechanisms.alphabeta.plan.views import AlphaBetaPlan, plan_alphabeta
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.promises.d_gamma_privacy import DGammaPrivacy, published_rows
from tests.mechanisms.alphabeta.releases import policy

ADULT_SIZES = (72, 7, 16, 7, 14, 5, 2, 41, 2)
ADULT = Domain.of({f"c{i}": range(size) for i, size in enumerate(ADULT_SIZES)})
PROMISE = DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(10))


def test_adults_plan() -> None:
    plan = plan_alphabeta(30_162, ADULT, PROMISE, choice=PAPER)
    assert plan.domain_size == 648_023_040
    assert plan.law.retention == Fraction(1, 2)
    assert plan.d == Fraction(10 * 31_000, 648_023_040)
    assert plan.noise_rows == pytest.approx(31_000 * 10 * 4 / 2, rel=1e-3)  # k·N·(1−γ)/γ·s
    assert Fraction(19999, 100_000) < plan.law.worst_posterior(plan.d) <= Fraction(1, 5)
    assert plan.law.epsilon() == pytest.approx(math.log(plan.law.retention / plan.law.beta))
    assert plan.warnings() == ()
    for part in ("30,162", "648,023,040", "620,", "epsilon"):
        assert part in str(plan)


def test_a_plan_with_one_percent_less_noise_fails_its_check() -> None:
    plan = plan_alphabeta(30_162, ADULT, PROMISE)
    plan.check()
    less = ViewLaw(retention=plan.law.retention, beta=plan.law.beta * 99 / 100)
    with pytest.raises(PromiseNotMet, match=r"reach 0\.201"):
        dataclasses.replace(plan, law=less).check()


@given(n_rows=st.integers(1, 60_000), k=st.integers(1, 40), views=st.integers(1, 3))
@settings(deadline=None, max_examples=40)
def test_what_is_published_is_the_same_for_at_least_ten_numbers_of_rows(
    n_rows: int, k: int, views: int
) -> None:
    promise = DGammaPrivacy(gamma=Fraction(1, 5), k=Fraction(k))
    published = plan_alphabeta(n_rows, ADULT, promise, views=views).public_parameters()
    top = published_rows(n_rows)
    for other in (top, top - 9):
        assert plan_alphabeta(other, ADULT, promise, views=views).public_parameters() == published
    n_from_beta = Fraction(str(published["d"])) * ADULT.size / k
    assert n_from_beta == top


def test_a_given_d_publishes_nothing_of_the_rows() -> None:
    promise = DGammaPrivacy(gamma=Fraction(1, 5), d=Fraction(1, 2_000))
    plans = [plan_alphabeta(n, ADULT, promise) for n in (5, 10**6)]
    assert plans[0].public_parameters() == plans[1].public_parameters()


def test_the_public_parameters_are_enough_to_check_the_promise() -> None:
    public = plan_alphabeta(30_162, ADULT, PROMISE, views=4).public_parameters()
    law = ViewLaw(
        retention=Fraction(str(public["alpha"])) + Fraction(str(public["beta"])),
        beta=Fraction(str(public["beta"])),
        views=int(str(public["views"])),
        decay=Fraction(str(public["decay"])),
    )
    assert law.keeps(Fraction(str(public["d"])), Fraction(str(public["gamma"])), "independent")
    assert json.loads(json.dumps(public)) == public
    assert "changing" not in public
    changing = plan_alphabeta(30_162, ADULT, PROMISE, views=4, kind=ChangingLaw)
    assert changing.public_parameters()["changing"] is True


@pytest.mark.parametrize("method", ["alpha-beta", "frapp"])
def test_the_printed_object_has_the_fields_that_tools_rely_on(method: str) -> None:
    plan = dalenius.plan(policy("r", method=method))
    data = plan.to_dict()
    assert {"mechanism", "method", "feasible", "rows", "domain_size", "noise_rows", "rho"} <= data.keys()
    assert data["private"] is True
    assert json.loads(json.dumps(data)) == data
    assert str(plan).startswith(method)
    assert [line.split(maxsplit=1)[1] for line in str(plan).splitlines() if line.startswith("warning")] == [
        *data["warnings"][1:],  # those of the law, and last
        data["warnings"][0],  # that rows repeat others
    ]


def test_a_larger_retention_is_more_accurate() -> None:
    usual = plan_alphabeta(30_162, ADULT, PROMISE, choice=PAPER)
    larger = plan_alphabeta(30_162, ADULT, PROMISE, choice=LawChoice(retention=Fraction(9, 10)))
    assert larger.law.retention == Fraction(9, 10)
    assert larger.rho < 0.8 * usual.rho


def std_error(plan: AlphaBetaPlan, share: Fraction) -> float:
    """Of a count of that share of the table and of the domain, from the law of a tuple."""
    n, m = share * plan.n_rows, share * plan.domain_size
    s, beta = plan.law.retention, plan.law.beta
    return math.sqrt(n * s * (1 - s) + (m - n) * beta * (1 - beta)) / float(plan.law.alpha)


def test_alpha_and_beta_are_chosen_for_the_least_error() -> None:
    """A 1 % query of Adult's 19,502 different rows: 127 at 1/2, 94 at 0.9 and 90 at the maximum."""
    given = DGammaPrivacy(gamma=PROMISE.gamma, d=Fraction(10 * 20_000, 648_023_040))
    choices = [PAPER, LawChoice(retention=Fraction(9, 10)), LawChoice()]
    plans = [plan_alphabeta(19_502, ADULT, given, choice=choice) for choice in choices]
    errors = [std_error(plan, Fraction(1, 100)) for plan in plans]
    assert [round(error) for error in errors] == [127, 94, 90]
    assert len({round(plan.epsilon(), 4) for plan in plans}) == 1  # the same ε
    best = plans[2].law
    room = 1 - best.retention - plans[2].d / given.gamma * (1 - best.beta)
    assert 0 < room < Fraction(1, 900)  # α+β is as large as 1−α−β ≥ (d/γ)(1−β) allows, to a step
    assert plans[2].noise_rows < 2 * plans[0].noise_rows


@pytest.mark.parametrize("views", [1, 3])
def test_a_bound_on_noise_is_kept_in_every_view(views: int) -> None:
    free = plan_alphabeta(30_162, ADULT, PROMISE, views=views)
    most = int(free.law.most_noise() * ADULT.size * Fraction(2, 3))
    plan = plan_alphabeta(30_162, ADULT, PROMISE, views=views, choice=LawChoice(max_noise_rows=most))
    assert Fraction(99, 100) * most < plan.law.most_noise() * ADULT.size <= most
    assert plan.law.retention < free.law.retention
    with pytest.raises(PromiseNotMet, match="max_noise_rows"):
        plan_alphabeta(30_162, ADULT, PROMISE, views=views, choice=LawChoice(max_noise_rows=10))


EXAMPLE = Domain.of({"age": range(20, 40), "nation": ["A", "B", "C"], "score": range(81, 101)})


def test_example_4_1_can_be_planned_and_its_neighbours_cannot() -> None:
    """α = 2/3, β = 1/150: exact conditions decide, just inside and just outside both."""
    alpha, beta = Fraction(2, 3), Fraction(1, 150)
    gamma, edge = Fraction(2, 5), Fraction(1, 101)  # β/(α+β)
    most = gamma * edge / (1 - gamma + gamma * edge)  # the d with d(1−γ)/(γ(1−d)) = β/(α+β)
    choice = LawChoice(alpha=alpha, beta=beta)
    plan = plan_alphabeta(6, EXAMPLE, DGammaPrivacy(gamma=gamma, d=most), choice=choice)
    assert (plan.law.alpha, plan.law.beta) == (alpha, beta)
    assert plan.law.worst_posterior(most) == gamma
    with pytest.raises(PromiseNotMet, match="do not keep"):
        plan_alphabeta(6, EXAMPLE, DGammaPrivacy(gamma=gamma, d=most * 1_000_001 / 10**6), choice=choice)
    absent = LawChoice(alpha=1 - beta - Fraction(1, 10**6), beta=beta)  # a row that is not shown is not there
    with pytest.raises(PromiseNotMet, match="do not keep"):
        plan_alphabeta(6, EXAMPLE, DGammaPrivacy(gamma=gamma, d=Fraction(1, 1000)), choice=absent)
    with pytest.raises(PromiseNotMet, match=r"no beta keeps .* retention = 0\.999"):
        plan_alphabeta(6, EXAMPLE, PROMISE_D, choice=LawChoice(retention=Fraction(999, 1000)))


PROMISE_D = DGammaPrivacy(gamma=Fraction(1, 5), d=Fraction(1, 100))


def test_example_4_1_is_published_as_it_is_given(tmp_path: Path) -> None:
    table = pa.table(
        {"age": [25, 21, 27, 32, 33, 36], "nation": list("ABACAB"), "score": [99, 82, 90, 95, 100, 84]}
    )
    given = Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["age", "nation", "score"], "sensitive": []},
            "domains": {"age": "20..39", "nation": ["A", "B", "C"], "score": "81..100"},
            "promise": {"kind": "d-gamma-privacy", "d": 0.005, "gamma": 0.4},
            "mechanism": {"kind": "alpha-beta", "alpha": "2/3", "beta": "1/150"},
            "ledger": {"path": str(tmp_path / "ledger")},
        }
    )
    release = dalenius.publish(given)
    assert release.manifest["parameters"]["alpha"] == "2/3"
    assert dalenius.verify(tmp_path / "r", strict=True).ok


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"alpha": 0.5}, "has alpha; alpha and beta go together"),
        ({"alpha": 0.5, "beta": 0.1, "retention": 0.6}, "has alpha, beta, retention; alpha"),
        ({"alpha": 0.9, "beta": 0.2}, "above 1"),
        ({"retention": 1}, "between 0 and 1"),
        ({"method": "paper", "retention": 0.6}, 'method = "paper" has alpha'),
        ({"max_noise_rows": 0}, "at least 1"),
    ],
)
def test_what_cannot_be_given_is_said(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy("r", **changes)


def test_the_papers_choice_can_be_had() -> None:
    plan = dalenius.plan(policy("r", method="paper"))
    assert plan.to_dict()["retention"] == 0.5
    assert plan.to_dict()["method"] == "alpha-beta"


def test_a_k_near_the_root_of_m_is_warned_of_in_terms_of_the_table() -> None:
    domain = Domain.of({"a": range(100), "b": range(100)})
    (warning,) = plan_alphabeta(50, domain, DGammaPrivacy(gamma=Fraction(3, 4), k=Fraction(50))).warnings()
    assert "near √m = 100" in warning
    assert "of the table's 50 rows" in warning
    (useless,) = plan_alphabeta(10, ADULT, PROMISE).warnings()
    assert "√m" not in useless


def test_a_prior_at_gamma_is_refused_with_the_numbers() -> None:
    domain = Domain.of({"a": range(100)})
    with pytest.raises(PromiseNotMet, match=r"d \(1\) is not below gamma \(0\.2\)"):
        plan_alphabeta(10, domain, PROMISE)


# ---- noise that is not uniform: exact Bayes on every tuple ----------------------------------------------


def shaped_extremes(noise: NoiseLaw, law: ViewLaw, d: Fraction) -> tuple[Fraction, Fraction]:
    """Over all tuples, each with prior d·P(t)/max P: the highest posterior, the least room for absence."""
    posteriors, rooms = [], []
    for a, b in product(*noise.shares):
        relative = a * b / noise.largest_share
        prior, beta = d * relative, law.beta * relative
        odds = prior / (1 - prior) * (law.alpha + beta) / beta
        posteriors.append(odds / (1 + odds))
        rooms.append((1 - law.alpha - beta) / (1 - beta) - prior / PROMISE.gamma)
    return max(posteriors), min(rooms)


@pytest.mark.parametrize("k", [Fraction(1, 5), Fraction(11, 10)])
def test_shaped_noise_keeps_the_promise_for_its_own_priors(k: Fraction) -> None:
    domain = Domain.of({"a": range(60), "b": range(50)})
    shares: dict[str, list[Fraction | str | int]] = {
        "a": [Fraction(i + 1, 1_830) for i in range(60)],
        "b": ["1/2", *["1/98"] * 49],
    }
    noise = NoiseLaw.of(domain, shares)
    plan = plan_alphabeta(10, domain, DGammaPrivacy(gamma=PROMISE.gamma, k=k), noise=noise)
    assert plan.d == 10 * k * noise.largest_share
    posterior, room = shaped_extremes(noise, plan.law, plan.d)
    assert Fraction(1999, 10_000) < posterior <= PROMISE.gamma
    assert room >= 0
    less = ViewLaw(retention=plan.law.retention, beta=plan.law.beta * 99 / 100)
    assert shaped_extremes(noise, less, plan.d)[0] > PROMISE.gamma
    assert plan.noise_rows == pytest.approx(float(plan.law.beta / noise.largest_share))
    rarest = plan.law.beta * Fraction(1, 60) * Fraction(1, 49)  # (1/1830 · 1/98) / (60/1830 · 1/2)
    assert plan.epsilon() == pytest.approx(math.log((plan.law.alpha + rarest) / rarest))
    half = plan_alphabeta(10, domain, plan.promise, noise=noise, choice=PAPER)
    assert half.rho > plan.rho > 0
    s = plan.law.retention
    kept = max(t * (1 - t) for t in (s, min(s, Fraction(1, 2))))  # s(t) varies below s
    expected = alphabeta_rho(
        alpha=plan.law.alpha,
        kept_variance=float(kept),
        noise_variance=plan.noise_rows,
        n_rows=10,
        miss=plan.miss,
    )
    assert plan.rho == pytest.approx(expected)
    with pytest.raises(PolicyError, match="single view"):
        plan_alphabeta(10, domain, plan.promise, noise=noise, views=2)


@given(number=st.fractions(min_value=Fraction(1, 10**15), max_value=1), digits=st.integers(1, 8))
def test_rounding_goes_the_safe_way(number: Fraction, digits: int) -> None:
    low, high = round_down(number, digits), round_up(number, digits)
    assert low <= number <= high
    assert high - low <= number * Fraction(11, 10) * Fraction(1, 10 ** (digits - 1))
