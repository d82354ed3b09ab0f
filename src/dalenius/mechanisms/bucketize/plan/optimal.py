"""The bucket setting of least loss, over any number of sizes, with a proof of how near it is.

Only the numbers of buckets b_S need be decided: by max-flow/min-cut a setting is valid iff it meets the cuts
of `integer.py`. So: solve the linear programme over b_S, add the cuts that its answer violates, repeat; round
the answer by diving; check the whole numbers by an exact flow, which gives a further cut where they fail.
Where the rounding is not within the wanted gap of the linear bound (small tables), branch and bound decides.

A start is many sizes by splitting in two again and again while the loss falls (Algorithm 2), which is a
method of its own, `multi-size`.
"""

from __future__ import annotations

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.integer import (
    BranchResult,
    Cuts,
    CutSource,
    IntegerProblem,
    Master,
    branch_and_bound,
    dives,
)
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ValueClasses,
    candidate_sizes,
    record_bound,
)
from dalenius.mechanisms.bucketize.plan.two_size import NO_LIMIT, partition, search_two_size


def plan_multi_size(problem: BucketProblem) -> BucketPlan:
    """The heuristic setting of many sizes; never worse than the best of two sizes.

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10)
    >>> plan = plan_multi_size(problem)
    >>> plan.sizes, plan.n_buckets
    ((5,), (2,))
    """
    sizes, classes = candidate_sizes(problem), ValueClasses.of(problem)
    loads = split_repeatedly(classes.totals, classes.capacity_table(sizes), sizes)
    if loads is None:
        raise NoSettingFits(
            f"no setting of two bucket sizes up to {problem.max_bucket} keeps the thresholds to start from",
            hint="use method 'optimal', or a larger max_bucket",
        )
    used = np.flatnonzero(loads.any(axis=0))
    chosen = tuple(sizes[j] for j in used)
    rows = loads[:, used].sum(axis=0).tolist()
    return BucketPlan(
        method="multi-size",
        sizes=chosen,
        n_buckets=tuple(r // size for r, size in zip(rows, chosen, strict=True)),
        loads=classes.to_loads(loads[:, used]),
        lower_bound=record_bound(problem),
    )


def split_repeatedly(counts: Ints, capacity: Ints, sizes: tuple[int, ...]) -> Ints | None:
    """The loads (m × sizes) of Algorithm 2's setting, or None if no two sizes will do."""
    loads = np.zeros_like(capacity)
    # Work still to be split: the counts of the part, and the loss of the one size it is in now.
    pending: list[tuple[Ints, int, int]] = [(counts, NO_LIMIT, -1)]
    while pending:
        part, loss, column = pending.pop()
        present = np.flatnonzero(part)
        found = search_two_size(part[present], capacity[present], sizes, below=loss)
        if found is None and column < 0:
            return None
        if found is None:
            loads[:, column] += part
            continue
        columns = list(found.columns)
        limits = capacity[:, columns] * np.array(found.n_buckets, dtype=np.int64)
        halves = partition(part, limits, sizes[columns[0]] * found.n_buckets[0])
        for half, size_column, b in zip(halves.T, columns, found.n_buckets, strict=True):
            if b:
                pending.append((half.copy(), b * (sizes[size_column] - 1) ** 2, size_column))
    return loads


_WANTED_GAP = 1e-4
_EXACT_UP_TO = 1_000  # rows up to which nothing but the proven optimum will do
_MAX_NODES = 200
_MAX_NODES_EXACT = 5_000
_SLACK = 1e-8  # violations of the relaxed problem below this share of the rows are rounding errors
_MAX_ROUNDS = 1_000


def plan_optimal(problem: BucketProblem) -> BucketPlan:
    """The setting of least loss, proven to within 1e-4 (exactly on small tables).

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10)
    >>> plan = plan_optimal(problem)
    >>> plan.sizes, plan.n_buckets, plan.gap
    ((5,), (2,), 0.0)
    """
    search = _Search(problem)
    search.run()
    return search.to_plan()


class _Search:
    """The best setting so far, the bound so far and the relaxed problem."""

    def __init__(self, problem: BucketProblem) -> None:
        self._problem = problem
        self._classes = ValueClasses.of(problem)
        self._source = CutSource.of(self._classes, candidate_sizes(problem))
        self._costs = (self._source.sizes - 1) ** 2
        self._best: Ints | None = None
        self._loads: Ints | None = None
        self._bound = record_bound(problem)
        self._take_heuristic()

    def run(self) -> None:
        """Search until the gap is small enough, or the effort allowed is spent."""
        if not len(self._source.sizes):
            raise self._nothing_fits()
        if self._is_done():
            return
        master = Master(self._source.sizes, self._problem.n_rows)
        fractional = self._relax(master)
        while not self._is_done() and not self._round(master, fractional):
            fractional = self._relax(master)
        if not self._is_done():
            self._branch(master, fractional)

    def to_plan(self) -> BucketPlan:
        """The best setting as a plan."""
        if self._best is None or self._loads is None:
            raise NoSettingFits(
                f"no setting of buckets of at most {self._problem.max_bucket} was found that keeps the "
                "thresholds, though none was proven impossible"
            )
        used = np.flatnonzero(self._best)
        plan = BucketPlan(
            method="optimal",
            sizes=tuple(self._source.sizes[used].tolist()),
            n_buckets=tuple(self._best[used].tolist()),
            loads=self._classes.to_loads(self._loads[:, used]),
            lower_bound=self._bound,
        )
        if plan.loss < self._bound:
            raise InternalError(f"a setting of loss {plan.loss} contradicts the proven bound {self._bound}")
        return plan

    def _take_heuristic(self) -> None:
        sizes = tuple(self._source.sizes.tolist())
        loads = split_repeatedly(self._source.counts, self._source.capacity, sizes)
        if loads is not None:
            self._best, self._loads = loads.sum(axis=0) // self._source.sizes, loads

    def _loss(self, n_buckets: Ints) -> int:
        return int(n_buckets @ self._costs)

    def _abs_gap(self) -> float:
        """The distance from the bound at which to stop; losses are whole, so below 1 it is the optimum."""
        wanted = 0.0 if self._problem.n_rows <= _EXACT_UP_TO else _WANTED_GAP
        return max(wanted * self._bound, 0.9)

    def _is_done(self) -> bool:
        return self._best is not None and self._loss(self._best) - self._bound <= self._abs_gap()

    def _relax(self, master: Master) -> Floats:
        """Solve the relaxed problem, adding prefix and single-size cuts until none is violated."""
        for _ in range(_MAX_ROUNDS):
            fractional = master.solve()
            if fractional is None:
                raise self._nothing_fits()
            if not master.add(self._source.violated(fractional, _SLACK * self._problem.n_rows)):
                self._bound = max(self._bound, master.lower_bound())
                return fractional
        raise InternalError("the cuts of the optimum do not come to an end")

    def _round(self, master: Master, fractional: Floats) -> bool:
        """Try the roundings of a fractional setting; False if one of them showed a cut that was missing."""
        for rounded in dives(self._integer_problem(master, fractional), fractional):
            if not self._offer(rounded, master):
                return False
            if self._is_done():
                break
        return True

    def _integer_problem(self, master: Master, fractional: Floats) -> IntegerProblem:
        origin = np.floor(fractional).astype(np.int64)
        return IntegerProblem(
            sizes=self._source.sizes, n_rows=self._problem.n_rows, cuts=master.cuts, origin=origin
        )

    def _offer(self, n_buckets: Ints, master: Master) -> bool:
        """Take a setting if it is valid and better; if it is not valid, add the cuts that say why."""
        cheap = self._source.violated(n_buckets.astype(np.float64), 0.5)
        outcome = cheap if len(cheap.needs) else self._assign(n_buckets)
        if isinstance(outcome, Cuts):
            if not master.add(outcome):
                raise InternalError("a setting that meets a cut violates it")
            return False
        if self._best is None or self._loss(n_buckets) < self._loss(self._best):
            self._best, self._loads = n_buckets, outcome
        return True

    def _assign(self, n_buckets: Ints) -> Ints | Cuts:
        """The loads of a valid setting, or the cut that one max-flow finds violated."""
        used = np.flatnonzero(n_buckets)
        source = self._source
        outcome = assign(
            source.counts, source.capacity[:, used] * n_buckets[used], source.sizes[used] * n_buckets[used]
        )
        if outcome.loads is None:
            return source.cut_of_sizes(used[outcome.violated], n_buckets)
        loads = np.zeros_like(source.capacity)
        loads[:, used] = outcome.loads
        return loads

    def _branch(self, master: Master, fractional: Floats) -> None:
        max_nodes = _MAX_NODES_EXACT if self._problem.n_rows <= _EXACT_UP_TO else _MAX_NODES
        while not self._is_done():
            problem = self._integer_problem(master, fractional)
            outcome = branch_and_bound(problem, self._best, self._abs_gap(), max_nodes)
            self._take_bound(outcome)
            if outcome.n_buckets is None or self._offer(outcome.n_buckets, master):
                return

    def _take_bound(self, outcome: BranchResult) -> None:
        if outcome.is_infeasible:
            raise self._nothing_fits()
        self._bound = max(self._bound, outcome.lower_bound)

    def _nothing_fits(self) -> NoSettingFits:
        return NoSettingFits(
            f"no setting of buckets of at most {self._problem.max_bucket} keeps the thresholds"
        )
