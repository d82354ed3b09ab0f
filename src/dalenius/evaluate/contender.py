"""The common axis of a comparison: the largest probability that a promise lets anybody infer.

Every promise bounds such a probability, 1/ℓ, f′, ρ2 or γ, and the numbers are put on one axis. What they
bound is not the same, and what the attacker is supposed to know is not the same either; `meaning` says which
is which, and NOT_COMPARABLE what the axis hides.

What takes part in a comparison: policies as they are, and the baselines at their bounds.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, log
from typing import Literal

from dalenius.evaluate.sharing import Shared
from dalenius.mechanisms.alphabeta.config import AlphaBetaConfig
from dalenius.mechanisms.bucketize.config import MAX_BUCKET, BucketizeConfig
from dalenius.mechanisms.frapp.config import FrappConfig
from dalenius.mechanisms.perturb.config import PerturbConfig
from dalenius.policy import Policy
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.rho_privacy import RhoPrivacy, amplification_limit
from dalenius.tables.histogram import Histogram

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


Kind = Literal["bucketize", "perturb", "alpha-beta", "laplace", "nothing"]
USUAL_K = Fraction(10)
"""The k of FRAPP's baseline where no policy has one: the αβ paper's."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """One row of the comparison: how answers come about, and what is promised."""

    name: str
    kind: Kind
    method: str
    bound: Bound
    is_baseline: bool
    policy: Policy | None = None
    """What is published; None: answers come without a release."""
    epsilon: float | None = None
    """Of the Laplace mechanism, for the whole workload."""
    reason: str | None = None
    """Why it cannot take part; None: it can."""


def policy_contender(name: str, policy: Policy, shared: Shared) -> Contender:
    """A policy as it is."""
    return _published(name, policy, promised_bound(policy, shared.histogram), is_baseline=False)


def baselines(shared: Shared, bounds: Collection[Fraction]) -> list[Contender]:
    """Anatomy, uniform perturbation, FRAPP and the Laplace mechanism at each of the bounds, and nothing."""
    policies = list(shared.policies.values())
    reference = next((policy for policy in policies if policy.columns.sensitive), policies[0])
    ks = [policy.promise.k for policy in policies if isinstance(policy.promise, DGammaPrivacy)]
    found = []
    chosen = _distinct_bounds(bounds)
    for bound in chosen:
        at = f" at {float(bound):.3g}" if len(chosen) > 1 else ""
        if shared.histogram is not None:
            found += [_anatomy(reference, bound, at), _uniform(reference, bound, at)]
        found.append(_frapp(reference, bound, next((k for k in ks if k), USUAL_K), at))
        if shared.histogram is not None:
            found.append(_laplace(shared, bound, at))
    return [*found, _nothing(shared)]


def _distinct_bounds(bounds: Collection[Fraction]) -> list[Fraction]:
    """The bounds below 1; of those within a tenth of each other the strictest, which matches all of them.

    >>> [str(bound) for bound in _distinct_bounds([Fraction(1, 5), Fraction(1, 2), Fraction(21, 100)])]
    ['1/5', '1/2']
    """
    chosen: list[Fraction] = []
    for bound in sorted(bound for bound in bounds if bound < 1):
        if not chosen or bound > chosen[-1] * Fraction(11, 10):
            chosen.append(bound)
    return chosen


def _published(name: str, policy: Policy, bound: Bound, *, is_baseline: bool) -> Contender:
    return Contender(
        name=name,
        kind=policy.mechanism.kind,  # type: ignore[arg-type]
        method=policy.mechanism.method,
        bound=bound,
        is_baseline=is_baseline,
        policy=policy,
    )


def _baseline(name: str, policy: Policy) -> Contender:
    return _published(name, policy, promised_bound(policy, None), is_baseline=True)


def _alone(reference: Policy) -> Policy:
    """The policy's table without its series, suppression and domains."""
    return replace(reference, suppress=None, series=None, domains=())


def _anatomy(reference: Policy, bound: Fraction, at: str) -> Contender:
    """ℓ = ⌈1/bound⌉, at least 2."""
    diversity = max(2, ceil(1 / bound))
    mechanism = BucketizeConfig(method="anatomy", max_bucket=max(MAX_BUCKET, 2 * diversity))
    policy = replace(_alone(reference), promise=LDiversity(l=diversity), mechanism=mechanism)
    return _baseline(f"Anatomy{at}", policy)


def _uniform(reference: Policy, bound: Fraction, at: str) -> Contender:
    promise, mechanism = RhoPrivacy(rho1=None, rho2=bound), PerturbConfig(method="uniform")
    return _baseline(f"UP{at}", replace(_alone(reference), promise=promise, mechanism=mechanism))


def _frapp(reference: Policy, bound: Fraction, k: Fraction, at: str) -> Contender:
    promise = DGammaPrivacy(gamma=bound, k=k)
    mechanism = FrappConfig(active_domains=None)
    return _baseline(f"FRAPP{at}", replace(_alone(reference), promise=promise, mechanism=mechanism))


def _laplace(shared: Shared, bound: Fraction, at: str) -> Contender:
    prior = _largest_frequency(shared)
    contender = Contender(
        name=f"Laplace{at}",
        kind="laplace",
        method="discrete Laplace noise",
        bound=Bound(largest=bound, symbol="rho2 of e^epsilon", meaning="a person's value, all others known"),
        is_baseline=True,
    )
    if prior >= bound:
        share = f"{float(prior):.3g}"
        return replace(contender, reason=f"the commonest value's share, {share}, is not below the bound")
    return replace(contender, epsilon=matched_epsilon(prior, bound))


def _nothing(shared: Shared) -> Contender:
    prior = _largest_frequency(shared) if shared.histogram else Fraction(0)
    return Contender(
        name="suppress-all",
        kind="nothing",
        method="every answer is 0",
        bound=Bound(
            largest=prior, symbol="largest frequency", meaning="a person's value, from the public histogram"
        ),
        is_baseline=True,
    )


def _largest_frequency(shared: Shared) -> Fraction:
    assert shared.histogram is not None  # noqa: S101  (the callers have one)
    return max(shared.histogram.frequency(code) for code in range(len(shared.histogram)))
