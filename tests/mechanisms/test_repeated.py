"""Several independent releases of one table: closed forms against Bayes by enumeration."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from math import prod

import numpy as np
import pytest

from dalenius.mechanisms.alphabeta.plan.views import plan_alphabeta
from dalenius.mechanisms.alphabeta.repeated import repeat_views
from dalenius.mechanisms.base import repeat_evidence
from dalenius.mechanisms.bucketize.fakes.plan import plan_fakes
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, Together
from dalenius.mechanisms.bucketize.repeated import RepeatedContents, plan_contents, repeat_buckets
from dalenius.mechanisms.frapp.plan import plan_frapp
from dalenius.mechanisms.frapp.repeated import repeat_records
from dalenius.mechanisms.perturb.plan.methods import PerturbPlan, plan_perturbation
from dalenius.mechanisms.perturb.repeated import repeat_perturbation
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.rho_privacy import RhoPrivacy


def buckets(counts: tuple[int, ...], ell: int, method: str = "optimal") -> tuple[BucketPlan, BucketProblem]:
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, ell),) * len(counts), max_bucket=20)
    return plan_buckets(problem, method), problem


def dealings(plan: BucketPlan, counts: tuple[int, ...]) -> list[list[int]]:
    """Every way to deal the people to the buckets: the bucket of each person."""
    places = []  # (bucket, value)
    first = 0
    for j, n_buckets in enumerate(plan.n_buckets):
        values = [x for x, row in enumerate(plan.loads) for _ in range(row[j])]
        places += [(first + rank % n_buckets, x) for rank, x in enumerate(values)]
        first += n_buckets
    by_value = [[bucket for bucket, value in places if value == x] for x in range(len(counts))]
    ways = product(*(set(permutations(mine)) for mine in by_value))
    return [[bucket for mine in way for bucket in mine] for way in ways]


def test_two_bucketizations_are_bayes_by_enumeration() -> None:
    """Two independent dealings of six people; the attacker knows one person's two buckets, not the value."""
    counts = (3, 2, 1)
    plan, problem = buckets(counts, 2)
    people = [x for x, count in enumerate(counts) for _ in range(count)]
    ways = dealings(plan, counts)
    joint: dict[tuple[int, int], np.ndarray] = {}
    for one, two in product(ways, ways):
        for person, value in enumerate(people):
            cell = joint.setdefault((one[person], two[person]), np.zeros(3))
            cell[value] += 1
    largest = max(cell.max() / cell.sum() for cell in joint.values())
    total = sum(cell.sum() for cell in joint.values())
    found = repeat_buckets([plan_contents(plan, problem, None)], problem.thresholds, 2)
    assert found.how == "exact"
    assert found.posterior == pytest.approx(largest)
    assert found.success == pytest.approx(sum(cell.max() for cell in joint.values()) / total)
    assert found.success_of_one == pytest.approx(0.5)
    assert found.promised == 0.5


def test_the_group_of_two_bucketizations_is_bayes_by_enumeration() -> None:
    """Whether a person has one of two values, from two dealings; single values are no secret here."""
    counts = (3, 2, 1)
    group = Together(own=slice(1, 3), threshold=Fraction(1, 2))
    plan, problem = buckets(counts, 2)
    people = [x for x, count in enumerate(counts) for _ in range(count)]
    ways = dealings(plan, counts)
    joint: dict[tuple[int, int], np.ndarray] = {}
    for one, two in product(ways, ways):
        for person, value in enumerate(people):
            joint.setdefault((one[person], two[person]), np.zeros(2))[int(value > 0)] += 1
    largest = max(cell[1] / cell.sum() for cell in joint.values())
    contents = plan_contents(plan, problem, None)
    found = repeat_buckets([contents], (Fraction(1),) * 3, 2, [group])
    assert found.how == "exact"
    assert found.posterior == pytest.approx(largest)
    assert found.promised == 0.5
    simulated = repeat_buckets([contents], (Fraction(1),) * 3, 3, [group])
    assert simulated.promised == 0.5
    assert simulated.posterior >= 0.5


def test_two_bucketizations_in_regions_are_bayes_by_enumeration() -> None:
    """Who is in which region is published; a person's two buckets are buckets of the person's region."""
    regions = [
        ((3, 2, 1), np.array([True, True, True, False])),
        ((2, 2), np.array([False, True, False, True])),
    ]
    joint: dict[tuple[int, int, int], np.ndarray] = {}
    parts = []
    for number, (counts, occur) in enumerate(regions):
        plan, problem = buckets(counts, 2)
        parts.append(plan_contents(plan, problem, None).among(occur))
        ways = dealings(plan, counts)
        people = [x for x, count in zip(np.flatnonzero(occur), counts, strict=True) for _ in range(count)]
        for one, two in product(ways, ways):
            for person, value in enumerate(people):
                joint.setdefault((number, one[person], two[person]), np.zeros(4))[value] += 1 / len(ways) ** 2
    found = repeat_buckets(parts, (Fraction(1, 2),) * 4, 2)
    assert found.how == "exact"
    assert found.posterior == pytest.approx(max(cell.max() / cell.sum() for cell in joint.values()))
    assert found.success == pytest.approx(sum(cell.max() for cell in joint.values()) / 10)
    three = repeat_buckets(parts, (Fraction(1, 2),) * 4, 3)
    assert three.how == "simulated"
    assert (three.success or 0) > (found.success or 0)


@pytest.mark.parametrize("method", ["optimal", "two-size", "anatomy"])
def test_contents_are_those_of_the_plan_and_pairs_agree_with_simulation(method: str) -> None:
    counts = (60, 55, 41, 40, 30, 22, 9)
    plan, problem = buckets(counts, 4, method)
    contents = plan_contents(plan, problem, None)
    assert contents.is_complete
    assert (contents.weight @ contents.real).tolist() == list(counts)
    assert sorted(set(contents.real.sum(axis=1))) == list(plan.sizes)
    exact = repeat_buckets([contents], problem.thresholds, 2)
    sampled = RepeatedContents(
        real=contents.real,
        believed=contents.believed,
        weight=contents.weight,
        counts=contents.counts,
        is_complete=False,
    )
    simulated = repeat_buckets([sampled], problem.thresholds, 2)
    assert (exact.how, simulated.how) == ("exact", "simulated")
    assert simulated.posterior <= exact.posterior + 1e-12
    assert simulated.success == pytest.approx(exact.success, abs=0.02)  # 20,000 people: 6 sd
    three = repeat_buckets([contents], problem.thresholds, 3)
    assert (three.success or 0) > (exact.success or 0) > (exact.success_of_one or 0)


def test_fakes_blur_what_two_buckets_share() -> None:
    plan, problem = buckets((60, 55, 50, 40, 30, 30, 20), 4)
    without = repeat_buckets([plan_contents(plan, problem, None)], problem.thresholds, 2)
    fakes = plan_fakes(plan, problem, 1)
    found = repeat_buckets([plan_contents(plan, problem, fakes)], problem.thresholds, 2)
    assert found.how == "simulated"
    assert (found.success_of_one or 0) < (found.success or 0) < (without.success or 0)


def test_who_was_withheld_from_one_release_had_a_value_that_is_withheld() -> None:
    """Of a thinned table: five withheld people all have value 0, and the second release shows them."""
    plan, problem = buckets((3, 3, 3), 3)
    contents = plan_contents(plan, problem, None).with_withheld((3, 3, 3), (8, 3, 3))
    found = repeat_buckets([contents], (Fraction(1, 3),) * 3, 2)
    assert found.posterior == 1.0
    gone = plan_contents(plan, problem, None).with_withheld((0, 3, 3, 3), (4, 3, 3, 3))
    assert (gone.weight @ gone.real).tolist() == [4, 3, 3, 3]


def enumerate_perturbations(plan: PerturbPlan, times: int) -> Fraction:
    """The largest posterior of a protected value over everything that one person's releases can show."""
    shown = [(part, y) for part in range(len(plan.parts)) for y in plan.parts[part].codes]
    quota = plan.quota()

    def likelihood(x: int, part: int, y: int) -> Fraction:
        channel = plan.parts[part].channel
        chance = channel.diagonal if x == y else channel.replacement
        return Fraction(int(quota[x, part]), plan.counts[x]) * (chance if x in channel.codes else 0)

    worst = Fraction(0)
    for seen in product(shown, repeat=times):
        weight = [count * prod(likelihood(x, *what) for what in seen) for x, count in enumerate(plan.counts)]
        if sum(weight):
            worst = max(worst, Fraction(max(weight[x] for x in plan.protected)) / sum(weight))
    return worst


@pytest.mark.parametrize("counts", [(12, 8, 6, 5, 4, 3, 1, 1, 1, 1), (9, 9, 4, 4, 2)])
def test_repeated_parts_are_bayes_by_enumeration(counts: tuple[int, ...]) -> None:
    plan = plan_perturbation(counts, RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
    found = repeat_perturbation(plan, 2)
    assert found.posterior == pytest.approx(float(enumerate_perturbations(plan, 2)))
    assert repeat_perturbation(plan, 1).posterior == pytest.approx(float(plan.posterior))


@pytest.mark.parametrize("times", [1, 2, 3])
def test_repeated_uniform_perturbation_is_bayes_for_the_worst_prior(times: int) -> None:
    counts, promise = (4, 3, 3, 2), RhoPrivacy(rho1=None, rho2=Fraction(2, 3))
    plan = plan_perturbation(counts, promise, "uniform")
    found = repeat_perturbation(plan, times)
    assert found.posterior == pytest.approx(float(enumerate_perturbations(plan, times)))
    assert (found.posterior > float(promise.rho2) + 1e-9) == (times > 1)


def test_independent_views_multiply_the_odds() -> None:
    domain = Domain.of({"a": range(100), "b": range(30)})
    promise = DGammaPrivacy(gamma=Fraction(1, 5), k=None, d=Fraction(1, 50), adversary="independent")
    plan = plan_alphabeta(200, domain, promise)
    ratio = plan.law.retention / plan.law.beta
    for times in (1, 2, 3):  # every view shows the tuple: Bayes on one bit
        inside, outside = plan.d * plan.law.retention**times, (1 - plan.d) * plan.law.beta**times
        assert repeat_views(plan, times).posterior == pytest.approx(float(inside / (inside + outside)))
    assert repeat_views(plan, 1).posterior <= 0.2 < repeat_views(plan, 2).posterior
    series = plan_alphabeta(200, domain, promise, views=3)
    assert repeat_views(series, 1).posterior <= 0.2
    assert repeat_evidence(plan.d, ratio, 0) == plan.d
    frapp = plan_frapp(200, domain, promise)
    assert repeat_records(frapp, 1).posterior == pytest.approx(float(frapp.law.posterior()))
    assert repeat_records(frapp, 2).posterior > 0.2
