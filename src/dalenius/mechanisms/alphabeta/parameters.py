"""α and β from (d,γ), and a bound on the error that holds at its confidence.

One view (theorem 4.3, in its exact form): β/(α+β) ≥ X with X = d(1−γ)/(γ(1−d)), and
1−α−β ≥ (d/γ)(1−β). Several views and the exclusive adversary: see `ViewLaw.keeps`.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dalenius.errors import PromiseNotMet
from dalenius.exact import round_up
from dalenius.mechanisms.alphabeta.law import ViewLaw, usual_decay
from dalenius.promises.d_gamma_privacy import Adversary

USUAL_RETENTION = Fraction(1, 2)
SAMPLING_MARGIN = Fraction(1, 10**6)
"""The likelihood ratios are kept this much inside their bounds, which covers floating-point sampling."""

_FINE_DIGITS = 12
_RETENTION_STEPS = 1024
_BETA_STEPS = 40


def choose_law(
    d: Fraction,
    gamma: Fraction,
    *,
    adversary: Adversary = "independent",
    views: int = 1,
    retention: Fraction = USUAL_RETENTION,
) -> ViewLaw:
    """The law with the given α+β, or the largest below it that the promise allows, and the least β for it.

    Against the exclusive adversary β/(α+β) grows as (1−s)^−v, and the noise per kept tuple is least at
    s = 1/(v+1), so no larger one is taken.

    >>> law = choose_law(Fraction(1, 1000), Fraction(1, 5))
    >>> law.retention, float(law.beta)
    (Fraction(1, 2), 0.00200201)
    """
    if d >= gamma:
        raise PromiseNotMet(f"the prior bound d ({float(d):.4g}) is not below gamma ({float(gamma):.4g})")
    if adversary == "exclusive":
        retention = min(retention, Fraction(1, views + 1))
    low, high = 0, _RETENTION_STEPS
    best = _law_at(retention, d, gamma, adversary, views)
    # A smaller α+β makes absence weaker evidence, so the allowed ones are those below some bound.
    while best is None and high - low > 1:
        middle = (low + high) // 2
        if _law_at(retention * middle / _RETENTION_STEPS, d, gamma, adversary, views) is None:
            high = middle
        else:
            low = middle
    if best is None and low:
        best = _law_at(retention * low / _RETENTION_STEPS, d, gamma, adversary, views)
    if best is None:
        raise PromiseNotMet(
            f"no alpha and beta keep d = {float(d):.4g}, gamma = {float(gamma):.4g} over {views} view(s)",
            hint="publish fewer views, lower k or d, or raise gamma",
        )
    return best


def _law_at(
    retention: Fraction, d: Fraction, gamma: Fraction, adversary: Adversary, views: int
) -> ViewLaw | None:
    """The law with this α+β, if it can keep the promise; more noise than presence needs is never added."""
    law = _least_beta(retention, d, gamma, adversary, views)
    return law if law is not None and law.hides_absence(d, gamma, SAMPLING_MARGIN) else None


def _least_beta(
    retention: Fraction, d: Fraction, gamma: Fraction, adversary: Adversary, views: int
) -> ViewLaw | None:
    """The law with the least β (to six digits) that hides presence with this α+β, if there is one."""
    decay = usual_decay(views)

    def law_at(beta: Fraction) -> ViewLaw | None:
        rounded = round_up(beta)
        if rounded >= retention:
            return None
        law = ViewLaw(retention=retention, beta=rounded, views=views, decay=decay)
        return law if law.hides_presence(d, gamma, adversary, SAMPLING_MARGIN) else None

    # Appearing in every view has a likelihood ratio of s/(β·e^(v−1)) at least.
    x = d * (1 - gamma) / (gamma * (1 - d)) / decay ** (views - 1)
    low = _necessary_beta(retention, x, adversary) * (1 + SAMPLING_MARGIN)
    found = law_at(low)
    if found is not None:
        return found
    high = low
    while found is None:
        low, high = high, high * Fraction(17, 16)
        if high >= retention:
            return None
        found = law_at(high)
    for _ in range(_BETA_STEPS):
        middle = round_up((low + high) / 2, _FINE_DIGITS)
        tried = law_at(middle)
        if tried is None:
            low = middle
        else:
            high, found = middle, tried
    return found


def _necessary_beta(retention: Fraction, x: Fraction, adversary: Adversary) -> Fraction:
    """A β below which the promise fails, because a tuple may appear in every view."""
    if adversary == "exclusive":
        # The other tuples of its set may never appear: s/β · (1−β)/(1−s) ≤ 1/X.
        return x * retention / (1 - retention + x * retention)
    return x * retention


def bernstein_deviation(variance: float, miss: float) -> float:
    """The x with Pr[|S − E S| > x] ≤ miss, for a sum of independent terms at most 1 off their means.

    Bernstein: 2·exp(−x²/(2(W + x/3))) = miss, so x = L/3 + √((L/3)² + 2WL), L = ln(2/miss).
    """
    log_term = math.log(2 / miss)
    third = log_term / 3
    return third + math.sqrt(third**2 + 2 * variance * log_term)


def alphabeta_rho(
    *, alpha: Fraction, kept_variance: float, noise_variance: float, n_rows: int, miss: float = 0.05
) -> float:
    """ρ such that |Q − Q̃| ≤ ρ√n with probability 1−miss for any one query, for every α.

    Q̃ − Q = (1/α)·Σ_t (1[t ∈ V] − Pr[t ∈ V]) over the query's tuples: at most n tuples of the table, each
    of variance s(1−s), and insertions whose variances add up to at most `noise_variance`. No term
    exceeds 1, so Bernstein's inequality applies whatever α is. The paper's √(2(r+1)ln(2/ε)) leaves out
    the deletions' s(1−s)/α² and the linear term, and misses 36 % of the time at α = 0.1, ε = 0.05.
    """
    deviation = bernstein_deviation(n_rows * kept_variance + noise_variance, miss)
    return deviation / float(alpha) / math.sqrt(n_rows)
