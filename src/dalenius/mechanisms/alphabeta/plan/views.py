"""A plan: the parameters that keep the promise for a domain, and what they cost, before any record is read.

What is published is computed from d, γ and the domain alone. The number of rows enters d only after
rounding (`published_rows`); everything that depends on n itself is private to the publisher.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.exact import show
from dalenius.mechanisms.alphabeta.plan.law import (
    CHOSEN_FOR_LEAST_ERROR,
    ChangingLaw,
    LawChoice,
    ViewLaw,
    WantedLaw,
    alphabeta_rho,
    choose_law,
    law_at,
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
    def is_changing(self) -> bool:
        """Whether each view is of the table as it is then."""
        return isinstance(self.law, ChangingLaw)

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

    @property
    def _noise_of_last(self) -> float:
        return float(self.law.noise_rate(self.law.views) * self.domain_size)

    def check(self) -> None:
        """Check the promise exactly, on the parameters that are published."""
        law, d, gamma = self.law, self.d, self.promise.gamma
        if law.keeps(d, gamma, self.promise.adversary):
            return
        why = f"a posterior can reach {float(law.worst_posterior(d)):.4f}"
        if not law.hides_absence(d, gamma):
            least = float(law.smallest_ratio())
            why = f"a row that no view shows keeps {least:.4g} of its prior, at least d/gamma is promised"
        raise PromiseNotMet(
            f"alpha = {law.alpha}, beta = {law.beta} over {law.views} view(s) do not keep d = {d}, "
            f"gamma = {gamma}: {why}",
            hint="leave alpha and beta out: the most accurate ones that keep the promise are then taken",
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
            "changing": self.is_changing,
            "retention": float(self.law.retention),
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
            **({"changing": True} if self.is_changing else {}),
        }

    def __str__(self) -> str:
        lines = [
            f"alpha-beta      {self.law.views} view(s) of {self.n_rows:,} tuples out of {self.domain_size:,}",
            f"promise         prior ≤ {float(self.d):.4g} gives posterior ≤ {float(self.promise.gamma):.4g}"
            f" ({self.promise.adversary} adversary); worst {float(self.law.worst_posterior(self.d)):.6g}",
            f"alpha, beta     {float(self.law.alpha):.6g}, {float(self.law.beta):.6g}",
            f"noise           {self.noise_rows:,.0f} tuples expected"
            + (f" in the first view, {self._noise_of_last:,.0f} in the last" if self.law.views > 1 else ""),
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
    kind: type[ViewLaw] = ViewLaw,
    noise: NoiseLaw | None = None,
    choice: LawChoice = CHOSEN_FOR_LEAST_ERROR,
    miss: float = 0.05,
) -> AlphaBetaPlan:
    """The αβ plan for a table of `n_rows` distinct tuples.

    Args:
        n_rows: the number of distinct tuples.
        domain: every tuple that could be.
        promise: what is to be kept.
        views: how many views of this table will ever be published.
        kind: the law of views of one unchanged table, or of a table that changes.
        noise: the declared distributions, where noise is not to be uniform; for a single view.
        choice: what α and β are to be; a larger α+β is more accurate (the variance falls as 1/(α+β)), needs
            more noise, and makes absence from the view stronger evidence.
        miss: the probability with which a count may exceed the error bound.
    """
    if noise is not None and views > 1:
        raise PolicyError(
            "noise that is not uniform is for a single view", hint="set views = 1 or leave noise out"
        )
    largest_share = Fraction(1, domain.size) if noise is None else noise.largest_share
    wanted = WantedLaw(
        d=promise.prior_bound(n_rows, largest_share),
        gamma=promise.gamma,
        adversary=promise.adversary,
        views=views,
        kind=kind,
        most_noise=_most_noise(choice.max_noise_rows, largest_share),
    )
    plan = AlphaBetaPlan(
        promise=promise,
        d=wanted.d,
        law=_find_law(wanted, choice),
        domain_size=domain.size,
        n_rows=n_rows,
        noise=noise,
        miss=miss,
    )
    plan.check()
    return plan


def _most_noise(max_noise_rows: int | None, largest_share: Fraction) -> Fraction:
    return Fraction(1) if max_noise_rows is None else min(max_noise_rows * largest_share, Fraction(1))


def _find_law(wanted: WantedLaw, choice: LawChoice) -> ViewLaw:
    """The law that the policy gives, if it keeps the promise, else the most accurate one that does."""
    if choice.alpha is not None and choice.beta is not None:
        given = wanted.law(choice.alpha + choice.beta, choice.beta)
        _refuse_noisy(given, wanted, choice)
        return given
    if choice.retention is not None:
        found = law_at(choice.retention, wanted)
        if found is None:
            raise _broken_by(choice.retention, wanted)
        return found
    return choose_law(
        wanted.d,
        wanted.gamma,
        adversary=wanted.adversary,
        views=wanted.views,
        kind=wanted.kind,
        retention=choice.highest,
        most_noise=wanted.most_noise,
    )


def _refuse_noisy(law: ViewLaw, wanted: WantedLaw, choice: LawChoice) -> None:
    if law.most_noise() > wanted.most_noise:
        raise PolicyError(
            f"alpha and beta give more noise than max_noise_rows ({choice.max_noise_rows:,}) allows",
            hint="raise max_noise_rows or lower beta",
        )


def _broken_by(retention: Fraction, wanted: WantedLaw) -> PromiseNotMet:
    """Why an α+β of the policy's own cannot be."""
    limit = f"d = {float(wanted.d):.4g}, gamma = {float(wanted.gamma):.4g} over {wanted.views} view(s)"
    within = " within max_noise_rows" if wanted.most_noise < 1 else ""
    return PromiseNotMet(
        f"no beta keeps {limit} with retention = {show(retention)}{within}",
        hint="leave retention out: the largest that the promise allows is then taken",
    )
