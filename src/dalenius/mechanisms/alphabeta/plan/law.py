"""The probabilities by which tuples get into views, and what the views tell about one tuple.

View i of v (algorithm 4; v = 1 is algorithm 1): a tuple of the table appears with probability s = α+β;
a tuple outside the table that an earlier view has shown, with s·e; any other tuple with
b_i = (1−s)^(i−1)·β. The paper's e is exp(−1/v). Here it is a rational number near it that is published,
so that every probability is rational and the promise is checked without rounding.

α and β follow from (d,γ). One view (theorem 4.3, in its exact form): β/(α+β) ≥ X with X = d(1−γ)/(γ(1−d)),
and 1−α−β ≥ (d/γ)(1−β). Several views and the exclusive adversary: see `ViewLaw.keeps`. The paper takes
α+β = 1/2. A larger one keeps the same promise and the same ε, and the variance of every answer falls as
1/(α+β) at the price of noise that grows as α+β, so at most to twice the paper's: the largest is the default.

Views of a table that changes: see `ChangingLaw` and docs/proofs/changing-views.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import mul

from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.exact import round_up
from dalenius.promises.d_gamma_privacy import Adversary

_DECAY_DENOMINATOR = 10**6
SAMPLING_MARGIN = Fraction(1, 10**6)
"""The likelihood ratios are kept this much inside their bounds, which covers floating-point sampling."""
_FINE_DIGITS = 12
_RETENTION_STEPS = 1024
_HIGHEST = Fraction(_RETENTION_STEPS - 1, _RETENTION_STEPS)
_BETA_STEPS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewLaw:
    """How likely each kind of tuple is to appear in each view.

    >>> law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10))
    >>> law.alpha, law.largest_ratio(), law.smallest_ratio()
    (Fraction(2, 5), Fraction(5, 1), Fraction(5, 9))
    """

    retention: Fraction
    """s = α + β."""
    beta: Fraction
    views: int = 1
    decay: Fraction = Fraction(1)
    """e: how much less likely than in the table a known noise tuple is to appear again."""

    def __post_init__(self) -> None:
        if not 0 < self.beta < self.retention <= 1:
            raise PolicyError(
                f"beta ({self.beta}) and alpha+beta ({self.retention}) must satisfy 0 < beta < alpha+beta ≤ 1"
            )
        if self.views < 1:
            raise PolicyError(f"views is {self.views}; at least 1 view is published")
        if self.views > 1 and not 0 < self.decay < 1:
            raise PolicyError(f"decay is {self.decay}; with several views it lies between 0 and 1")

    @property
    def alpha(self) -> Fraction:
        """How much more likely a tuple of the table is to appear in the first view."""
        return self.retention - self.beta

    @property
    def seen_rate(self) -> Fraction:
        """The probability that a noise tuple shown before appears again."""
        return self.retention * self.decay

    def fresh_rate(self, view: int) -> Fraction:
        """b_i: the probability that a tuple outside the table, not shown yet, appears in view i ≥ 1."""
        return (1 - self.retention) ** (view - 1) * self.beta

    def noise_rate(self, view: int) -> Fraction:
        """The probability that a tuple that is never in the table appears in view i, whatever came before.

        >>> law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10), views=2, decay=Fraction(3, 5))
        >>> law.noise_rate(2) == Fraction(1, 10) * Fraction(3, 10) + Fraction(9, 10) * Fraction(1, 20)
        True
        """
        unseen = self._unseen()[view - 1]
        return unseen * self.fresh_rate(view) + (1 - unseen) * self.seen_rate

    def most_noise(self) -> Fraction:
        """The largest of these probabilities, over all views."""
        return max(map(self.noise_rate, range(1, self.views + 1)))

    def largest_ratio(self) -> Fraction:
        """The largest Pr[pattern | t in table] / Pr[pattern | t not in it] over patterns of appearance.

        First appearing in view i and then in every one is the strongest evidence for presence, for some i.
        """
        again = 1 / self.decay
        return max(ratio * again ** (self.views - view) for view, ratio in self._first_appearances())

    def smallest_ratio(self) -> Fraction:
        """The smallest such ratio: never appearing, or appearing once and never again."""
        missing = self._missing_again()
        once = [ratio * missing ** (self.views - view) for view, ratio in self._first_appearances()]
        never = (1 - self.retention) ** self.views / self._unseen()[-1]
        return min(never, *once)

    def worst_posterior(self, d: Fraction) -> Fraction:
        """The highest posterior that the views can give a tuple of prior d, by Bayes on that tuple."""
        odds = self.largest_ratio() * d / (1 - d)
        return odds / (1 + odds)

    def epsilon(self) -> float:
        """The ε of differential privacy for the presence of one tuple, over all views together."""
        smallest = self.smallest_ratio()
        if smallest == 0:
            return math.inf
        return math.log(max(self.largest_ratio(), 1 / smallest))

    def keeps(self, d: Fraction, gamma: Fraction, adversary: Adversary) -> bool:
        """Whether the promise holds, exactly.

        Evidence from a part of the views is a mean of ratios over the rest, so what holds for all views
        holds for the first few.
        """
        return self.hides_presence(d, gamma, adversary) and self.hides_absence(d, gamma)

    def hides_presence(
        self, d: Fraction, gamma: Fraction, adversary: Adversary, margin: Fraction = Fraction(0)
    ) -> bool:
        """Whether no posterior exceeds γ, or comes nearer than the margin in its odds.

        The posterior odds are the ratio times the prior odds, at most d/(1−d). Against the exclusive
        adversary the other tuples of the set, of total prior 1−d, may all show the smallest ratio.
        """
        against = self.smallest_ratio() if adversary == "exclusive" else Fraction(1)
        allowed = gamma * (1 - d) / (d * (1 - gamma))
        return self.largest_ratio() * (1 + margin) <= allowed * against

    def hides_absence(self, d: Fraction, gamma: Fraction, margin: Fraction = Fraction(0)) -> bool:
        """Whether Pr[t|V] ≥ (d/γ)·Pr[t]: the quotient is least for a prior near 0, where it is the ratio."""
        return self.smallest_ratio() >= d / gamma * (1 + margin)

    def _missing_again(self) -> Fraction:
        """The ratio of not appearing after having appeared, which a single view does not show."""
        return (1 - self.retention) / (1 - self.seen_rate) if self.views > 1 else Fraction(1)

    def _unseen(self) -> list[Fraction]:
        """Π_{j≤i}(1−b_j) for i = 0..v: the probability that noise stays unseen for i views."""
        misses = (1 - self.fresh_rate(view) for view in range(1, self.views + 1))
        return list(accumulate(misses, mul, initial=Fraction(1)))

    def _first_appearances(self) -> list[tuple[int, Fraction]]:
        """(i, likelihood ratio of first appearing in view i); (1−s)^(i−1) cancels against b_i."""
        unseen = self._unseen()
        return [(i, self.retention / (self.beta * unseen[i - 1])) for i in range(1, self.views + 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangingLaw(ViewLaw):
    """The law of views of a table that people join and leave between views.

    Noise that was not shown yet appears with β in every view. A tuple is compared with one that is in the
    table at fewer dates. Per view the likelihood ratio of two such histories is 1 where they agree; where
    only the first is in the table it is s/β for a first appearance, 1/e for a later one, and below 1 for
    none. So the largest is to appear in every view: (s/β)·e^−(v−1), the bound of an unchanged table.

    >>> law = ChangingLaw(retention=Fraction(1, 2), beta=Fraction(1, 10), views=3, decay=Fraction(1, 2))
    >>> law.largest_ratio(), law.fresh_rate(3)
    (Fraction(20, 1), Fraction(1, 10))
    """

    def fresh_rate(self, view: int) -> Fraction:  # noqa: ARG002  (it does not decay)
        """β: whoever joins now must not stand out from noise that has become rare."""
        return self.beta

    def largest_ratio(self) -> Fraction:
        """The largest ratio of two histories, one within the other, over patterns of appearance."""
        return self.retention / self.beta / self.decay ** (self.views - 1)

    def smallest_ratio(self) -> Fraction:
        """The smallest: not to appear, unseen or after a view in which both histories agree."""
        unseen, seen = (1 - self.retention) / (1 - self.beta), self._missing_again()
        once = [unseen**before * seen ** (self.views - 1 - before) for before in range(self.views)]
        return min(unseen**self.views, *once)


def usual_decay(views: int) -> Fraction:
    """The paper's exp(−1/v), rounded up to six decimals; 1 for a single view, which does not use it.

    >>> usual_decay(2)
    Fraction(606531, 1000000)
    """
    if views == 1:
        return Fraction(1)
    return Fraction(math.ceil(math.exp(-1 / views) * _DECAY_DENOMINATOR), _DECAY_DENOMINATOR)


USUAL_RETENTION = Fraction(1, 2)
"""The paper's α+β."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LawChoice:
    """What is given of α and β; what is left open is chosen for the least error."""

    alpha: Fraction | None = None
    beta: Fraction | None = None
    """Both or neither; refused if they break the promise."""
    retention: Fraction | None = None
    """α+β, as it is given; refused if no β keeps the promise with it."""
    highest: Fraction | None = None
    """An α+β that is lowered where the promise needs it."""
    max_noise_rows: int | None = None
    """How many tuples of noise a view may be expected to have. None: any number, because the most accurate
    law has at most twice as many as the paper's choice of 1/2."""


CHOSEN_FOR_LEAST_ERROR = LawChoice()
PAPER = LawChoice(highest=USUAL_RETENTION)
"""α+β = 1/2, and β at its bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedLaw:
    """What a law is to keep, and how many views it is for."""

    d: Fraction
    gamma: Fraction
    adversary: Adversary = "independent"
    views: int = 1
    kind: type[ViewLaw] = ViewLaw
    most_noise: Fraction = Fraction(1)
    """What the probability that a tuple of noise appears in a view may not exceed."""

    def law(self, retention: Fraction, beta: Fraction) -> ViewLaw:
        """The law with this α+β and β."""
        return self.kind(retention=retention, beta=beta, views=self.views, decay=usual_decay(self.views))

    def least_beta(self, retention: Fraction) -> Fraction:
        """A β below which the promise fails, because a tuple may appear in every view.

        The likelihood ratio is then s/(β·e^(v−1)) at least.
        """
        again = usual_decay(self.views) ** (self.views - 1)
        x = self.d * (1 - self.gamma) / (self.gamma * (1 - self.d)) / again
        if self.adversary == "exclusive":
            # The other tuples of its set may never appear: s/β · (1−β)/(1−s) ≤ 1/X.
            return x * retention / (1 - retention + x * retention)
        return x * retention


def choose_law(
    d: Fraction,
    gamma: Fraction,
    *,
    adversary: Adversary = "independent",
    views: int = 1,
    kind: type[ViewLaw] = ViewLaw,
    retention: Fraction | None = None,
    most_noise: Fraction = Fraction(1),
) -> ViewLaw:
    """The law with the largest α+β that the promise and the bound on noise allow, and the least β for it.

    Against the exclusive adversary β/(α+β) grows as (1−s)^−v, and the noise per kept tuple is least at
    s = 1/(v+1), so no larger one is taken.

    Args:
        d: the prior bound.
        gamma: the posterior bound.
        adversary: what the attacker knows besides.
        views: how many there will be.
        kind: for a table that stays as it is, or one that changes.
        retention: the largest α+β to take, such as the paper's 1/2; None: any.
        most_noise: the largest probability with which a tuple of noise may appear in a view.

    >>> law = choose_law(Fraction(1, 1000), Fraction(1, 5), retention=Fraction(1, 2))
    >>> law.retention, float(law.beta)
    (Fraction(1, 2), 0.00200201)
    >>> round(float(choose_law(Fraction(1, 1000), Fraction(1, 5)).retention), 3)
    0.994
    """
    if d >= gamma:
        raise PromiseNotMet(f"the prior bound d ({float(d):.4g}) is not below gamma ({float(gamma):.4g})")
    wanted = WantedLaw(d=d, gamma=gamma, adversary=adversary, views=views, kind=kind, most_noise=most_noise)
    highest = _HIGHEST if retention is None else retention
    if adversary == "exclusive":
        highest = min(highest, Fraction(1, views + 1))
    best = law_at(highest, wanted)
    low, high = 0, _RETENTION_STEPS
    # A smaller α+β makes absence weaker evidence and noise rarer: those below some bound are allowed.
    while best is None and high - low > 1:
        middle = (low + high) // 2
        if law_at(highest * middle / _RETENTION_STEPS, wanted) is None:
            high = middle
        else:
            low = middle
    if best is None and low:
        best = law_at(highest * low / _RETENTION_STEPS, wanted)
    if best is None:
        raise PromiseNotMet(
            f"no alpha and beta keep d = {float(d):.4g}, gamma = {float(gamma):.4g} over {views} view(s)"
            + (" within max_noise_rows" if most_noise < 1 else ""),
            hint="publish fewer views, lower k or d, or raise gamma"
            + (" or max_noise_rows" if most_noise < 1 else ""),
        )
    return best


def law_at(retention: Fraction, wanted: WantedLaw) -> ViewLaw | None:
    """The law with this α+β, if it can keep the promise; more noise than presence needs is never added."""
    law = _least_beta(retention, wanted)
    if law is None or law.most_noise() > wanted.most_noise:
        return None
    return law if law.hides_absence(wanted.d, wanted.gamma, SAMPLING_MARGIN) else None


def _least_beta(retention: Fraction, wanted: WantedLaw) -> ViewLaw | None:
    """The law with the least β (to six digits) that hides presence with this α+β, if there is one."""

    def law_with(beta: Fraction) -> ViewLaw | None:
        rounded = round_up(beta)
        if rounded >= retention:
            return None
        law = wanted.law(retention, rounded)
        hides = law.hides_presence(wanted.d, wanted.gamma, wanted.adversary, SAMPLING_MARGIN)
        return law if hides else None

    low = wanted.least_beta(retention) * (1 + SAMPLING_MARGIN)
    found = law_with(low)
    if found is not None:
        return found
    high = low
    while found is None:
        low, high = high, high * Fraction(17, 16)
        if high >= retention:
            return None
        found = law_with(high)
    for _ in range(_BETA_STEPS):
        middle = round_up((low + high) / 2, _FINE_DIGITS)
        tried = law_with(middle)
        if tried is None:
            low = middle
        else:
            high, found = middle, tried
    return found


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
