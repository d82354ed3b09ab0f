"""Where a promise is on the common axis: the largest probability that it lets anybody infer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The largest probability that may be inferred, and of what."""

    largest: Fraction
    symbol: str
    """What the promise calls it, e.g. `1/l`."""
    meaning: str
    smallest: Fraction | None = None
    """The bound of the value that is protected most, where values have bounds of their own."""
