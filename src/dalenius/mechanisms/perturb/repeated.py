"""Several independent perturbations of one table: the evidence of each multiplies the odds.

Published r times as x itself, x is γ^r times as likely as any other value, so a prior of ρ1 becomes
ρ1·γ^r/(1−ρ1+ρ1·γ^r): exactly, and the worst that any prior within ρ1 can come to. With parts the numbers of
the parts i_1 … i_r that a person is in are evidence too: the belief before any published value is
o_x·Π n_{i,x}/o_x, and for x the worst is again that every release shows x.
"""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, islice

import numpy as np

from dalenius.arrays import Floats
from dalenius.mechanisms.base import Repeated, repeat_evidence
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan

_MOST_COMBINATIONS = 20_000
"""Of parts that one person can be in; of more, the first are looked at, and the result is a lower limit."""


def repeat_perturbation(plan: PerturbPlan, times: int) -> Repeated:
    """The largest posterior of a protected value after that many independent releases by one plan.

    >>> from fractions import Fraction
    >>> from dalenius.mechanisms.perturb.plan.methods import plan_perturbation
    >>> from dalenius.promises.rho_privacy import RhoPrivacy
    >>> promise = RhoPrivacy(rho1=Fraction(1, 3), rho2=Fraction(2, 3))
    >>> repeat_perturbation(plan_perturbation([1, 1, 1], promise, "uniform"), 2).posterior  # odds 1/2 · 4²
    0.8888888888888888
    """
    if plan.is_for_any_prior:
        (part,) = plan.parts
        posterior = float(repeat_evidence(part.rho1, plan.largest_amplification, times))
    else:
        posterior = _worst_of_parts(plan, times)
    return Repeated(
        times=times,
        posterior=posterior,
        promised=float(plan.promise.rho2),
        about="a protected value",
        how="exact",
    )


def _worst_of_parts(plan: PerturbPlan, times: int) -> float:
    counts = np.array(plan.counts, dtype=np.float64)
    reach = plan.quota().T / np.maximum(counts, 1.0)  # parts × values: n_ix / o_x
    gamma = np.array([float(part.gamma) for part in plan.parts])
    targets = list(plan.protected)
    combinations = combinations_with_replacement(range(len(plan.parts)), times)
    worst = 0.0
    for chosen in islice(combinations, _MOST_COMBINATIONS):
        weight: Floats = counts * reach[list(chosen)].prod(axis=0)
        strength = math.prod(gamma[list(chosen)])
        mine = weight[targets]
        after = strength * mine / np.maximum(weight.sum() + (strength - 1) * mine, 1e-300)
        worst = max(worst, float(after.max()))
    return worst
