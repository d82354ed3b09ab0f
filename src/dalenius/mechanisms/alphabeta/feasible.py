"""Which (d,γ) a table allows, and what each would cost, before a policy is written."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.alphabeta.parameters import alphabeta_rho, choose_law
from dalenius.mechanisms.tuples.plan import warn_of_impossibility
from dalenius.promises.d_gamma_privacy import DGammaPrivacy

KS = (Fraction(2), Fraction(10), Fraction(100))
GAMMA = Fraction(1, 5)
_MISS = 0.05
_USEFUL = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What keeping (d,γ) costs."""

    rho: float
    error_rows: float
    """One count is within this many rows, with probability 0.95."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """What is possible for attackers who think a tuple k times as likely as chance does."""

    k: Fraction
    d: Fraction
    """k·n/m; no γ below it can be kept."""
    at_usual_gamma: Cost | None
    """At γ = 0.2; None: not possible."""
    useful_gamma: Fraction | None
    """The smallest γ, in hundredths, that leaves counts within a tenth of the rows; None: there is none."""
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `inspect --json` prints it."""
        cost = self.at_usual_gamma
        return {
            "k": int(self.k),
            "d": float(self.d),
            "gamma": float(GAMMA),
            "rho": None if cost is None else cost.rho,
            "error_rows": None if cost is None else cost.error_rows,
            "useful_gamma": None if self.useful_gamma is None else float(self.useful_gamma),
            "warnings": list(self.warnings),
        }


def feasible_region(n_rows: int, domain_size: int) -> tuple[Feasible, ...]:
    """For some k: what is possible for a table of `n_rows` different rows.

    >>> [one.at_usual_gamma is not None for one in feasible_region(30_162, 648_023_040)]
    [True, True, True]
    """
    return tuple(_feasible(k, n_rows, domain_size) for k in KS)


def _feasible(k: Fraction, n_rows: int, domain_size: int) -> Feasible:
    usual = _cost(k, GAMMA, n_rows, domain_size)
    d = k * n_rows / domain_size
    low, high = 0, 100
    while high - low > 1:  # more allowed, less error
        middle = (low + high) // 2
        cost = _cost(k, Fraction(middle, 100), n_rows, domain_size)
        if cost is not None and cost.error_rows <= _USEFUL * n_rows:
            high = middle
        else:
            low = middle
    warnings = () if usual is None else warn_of_impossibility(d, domain_size, n_rows, usual.rho, _MISS)
    return Feasible(
        k=k,
        d=d,
        at_usual_gamma=usual,
        useful_gamma=Fraction(high, 100) if high < 100 else None,
        warnings=warnings,
    )


def _cost(k: Fraction, gamma: Fraction, n_rows: int, domain_size: int) -> Cost | None:
    promise = DGammaPrivacy(gamma=gamma, k=k)
    try:
        d = promise.prior_bound(n_rows, Fraction(1, domain_size))
        law = choose_law(d, gamma)
    except PromiseNotMet:
        return None
    s = law.retention
    rho = alphabeta_rho(
        alpha=law.alpha,
        kept_variance=float(s * (1 - s)),
        noise_variance=float(law.beta * domain_size),
        n_rows=n_rows,
        miss=_MISS,
    )
    return Cost(rho=rho, error_rows=rho * math.sqrt(n_rows))
