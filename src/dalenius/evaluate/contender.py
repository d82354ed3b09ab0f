"""The common axis of a comparison: the largest probability that a promise lets anybody infer.

Every promise bounds such a probability, 1/ℓ, f′, ρ2 or γ, and the numbers are put on one axis. What they
bound is not the same, and what the attacker is supposed to know is not the same either; `meaning` says which
is which, and `not_comparable` what the axis hides.

What takes part in a comparison: policies as they are, and the baselines at their bounds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log

from dalenius.evaluate.sharing import Shared
from dalenius.mechanisms import registry
from dalenius.mechanisms.measures import measures_of
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.promises.rho_privacy import amplification_limit
from dalenius.tables.histogram import Histogram

NOISE, NOTHING = "laplace", "nothing"
"""What answers come from where there is no release."""
_LABELS = {NOISE: "noisy answers", NOTHING: "nothing published"}
_NOTES = (
    "Laplace: epsilon is such that who knows everybody else, and believed a value with at most the largest "
    "frequency, believes it with at most the bound afterwards: a stronger attacker than that of buckets. The "
    "whole epsilon is spent on this workload; any other question costs more",
    "nothing published: what the attacker knows then is the histogram, taken as public",
)


def not_comparable() -> list[str]:
    """What the common axis hides, mechanism by mechanism."""
    return [*(note for name in registry.names() for note in measures_of(*name).notes), *_NOTES]


def label_of(kind: str, method: str | None = None) -> str:
    """What a chart calls a kind of contender."""
    return _LABELS.get(kind) or measures_of(kind, method).label


def all_labels() -> list[str]:
    """The labels in the order of a legend."""
    return list(dict.fromkeys([*(label_of(*name) for name in registry.names()), *_LABELS.values()]))


def promised_bound(policy: Policy, histogram: Histogram | None) -> Bound:
    """Where a policy's promise is on the common axis; the histogram is that of its sensitive columns."""
    config = policy.mechanism
    return measures_of(config.kind, config.method).bound(policy, policy.promise.bound(histogram))


def matched_epsilon(prior: Fraction, bound: Fraction) -> float:
    """The ε with which a belief of at most `prior` in a value becomes at most `bound`.

    Under ε-differential privacy for one replaced record odds grow by e^ε at most, so e^ε is the γ of
    (ρ1,ρ2)-privacy with ρ1 = `prior` and ρ2 = `bound`.

    >>> round(matched_epsilon(Fraction(1, 3), Fraction(2, 3)), 6)
    1.386294
    """
    return log(amplification_limit(prior, bound))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """One row of the comparison: how answers come about, and what is promised."""

    name: str
    kind: str
    """Of the mechanism, or NOISE or NOTHING."""
    method: str
    bound: Bound
    """What is promised."""
    is_baseline: bool
    policy: Policy | None = None
    """What is published; None: answers come without a release."""
    epsilon: float | None = None
    """Of the Laplace mechanism, for the whole workload."""
    reason: str | None = None
    """Why it cannot take part; None: it can."""


def policy_contender(name: str, policy: Policy, shared: Shared) -> Contender:
    """A policy as it is."""
    return _published(name, policy, shared)


def baselines(shared: Shared, bounds: Collection[Fraction]) -> list[Contender]:
    """The mechanisms' own baselines and the Laplace mechanism at each of the bounds, and nothing."""
    found = []
    chosen = _distinct_bounds(bounds)
    for bound in chosen:
        at = f" at {float(bound):.3g}" if len(chosen) > 1 else ""
        found += [_published(name + at, policy, None) for name, policy in _known_methods(shared, bound)]
        if shared.histogram is not None:
            found.append(_laplace(shared, bound, at))
    return [*found, _nothing(shared)]


def _known_methods(shared: Shared, bound: Fraction) -> Iterator[tuple[str, Policy]]:
    """What keeps the bound on the table that the policies share, without series, suppression and domains."""
    policies = list(shared.policies.values())
    reference = next((policy for policy in policies if policy.columns.sensitive), policies[0])
    table = replace(reference, suppress=None, series=None, domains=())
    for name in registry.names():
        baseline = measures_of(*name).baseline(table, bound, policies)
        if baseline and (shared.histogram is not None or baseline[1].promise.protects == "row"):
            yield baseline


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


def _published(name: str, policy: Policy, own: Shared | None) -> Contender:
    """A policy of those that are compared, or a baseline."""
    return Contender(
        name=name,
        kind=policy.mechanism.kind,
        method=policy.mechanism.method,
        bound=promised_bound(policy, None if own is None else own.histogram),
        is_baseline=own is None,
        policy=policy,
    )


def _laplace(shared: Shared, bound: Fraction, at: str) -> Contender:
    prior = _largest_frequency(shared)
    contender = Contender(
        name=f"Laplace{at}",
        kind=NOISE,
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
        kind=NOTHING,
        method="every answer is 0",
        bound=Bound(
            largest=prior, symbol="largest frequency", meaning="a person's value, from the public histogram"
        ),
        is_baseline=True,
    )


def _largest_frequency(shared: Shared) -> Fraction:
    assert shared.histogram is not None  # noqa: S101  (the callers have one)
    return max(shared.histogram.frequency(code) for code in range(len(shared.histogram)))
