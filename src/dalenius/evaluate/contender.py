"""What takes part in a comparison: policies as they are, and the baselines at their bounds."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Literal

from dalenius.evaluate.inference import Bound, matched_epsilon, promised_bound
from dalenius.evaluate.sharing import Shared
from dalenius.mechanism_configs import MAX_BUCKET, AlphaBetaConfig, BucketizeConfig, PerturbConfig
from dalenius.policy import Policy
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.l_diversity import LDiversity
from dalenius.promises.rho_privacy import RhoPrivacy

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
    mechanism = AlphaBetaConfig(method="frapp", active_domains=None)
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
