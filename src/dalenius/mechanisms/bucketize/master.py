"""The relaxed problem: the shares of the rows that go to each size, subject to the cuts found so far."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import highspy
import numpy as np

from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.cuts import Cuts, FloatArray
from dalenius.mechanisms.bucketize.problem import IntArray

_DUAL_UNIT = 2**40


def silent_solver() -> highspy.Highs:
    """A HiGHS instance that prints nothing and gives the same answer each time."""
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver


class Master:
    """A linear programme over shares y_S = S·b_S/n, which looks the same for every n."""

    def __init__(self, sizes: IntArray, n_rows: int) -> None:
        self._sizes, self._n_rows = sizes, n_rows
        self._columns = np.arange(len(sizes), dtype=np.int32)
        self._seen: set[tuple[bytes, int]] = set()
        self._coefficients: list[IntArray] = []
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

    def solve(self) -> FloatArray | None:
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
