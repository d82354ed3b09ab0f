"""Uniform perturbation over a domain, as four numbers instead of an m × m matrix.

Keep x with probability p, else publish a uniform value of the domain (x included). With γ the largest
allowed ratio of a column's entries, q = 1/(m−1+γ) and p = (γ−1)/(m−1+γ) (equation 4), so that the matrix
is γ·q on the diagonal and q elsewhere (equation 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dalenius.errors import InputError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """The public law of one part: which values can be published in it, and γ.

    >>> channel = Channel(codes=(0, 1, 2, 3, 4, 5), gamma=Fraction(4))
    >>> channel.retention, channel.replacement, channel.diagonal
    (Fraction(1, 3), Fraction(1, 9), Fraction(4, 9))
    """

    codes: tuple[int, ...]
    """SA_i in ascending order: the codes that occur in the part."""
    gamma: Fraction

    def __post_init__(self) -> None:
        if len(self.codes) < 2:
            raise InputError(f"a domain of {len(self.codes)} values cannot be perturbed; it needs 2 or more")
        if self.gamma <= 1:
            raise InputError(f"gamma ({self.gamma}) must be above 1: at 1 nothing of the value is left")
        if any(low >= high for low, high in zip(self.codes, self.codes[1:], strict=False)):
            raise InputError("the codes of a part must be different and ascending")

    @property
    def n_values(self) -> int:
        """The size m_i of the domain."""
        return len(self.codes)

    @property
    def replacement(self) -> Fraction:
        """The probability q that x is published as one given other value."""
        return 1 / (self.n_values - 1 + self.gamma)

    @property
    def retention(self) -> Fraction:
        """The probability p that the coin keeps x."""
        return (self.gamma - 1) * self.replacement

    @property
    def diagonal(self) -> Fraction:
        """The probability p + q that x is published as x."""
        return self.gamma * self.replacement


def reconstruct(observed: ArrayLike, channel: Channel) -> FloatArray:
    """The unbiased counts f*_i = ((m−1+γ)·o*_i − n)/(γ−1) behind published ones (equation 7).

    They sum to n and can be negative; clipping them would bias every sum.

    >>> reconstruct([9, 6], Channel(codes=(0, 1), gamma=Fraction(2)))
    array([12.,  3.])
    """
    counts = np.asarray(observed, dtype=np.float64)
    spread = float(channel.n_values - 1 + channel.gamma)
    found: FloatArray = (spread * counts - counts.sum()) / float(channel.gamma - 1)
    return found
