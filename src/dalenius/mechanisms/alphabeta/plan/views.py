"""A plan: the parameters that keep the promise for a domain, and what they cost, before any record is read.

What is published is computed from d, γ and the domain alone. The number of rows enters d only after
rounding (`published_rows`); everything that depends on n itself is private to the publisher.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.alphabeta.plan.law import (
    USUAL_RETENTION,
    ViewLaw,
    alphabeta_rho,
    choose_law,
)
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.plan import Parameters, show_error, warn_of_impossibility
from dalenius.promises.d_gamma_privacy import DGammaPrivacy


@dataclass(frozen=True, slots=True, kw_only=True)
class AlphaBetaPlan:
    """Views of the table's distinct tuples by algorithms 1, 4 and 5."""

    promise: DGammaPrivacy
    d: Fraction
    """The prior bound that is kept: the promise's own, or k times the rounded number of rows over m."""
    law: ViewLaw
    domain_size: int
    n_rows: int
    noise: NoiseLaw | None = None
    miss: float = 0.05
    method: Literal["alpha-beta"] = "alpha-beta"

    @property
    def noise_rows(self) -> float:
        """How many tuples outside the table the first view is expected to get; Σβ(t) over D."""
        largest_share = Fraction(1, self.domain_size) if self.noise is None else self.noise.largest_share
        return float(self.law.beta / largest_share)

    @property
    def rho(self) -> float:
        """|Q − Q̃| ≤ ρ√n for any one query of the first view, at confidence 1 − `miss`."""
        s = self.law.retention
        # Where noise is not uniform s(t) varies below s, so s(t)(1−s(t)) may exceed s(1−s).
        kept = Fraction(1, 4) if self.noise is not None and s > Fraction(1, 2) else s * (1 - s)
        return alphabeta_rho(
            alpha=self.law.alpha,
            kept_variance=float(kept),
            noise_variance=self.noise_rows,
            n_rows=self.n_rows,
            miss=self.miss,
        )

    def epsilon(self) -> float:
        """The ε of differential privacy for the presence of any one tuple, over all views.

        Where noise is not uniform the tuple that gets the least of it is protected least.
        """
        if self.noise is None:
            return self.law.epsilon()
        least = self.law.beta * self.noise.smallest_share / self.noise.largest_share
        rarest = ViewLaw(retention=self.law.alpha + least, beta=least)
        return max(self.law.epsilon(), rarest.epsilon())

    def check(self) -> None:
        """Check the promise exactly, on the parameters that are published."""
        if not self.law.keeps(self.d, self.promise.gamma, self.promise.adversary):
            raise PromiseNotMet(
                f"alpha = {self.law.alpha}, beta = {self.law.beta} over {self.law.views} view(s) do not keep "
                f"d = {self.d}, gamma = {self.promise.gamma}: a posterior can reach "
                f"{float(self.law.worst_posterior(self.d)):.4f}"
            )

    def warnings(self) -> tuple[str, ...]:
        """What the publisher should know before publishing; it names private numbers."""
        return warn_of_impossibility(self.d, self.domain_size, self.n_rows, self.rho, self.miss)

    def to_dict(self) -> dict[str, object]:
        """The numbers of the plan for the publisher, private ones included."""
        return {
            "alpha": float(self.law.alpha),
            "beta": float(self.law.beta),
            "domain_size": self.domain_size,
            "noise_rows": self.noise_rows,
            "rho": self.rho,
            "views": self.law.views,
            "d": float(self.d),
            "gamma": float(self.promise.gamma),
            "epsilon": self.epsilon(),
        }

    def public_parameters(self) -> Parameters:
        """What the manifest may say: enough to estimate and to verify, nothing that gives n away."""
        return {
            "method": self.method,
            "alpha": str(self.law.alpha),
            "beta": str(self.law.beta),
            "decay": str(self.law.decay),
            "views": self.law.views,
            "domain_size": str(self.domain_size),
            "d": str(self.d),
            "gamma": str(self.promise.gamma),
            "adversary": self.promise.adversary,
            "epsilon": self.epsilon(),
        }

    def __str__(self) -> str:
        lines = [
            f"alpha-beta      {self.law.views} view(s) of {self.n_rows:,} tuples out of {self.domain_size:,}",
            f"promise         prior ≤ {float(self.d):.4g} gives posterior ≤ {float(self.promise.gamma):.4g}"
            f" ({self.promise.adversary} adversary); worst {float(self.law.worst_posterior(self.d)):.6g}",
            f"alpha, beta     {float(self.law.alpha):.6g}, {float(self.law.beta):.6g}",
            f"noise           {self.noise_rows:,.0f} tuples expected",
            show_error(self.rho, self.n_rows, self.miss),
            f"differential    epsilon = {self.epsilon():.3g} for one tuple",
        ]
        return "\n".join(lines)


def plan_alphabeta(
    n_rows: int,
    domain: Domain,
    promise: DGammaPrivacy,
    *,
    views: int = 1,
    noise: NoiseLaw | None = None,
    retention: Fraction = USUAL_RETENTION,
    miss: float = 0.05,
) -> AlphaBetaPlan:
    """The αβ plan for a table of `n_rows` distinct tuples.

    Args:
        n_rows: the number of distinct tuples.
        domain: every tuple that could be.
        promise: what is to be kept.
        views: how many views of this table will ever be published.
        noise: the declared distributions, where noise is not to be uniform; for a single view.
        retention: α+β, lowered where the promise needs it. 1/2 is the paper's choice; a larger one is more
            accurate (the noise falls as 1/(α+β)) and makes absence from the view stronger evidence.
        miss: the probability with which a count may exceed the error bound.
    """
    if noise is not None and views > 1:
        raise PolicyError(
            "noise that is not uniform is for a single view", hint="set views = 1 or leave noise out"
        )
    largest_share = Fraction(1, domain.size) if noise is None else noise.largest_share
    d = promise.prior_bound(n_rows, largest_share)
    law = choose_law(d, promise.gamma, adversary=promise.adversary, views=views, retention=retention)
    plan = AlphaBetaPlan(
        promise=promise, d=d, law=law, domain_size=domain.size, n_rows=n_rows, noise=noise, miss=miss
    )
    plan.check()
    return plan
