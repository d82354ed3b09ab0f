"""How many rows a table has, as a view by deletions and insertions tells it by itself, whatever the rows are.

Of n people each is shown with s, and of the other m − n tuples each with β. So the view has

    V = Binomial(n, s) + Binomial(m − n, β)

rows, and that is all that it tells of n where no law of people is known. Every n is as likely beforehand: a
view of fewer rows than the noise alone would show then leaves a few people possible, and not a negative
number of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats

_MOST_CELLS = 400_000
"""So many pairs of a number and of how many of them are shown are looked at, one by one."""
_FAR = 9.0
"""Standard deviations."""
_LEAST = 1e-3
_FARTHEST_BELOW = 30.0
"""Standard deviations below 0, from where the tail of a normal law is hardly anything but exponential."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSize:
    """How many rows a view shows, and how it came by them."""

    n_shown: int
    n_noise: float
    """Σβ(t) over the domain."""
    retention: float
    """s."""
    beta: float
    """Of a tuple on average."""

    @property
    def alpha(self) -> float:
        """By how much likelier people are to be shown than others."""
        return self.retention - self.beta

    def number(self) -> tuple[float, float]:
        """How many people there are on average, and the standard deviation, of all numbers there may be."""
        estimate = (self.n_shown - self.n_noise) / self.alpha
        own = max(estimate, 0.0) * self.retention * (1 - self.retention)
        deviation = math.sqrt(own + self.n_noise * (1 - self.beta)) / self.alpha
        top = math.ceil(max(estimate, 0.0) + _FAR * deviation + _FAR**2 / self.retention)
        top = min(top, math.ceil(self.n_noise / self.beta))  # which is m
        if (top + 1) * (self.n_shown + 1) <= _MOST_CELLS:
            mean, deviation = self._enumerate(top)
        else:
            mean, deviation = _positive_normal(estimate, deviation)
        return max(mean, _LEAST), max(deviation, _LEAST)

    def _enumerate(self, top: int) -> tuple[float, float]:
        from scipy.special import gammaln, xlog1py, xlogy  # takes 0.2 seconds to load

        n, shown = np.arange(top + 1.0)[:, None], np.arange(self.n_shown + 1.0)
        noise, others = self.n_shown - shown, self.n_noise / self.beta - n
        is_possible = (shown <= n) & (noise <= others)

        def chance(hits: Floats, tries: Floats, rate: float) -> Floats:
            rest = np.maximum(tries - hits, 0.0)
            # of 10¹² tuples and more the difference of two logarithms is only their rounding
            ways = np.where(
                tries < 1e6,
                gammaln(np.minimum(tries, 1e6) + 1) - gammaln(np.minimum(rest, 1e6) + 1),
                hits * np.log(np.maximum(tries - (hits - 1) / 2, 1.0)),
            )
            return np.asarray(ways - gammaln(hits + 1) + xlogy(hits, rate) + xlog1py(rest, -rate))

        log = np.where(
            is_possible,
            chance(shown, n, self.retention) + chance(noise, np.maximum(others, 0.0), self.beta),
            -np.inf,
        )
        weights = np.exp(log - log.max()).sum(axis=1)
        weights /= weights.sum()
        mean = float(weights @ n[:, 0])
        return mean, math.sqrt(float(weights @ (n[:, 0] - mean) ** 2))

    def shown_people(self, n: float) -> float:
        """Of n people, how many of the rows shown are theirs."""
        usual = n * self.retention
        own = usual * (1 - self.retention)
        noise = max(self.n_noise - n * self.beta, 0.0)
        all_noise = noise * (1 - self.beta)
        if own + all_noise == 0:
            return float(min(usual, self.n_shown))
        moved = (self.n_shown - usual - noise) * own / (own + all_noise)
        return float(np.clip(usual + moved, 0.0, min(n, self.n_shown)))


def _positive_normal(mean: float, deviation: float) -> tuple[float, float]:
    """Of a normal law that cannot be negative: its mean and standard deviation.

    >>> [round(x, 3) for x in _positive_normal(0.0, 1.0)]
    [0.798, 0.603]
    """
    below = -mean / deviation
    if below > _FARTHEST_BELOW:
        return deviation / below, deviation / below
    density = math.exp(-(below**2) / 2) / math.sqrt(2 * math.pi)
    hazard = density / (math.erfc(below / math.sqrt(2)) / 2)
    return mean + deviation * hazard, deviation * math.sqrt(1 - hazard * (hazard - below))
