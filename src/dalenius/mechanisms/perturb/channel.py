"""Uniform perturbation over a domain, as four numbers instead of an m × m matrix.

Keep x with probability p, else publish a uniform value of the domain (x included). With γ the largest
allowed ratio of a column's entries, q = 1/(m−1+γ) and p = (γ−1)/(m−1+γ) (equation 4), so that the matrix
is γ·q on the diagonal and q elsewhere (equation 5).

With `weights` values are replaced in proportion to them instead of evenly: x becomes y with q_y = (1−p)w_y/W
and y is published from itself g_y = 1 + p/q_y times as often as from any one other. So a value with a tight
limit is a frequent replacement, and the others need not be (`plan/thresholds.py`).

What a published value tells, by Bayes' rule in exact arithmetic, without using how γ was derived.

The parts' laws as arrays, so that a question is answered by sums over cells.

A *cell* is a part and a value that can be published in it; a published record is in exactly one. There are
Σ m_j cells, not k·m: with thousands of values nearly every value is in one part only.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dalenius.arrays import Codes, Floats, Ints
from dalenius.errors import InputError


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
    """With weights: the γ of an even replacement that keeps as many values."""
    weights: tuple[int, ...] | None = None
    """How often each value is drawn as a replacement, in proportion; None: all alike."""

    def __post_init__(self) -> None:
        if self.weights is not None and (len(self.weights) != len(self.codes) or min(self.weights) < 1):
            raise InputError("a part needs a weight of 1 or more for each of its values")
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
        """The probability q that x is published as one given other value; with weights, on average."""
        return 1 / (self.n_values - 1 + self.gamma)

    @property
    def retention(self) -> Fraction:
        """The probability p that the coin keeps x."""
        return (self.gamma - 1) * self.replacement

    @property
    def diagonal(self) -> Fraction:
        """The probability p + q that x is published as x; with weights, on average over the values."""
        return self.gamma * self.replacement

    def drawn(self) -> Floats:
        """The chance of each value to be the replacement that is drawn."""
        if self.weights is None:
            return np.full(self.n_values, 1 / self.n_values)
        return np.array(self.weights) / sum(self.weights)

    def replaced(self) -> Floats:
        """q_y: how likely another value is published as each value."""
        if self.weights is None:
            return np.full(self.n_values, float(self.replacement))
        return float(1 - self.retention) * self.drawn()

    def kept(self) -> Floats:
        """How likely each value is published as itself."""
        if self.weights is None:
            return np.full(self.n_values, float(self.diagonal))
        return float(self.retention) + self.replaced()

    def amplification(self, place: int) -> Fraction:
        """g_y, exactly: how much likelier the value at that place is from itself than from any one other.

        >>> channel = Channel(codes=(0, 1), gamma=Fraction(3), weights=(1, 3))  # p = 1/2, q = 1/8 and 3/8
        >>> channel.amplification(0), channel.amplification(1)
        (Fraction(5, 1), Fraction(7, 3))
        """
        if self.weights is None:
            return self.gamma
        share = Fraction(self.weights[place], sum(self.weights))
        return 1 + self.retention / ((1 - self.retention) * share)

    def amplifications(self) -> Floats:
        """The same of every value."""
        return np.asarray(self.kept() / self.replaced())


def gamma_of(retention: Fraction, n_values: int) -> Fraction:
    """The γ of an even replacement that keeps a value with that probability.

    >>> gamma_of(Fraction(1, 3), 6)
    Fraction(4, 1)
    """
    return 1 + n_values * retention / (1 - retention)


def reconstruct(observed: ArrayLike, channel: Channel) -> Floats:
    """The unbiased counts f*_i = ((m−1+γ)·o*_i − n)/(γ−1) behind published ones (equation 7).

    They sum to n and can be negative; clipping them would bias every sum.

    >>> reconstruct([9, 6], Channel(codes=(0, 1), gamma=Fraction(2)))
    array([12.,  3.])
    """
    counts = np.asarray(observed, dtype=np.float64)
    if channel.weights is not None:
        p = float(channel.retention)
        return np.asarray((counts - counts.sum() * (1 - p) * channel.drawn()) / p)
    spread = float(channel.n_values - 1 + channel.gamma)
    found: Floats = (spread * counts - counts.sum()) / float(channel.gamma - 1)
    return found


def largest_posterior(
    codes: Sequence[int],
    counts: Sequence[int],
    gamma: Fraction | Sequence[Fraction],
    targets: Collection[int],
) -> Fraction:
    """The highest Pr[X = x | Y = y] over the target values x and every y that can be published in a part.

    The prior is the part's histogram, and y is γ times as likely from y itself as from any other value:
    Pr[x | y] = o_x·γ^[x=y] / (n + (γ−1)·o_y). For each y only y itself and the commonest other target can
    be the highest. A part without target values gives 0. Where values differ in γ, it is y's own.

    >>> largest_posterior((0, 1, 2), (6, 3, 3), Fraction(2), {0, 1, 2})
    Fraction(2, 3)
    """
    total = sum(counts)
    each = [gamma] * len(counts) if isinstance(gamma, Fraction) else gamma
    is_target = set(targets)
    aimed = sorted(
        (count for code, count in zip(codes, counts, strict=True) if code in is_target), reverse=True
    )
    best = Fraction(0)
    for code, count, own_gamma in zip(codes, counts, each, strict=True):
        up, down = own_gamma.numerator, own_gamma.denominator
        evidence = down * total + (up - down) * count  # of y, times γ's denominator
        own = up * count if code in is_target else 0
        others = aimed[1:2] if code in is_target and count == aimed[0] else aimed[:1]
        strongest = max(own, down * max(others, default=0))
        if strongest * best.denominator > best.numerator * evidence:
            best = Fraction(strongest, evidence)
    return best


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laws:
    """Every part's domain size and retention, and the cells, part after part."""

    n_values: int
    size: Floats
    """m_j of each part."""
    keep: Floats
    """p_j of each part."""
    first: Ints
    """The first cell of each part."""
    part: Ints
    """The part of each cell."""
    code: Ints
    """The value of each cell, ascending within a part."""
    drawn: Floats | None = None
    """The chance of each cell to be what a replaced record of its part becomes; None: all alike."""

    @classmethod
    def of(cls, channels: Sequence[Channel], n_values: int) -> Laws:
        """The laws of these parts; codes are below `n_values`.

        >>> from fractions import Fraction
        >>> Laws.of([Channel(codes=(0, 2), gamma=Fraction(3))], 3).code.tolist()
        [0, 2]
        """
        sizes = np.array([channel.n_values for channel in channels], dtype=np.int64)
        return cls(
            n_values=n_values,
            size=sizes.astype(np.float64),
            keep=np.array([float(channel.retention) for channel in channels]),
            first=np.cumsum(sizes) - sizes,
            part=np.repeat(np.arange(len(channels)), sizes),
            code=np.concatenate([np.array(channel.codes, dtype=np.int64) for channel in channels]),
            drawn=np.concatenate([channel.drawn() for channel in channels])
            if any(channel.weights is not None for channel in channels)
            else None,
        )

    def cells(self, parts: Codes, codes: Codes) -> Ints:
        """The cell of each published record."""
        known = self.part * self.n_values + self.code  # ascending
        wanted = np.asarray(parts, dtype=np.int64) * self.n_values + codes
        found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        if not np.array_equal(known[found], wanted):
            raise InputError("a record is published with a value that its part does not have")
        return found

    def per_part(self, of_cells: Floats) -> Floats:
        """Sum an array over the cells of each part (its last axis)."""
        found: Floats = np.add.reduceat(of_cells, self.first, axis=-1)
        return found

    def average(self, of_cells: Floats) -> Floats:
        """What a record that is replaced comes to in each part, on average."""
        if self.drawn is None:
            return self.per_part(of_cells) / self.size
        return self.per_part(of_cells * self.drawn)
