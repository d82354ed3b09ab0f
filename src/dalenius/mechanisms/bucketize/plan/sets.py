"""People with several values each: a bucket holds whole people, and every value has a limit in it.

A person's *set* is what is dealt. The limits of values overlap, since a set counts for each of its values,
and whether buckets can keep overlapping limits is hard to decide in general (vector packing is a case of it).
So the sizes are found by trying: first those of a relaxed problem, then even buckets, from the smallest on,
filled set by set, the hardest first, each time where most room is left for all of its values.

In the relaxed problem every set counts only for the strictest of its values. It is solved to the proven
optimum, and its bound is one here: it says what a plan may lose at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, NoSettingFits, Run, capacity_table
from dalenius.randomness import Randomness

Sizes = tuple[tuple[int, ...], tuple[int, ...]]
"""Bucket sizes, and how many buckets of each."""
_MOST_TRIES = 48
_MENDING, _PER_BUCKET, _MOST_MENDING, _TRADES = 200, 5, 3_000, 20_000_000
"""Rounds of trades where dealing leaves somebody over: more with more buckets, as far as trades are few."""
_ALL = Fraction(1)
_PARTS = tuple(Fraction(n, 100) for n in (94, 85, 72))


def members(problem: BucketProblem) -> Bools:
    """Overlapping limits × sets: which set counts for which."""
    found = np.zeros((len(problem.overlapping), problem.n_values), dtype=np.bool_)
    for row, (codes, _) in zip(found, problem.overlapping, strict=True):
        row[list(codes)] = True
    return found


def relax(problem: BucketProblem, part: Fraction = _ALL) -> BucketProblem:
    """The problem in which a set counts only for the strictest of its values; the sets in another order.

    What counts less can only be easier, and so the groups of sets with the same strictest value are disjoint.

    Args:
        problem: with all limits.
        part: of every limit, as far as the value's share allows: what is planned leaves room for the rest.
    """
    lowered, strictest = _strictest(problem, part)
    order = np.argsort(strictest, kind="stable").tolist()
    ends = np.cumsum(np.bincount(strictest, minlength=len(lowered))).tolist()
    runs = [
        Run(begin=begin, end=end, threshold=limit)
        for begin, end, limit in zip([0, *ends], ends, lowered, strict=False)
        if begin < end and limit < 1
    ]
    return replace(
        problem,
        counts=tuple(problem.counts[code] for code in order),
        thresholds=tuple(lowered[int(strictest[code])] for code in order),
        groups=tuple(runs),
        overlapping=(),
    )


def _strictest(problem: BucketProblem, part: Fraction) -> tuple[list[Fraction], Ints]:
    """The limits, lowered; and of each set the number of the strictest among its values."""
    lowered, strictest = [], np.full(problem.n_values, -1)
    for number, (codes, limit) in enumerate(problem.overlapping):
        share = Fraction(sum(problem.counts[code] for code in codes), problem.n_rows)
        lowered.append(max(share, limit * part))
        for code in codes:
            if strictest[code] < 0 or lowered[number] < lowered[strictest[code]]:
                strictest[code] = number
    return lowered, strictest


def plan_sets(problem: BucketProblem, plan_relaxed: Callable[[BucketProblem], BucketPlan]) -> BucketPlan:
    """The best sizes tried for which dealing succeeds, with the bound of the relaxed problem."""
    relaxed = plan_relaxed(relax(problem))
    found = _first_that_deals(problem, _tighter_plans(problem, relaxed, plan_relaxed))
    if found is None or found.loss > relaxed.loss:
        even = (_fill(problem, relaxed, setting) for setting in _even_settings(problem, relaxed))
        other = _first_that_deals(problem, even)
        if other is not None and (found is None or other.loss < found.loss):
            found = other
    if found is not None:
        return replace(found, lower_bound=relaxed.lower_bound)
    raise NoSettingFits(
        f"no setting of buckets of at most {problem.max_bucket} was found that keeps the limits of all "
        "values together, though none was proven impossible",
        hint="a larger max_bucket, or higher limits",
    )


def _first_that_deals(problem: BucketProblem, plans: Iterable[BucketPlan | None]) -> BucketPlan | None:
    return next((plan for plan in plans if plan and deal_sets(problem, plan) is not None), None)


def _tighter_plans(
    problem: BucketProblem, relaxed: BucketPlan, plan_relaxed: Callable[[BucketProblem], BucketPlan]
) -> Iterator[BucketPlan | None]:
    """The relaxed plan, and those of lower and lower limits: as they load sizes, and filled anew."""
    tried: set[Sizes] = set()
    for part in (_ALL, *_PARTS):
        try:
            plan = relaxed if part == _ALL else plan_relaxed(relax(problem, part))
        except NoSettingFits:
            return
        if (plan.sizes, plan.n_buckets) in tried:
            continue
        tried.add((plan.sizes, plan.n_buckets))
        yield replace(plan, loads=_reorder(plan, np.argsort(_strictest(problem, part)[1], kind="stable")))
        yield _fill(problem, plan, (plan.sizes, plan.n_buckets))


def _reorder(plan: BucketPlan, order: Ints) -> tuple[tuple[int, ...], ...]:
    """The loads of the sets, from those of the relaxed problem, whose i-th set is the order's i-th."""
    loads: list[tuple[int, ...]] = [()] * len(order)
    for code, row in zip(order.tolist(), plan.loads, strict=True):
        loads[code] = row
    return tuple(loads)


def _fill(problem: BucketProblem, relaxed: BucketPlan, setting: Sizes) -> BucketPlan | None:
    """A plan of these sizes, whichever of them a set goes to."""
    sizes, n_buckets = setting
    contents = _deal(problem, sizes, n_buckets, problem.counts)
    if contents is None:
        return None
    loads = [np.bincount(held.ravel(), minlength=problem.n_values) for held in contents]
    rows = tuple(map(tuple, np.stack(loads, axis=1).tolist()))
    return replace(relaxed, sizes=sizes, n_buckets=n_buckets, loads=rows)


def _even_settings(problem: BucketProblem, relaxed: BucketPlan) -> list[Sizes]:
    """Numbers of even buckets, from as many as the relaxed plan has down to the fewest that are allowed."""
    n_rows, most = problem.n_rows, sum(relaxed.n_buckets)
    fewest = -(-n_rows // problem.largest_size)
    tried = np.unique(np.geomspace(fewest, max(most, fewest), _MOST_TRIES).round().astype(np.int64))
    found: list[Sizes] = []
    for b in tried[::-1].tolist():
        size, larger = divmod(n_rows, b)
        if larger and size + 1 <= problem.max_bucket:
            found.append(((size, size + 1), (b - larger, larger)))
        elif not larger:
            found.append(((size,), (b,)))
    return found


def deal_sets(problem: BucketProblem, plan: BucketPlan) -> list[Ints] | None:
    """Buckets × places of each size, holding codes of sets, size by size; None: this way does not succeed."""
    found = []
    for j, (size, b) in enumerate(zip(plan.sizes, plan.n_buckets, strict=True)):
        contents = _deal(problem, (size,), (b,), tuple(row[j] for row in plan.loads))
        if contents is None:
            return None
        found += contents
    return found


def _deal(
    problem: BucketProblem, sizes: tuple[int, ...], n_buckets: tuple[int, ...], counts: tuple[int, ...]
) -> list[Ints] | None:
    """So many people of each set into buckets of these sizes; None: somebody is left over."""
    room, inside = np.repeat(np.array(sizes, dtype=np.int64), n_buckets), members(problem)
    most = capacity_table([limit for _, limit in problem.overlapping], sizes)
    left = np.repeat(most, n_buckets, axis=1)  # limits × buckets
    most_of, size_of = np.maximum(left, 1), room.copy()
    dealt: list[tuple[Ints, int]] = []
    for code in _hardest_first(problem, inside):
        own, count = inside[:, code], counts[code]
        while count:
            is_free = (left[own] > 0).all(axis=0) & (room > 0)
            chosen = _roomiest(is_free, (left[own] / most_of[own]).min(axis=0), room / size_of, count)
            if not len(chosen):  # above a limit for now: trades may mend it
                chosen = _roomiest(room > 0, (left[own] / most_of[own]).min(axis=0), room / size_of, count)
            left[np.ix_(own, chosen)] -= 1
            room[chosen] -= 1
            dealt.append((chosen, code))
            count -= len(chosen)
    bucket = np.concatenate([chosen for chosen, _ in dealt])
    codes = np.concatenate([np.full(len(chosen), code) for chosen, code in dealt])[np.argsort(bucket)]
    if not _mend(codes, size_of, left, inside):
        return None
    ends = np.cumsum([size * b for size, b in zip(sizes, n_buckets, strict=True)])[:-1]
    shapes = zip(np.split(codes, ends), n_buckets, sizes, strict=True)
    return [np.sort(part.reshape(b, size), axis=1) for part, b, size in shapes]


def _mend(codes: Ints, size: Ints, left: Ints, inside: Bools) -> bool:
    """Trade people between buckets that pass a limit and others until none does; whether that succeeds.

    Args:
        codes: of the sets, bucket by bucket; changed.
        size: of each bucket.
        left: limits × buckets, below 0 where a limit is passed; changed.
        inside: limits × sets.
    """
    stream = Randomness.seeded(0).stream("sets", "mend")  # public coins: the same counts, the same plan
    first = np.cumsum(size) - size
    rounds = min(_MENDING + _PER_BUCKET * len(size), _MOST_MENDING, max(_MENDING, _TRADES // len(size)))
    for _ in range(rounds):
        bad = np.flatnonzero((left < 0).any(axis=0))
        if not len(bad):
            return True
        if len(bad) > len(size) // 2:
            return False
        good = stream.permutation(np.setdiff1d(np.arange(len(size)), bad))[: len(bad)]
        place = [first[b] + stream.integers(size[b]) for b in (bad, good)]
        change = inside[:, codes[place[0]]].astype(np.int64) - inside[:, codes[place[1]]]
        new = left[:, bad] + change, left[:, good] - change
        before = np.minimum(left[:, bad], 0).sum(axis=0) + np.minimum(left[:, good], 0).sum(axis=0)
        after = np.minimum(new[0], 0).sum(axis=0) + np.minimum(new[1], 0).sum(axis=0)
        is_better = after >= before
        left[:, bad[is_better]], left[:, good[is_better]] = new[0][:, is_better], new[1][:, is_better]
        one, two = place[0][is_better], place[1][is_better]
        codes[one], codes[two] = codes[two], codes[one]
    return not (left < 0).any()


def _roomiest(is_free: Bools, left: Floats, room: Floats, count: int) -> Ints:
    """Up to so many buckets that can take one more, the emptiest first: of the set's values, then at all."""
    usable = np.flatnonzero(is_free)
    if len(usable) <= count:
        return usable
    order = np.lexsort((-room[usable], -left[usable]))
    return np.asarray(usable[order[:count]])


def _hardest_first(problem: BucketProblem, inside: Bools) -> list[int]:
    """Sets in the order in which they are dealt: those of many values, and of tight ones, first."""
    counts = problem.count_array()
    limits = np.array([float(limit) for _, limit in problem.overlapping])
    tight = (inside @ counts) / problem.n_rows / limits
    hardness = np.where(inside, tight[:, None], 0.0)
    keys = (-counts, -hardness.max(axis=0), -inside.sum(axis=0))
    return [int(code) for code in np.lexsort(keys)]


def keeps_sets(problem: BucketProblem, size: int) -> Callable[[Ints], Bools]:
    """Whether buckets of a size, as codes of sets, keep the limit of every value."""
    inside = members(problem)
    most = capacity_table([limit for _, limit in problem.overlapping], [size])[:, 0]

    def keeps(contents: Ints) -> Bools:
        kept = np.ones(len(contents), dtype=np.bool_)
        for own, limit in zip(inside, most, strict=True):
            kept &= own[contents].sum(axis=1) <= limit
        return kept

    return keeps
