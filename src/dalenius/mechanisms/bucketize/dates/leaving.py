"""How uncertain it is who has left with which value.

Whether somebody is still there is a column that values may go with. Of most values buckets tell something
about that: those that hold a value more often lose more people, if its people leave sooner. Their effects are
estimated as all others, and the errors of changes are far smaller than the effects' own uncertainty says.
But of a value that every bucket holds as often as the next they tell nothing. A table where such a value
decides who leaves and one where it does not are published alike, and what was learned about other values says
nothing about this one. So its effect is left open, as a normal one of variance `OPEN` in the logarithm of the
odds: the less of the value's variance buckets tell, the more of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.mechanisms.bucketize.estimate.posterior import RHO, Posterior
from dalenius.question.targets import Estimates, Targets

OPEN = 0.5
"""The variance of an effect of leaving on a value that buckets tell nothing of."""
TOLD = 0.1
"""From this part of a value's variance on it is told, and nothing is left open beside what was learned."""
_OF_CHANGES = 0.3
"""The part of the effects' variance that the change from a date to the next has, and more of them as often.

Who leaves at one date and who leaves at the next go with values alike, so over several dates errors add up.
"""
_LARGER = (0.9, 0.1)
"""How likely the larger effects of `LARGER` are: the columns of a series were learned from several dates.

A series is not tried on itself: who has left is not drawn with the values, and widths were far too large.
These numbers were settled on series of Adult (occupation) and KDD (education); docs/promises.md has others.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Leaving:
    """The estimates of a matching whose last column says at which dates people were there."""

    posterior: Posterior
    steps: int
    """How many dates later the scores are compared; 0: they are of one date."""

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        parts = self.posterior.parts(sums, targets)
        fixed = parts.match + OPEN * parts.moved * self._open(sums, targets)
        if self.steps:
            part = min(_OF_CHANGES * self.steps, 1.0)
            return parts.mixed((fixed + part * parts.effects[:, 0])[:, None], [1.0])
        return parts.mixed((fixed + RHO * parts.rest)[:, None] + parts.effects, _LARGER)

    def _open(self, sums: ScoreSums, targets: Targets) -> Floats:
        """The variance of each target, were what is not told an effect of variance 1."""
        features, contents = self.posterior.features, self.posterior.contents
        begin = int(features.starts[-2])
        used, place = np.unique(targets.score, return_inverse=True)
        scores = [sums.scores[k] for k in used]
        loads = [features.with_score(score.rows, score.values)[begin:] for score in scores]
        there = np.stack(loads)[place.ravel()] if loads else np.zeros((0, int(features.starts[-1]) - begin))
        moved = targets.weights @ contents.hidden  # terms × values
        known, hidden = np.diag(contents.known), np.diag(contents.hidden)
        told = known / np.maximum(known + hidden, 1e-300)
        is_open = np.clip(1 - told / TOLD, 0.0, 1.0)
        found = targets.add_up((there**2).sum(axis=1) * (moved**2 @ is_open))
        for i, j in zip(*(part.tolist() for part in targets.pairs()), strict=True):
            both = float(there[i] @ there[j]) * float((moved[i] * moved[j]) @ is_open)
            found[targets.target[i]] += 2 * both
        return np.asarray(np.maximum(found, 0.0))
