"""Which thresholds to try next, to find where a count that rises with its threshold passes a level.

A count between two thresholds that were tried is near the straight line between them: tried next are numbers
close to where that passes, on both sides, so that little is left if it was nearly right (regula falsi with a
band). Of w numbers, whose steps are alike but for chance, the count strays from the line like √w of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, isfinite, sqrt
from typing import Literal

import numpy as np

from dalenius.arrays import Bools, Floats
from dalenius.question.model import Column

_FEW = 2
"""So many numbers between two that were tried are all tried at once."""
_NEAR = 0.25
"""How many times √w. Measured of salaries in buckets of 20 and more: 0.5 takes a fifth more thresholds."""
_PARTS = 4
"""Where the line has led astray, what is between is also cut into so many parts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """What a part of a threshold's difference must reach, or pass, in every group."""

    part: Literal["estimate", "low", "high"]
    least: Floats | float
    is_passed: bool = False
    """Whether being there is not enough."""

    def margin(self, column: Column) -> Floats:
        """How far it is beyond; NaN where the threshold was not tried."""
        return np.asarray(getattr(column, self.part) - self.least)

    def holds(self, column: Column) -> Bools:
        """In which groups it is beyond; NaN is not."""
        margin = self.margin(column)
        return np.asarray(margin > 0 if self.is_passed else margin >= 0)


def between(begin: int, end: int, below: float, above: float, is_astray: bool = False) -> list[int]:
    """Thresholds that split what is between two, of which the first is below a level and the second beyond.

    >>> between(0, 100, -1.0, 3.0)
    [22, 28]
    >>> between(0, 100, -1.0, 3.0, is_astray=True)
    [22, 25, 28, 50, 75]
    >>> between(7, 10, -1.0, 3.0)
    [8, 9]
    """
    width = end - begin
    if width <= _FEW + 1:
        return list(range(begin + 1, end))
    found = set()
    if isfinite(below) and isfinite(above) and above > below:
        place, reach = begin + width * below / (below - above), _NEAR * sqrt(width)
        found = {max(floor(place - reach), begin + 1), min(ceil(place + reach), end - 1)}
    if is_astray or not found:
        found |= {begin + width * k // _PARTS for k in range(1, _PARTS)}
    return sorted(found)
