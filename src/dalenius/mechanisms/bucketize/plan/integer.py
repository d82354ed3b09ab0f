"""Whole numbers of buckets near a fractional optimum, and the proof that there are none much better.

Everything is counted from the fractional optimum rounded down, so the numbers that HiGHS sees are small and
exact, for a thousand rows and for a billion.

The cuts are linear conditions on the numbers of buckets that every valid setting meets. For any set J of
values a bucket of size S takes at most g_J(S) = min(S, Σ_{i∈J} ⌊f′_i·S⌋) of their records, so Σ_S g_J(S)·b_S
≥ o(J). By max-flow/min-cut these conditions together are also sufficient: a violated set W of sizes gives the
J of the values with Σ_{S∈W} ⌊f′_i·S⌋·b_S ≤ o_i. (Written over J the cut has coefficients for the sizes
outside W too, which makes it at least as strong as the same cut written over W.) Groups of values make g_J
smaller, see `groups.py`.

The relaxed problem is the shares of the rows that go to each size, subject to the cuts found so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf
from typing import TYPE_CHECKING

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.groups import GroupTree
from dalenius.mechanisms.bucketize.plan.problem import ValueClasses

if TYPE_CHECKING:
    import highspy

_MOST_AT_ONCE = 12
_SMALL_PRODUCT = 4_000_000
_DUAL_UNIT = 2**40


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
    groups: GroupTree | None

    @classmethod
    def of(cls, classes: ValueClasses, sizes: tuple[int, ...], groups: GroupTree | None = None) -> CutSource:
        """The layout of the classes of values over some sizes."""
        capacity = classes.capacity_table(sizes)
        return cls(
            sizes=np.array(sizes, dtype=np.int64),
            counts=classes.totals,
            capacity=capacity,
            by_size=np.ascontiguousarray(capacity.T, dtype=np.float64),
            groups=groups,
        )

    def cuts(self, values: Bools) -> Cuts:
        """The cuts of some sets of values (sets × values)."""
        # Exact in float64: the capacities of one bucket add up to far less than 2⁵³.
        # einsum where products are small: the threads of a BLAS then cost more than they save.
        chosen = values.astype(np.float64)
        is_small = values.shape[0] * self.by_size.size <= _SMALL_PRODUCT
        if self.groups is not None:
            tree, limits = self.groups, self.groups.by_size
            rows = [tree.narrow(self.by_size * row, limits)[0] for row in chosen]
            held = np.array(rows).reshape(len(values), len(self.sizes))
        else:
            held = np.einsum("jv,sv->js", chosen, self.by_size) if is_small else chosen @ self.by_size.T
        coefficients = np.minimum(held.astype(np.int64), self.sizes)
        needs = np.array([self.counts[row].sum() for row in values], dtype=np.int64)
        return Cuts(coefficients=coefficients, needs=needs)

    def cut_of_sizes(self, within: Ints, n_buckets: Ints) -> Cuts:
        """The cut that a violated set of sizes gives at a setting."""
        room = self.capacity[:, within] @ n_buckets[within]
        return self.cuts((room <= self.counts)[None, :])

    def find_violated(self, n_buckets: Floats, slack: float) -> Cuts:
        """The cuts of all prefixes {S ≤ s} and single sizes that are short by more than `slack` records.

        A prefix is short when the common values cannot fill the small buckets: rare ones fit large buckets
        only. The whole table and the single sizes are the paper's PC and FC. Sizes without buckets change
        nothing, and are passed over.
        """
        used = np.flatnonzero(n_buckets)
        room = self.by_size[used] * n_buckets[used, None]
        slots = self.sizes[used] * n_buckets[used]
        limits = None if self.groups is None else self.groups.by_size[used] * n_buckets[used, None]
        found = [self._short(room, limits, slots, slack)]
        np.cumsum(room, axis=0, out=room)
        if limits is not None:
            np.cumsum(limits, axis=0, out=limits)
        found.append(self._short(room, limits, np.cumsum(slots), slack))
        return self.cuts(np.concatenate(found))

    def _short(self, room: Floats, limits: Floats | None, slots: Floats, slack: float) -> Bools:
        held = np.minimum(room, self.counts)
        if self.groups is None or limits is None:
            total, full = held.sum(axis=1), None
        else:
            total, full = self.groups.narrow(held, limits)
        missing = slots - total
        worst = np.argsort(-missing, kind="stable")[:_MOST_AT_ONCE]
        chosen = worst[missing[worst] > slack]
        lacking = np.asarray(room[chosen] <= self.counts)
        return lacking if full is None else lacking | full[chosen]


def silent_solver() -> highspy.Highs:
    """A HiGHS instance that prints nothing and gives the same answer each time."""
    import highspy  # not before there is something to solve: most plans are proven optimal without

    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("threads", 1)
    return solver


class UndecidedError(InternalError):
    """Rounding errors kept a linear programme from an answer: nothing is known, and nothing is wrong."""


class Master:
    """A linear programme over shares y_S = S·b_S/n, which looks the same for every n."""

    def __init__(self, sizes: Ints, n_rows: int) -> None:
        self._sizes, self._n_rows = sizes, n_rows
        self._columns = np.arange(len(sizes), dtype=np.int32)
        self._seen: set[tuple[bytes, int]] = set()
        self._coefficients: list[Ints] = []
        self._needs: list[int] = []
        self._row_duals = self._column_duals = np.zeros(0)  # of the last answer, whatever was added since
        self._solver = silent_solver()
        self._solver.setOptionValue("presolve", "off")  # it would discard the basis that the last round left
        n_sizes = len(sizes)
        self._solver.addVars(n_sizes, np.zeros(n_sizes), np.full(n_sizes, inf))
        self._solver.changeColsCost(n_sizes, self._columns, (sizes - 1.0) ** 2 / sizes)
        self._solver.addRow(1.0, 1.0, n_sizes, self._columns, np.ones(n_sizes))

    @property
    def n_cuts(self) -> int:
        """How many cuts were added so far."""
        return len(self._needs)

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
                self._solver.addRow(share, inf, len(row), self._columns, row / self._sizes)
        return len(self._needs) > before

    def solve(self) -> Floats | None:
        """The fractional numbers of buckets of the least loss, or None if the cuts contradict one another.

        Raises:
            UndecidedError: neither was found.
        """
        from highspy import HighsModelStatus

        self._solver.run()
        if self._solver.getModelStatus() not in (HighsModelStatus.kOptimal, HighsModelStatus.kInfeasible):
            # rounding errors that the last round's basis leads to are not met on the way from the start
            self._solver.clearSolver()
            self._solver.setOptionValue("presolve", "on")
            self._solver.run()
            self._solver.setOptionValue("presolve", "off")
        status = self._solver.getModelStatus()
        if status == HighsModelStatus.kInfeasible:
            return None
        if status != HighsModelStatus.kOptimal:
            raise UndecidedError(f"the linear programme of the optimum ended as {status}")
        solution = self._solver.getSolution()
        self._row_duals, self._column_duals = np.array(solution.row_dual), np.array(solution.col_dual)
        shares = np.array(solution.col_value)
        return np.asarray(np.maximum(shares, 0.0) * self._n_rows / self._sizes)

    def reduced_costs(self) -> Floats:
        """By how much at least the loss rises above that of the relaxed problem with one bucket of a size."""
        return np.asarray(np.maximum(self._column_duals, 0.0) * self._sizes)

    def lower_bound(self) -> int:
        """A lower bound on the loss that holds in exact arithmetic, whatever the solver's tolerances.

        For any multipliers μ_J ≥ 0 of the cuts, Σ_J μ_J·o(J) + n·min_S ((S−1)² − Σ_J μ_J·g_J(S))/S is one.
        The solver's multipliers, rounded to multiples of 2⁻⁴⁰, make it a good one.
        """
        duals = self._row_duals[1:]
        used = [(round(float(duals[j]) * _DUAL_UNIT), j) for j in np.flatnonzero(duals > 0)]
        prices = [(size - 1) ** 2 * _DUAL_UNIT for size in self._sizes.tolist()]
        total = 0
        for weight, j in used:
            total += weight * self._needs[j]
            row = self._coefficients[j].tolist()
            prices = [price - weight * g for price, g in zip(prices, row, strict=True)]
        cheapest = min(Fraction(p, size) for p, size in zip(prices, self._sizes.tolist(), strict=True))
        return max(ceil((total + self._n_rows * cheapest) / _DUAL_UNIT), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerProblem:
    """min (S−1)²·b  with  S·b = n,  cuts·b ≥ needs,  b ≥ 0 whole, around a point `origin`."""

    sizes: Ints
    n_rows: int
    cuts: Cuts
    origin: Ints

    @property
    def costs(self) -> Ints:
        """(S−1)²."""
        return (self.sizes - 1) ** 2

    def among(self, columns: Ints) -> IntegerProblem:
        """The problem with buckets of some of the sizes only."""
        return IntegerProblem(
            sizes=self.sizes[columns],
            n_rows=self.n_rows,
            cuts=Cuts(coefficients=self.cuts.coefficients[:, columns], needs=self.cuts.needs),
            origin=self.origin[columns],
        )

    def is_met(self, n_buckets: Ints) -> bool:
        """Whether whole numbers of buckets have a place for every row and meet the cuts, in integers."""
        if int(n_buckets @ self.sizes) != self.n_rows or (n_buckets < 0).any():
            return False
        return bool((self.cuts.coefficients @ n_buckets >= self.cuts.needs).all())

    def to_solver(self) -> highspy.Highs:
        """The linear relaxation in steps from the origin."""
        solver, n_sizes = silent_solver(), len(self.sizes)
        columns = np.arange(n_sizes, dtype=np.int32)
        solver.addVars(n_sizes, -self.origin.astype(np.float64), np.full(n_sizes, inf))
        solver.changeColsCost(n_sizes, columns, self.costs.astype(np.float64))
        rest = float(self.n_rows - int(self.origin @ self.sizes))
        solver.addRow(rest, rest, n_sizes, columns, self.sizes.astype(np.float64))
        needs = self.cuts.needs - self.cuts.coefficients @ self.origin
        for row, need in zip(self.cuts.coefficients.astype(np.float64), needs.tolist(), strict=True):
            solver.addRow(float(need), inf, n_sizes, columns, row)
        return solver


def solve_relaxed(solver: highspy.Highs) -> Floats | None:
    """The answer of a linear programme, if there is one."""
    from highspy import HighsModelStatus

    solver.run()
    if solver.getModelStatus() != HighsModelStatus.kOptimal:
        return None
    return np.array(solver.getSolution().col_value)
