"""FRAPP, the baseline: each record is kept with probability γ_f, else replaced by any other tuple of D.

Its promise is per record: the release is a multiset; a tuple seen j times has odds of about 1/(1−γ)^j − 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.exact import round_down
from dalenius.mechanisms.base import repeat_evidence
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.plan import Parameters, show_error, warn_of_impossibility
from dalenius.promises.d_gamma_privacy import DGammaPrivacy

_NO_SHARE = 10**6
"""Above it a number is no share that a person would read."""


def frapp_retention(k: Fraction, gamma: Fraction, domain_size: int) -> Fraction:
    """γ_f, with which a record is kept: γc/(γc + k(1−γ)), c = (m−k)/(m−1), rounded down to six digits.

    Bayes on one record whose tuple has prior k/m, seen in its place. That another tuple is seen lowers
    a tuple's probability by at most (1−γ)/(1−k/m), which must be at least (k/m)/γ.

    >>> float(frapp_retention(Fraction(10), Fraction(1, 5), 648_023_040))
    0.0243902
    """
    prior = k / domain_size
    if prior >= gamma:
        shown = f"{float(prior):.4g}" if prior < _NO_SHARE else "far above 1"
        raise PromiseNotMet(f"the prior k/m ({shown}) is not below gamma ({float(gamma):.4g})")
    if (1 - gamma) * gamma < prior * (1 - prior):
        raise PromiseNotMet(f"gamma ({float(gamma):.4g}) is so near 1 that other tuples would be ruled out")
    c = (domain_size - k) / (domain_size - 1)
    return round_down(gamma * c / (gamma * c + k * (1 - gamma)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrappLaw:
    """How likely a record is to become each tuple, and what that tells about it."""

    k: Fraction
    """A tuple's prior for one record is at most k/m."""
    gamma_f: Fraction
    domain_size: int

    @property
    def prior(self) -> Fraction:
        """k/m."""
        return self.k / self.domain_size

    @property
    def other_rate(self) -> Fraction:
        """The probability that a record becomes one given other tuple: β, where γ_f is α+β."""
        return (1 - self.gamma_f) / (self.domain_size - 1)

    @property
    def slope(self) -> Fraction:
        """How much likelier a record is to become its own tuple than another one: α."""
        return self.gamma_f - self.other_rate

    def rates(self, n_domain: int) -> tuple[Fraction, Fraction]:
        """p_in and p_out of a query that n_D tuples satisfy: how likely a record becomes one of these.

        The first is of a record that satisfies the query itself, the second of any other.
        """
        return self.gamma_f + self.other_rate * (n_domain - 1), self.other_rate * n_domain

    def largest_ratio(self) -> Fraction:
        """The likelihood ratio of a record's own tuple against any other, seen in its place."""
        return self.gamma_f / self.other_rate

    def epsilon(self) -> float:
        """The ε of local differential privacy of one record."""
        ratio = self.largest_ratio() if self.gamma_f < 1 else math.inf
        return math.log(max(ratio, 1 / ratio))

    def posterior(self) -> Fraction:
        """The posterior of a record's tuple that had prior k/m and is seen in its place."""
        return repeat_evidence(self.prior, self.largest_ratio(), 1)

    def rho(self, miss: float = 0.05) -> float:
        """ρ: of n independent records each is counted or not; Hoeffding's √(½ ln(2/miss)) over the slope."""
        return math.sqrt(math.log(2 / miss) / 2) / float(self.slope)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrappPlan:
    """A randomised response of each record; the published rows are as many as the table's."""

    promise: DGammaPrivacy
    law: FrappLaw
    n_rows: int
    miss: float = 0.05
    method: Literal["frapp"] = "frapp"

    @property
    def rho(self) -> float:
        """|Q − Q̃| ≤ ρ√n for any one query, at confidence 1 − `miss`."""
        return self.law.rho(self.miss)

    @property
    def noise_rows(self) -> float:
        """How many rows are expected to be replaced."""
        return float(self.n_rows * (1 - self.law.gamma_f))

    def check(self) -> None:
        """Check the promise for one record exactly, on the parameters that are published."""
        if self.law.posterior() > self.promise.gamma:
            raise PromiseNotMet(
                f"gamma_f = {self.law.gamma_f} gives a posterior of {float(self.law.posterior()):.4f}, above "
                f"gamma = {self.promise.gamma}"
            )

    def warnings(self) -> tuple[str, ...]:
        """What the publisher should know before publishing."""
        per_record = (
            "the promise is per record: a tuple that the release shows j times has odds of about "
            "j·gamma/(1−gamma); and the number of rows is published"
        )
        d = self.law.prior * self.n_rows
        hopeless = warn_of_impossibility(d, self.law.domain_size, self.n_rows, self.rho, self.miss)
        return (per_record, *hopeless)

    def to_dict(self) -> dict[str, object]:
        """The numbers of the plan for the publisher, private ones included."""
        return {
            "alpha": float(self.law.slope),
            "beta": float(self.law.other_rate),
            "gamma_f": float(self.law.gamma_f),
            "d": float(self.law.prior),
            "gamma": float(self.promise.gamma),
            "epsilon": self.law.epsilon(),
            "domain_size": self.law.domain_size,
            "noise_rows": self.noise_rows,
            "rho": self.rho,
            "views": 1,
        }

    def public_parameters(self) -> Parameters:
        """What the manifest may say; FRAPP publishes n itself, as its number of rows."""
        return {
            "method": self.method,
            "gamma_f": str(self.law.gamma_f),
            "domain_size": str(self.law.domain_size),
            "k": str(self.law.k),
            "gamma": str(self.promise.gamma),
        }

    def __str__(self) -> str:
        lines = [
            f"frapp           {self.n_rows:,} records, domain of {self.law.domain_size:,}",
            f"promise         a record's prior ≤ {float(self.law.k):g}/m gives "
            f"posterior ≤ {float(self.promise.gamma):.4g}",
            f"gamma_f         {float(self.law.gamma_f):.6g}; {self.noise_rows:,.0f} records are replaced",
            show_error(self.rho, self.n_rows, self.miss),
        ]
        return "\n".join(lines)


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
    law = FrappLaw(k=k, gamma_f=frapp_retention(k, promise.gamma, domain.size), domain_size=domain.size)
    plan = FrappPlan(promise=promise, law=law, n_rows=n_rows, miss=miss)
    plan.check()
    return plan
