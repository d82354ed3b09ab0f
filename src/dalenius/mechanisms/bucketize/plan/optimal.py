"""The bucket setting of least loss, over any number of sizes, with a proof of how near it is.

Only the numbers of buckets b_S need be decided: by max-flow/min-cut a setting is valid iff it meets the cuts
of `integer.py`. So: solve the linear programme over b_S, add the cuts that its answer violates, repeat; round
the answer by diving; check the whole numbers by an exact flow, which gives a further cut where they fail.
Where the rounding is not within the wanted gap of the linear bound (small tables), branch and bound decides.

A start is many sizes by splitting in two again and again while the loss falls (`multi_size.py`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.branching import BranchResult, branch_and_bound, count_steps
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.groups import GroupTree
from dalenius.mechanisms.bucketize.plan.integer import (
    Cuts,
    CutSource,
    IntegerProblem,
    Master,
    UndecidedError,
)
from dalenius.mechanisms.bucketize.plan.multi_size import split_repeatedly
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ValueClasses,
    least_size,
    record_bound,
)
from dalenius.mechanisms.bucketize.plan.rounding import dives, settle_more
from dalenius.mechanisms.bucketize.plan.sizes import candidate_sizes, largest_even_sizes
from dalenius.mechanisms.bucketize.plan.two_size import NO_LIMIT

_WANTED_GAP = 1e-4
_WANTED_IN_TIME = 1e-6  # where more time was given for it
_EXACT_UP_TO = 1_000  # rows up to which nothing but the proven optimum will do
_RELAXED_GAP = 1e-6  # how much of the loss of the relaxed problem may be left open
_SLACK = 1e-8  # violations of the relaxed problem below this share of the rows are rounding errors
_HEURISTIC_ENTRIES = 2**21  # (pairs of sizes) × classes up to which Algorithm 2 is run on all sizes
_MORE_HEURISTIC_ENTRIES = 2**24  # the same where rounding has not come near the bound: about 0.3 s
_FEW_SIZES = 64  # of more sizes only those of the relaxed answer, and a few more, are used to round
_MORE = 8
_MANY_SIZES = 160  # so many are branched on where the best is far from the bound

# What a search may do, in steps that take about as long everywhere, not in seconds: the same counts always
# give the same plan. Together about a second, times the problem's seconds; a search that has spent them gives
# the best that it has.
_MAX_ENTRIES = 3 * 10**8  # sizes × classes, looked at for violated cuts or multiplied
_MAX_ENTRIES_FOR_HINT = 6 * 10**7  # of each of several searches for what would do
_MAX_SOLVED = 3 * 10**7  # sizes × cuts, in all relaxed problems that are solved
_MAX_SOLVED_FOR_HINT = 3 * 10**6  # the same of each of those
_MAX_ROUNDINGS = 8
_DIVE_ENTRIES = 500  # what a dive costs, for each size and cut
_MAX_NODES = 500
_MAX_NODES_EXACT = 5_000
_NODE_WORK = 5 * 10**5  # nodes × steps of the cuts, in one search by branch and bound
_BRANCH_WORK = 11_000  # steps of the cuts in all searches, and what nodes and linear programmes amount to
_NODES_AS_ROOT = 50  # so many take as long as what comes before the first
_NEAR = 0.01  # where the best is so near to the bound, what sizes can have is worth working out
_EVEN_STARTS = 16


def plan_optimal(problem: BucketProblem) -> BucketPlan:
    """The setting of least loss, proven to within 1e-4 (exactly on small tables).

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(4, 3, 3), thresholds=(Fraction(2, 5),) * 3, max_bucket=10)
    >>> plan = plan_optimal(problem)
    >>> plan.sizes, plan.n_buckets, plan.gap
    ((5,), (2,), 0.0)
    """
    search = _SizeSearch(problem if problem.seconds == 1 else replace(problem, seconds=1))
    search.run()
    if problem.seconds > 1:  # more time is never for a worse plan
        search = search.go_on(problem)
    return search.to_plan()


def has_any_setting(problem: BucketProblem) -> bool:
    """Whether a setting of any sizes is found; the first one will do."""
    search = _SizeSearch(problem, is_any_enough=True)
    try:
        search.run()
        search.to_plan()
    except NoSettingFits:
        return False
    return True


def can_be_kept(problem: BucketProblem) -> bool:
    """Whether the thresholds are known to be kept within max_bucket if records could be divided."""
    try:
        _SizeSearch(problem, is_any_enough=True).relax()
    except (NoSettingFits, UndecidedError):  # more room is never wrong
        return False
    return True


class _SizeSearch:
    """The best setting so far, the bound so far and the relaxed problem."""

    def __init__(self, problem: BucketProblem, *, is_any_enough: bool = False) -> None:
        self._problem, self._is_any_enough = problem, is_any_enough
        self._classes = ValueClasses.of(problem)
        sizes = candidate_sizes(problem)
        tree = GroupTree.of(problem.groups, self._classes, sizes)
        self._source = CutSource.of(self._classes, sizes, tree)
        self._costs = (self._source.sizes - 1) ** 2
        self._best: Ints | None = None
        self._loads: Ints | None = None
        self._inner: Floats | None = None  # a setting of parts of buckets that lacks no cut
        self._bound = record_bound(problem)
        self._relaxed_bound = 0
        self._entries = self._n_solved = 0
        self._seconds = problem.seconds
        self._most_entries, self._most_solved = _MAX_ENTRIES * problem.seconds, _MAX_SOLVED * problem.seconds
        if is_any_enough:
            self._most_entries, self._most_solved = _MAX_ENTRIES_FOR_HINT, _MAX_SOLVED_FOR_HINT
        n_sizes, n_classes = len(self._source.sizes), len(self._source.counts)
        self._n_tried = n_sizes * (n_sizes - 1) // 2 * n_classes
        self._is_large = self._n_tried > _HEURISTIC_ENTRIES

    def run(self) -> None:
        """Search until the gap is small enough, or the effort allowed is spent."""
        if not self._is_large:
            self._take_heuristic(np.arange(len(self._source.sizes)))
        elif self._source.groups is None:
            self._take_even()
            if self._best is None and self._is_any_enough:
                self._take_more()
        if self._source.groups is not None:
            self._try_even()
        try:
            if not self._is_done():
                self._improve()
        except UndecidedError:  # what was found so far is as good as before
            self._take_even()

    def _improve(self) -> None:
        """Solve the relaxed problem, round its answer, and branch."""
        master, fractional = self.relax()
        for _ in range(_MAX_ROUNDINGS * self._seconds):
            is_spent = self._entries > 2 * self._most_entries
            if self._is_done() or self._round(master, fractional) or is_spent:
                break
            fractional = self._relax(master)
        if not self._is_done() and not self._is_any_enough:
            self._take_more()
        if self._is_large and not self._is_near():
            used = np.argsort(-fractional * self._source.sizes, kind="stable")[:_FEW_SIZES]
            self._take_heuristic(np.sort(used))
        if not self._is_done() and not (self._is_any_enough and self._is_large):
            self._branch(master, fractional)

    def go_on(self, problem: BucketProblem) -> _SizeSearch:
        """A search of the same problem with more time, from the best setting and the bound of this one."""
        further = _SizeSearch(problem)
        further._best, further._loads, further._bound = self._best, self._loads, self._bound
        further.run()
        return further

    def relax(self) -> tuple[Master, Floats]:
        """Which shares of the rows go to which sizes, if records could be divided.

        Raises:
            NoSettingFits: even then nothing keeps the thresholds.
        """
        if not len(self._source.sizes) or self._problem.max_bucket < least_size(self._problem):
            raise self._nothing_fits()
        master = Master(self._source.sizes, self._problem.n_rows)
        self._inner = None if self._best is None else self._best.astype(np.float64)
        return master, self._relax(master)

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

    def _take_heuristic(self, columns: Ints) -> None:
        """Algorithm 2 on some of the sizes."""
        source = self._source
        sizes = tuple(source.sizes[columns].tolist())
        found = split_repeatedly(source.counts, source.capacity[:, columns], sizes)
        if found is not None:
            loads = np.zeros_like(source.capacity)
            loads[:, columns] = found
            n_buckets = loads.sum(axis=0) // source.sizes
            if source.groups is None:
                self._take(n_buckets, loads)
            else:
                self._try(n_buckets)

    def _take_more(self) -> None:
        """Algorithm 2 on all sizes, where they are many, but not too many."""
        if self._is_large and self._n_tried <= _MORE_HEURISTIC_ENTRIES:
            self._take_heuristic(np.arange(len(self._source.sizes)))

    def _take_even(self) -> None:
        """Algorithm 2 on the sizes of the fewest buckets."""
        even = largest_even_sizes(self._problem.n_rows, self._problem.largest_size)
        self._take_heuristic(np.flatnonzero(np.isin(self._source.sizes, list(even))))

    def _take(self, n_buckets: Ints, loads: Ints) -> None:
        """Keep a valid setting if it is the best so far."""
        if self._best is None or self._loss(n_buckets) < self._loss(self._best):
            self._best, self._loads = n_buckets, loads

    def _try(self, n_buckets: Ints) -> None:
        """Keep a setting that may not keep the groups, which heuristics do not know, if it does."""
        outcome = self._assign(n_buckets)
        if not isinstance(outcome, Cuts):
            self._take(n_buckets, outcome)

    def _try_even(self) -> None:
        """The fewest buckets, and a few more, as even as can be: one bucket of all rows keeps any promise."""
        n_rows, sizes = self._problem.n_rows, self._source.sizes
        fewest = -(-n_rows // self._problem.largest_size)
        for b in range(fewest, min(fewest + _EVEN_STARTS, n_rows + 1)):
            size, larger = divmod(n_rows, b)
            n_buckets = np.where(sizes == size, b - larger, 0) + np.where(sizes == size + 1, larger, 0)
            if int(n_buckets @ sizes) == n_rows:
                self._try(n_buckets)

    def _promising(self, master: Master, fractional: Floats) -> Ints:
        """All sizes if they are few; else those of the relaxed answer, and the next best up to a number."""
        if len(fractional) <= _FEW_SIZES:
            return np.arange(len(fractional))
        order = np.lexsort((master.reduced_costs(), fractional <= 0))
        return np.sort(order[: max(_FEW_SIZES, int((fractional > 0).sum()) + _MORE)])

    def _loss(self, n_buckets: Ints) -> int:
        return int(n_buckets @ self._costs)

    def _loss_above_bound(self) -> int:
        return NO_LIMIT if self._best is None else self._loss(self._best) - self._bound

    def _is_near(self) -> bool:
        return self._loss_above_bound() <= _NEAR * self._bound

    def _abs_gap(self) -> float:
        """The distance from the bound at which to stop; losses are whole, so below 1 it is the optimum."""
        wanted = _WANTED_GAP if self._seconds == 1 else _WANTED_IN_TIME
        wanted = 0.0 if self._problem.n_rows <= _EXACT_UP_TO else wanted
        return max(wanted * self._bound, 0.9)

    def _is_done(self) -> bool:
        if self._best is None:
            return False
        return self._is_any_enough or self._loss_above_bound() <= self._abs_gap()

    def _relax(self, master: Master) -> Floats:
        """Solve the relaxed problem, adding prefix and single-size cuts until none is violated.

        Where that takes too long, what was solved last has some cuts missing: its bound holds all the same.
        """
        while True:
            fractional = master.solve()
            if fractional is None:
                raise self._nothing_fits()
            self._n_solved += master.n_cuts * len(fractional)
            is_spent = self._entries > self._most_entries or self._n_solved > self._most_solved
            if is_spent or not self._add_cuts(master, fractional):
                self._relaxed_bound = master.lower_bound()
                self._bound = max(self._bound, self._relaxed_bound)
                return fractional

    def _add_cuts(self, master: Master, outer: Floats) -> bool:
        """Add cuts that are violated on the way from a valid setting to the relaxed answer; if there are any.

        Those of the answer itself are many and shallow: each takes off one corner, and the next answer is a
        corner beside it. Halfway to a setting that lacks no cut they are few and deep (in-out separation,
        Ben-Ameur and Neto 2007). Where the middle lacks none either, it takes that setting's place.
        """
        slack = _SLACK * self._problem.n_rows
        while self._inner is not None and self._differ(self._inner, outer):
            middle = (self._inner + outer) / 2
            if master.add(self._look_for_cuts(middle, slack)):
                return True
            self._inner = middle
        return master.add(self._look_for_cuts(outer, slack))

    def _differ(self, inner: Floats, outer: Floats) -> bool:
        """Whether the relaxed answer can still become much worse."""
        losses = float(inner @ self._costs), float(outer @ self._costs)
        return losses[0] - losses[1] > _RELAXED_GAP * losses[0]

    def _look_for_cuts(self, n_buckets: Floats, slack: float) -> Cuts:
        cuts = self._source.find_violated(n_buckets, slack)
        n_looked_at = 2 * np.count_nonzero(n_buckets) + len(cuts.needs) * len(n_buckets) // 4
        self._entries += int(n_looked_at) * len(self._source.counts) + 20 * len(n_buckets)
        return cuts

    def _round(self, master: Master, fractional: Floats) -> bool:
        """Try the roundings of a fractional setting; False if one of them showed a cut that was missing."""
        columns = self._promising(master, fractional)
        problem = self._integer_problem(master, fractional).among(columns)
        self._entries += _DIVE_ENTRIES * problem.cuts.coefficients.size
        abs_gap = None if self._is_any_enough else self._abs_gap() / 2
        for rounded in dives(problem, fractional[columns], abs_gap):
            n_buckets = np.zeros(len(fractional), dtype=np.int64)
            n_buckets[columns] = rounded
            if not self._offer(n_buckets, master):
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
        """Take a setting if it is valid and better; if it lacks cuts, add them: then False."""
        cheap = self._look_for_cuts(n_buckets.astype(np.float64), 0.5)
        if (
            not len(cheap.needs)
            and self._best is not None
            and self._loss(n_buckets) >= self._loss(self._best)
        ):
            return True
        outcome = cheap if len(cheap.needs) else self._assign(n_buckets)
        if isinstance(outcome, Cuts):
            if not master.add(outcome):
                raise InternalError("a setting that meets a cut violates it")
            return False
        self._take(n_buckets, outcome)
        return True

    def _assign(self, n_buckets: Ints) -> Ints | Cuts:
        """The loads of a valid setting, or the cut that one max-flow finds violated."""
        used = np.flatnonzero(n_buckets)
        source, many = self._source, n_buckets[used]
        limits, slots = source.capacity[:, used] * many, source.sizes[used] * many
        loads = np.zeros_like(source.capacity)
        if source.groups is not None:
            found = source.groups.assign(source.counts, limits, used, many, slots)
            if found.dtype == np.bool_:
                return source.cuts(np.asarray(found[None, :], dtype=np.bool_))
            loads[:, used] = found
            return loads
        outcome = assign(source.counts, limits, slots)
        if outcome.loads is None:
            return source.cut_of_sizes(used[outcome.violated], n_buckets)
        loads[:, used] = outcome.loads
        return loads

    def _branch(self, master: Master, fractional: Floats) -> None:
        """Search the whole numbers that can be better, again where what is found is not valid, or better."""
        is_exact = self._problem.n_rows <= _EXACT_UP_TO
        most_nodes, left = _MAX_NODES_EXACT if is_exact else _MAX_NODES, _BRANCH_WORK * self._seconds
        while not self._is_done():
            is_near, (columns, are_all) = self._is_near(), self._can_be_better(master, fractional)
            problem = self._integer_problem(master, fractional).among(columns)
            best = None if self._best is None else self._best[columns]
            weight = count_steps(problem)
            left -= weight + (len(columns) ** 2 // 8 if is_near else 0)
            if left < 0:
                return
            nodes = min(most_nodes * self._seconds, _NODE_WORK * self._seconds // weight)
            nodes = min(nodes, max(left * _NODES_AS_ROOT // weight, 1))
            outcome = branch_and_bound(problem, best, self._abs_gap(), nodes, is_near=is_near)
            left -= weight * outcome.n_nodes // _NODES_AS_ROOT
            if are_all:
                self._take_bound(outcome)
            if outcome.n_buckets is None:
                return
            n_buckets, before = np.zeros(len(fractional), dtype=np.int64), self._best
            n_buckets[columns] = outcome.n_buckets
            if not self._offer(n_buckets, master):
                self._mend(n_buckets, columns, master)
            elif self._best is before:
                return

    def _mend(self, n_buckets: Ints, columns: Ints, master: Master) -> None:
        """Look for a valid setting beside one that is not, with the cuts that say why."""
        near = n_buckets.astype(np.float64)
        for _ in range(_MAX_ROUNDINGS):
            problem = self._integer_problem(master, near).among(columns)
            found = settle_more(problem, near[columns], self._abs_gap() / 2, by=near[columns])
            if found is None:
                return
            mended = np.zeros_like(n_buckets)
            mended[columns] = found
            if self._offer(mended, master):
                return

    def _can_be_better(self, master: Master, fractional: Floats) -> tuple[Ints, bool]:
        """The sizes that a setting better than the best so far can have buckets of, and if these are all.

        Where they are many since the best is far, the promising ones will do.
        """
        every = np.ones(len(fractional), dtype=np.bool_)
        if (
            self._best is not None
        ):  # reduced costs are above the relaxed loss, not above what branching proved
            most = self._loss(self._best) - self._relaxed_bound + 1
            every = (master.reduced_costs() <= 1.001 * most + 1) | (self._best > 0)
        if self._is_near() or np.count_nonzero(every) <= _MANY_SIZES:
            return np.flatnonzero(every), True
        chosen = np.zeros_like(every) if self._best is None else self._best > 0
        chosen[self._promising(master, fractional)] = True
        return np.flatnonzero(chosen), False

    def _take_bound(self, outcome: BranchResult) -> None:
        if outcome.is_infeasible:
            raise self._nothing_fits()
        self._bound = max(self._bound, outcome.lower_bound)

    def _nothing_fits(self) -> NoSettingFits:
        return NoSettingFits(
            f"no setting of buckets of at most {self._problem.max_bucket} keeps the thresholds"
        )
