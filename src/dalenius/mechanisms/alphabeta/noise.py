"""Noise that is not uniform: β(t) = B·p_1(t_1)·…·p_l(t_l), from declared distributions (section 4.4.2).

Where the attacker's prior is known to follow a source distribution P(t) = Π_j p_j(t_j), noise placed by P
hides tuples where they are expected. The promise then holds for priors with Pr[t] ≤ d·P(t)/max P, and
for no others: a tuple that P makes rare is protected only against those who also think it rare. With
d(t) = d·P(t)/max P and β(t) = β·P(t)/max P both conditions are tightest at the tuple of largest P, so the
uniform parameters for d are the parameters there: β(t) ≥ α·d(t)(1−γ)/(γ−d(t)) since γ−d(t) ≥ γ−d, and
1−α−β(t) − (d(t)/γ)(1−β(t)) falls as P(t) grows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import PolicyError
from dalenius.mechanisms.alphabeta.domain import Codes, Domain, IntArray

_DRAW_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseLaw:
    """The share of the noise that each value of each column gets; columns are independent.

    >>> law = NoiseLaw.of(Domain.of({"sex": ["F", "M"], "ill": ["flu", "hiv"]}), {"ill": ["9/10", "1/10"]})
    >>> law.largest_share
    Fraction(9, 20)
    """

    shares: tuple[tuple[Fraction, ...], ...]

    def __post_init__(self) -> None:
        for number, column in enumerate(self.shares, start=1):
            if sum(column) != 1 or min(column) <= 0:
                raise PolicyError(
                    f"noise shares of column {number} must be above 0 and add up to 1, not {sum(column)}",
                    hint="a value without noise would be seen only when it is real",
                )
            if _denominator(column) >= _DRAW_LIMIT:
                raise PolicyError(f"noise shares of column {number} have too many digits; 9 decimals will do")

    @classmethod
    def of(cls, domain: Domain, declared: Mapping[str, Sequence[str | int | Fraction]]) -> NoiseLaw:
        """From the declared columns' shares; a column that is not declared is uniform."""
        unknown = set(declared) - set(domain.names)
        if unknown:
            raise PolicyError(f"noise is declared for {sorted(unknown)}, which the domain does not have")
        shares = []
        for name, size in zip(domain.names, domain.sizes, strict=True):
            column = tuple(Fraction(share) for share in declared.get(name, [Fraction(1, size)] * size))
            if len(column) != size:
                raise PolicyError(f"column {name!r} has {size} values and {len(column)} noise shares")
            shares.append(column)
        return cls(shares=tuple(shares))

    @property
    def largest_share(self) -> Fraction:
        """The largest P(t), the share of the most likely tuple."""
        return math.prod((max(column) for column in self.shares), start=Fraction(1))

    @property
    def smallest_share(self) -> Fraction:
        """The smallest P(t), the share of the least likely tuple."""
        return math.prod((min(column) for column in self.shares), start=Fraction(1))

    def draw(self, n_tuples: int, stream: np.random.Generator) -> Codes:
        """Tuples drawn by P, independently; each column's law is exact."""
        return tuple(_draw_column(column, n_tuples, stream) for column in self.shares)

    def relative(self, codes: Codes) -> NDArray[np.float64]:
        """P(t)/max P of each tuple."""
        result = np.ones(len(codes[0]))
        for column, code in zip(self.shares, codes, strict=True):
            largest = max(column)
            result *= np.array([float(share / largest) for share in column])[code]
        return result


def _draw_column(shares: tuple[Fraction, ...], n_draws: int, stream: np.random.Generator) -> IntArray:
    denominator = _denominator(shares)
    edges = np.cumsum([int(share * denominator) for share in shares])
    drawn = stream.integers(denominator, size=n_draws)
    return np.searchsorted(edges, drawn, side="right").astype(np.int64)


def _denominator(shares: tuple[Fraction, ...]) -> int:
    return math.lcm(*(share.denominator for share in shares))
