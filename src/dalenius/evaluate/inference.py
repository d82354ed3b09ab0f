"""The common axis of a comparison: the largest probability that a promise lets anybody infer.

Every promise bounds such a probability, 1/ℓ, f′, ρ2 or γ, and the numbers are put on one axis. What they
bound is not the same, and what the attacker is supposed to know is not the same either; `meaning` says which
is which, and NOT_COMPARABLE what the axis hides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

from dalenius.histogram import Histogram
from dalenius.mechanism_configs import AlphaBetaConfig
from dalenius.policy import Policy
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit

NOT_COMPARABLE = (
    "bucketize (1/l, f'): the attacker knows a person's bucket and takes every matching in it as equally "
    "likely; one who learns from the release how columns go together, or knows others, is not bounded",
    "f': the largest threshold below 1 is shown; rarer values usually have lower ones, and a threshold of 1 "
    "(not sensitive) is left out",
    "perturb (rho2): about values believed with at most rho1 before; for `uniform` whatever else the "
    "attacker believes, for the other methods only if the belief is the histogram of the person's part",
    "alpha-beta (gamma): about the presence of a whole row that was believed with at most d before, not "
    "about the value of a person who is known to be in the table; FRAPP's bound is for one record",
    "Laplace: epsilon is such that who knows everybody else, and believed a value with at most the largest "
    "frequency, believes it with at most the bound afterwards: a stronger attacker than that of buckets. The "
    "whole epsilon is spent on this workload; any other question costs more",
    "nothing published: what the attacker knows then is the histogram, taken as public",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The largest probability that may be inferred, and of what."""

    largest: Fraction
    symbol: str
    """What the promise calls it, e.g. `1/l`."""
    meaning: str
    smallest: Fraction | None = None
    """The bound of the value that is protected most, where values have bounds of their own."""


def promised_bound(policy: Policy, histogram: Histogram | None) -> Bound:
    """Where a policy's promise is on the common axis; the histogram is that of its sensitive columns."""
    promise = policy.promise
    match promise:
        case LDiversity():
            return Bound(largest=Fraction(1, promise.l), symbol="1/l", meaning="a person's sensitive value")
        case RhoPrivacy():
            prior = "any belief" if policy.mechanism.method == "uniform" else "the part's histogram as belief"
            return Bound(
                largest=promise.rho2, symbol="rho2", meaning=f"a person's sensitive value, from {prior}"
            )
        case DGammaPrivacy():
            return Bound(largest=promise.gamma, symbol="gamma", meaning=_of_row(policy))
        case _:
            assert histogram is not None  # noqa: S101  (thresholds are for the values of a sensitive column)
            below = [f for f in promise.thresholds(histogram) if f < 1]
            return Bound(
                largest=max(below, default=Fraction(1)),
                symbol="largest f'",
                meaning="a person's sensitive value; others have thresholds of their own",
                smallest=min(below, default=None),
            )


def _of_row(policy: Policy) -> str:
    per_record = isinstance(policy.mechanism, AlphaBetaConfig) and policy.mechanism.method == "frapp"
    return "a record's whole row" if per_record else "that a whole row is in the table"


def matched_epsilon(prior: Fraction, bound: Fraction) -> float:
    """The ε with which a belief of at most `prior` in a value becomes at most `bound`.

    Under ε-differential privacy for one replaced record odds grow by e^ε at most, so e^ε is the γ of
    (ρ1,ρ2)-privacy with ρ1 = `prior` and ρ2 = `bound`.

    >>> round(matched_epsilon(Fraction(1, 3), Fraction(2, 3)), 6)
    1.386294
    """
    return log(amplification_limit(prior, bound))
