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
from dalenius.mechanisms.perturb.plan.thresholds import Limit, find_limits, plan_thresholds
from dalenius.promises.f_privacy import FPrivacy, Linear
from dalenius.tables.histogram import Histogram

SHARES = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 3))
LIMITS = (Fraction(2, 5), Fraction(1, 2), Fraction(4, 5), Fraction(1))


def beliefs(limits: tuple[Limit, ...]) -> Iterator[tuple[Fraction, ...]]:
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


def excess(gamma: Fraction, limits: tuple[Limit, ...]) -> Fraction:
    """How far the worst belief passes a limit, over all priors and published values, by Bayes' rule."""
    channel = Channel(codes=tuple(range(len(limits))), gamma=gamma)
    worst = Fraction(-1)
    for prior in beliefs(limits):
        for y in range(len(limits)):
            joint = [p * (channel.diagonal if z == y else channel.replacement) for z, p in enumerate(prior)]
            for limit, before, now in zip(limits, prior, joint, strict=True):
                if limit.after < 1 and before <= limit.before:
                    worst = max(worst, now / sum(joint) - limit.after)
    return worst


def small_cases() -> Iterator[tuple[Limit, ...]]:
    """All shares and limits of 2 and 3 values for which a limit is above its share."""
    for m in (2, 3):
        for pairs in product(product(SHARES, LIMITS), repeat=m):
            limits = tuple(Limit(before=before, after=after) for before, after in pairs)
            if any(limit.after < 1 for limit in limits):
                yield limits


def test_no_belief_passes_its_limit_in_any_small_case_and_a_larger_gamma_is_caught() -> None:
    """1,836 cases; the twin takes the γ that the loosest limit allows."""
    cases = list(small_cases())
    caught = loose = 0
    for limits in cases:
        allowed = [limit.amplification for limit in limits if limit.after < 1]
        assert excess(min(allowed), limits) == 0  # kept, and reached
        if max(allowed) > min(allowed):
            loose += 1
            caught += excess(max(allowed), limits) > 0
    assert len(cases) == 1836
    assert caught == loose > 1000


def histogram(**counts: int) -> Histogram:
    return Histogram.of(("ill",), {(name,): n for name, n in counts.items()})


def test_what_is_stated_brackets_a_count_and_never_gives_it_back() -> None:
    rule = FPrivacy(default=Linear(times=Fraction(3), plus=Fraction(1, 20)))
    stated = [find_limits(histogram(flu=n, cold=4_000 - n), rule)[1] for n in range(1_001, 1_101)]
    assert len({(one.before, one.after) for one in stated}) == 1
    exact = find_limits(histogram(flu=1_100, cold=2_900), rule)[1]
    assert exact == stated[0]  # a whole step tells nothing more
    for n, one in zip(range(1_001, 1_101), stated, strict=True):
        assert Fraction(n, 4_000) <= one.before
        assert one.after <= rule.default.at(Fraction(n, 4_000))  # type: ignore[union-attr]


def test_gamma_is_the_least_that_a_limit_allows() -> None:
    promise = FPrivacy(default=Fraction(1, 2), named=((("hiv",), Fraction(1, 10)), (("flu",), Fraction(1))))
    plan, limits = plan_thresholds(histogram(hiv=40, cold=460, flu=1_500), promise, "best")
    assert plan.parts[0].gamma == min(limit.amplification for limit in limits if limit.after < 1)
    assert len(plan.parts) == 1


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
