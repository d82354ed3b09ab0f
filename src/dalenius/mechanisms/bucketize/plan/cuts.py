"""Linear conditions on the numbers of buckets that every valid setting meets.

For any set J of values a bucket of size S takes at most g_J(S) = min(S, Σ_{i∈J} ⌊f′_i·S⌋) of their records,
so Σ_S g_J(S)·b_S ≥ o(J). By max-flow/min-cut these conditions together are also sufficient: a violated set W
of sizes gives the J of the values with Σ_{S∈W} ⌊f′_i·S⌋·b_S ≤ o_i. (Written over J the cut has coefficients
for the sizes outside W too, which makes it at least as strong as the same cut written over W.)

The relaxed problem: the shares of the rows that go to each size, subject to the cuts found so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import highspy
import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.problem import ValueClasses

_MOST_AT_ONCE = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Rows of  coefficients · b ≥ needs."""

    coefficients: Ints  # cuts × sizes
    needs: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class CutSource:
    """The problem in the layouts that separation wants, in integers and in floating point."""

    sizes: Ints
    counts: Ints
    capacity: Ints  # values × sizes
    by_size: Floats  # sizes × values, the same numbers

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

    def cuts(self, values: Bools) -> Cuts:
        """The cuts of some sets of values (sets × values)."""
        # Exact in float64: the capacities of one bucket add up to far less than 2⁵³.
        # einsum, because the threads of a BLAS cost more than these small products.
        held = np.einsum("jv,sv->js", values.astype(np.float64), self.by_size).astype(np.int64)
        coefficients = np.minimum(held, self.sizes)
        needs = np.array([self.counts[row].sum() for row in values], dtype=np.int64)
        return Cuts(coefficients=coefficients, needs=needs)

    def cut_of_sizes(self, within: Ints, n_buckets: Ints) -> Cuts:
        """The cut that a violated set of sizes gives at a setting."""
        room = self.capacity[:, within] @ n_buckets[within]
        return self.cuts((room <= self.counts)[None, :])

    def violated(self, n_buckets: Floats, slack: float) -> Cuts:
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

    def _short(self, room: Floats, slots: Floats, slack: float) -> Bools:
        held = np.minimum(room, self.counts).sum(axis=1)
        missing = slots - held
        worst = np.argsort(-missing, kind="stable")[:_MOST_AT_ONCE]
        return np.asarray(room[worst[missing[worst] > slack]] <= self.counts)


_DUAL_UNIT = 2**40


def silent_solver() -> highspy.Highs:
    """A HiGHS instance that prints nothing and gives the same answer each time."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver


class Master:
    """A linear programme over shares y_S = S·b_S/n, which looks the same for every n."""

    def __init__(self, sizes: Ints, n_rows: int) -> None:
        self._sizes, self._n_rows = sizes, n_rows
        self._columns = np.arange(len(sizes), dtype=np.int32)
        self._seen: set[tuple[bytes, int]] = set()
        self._coefficients: list[Ints] = []
        self._needs: list[int] = []
        self._solver = silent_solver()
        self._solver.setOptionValue("presolve", "off")  # it would discard the basis that the last round left
        n_sizes = len(sizes)
        self._solver.addVars(n_sizes, np.zeros(n_sizes), np.full(n_sizes, highspy.kHighsInf))
        self._solver.changeColsCost(n_sizes, self._columns, (sizes - 1.0) ** 2 / sizes)
        self._solver.addRow(1.0, 1.0, n_sizes, self._columns, np.ones(n_sizes))

    @property
    def cuts(self) -> Cuts:
        """Every cut added so far."""
        shape = (len(self._needs), len(self._sizes))
        coefficients = np.array(self._coefficients, dtype=np.int64).reshape(shape)
        return Cuts(coefficients=coefficients, needs=np.array(self._needs, dtype=np.int64))

    def add(self, cuts: Cuts) -> bool:
        """Add the cuts that are new; whether there were any."""
        before = len(self._needs)
        for row, need in zip(cuts.coefficients, cuts.needs.tolist(), strict=True):
            key = (row.tobytes(), need)
            if key not in self._seen:
                self._seen.add(key)
                self._coefficients.append(row)
                self._needs.append(need)
                share = need / self._n_rows
                self._solver.addRow(share, highspy.kHighsInf, len(row), self._columns, row / self._sizes)
        return len(self._needs) > before

    def solve(self) -> Floats | None:
        """The fractional numbers of buckets of the least loss, or None if the cuts contradict one another."""
        self._solver.run()
        status = self._solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise InternalError(f"the linear programme of the optimum ended as {status}")
        shares = np.array(self._solver.getSolution().col_value)
        return np.asarray(np.maximum(shares, 0.0) * self._n_rows / self._sizes)

    def lower_bound(self) -> int:
        """A lower bound on the loss that holds in exact arithmetic, whatever the solver's tolerances.

        For any multipliers μ_J ≥ 0 of the cuts, Σ_J μ_J·o(J) + n·min_S ((S−1)² − Σ_J μ_J·g_J(S))/S is one.
        The solver's multipliers, rounded to multiples of 2⁻⁴⁰, make it a good one.
        """
        duals = np.array(self._solver.getSolution().row_dual)[1:]
        used = [(round(float(duals[j]) * _DUAL_UNIT), j) for j in np.flatnonzero(duals > 0)]
        prices = [(size - 1) ** 2 * _DUAL_UNIT for size in self._sizes.tolist()]
        total = 0
        for weight, j in used:
            total += weight * self._needs[j]
            row = self._coefficients[j].tolist()
            prices = [price - weight * g for price, g in zip(prices, row, strict=True)]
        cheapest = min(Fraction(p, size) for p, size in zip(prices, self._sizes.tolist(), strict=True))
        return max(ceil((total + self._n_rows * cheapest) / _DUAL_UNIT), 0)
