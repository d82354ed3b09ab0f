"""Limits per value kept by perturbation: exact Bayes with every belief that the promise speaks of."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius import Policy
from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.plan.thresholds import (
    ValueLimit,
    find_limits,
    plan_thresholds,
    weigh_replacements,
)
from dalenius.promises.f_privacy import FPrivacy, LinearLimit
from dalenius.tables.histogram import Histogram

SHARES = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 3))
LIMITS = (Fraction(2, 5), Fraction(1, 2), Fraction(4, 5), Fraction(1))


def beliefs(limits: tuple[ValueLimit, ...]) -> Iterator[tuple[Fraction, ...]]:
    """Priors over the values, one of them at its largest, the rest of the belief on any set of others."""
    m = len(limits)
    for x, limit in enumerate(limits):
        others = [z for z in range(m) if z != x]
        for split in product(range(2), repeat=m - 1):
            if sum(split):
                prior = [Fraction(0)] * m
                prior[x] = limit.before
                for z, part in zip(others, split, strict=True):
                    prior[z] = (1 - limit.before) * part / sum(split)
                yield tuple(prior)


def even(gamma: Fraction, n_values: int) -> list[Fraction]:
    """q_y of an even replacement, after the p of the coin."""
    channel = Channel(codes=tuple(range(n_values)), gamma=gamma)
    return [channel.retention, *[channel.replacement] * n_values]


def weighted(limits: tuple[ValueLimit, ...]) -> list[Fraction]:
    """The same of weighted replacements, from the weights that are published."""
    keep, weights = weigh_replacements(limits)
    return [keep, *((1 - keep) * Fraction(weight, sum(weights)) for weight in weights)]


def excess(law: list[Fraction], limits: tuple[ValueLimit, ...]) -> Fraction:
    """How far the worst belief passes a limit, over all priors and published values, by Bayes' rule."""
    keep, *replaced = law
    assert keep + sum(replaced) == 1
    worst = Fraction(-1)
    for prior in beliefs(limits):
        for y in range(len(limits)):
            joint = [p * (replaced[y] + keep * (z == y)) for z, p in enumerate(prior)]
            for limit, before, now in zip(limits, prior, joint, strict=True):
                if limit.after < 1 and before <= limit.before:
                    worst = max(worst, now / sum(joint) - limit.after)
    return worst


def small_cases() -> Iterator[tuple[ValueLimit, ...]]:
    """All shares and limits of 2 and 3 values for which a limit is above its share."""
    for m in (2, 3):
        for pairs in product(product(SHARES, LIMITS), repeat=m):
            limits = tuple(ValueLimit(before=before, after=after) for before, after in pairs)
            if any(limit.after < 1 for limit in limits):
                yield limits


def test_no_belief_passes_its_limit_in_any_small_case_and_a_larger_gamma_is_caught() -> None:
    """1,836 cases; the twin takes the γ that the loosest limit allows."""
    cases = list(small_cases())
    caught = loose = 0
    for limits in cases:
        allowed = [limit.amplification for limit in limits if limit.after < 1]
        m = len(limits)
        assert excess(even(min(allowed), m), limits) == 0  # kept, and reached
        if max(allowed) > min(allowed):
            loose += 1
            caught += excess(even(max(allowed), m), limits) > 0
    assert len(cases) == 1836
    assert caught == loose > 1000


def test_weighted_replacements_keep_every_limit_in_any_small_case_and_keep_more_values() -> None:
    """The same 1,836 cases; the twin draws replacements evenly with the same coin."""
    caught = unequal = 0
    for limits in small_cases():
        keep, *replaced = law = weighted(limits)
        assert -Fraction(1, 10**6) < excess(law, limits) <= 0  # kept, and all but reached
        allowed = [limit.amplification for limit in limits if limit.after < 1]
        (fewer, *_) = even(min(allowed), len(limits))
        assert keep > fewer - Fraction(1, 10**6)
        if max(allowed) > min(allowed):
            unequal += 1
            assert keep > fewer
            caught += excess([keep, *[(1 - keep) / len(limits)] * len(limits)], limits) > 0
        assert min(replaced) > 0  # so no published value is certain
    assert caught == unequal > 1000


def histogram(**counts: int) -> Histogram:
    return Histogram.of(("ill",), {(name,): n for name, n in counts.items()})


def test_what_is_stated_brackets_a_count_and_never_gives_it_back() -> None:
    rule = FPrivacy(default=LinearLimit(times=Fraction(3), plus=Fraction(1, 20)))
    stated = [find_limits(histogram(flu=n, cold=4_000 - n), rule)[1] for n in range(1_001, 1_101)]
    assert len({(one.before, one.after) for one in stated}) == 1
    exact = find_limits(histogram(flu=1_100, cold=2_900), rule)[1]
    assert exact == stated[0]  # a whole step tells nothing more
    for n, one in zip(range(1_001, 1_101), stated, strict=True):
        assert Fraction(n, 4_000) <= one.before
        assert one.after <= rule.default.at(Fraction(n, 4_000))  # type: ignore[union-attr]


HIV = FPrivacy(default=Fraction(1, 2), named=((("hiv",), Fraction(1, 10)), (("flu",), Fraction(1))))


def test_gamma_of_an_even_replacement_is_the_least_that_a_limit_allows() -> None:
    plan, limits = plan_thresholds(histogram(hiv=40, cold=460, flu=1_500), HIV, "uniform")
    assert plan.parts[0].gamma == min(limit.amplification for limit in limits if limit.after < 1)
    assert len(plan.parts) == 1


def test_the_best_law_uses_every_limit_and_predicts_a_smaller_error() -> None:
    counts = histogram(hiv=40, cold=460, flu=1_500)
    plan, limits = plan_thresholds(counts, HIV, "best")
    (part,) = plan.parts
    assert plan.method == "weighted"
    reached = [part.channel.amplification(place) for place in range(3)]
    for limit, found in zip(limits, reached, strict=True):
        assert (
            limit.after == 1 or limit.amplification * Fraction(999_999, 10**6) < found <= limit.amplification
        )
    assert max(reached) < 50  # flu has no limit, and is not told outright either
    assert plan.value_rmse < plan_thresholds(counts, HIV, "uniform")[0].value_rmse


def test_the_predicted_error_is_that_of_the_law_by_enumeration() -> None:
    """The variance of every count, from the probabilities of what one record is published as."""
    plan, _ = plan_thresholds(histogram(hiv=40, cold=460, flu=1_500), HIV, "best")
    (part,) = plan.parts
    keep, replaced = float(part.retention), part.channel.replaced()
    law = np.tile(replaced, (3, 1)) + keep * np.eye(3)
    weights = (np.eye(3) - replaced) / keep  # of a record published as y towards x
    assert law @ weights == pytest.approx(np.eye(3))
    variance = law @ weights**2 - np.eye(3)
    assert plan.value_rmse == pytest.approx(float(np.sqrt((np.array(part.counts) @ variance).mean())))


@pytest.mark.parametrize(
    ("promise", "method", "error", "message"),
    [
        ({"default": 0.2}, "best", PromiseNotMet, "not above their share"),
        ({"default": 0.9}, "paper", PolicyError, "makes parts"),
        ({"values": {"a": 1, "b": 1, "c": 1}}, "best", PolicyError, "none is protected"),
    ],
)
def test_what_cannot_be_kept_is_said(
    promise: dict[str, Any], method: str, error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        dalenius.plan(policy(tmp_path, promise, method=method))


def test_of_impossible_limits_the_one_furthest_below_its_share_is_named() -> None:
    """0.5 for a share of 0.6 is nearer to it than 0.1 for 0.4, though both numbers are larger."""
    limits = FPrivacy(default=None, named=((("a",), Fraction(1, 2)), (("b",), Fraction(1, 10))))
    with pytest.raises(
        PromiseNotMet, match=r"2 values have .* a limit of 0\.1 for a share of at most 0\.4\b"
    ):
        plan_thresholds(histogram(a=600, b=400), limits, "best")


def test_a_limit_at_the_share_itself_cannot_be_kept() -> None:
    limits = FPrivacy(default=None, named=((("a",), Fraction(3, 5)), (("b",), Fraction(1))))
    with pytest.raises(
        PromiseNotMet, match=r"1 values have .* a limit of 0\.6 for a share of at most 0\.6\b"
    ):
        plan_thresholds(histogram(a=600, b=400), limits, "best")


def test_a_value_that_nearly_everybody_has_needs_no_limit() -> None:
    """Its share is rounded up to 1, which is no more than its limit of 1."""
    free = FPrivacy(default=Fraction(1, 2), named=((("a",), Fraction(1)),))
    plan, limits = plan_thresholds(histogram(a=9_999, b=1), free, "best")
    assert limits[0].before == limits[0].after == 1
    assert len(plan.parts) == 1


def test_the_value_is_named_that_two_published_ones_tell_most_of() -> None:
    """Two of b make 1/4 · 3² = 2.25 of its odds, two of a about 1; of three a would have more."""
    named = {"a": Fraction(1, 11), "b": Fraction(3, 7), "c": Fraction(1)}
    promise = FPrivacy(default=None, named=tuple(((name,), limit) for name, limit in named.items()))
    plan, _ = plan_thresholds(histogram(a=100, b=2_000, c=7_900), promise, "best")
    assert plan.parts[0].rho1 == Fraction(1, 5)


def people() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "age": rng.integers(18, 80, 3_000),
            "zip": rng.integers(0, 400, 3_000),
            "ill": np.repeat(["a", "b", "c"], [1_800, 1_100, 100])[rng.permutation(3_000)],
        }
    )


def policy(folder: Path, promise: dict[str, Any], **mechanism: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": people(),
            "release": str(folder / "r"),
            "columns": {"quasi": ["age", "zip"], "sensitive": ["ill"]},
            "promise": {"kind": "f-privacy", **promise},
            "mechanism": {"kind": "perturb", **mechanism},
            "ledger": {"path": str(folder / "ledger")},
        }
    )


def test_a_table_is_published_verified_asked_and_audited(tmp_path: Path) -> None:
    given = policy(tmp_path, {"default": 0.8, "values": {"c": 0.1}})
    release = dalenius.publish(given)
    promise = release.manifest["promise"]
    stated = {
        entry["value"][0]: (entry["prior_at_most"], entry["at_most"]) for entry in promise["thresholds"]
    }
    assert stated == {"a": ("3/5", "4/5"), "b": ("11/30", "4/5"), "c": ("1/30", "1/10")}
    assert promise["prior"].startswith("any")
    assert dalenius.verify(tmp_path / "r", strict=True).ok
    row = release.ask("SELECT COUNT(*) FROM t WHERE ill = 'c'").rows[0]
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.high
    found = dalenius.audit(tmp_path / "r", people())
    assert all(attack.holds is not False for attack in found.attacks)
    linking = next(attack for attack in found.attacks if attack.name == "linking")
    assert {entry["value"]: entry["at_most"] for entry in linking.detail["values"]}.items() <= {
        "a": 0.8,
        "b": 0.8,
        "c": 0.1,
    }.items()
