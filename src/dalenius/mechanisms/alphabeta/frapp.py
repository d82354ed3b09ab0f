"""FRAPP, the baseline: each record is kept with probability γ_f, else replaced by any other tuple of D.

Its promise is per record: the release is a multiset, and a tuple seen j times has odds of about j·γ/(1−γ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.alphabeta.parameters import round_down, warn_of_impossibility
from dalenius.mechanisms.alphabeta.plan import Public
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.promises.d_gamma_privacy import DGammaPrivacy


def frapp_retention(k: Fraction, gamma: Fraction, domain_size: int) -> Fraction:
    """γ_f, with which a record is kept: γc/(γc + k(1−γ)), c = (m−k)/(m−1), rounded down to six digits.

    Bayes on one record whose tuple has prior k/m, seen in its place. That another tuple is seen lowers
    a tuple's probability by at most (1−γ)/(1−k/m), which must be at least (k/m)/γ.

    >>> float(frapp_retention(Fraction(10), Fraction(1, 5), 648_023_040))
    0.0243902
    """
    prior = k / domain_size
    if prior >= gamma:
        raise PromiseNotMet(f"the prior k/m ({float(prior):.4g}) is not below gamma ({float(gamma):.4g})")
    if (1 - gamma) * gamma < prior * (1 - prior):
        raise PromiseNotMet(f"gamma ({float(gamma):.4g}) is so near 1 that other tuples would be ruled out")
    c = (domain_size - k) / (domain_size - 1)
    return round_down(gamma * c / (gamma * c + k * (1 - gamma)))


def frapp_rho(gamma_f: Fraction, domain_size: int, miss: float = 0.05) -> float:
    """ρ for FRAPP: n independent records, each counted or not; Hoeffding's √(½ ln(2/miss)) over the slope."""
    slope = gamma_f - (1 - gamma_f) / (domain_size - 1)
    return math.sqrt(math.log(2 / miss) / 2) / float(slope)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrappPlan:
    """A randomised response of each record; the published rows are as many as the table's."""

    promise: DGammaPrivacy
    k: Fraction
    gamma_f: Fraction
    domain_size: int
    n_rows: int
    miss: float = 0.05
    method: Literal["frapp"] = "frapp"

    @property
    def rho(self) -> float:
        """|Q − Q̃| ≤ ρ√n for any one query, at confidence 1 − `miss`."""
        return frapp_rho(self.gamma_f, self.domain_size, self.miss)

    @property
    def noise_rows(self) -> float:
        """How many rows are expected to be replaced."""
        return float(self.n_rows * (1 - self.gamma_f))

    @property
    def other_rate(self) -> Fraction:
        """The probability that a record becomes one given other tuple: β, where γ_f is α+β."""
        return (1 - self.gamma_f) / (self.domain_size - 1)

    def epsilon(self) -> float:
        """The ε of local differential privacy of one record."""
        ratio = self.gamma_f / self.other_rate if self.gamma_f < 1 else math.inf
        return math.log(max(ratio, 1 / ratio))

    def posterior(self) -> Fraction:
        """The posterior of a record's tuple that had prior k/m and is seen in its place."""
        prior = self.k / self.domain_size
        odds = prior / (1 - prior) * self.gamma_f * (self.domain_size - 1) / (1 - self.gamma_f)
        return odds / (1 + odds)

    def check(self) -> None:
        """Check the promise for one record exactly, on the parameters that are published."""
        if self.posterior() > self.promise.gamma:
            raise PromiseNotMet(
                f"gamma_f = {self.gamma_f} gives a posterior of {float(self.posterior()):.4f}, above "
                f"gamma = {self.promise.gamma}"
            )

    def warnings(self) -> tuple[str, ...]:
        """What the publisher should know before publishing."""
        d = self.k * self.n_rows / self.domain_size
        per_record = (
            "the promise is per record: a tuple that the release shows j times has odds of about "
            "j·gamma/(1−gamma); and the number of rows is published"
        )
        return (per_record, *warn_of_impossibility(d, self.domain_size, self.n_rows, self.rho, self.miss))

    def to_dict(self) -> dict[str, object]:
        """The plan for the publisher, private numbers included."""
        return {
            "mechanism": "alpha-beta",
            "method": self.method,
            "feasible": True,
            "rows": self.n_rows,
            "alpha": float(self.gamma_f - self.other_rate),
            "beta": float(self.other_rate),
            "gamma_f": float(self.gamma_f),
            "d": float(self.k / self.domain_size),
            "gamma": float(self.promise.gamma),
            "epsilon": self.epsilon(),
            "domain_size": self.domain_size,
            "noise_rows": self.noise_rows,
            "rho": self.rho,
            "views": 1,
            "warnings": list(self.warnings()),
            "private": True,
        }

    def public_parameters(self) -> Public:
        """What the manifest may say; FRAPP publishes n itself, as its number of rows."""
        return {
            "method": self.method,
            "gamma_f": str(self.gamma_f),
            "domain_size": str(self.domain_size),
            "k": str(self.k),
            "gamma": str(self.promise.gamma),
        }

    def __str__(self) -> str:
        bound = self.rho * math.sqrt(self.n_rows)
        lines = [
            f"frapp           {self.n_rows:,} records, domain of {self.domain_size:,}",
            f"promise         a record's prior ≤ {float(self.k):g}/m gives "
            f"posterior ≤ {float(self.promise.gamma):.4g}",
            f"gamma_f         {float(self.gamma_f):.6g}; {self.noise_rows:,.0f} records are replaced",
            f"error           one count is within ±{bound:,.0f} with probability {1 - self.miss:g}"
            f" (rho = {self.rho:.3g})",
        ]
        return "\n".join([*lines, *(f"warning         {text}" for text in self.warnings())])


def plan_frapp(n_rows: int, domain: Domain, promise: DGammaPrivacy, *, miss: float = 0.05) -> FrappPlan:
    """The FRAPP plan for `n_rows` records to the same (d,γ): each record's prior is at most d/n."""
    if promise.adversary == "exclusive":
        raise PolicyError(
            "FRAPP promises nothing against the exclusive adversary", hint='use method = "alpha-beta"'
        )
    if domain.size < 2:
        raise PromiseNotMet("the domain has a single tuple; there is nothing to replace it with")
    k = promise.k
    if k is None:
        assert promise.d is not None  # noqa: S101  (exactly one of k and d is set)
        k = promise.d * domain.size / n_rows
    gamma_f = frapp_retention(k, promise.gamma, domain.size)
    plan = FrappPlan(promise=promise, k=k, gamma_f=gamma_f, domain_size=domain.size, n_rows=n_rows, miss=miss)
    plan.check()
    return plan
