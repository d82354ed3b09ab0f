"""A limit for every value, kept by uniform perturbation over the whole table.

Published as x, a value is γ times as likely x as any one other. A belief of p in x becomes γp/(1−p+γp), so
limits f′_x hold for every prior with Pr[x] ≤ p_x iff γ ≤ f′_x(1−p_x)/(p_x(1−f′_x)) for every x: the least of
these is taken. p_x is the share of x in the table, rounded up: nothing that is published gives a count back.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import InternalError, PolicyError, PromiseNotMet
from dalenius.exact import as_written
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan
from dalenius.mechanisms.perturb.plan.methods import plan_perturbation
from dalenius.promises.d_gamma_privacy import published_rows
from dalenius.promises.f_privacy import FPrivacy, Linear
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit
from dalenius.tables.histogram import Histogram, write_cells


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What may be believed of a value before and after; after = 1: it is not sensitive."""

    before: Fraction
    after: Fraction

    @property
    def amplification(self) -> Fraction:
        """The largest γ that keeps it."""
        return amplification_limit(self.before, self.after)


def find_limits(histogram: Histogram, promise: FPrivacy) -> tuple[Limit, ...]:
    """The limit of every value.

    A share is rounded up, to two digits of its count and at least to the next ten. A limit that follows from
    the share by a rule is taken at the share rounded down the same way: never above what was asked for.
    """
    limits = []
    for code, asked in enumerate(promise.thresholds(histogram)):
        count, value = histogram.counts[code], histogram.values[code]
        high = published_rows(count)
        after = asked
        if isinstance(promise.default, Linear) and not promise.is_named(value):
            # one step below even where the count is a whole step: the two must not give it back
            after = promise.default.at(Fraction(high - _step(count), histogram.n_rows))
        limits.append(Limit(before=min(Fraction(high, histogram.n_rows), Fraction(1)), after=after))
    return tuple(limits)


def _step(count: int) -> int:
    return max(10, int(10 ** (len(str(count)) - 2)))


def plan_thresholds(histogram: Histogram, promise: FPrivacy, method: str) -> tuple[PerturbPlan, list[Limit]]:
    """One part with the γ that all limits allow, checked value by value."""
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
    _check(plan, limits)
    return plan, list(limits)


def _refuse_impossible(limits: tuple[Limit, ...]) -> None:
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


def _check(plan: PerturbPlan, limits: tuple[Limit, ...]) -> None:
    """By Bayes' rule, for the histogram as belief and for the largest belief of each value."""
    gamma, n_rows = plan.parts[0].gamma, sum(plan.counts)
    for count, limit in zip(plan.counts, limits, strict=True):
        for before in (Fraction(count, n_rows), limit.before):
            if limit.after < 1 and gamma * before > limit.after * (1 - before + gamma * before):
                raise InternalError("a belief passes the limit of its value")


def declare_limits(histogram: Histogram, limits: list[Limit]) -> dict[str, Any]:
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
