"""A limit for every value, kept by perturbation over the whole table.

Published as x, a value is g_x times as likely x as any one other. A belief of p in x becomes gp/(1−p+gp), so
limits f′_x hold for every prior with Pr[x] ≤ p_x iff g_x ≤ f′_x(1−p_x)/(p_x(1−f′_x)) for every x. p_x is the
share of x in the table, rounded up: nothing that is published gives a count back.

*uniform*: all values are replaced evenly, and γ is the least of these. *weighted*: y is a replacement with a
probability π_y in proportion to 1/(g_y−1). With the coin p that keeps a value, g_y = 1 + p/((1−p)·π_y), so
p = 1/(1 + Σ 1/(g_y−1)) reaches every limit at once, where an even replacement reaches the tightest only.
Weights are whole numbers, rounded up, and p is rounded down, so that the law is exactly what is stated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dalenius.errors import InternalError, PolicyError, PromiseNotMet
from dalenius.exact import as_written
from dalenius.mechanisms.base import repeat_evidence
from dalenius.mechanisms.perturb.channel import gamma_of
from dalenius.mechanisms.perturb.plan.layout import (
    PerturbPlan,
    hoeffding_bound,
    partition_bound,
    weighted_rmse,
)
from dalenius.mechanisms.perturb.plan.methods import plan_perturbation
from dalenius.promises.d_gamma_privacy import published_rows
from dalenius.promises.f_privacy import FPrivacy, LinearLimit
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit
from dalenius.tables.histogram import Histogram, write_cells

_ALL_WEIGHTS = 10**9
"""About what the weights of all values add up to."""
_COIN_SIDES = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueLimit:
    """What may be believed of a value before and after; after = 1: it is not sensitive."""

    before: Fraction
    after: Fraction

    @property
    def amplification(self) -> Fraction:
        """The largest γ that keeps it."""
        return amplification_limit(self.before, self.after)


def find_limits(histogram: Histogram, promise: FPrivacy) -> tuple[ValueLimit, ...]:
    """The limit of every value.

    A share is rounded up, to two digits of its count and at least to the next ten. A limit that follows from
    the share by a rule is taken at the share rounded down the same way: never above what was asked for.
    """
    limits = []
    for code, asked in enumerate(promise.thresholds(histogram)):
        count, value = histogram.counts[code], histogram.values[code]
        high = published_rows(count)
        after = asked
        if isinstance(promise.default, LinearLimit) and not promise.is_named(value):
            # one step below even where the count is a whole step: the two must not give it back
            after = promise.default.at(Fraction(high - _step(count), histogram.n_rows))
        limits.append(ValueLimit(before=min(Fraction(high, histogram.n_rows), Fraction(1)), after=after))
    return tuple(limits)


def _step(count: int) -> int:
    return max(10, int(10 ** (len(str(count)) - 2)))


def plan_thresholds(
    histogram: Histogram, promise: FPrivacy, method: str
) -> tuple[PerturbPlan, list[ValueLimit]]:
    """One part with the law that all limits allow, checked value by value."""
    if method not in ("best", "uniform"):
        raise PolicyError(
            f"[mechanism] method {method!r} makes parts, and limits per value are kept without",
            hint='leave method out, or use method = "uniform"',
        )
    limits = find_limits(histogram, promise)
    _refuse_impossible(limits)
    sensitive = [limit for limit in limits if limit.after < 1]
    if not sensitive:
        raise PolicyError(
            "[promise] every value has a limit of 1, so none is protected",
            hint="give a value a limit below 1",
        )
    tightest = min(sensitive, key=lambda limit: limit.amplification)
    plan = plan_perturbation(
        histogram.counts, RhoPrivacy(rho1=tightest.before, rho2=tightest.after), "uniform"
    )
    if method == "best":
        weighted = _weigh(plan, limits)
        plan = min(plan, weighted, key=lambda one: one.value_rmse)
    _check(plan, limits)
    return plan, list(limits)


def weigh_replacements(limits: Sequence[ValueLimit]) -> tuple[Fraction, tuple[int, ...]]:
    """The coin that keeps a value, and the weight of each value as a replacement.

    A value without a limit is a replacement as often as the sensitive one that needs it least: were it none,
    it would be published for those only who have it.

    >>> weigh_replacements([ValueLimit(before=Fraction(1, 3), after=Fraction(2, 3))] * 3)
    (Fraction(1, 2), (333333334, 333333334, 333333334))
    """
    most = max(limit.amplification for limit in limits if limit.after < 1)
    odds = [1 / ((limit.amplification if limit.after < 1 else most) - 1) for limit in limits]
    total = sum(odds)
    weights = tuple(math.ceil(one / total * _ALL_WEIGHTS) for one in odds)
    kept = min(Fraction(weight, sum(weights)) / one for weight, one in zip(weights, odds, strict=True))
    return Fraction(math.floor(kept / (1 + kept) * _COIN_SIDES), _COIN_SIDES), weights


def _weigh(plan: PerturbPlan, limits: Sequence[ValueLimit]) -> PerturbPlan:
    """The same table with weighted replacements."""
    retention, weights = weigh_replacements(limits)
    (whole,) = plan.parts
    # of the values at their limits, the one that several published values together tell most of
    strongest = max(
        (limit for limit in limits if limit.after < 1),
        key=lambda limit: repeat_evidence(limit.before, limit.amplification, 2),
    )
    gamma = gamma_of(retention, len(weights))
    part = replace(whole, gamma=gamma, weights=weights, rho1=strongest.before)
    n_rows = [part.n_rows]
    return replace(
        plan,
        method="weighted",
        promise=RhoPrivacy(rho1=strongest.before, rho2=strongest.after),
        parts=(part,),
        error_bound=partition_bound(n_rows, [part.retention]),
        error_bound_hoeffding=hoeffding_bound(n_rows, [part.retention]),
        value_rmse=weighted_rmse(part.counts, part.channel),
    )


def _refuse_impossible(limits: tuple[ValueLimit, ...]) -> None:
    """A belief can only be kept below a limit that is above it."""
    hopeless = [limit for limit in limits if limit.after < 1 and limit.before >= limit.after]
    if hopeless:
        worst = max(hopeless, key=lambda limit: limit.before - limit.after)
        raise PromiseNotMet(
            f"{len(hopeless)} values have a limit that is not above their share in the table, which is "
            f"rounded up to two digits and to tens of people (the worst: a limit of {float(worst.after):.4g} "
            f"for a share of at most {float(worst.before):.4g})",
            hint="raise times, plus or cap, or the value's own limit (1: not sensitive); "
            '[mechanism] kind = "bucketize" keeps a limit at the share itself',
        )


def _check(plan: PerturbPlan, limits: tuple[ValueLimit, ...]) -> None:
    """By Bayes' rule, for the histogram as belief and for the largest belief of each value."""
    channel, n_rows = plan.parts[0].channel, sum(plan.counts)
    for place, (count, limit) in enumerate(zip(plan.counts, limits, strict=True)):
        gamma = channel.amplification(place)
        for before in (Fraction(count, n_rows), limit.before):
            if limit.after < 1 and gamma * before > limit.after * (1 - before + gamma * before):
                raise InternalError("a belief passes the limit of its value")


def declare_limits(histogram: Histogram, limits: list[ValueLimit]) -> dict[str, Any]:
    """The promise as data, for the manifest."""
    return {
        "kind": FPrivacy.kind,
        "prior": "any, independent from person to person",
        "thresholds": [
            {
                "value": list(write_cells(value)),
                "at_most": as_written(limit.after),
                "prior_at_most": as_written(limit.before),
            }
            for value, limit in zip(histogram.values, limits, strict=True)
        ],
    }
