"""The parts' laws as arrays, so that a question is answered by sums over cells.

A *cell* is a part and a value that can be published in it; a published record is in exactly one. There are
Σ m_j cells, not k·m: with thousands of values nearly every value is in one part only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError
from dalenius.mechanisms.perturb.matrix import Channel, FloatArray

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Laws:
    """Every part's domain size and retention, and the cells, part after part."""

    n_values: int
    size: FloatArray
    """m_j of each part."""
    keep: FloatArray
    """p_j of each part."""
    first: IntArray
    """The first cell of each part."""
    part: IntArray
    """The part of each cell."""
    code: IntArray
    """The value of each cell, ascending within a part."""

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
        )

    def cells(self, parts: NDArray[np.integer], codes: NDArray[np.integer]) -> IntArray:
        """The cell of each published record."""
        known = self.part * self.n_values + self.code  # ascending
        wanted = np.asarray(parts, dtype=np.int64) * self.n_values + codes
        found = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        if not np.array_equal(known[found], wanted):
            raise InputError("a record is published with a value that its part does not have")
        return found

    def per_part(self, of_cells: FloatArray) -> FloatArray:
        """Sum an array over the cells of each part (its last axis)."""
        found: FloatArray = np.add.reduceat(of_cells, self.first, axis=-1)
        return found
