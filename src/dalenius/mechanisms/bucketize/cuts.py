"""Linear conditions on the numbers of buckets that every valid setting meets.

For any set J of values a bucket of size S takes at most g_J(S) = min(S, Σ_{i∈J} ⌊f′_i·S⌋) of their records,
so Σ_S g_J(S)·b_S ≥ o(J). By max-flow/min-cut these conditions together are also sufficient: a violated set W
of sizes gives the J of the values with Σ_{S∈W} ⌊f′_i·S⌋·b_S ≤ o_i. (Written over J the cut has coefficients
for the sizes outside W too, which makes it at least as strong as the same cut written over W.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dalenius.mechanisms.bucketize.classes import ValueClasses
from dalenius.mechanisms.bucketize.problem import IntArray

FloatArray = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_AT_ONCE = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Rows of  coefficients · b ≥ needs."""

    coefficients: IntArray  # cuts × sizes
    needs: IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSource:
    """The problem in the layouts that separation wants, in integers and in floating point."""

    sizes: IntArray
    counts: IntArray
    capacity: IntArray  # values × sizes
    by_size: FloatArray  # sizes × values, the same numbers

    @classmethod
    def of(cls, classes: ValueClasses, sizes: tuple[int, ...]) -> CutSource:
        """The layout of the classes of values over some sizes."""
        capacity = classes.capacity_table(sizes)
        return cls(
            sizes=np.array(sizes, dtype=np.int64),
            counts=classes.totals,
            capacity=capacity,
            by_size=np.ascontiguousarray(capacity.T, dtype=np.float64),
        )

    def cuts(self, values: Mask) -> Cuts:
        """The cuts of some sets of values (sets × values)."""
        # Exact in float64: the capacities of one bucket add up to far less than 2⁵³.
        # einsum, because the threads of a BLAS cost more than these small products.
        held = np.einsum("jv,sv->js", values.astype(np.float64), self.by_size).astype(np.int64)
        coefficients = np.minimum(held, self.sizes)
        needs = np.array([self.counts[row].sum() for row in values], dtype=np.int64)
        return Cuts(coefficients=coefficients, needs=needs)

    def cut_of_sizes(self, within: IntArray, n_buckets: IntArray) -> Cuts:
        """The cut that a violated set of sizes gives at a setting."""
        room = self.capacity[:, within] @ n_buckets[within]
        return self.cuts((room <= self.counts)[None, :])

    def violated(self, n_buckets: FloatArray, slack: float) -> Cuts:
        """The cuts of all prefixes {S ≤ s} and single sizes that are short by more than `slack` records.

        A prefix is short when the common values cannot fill the small buckets: rare ones fit large buckets
        only. The whole table and the single sizes are the paper's PC and FC.
        """
        room = self.by_size * n_buckets[:, None]
        slots = self.sizes * n_buckets
        found = [self._short(room, slots, slack)]
        np.cumsum(room, axis=0, out=room)
        found.append(self._short(room, np.cumsum(slots), slack))
        return self.cuts(np.concatenate(found))

    def _short(self, room: FloatArray, slots: FloatArray, slack: float) -> Mask:
        held = np.minimum(room, self.counts).sum(axis=1)
        missing = slots - held
        worst = np.argsort(-missing, kind="stable")[:_MOST_AT_ONCE]
        return np.asarray(room[worst[missing[worst] > slack]] <= self.counts)
