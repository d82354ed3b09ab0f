"""Numbers that lie near each other have a limit together: sliding windows over the ascending values.

A window is a run of values, and windows overlap: from each value on to the last that one guess can hit
together with it. Of every window a bucket of size S holds at most k_S = ⌊f′·S⌋ records.

Two records conflict if a window holds both, and a *chain* is a set of records without conflict. Then

1. Σ_i min(m, λ_i) = M_m, the most records that m windows cover, for the lengths λ_1 ≥ λ_2 ≥ … of the chains
   that are found by taking, again and again, the first record left and each time the next one that does not
   conflict (Greene's theorem, of which this is the easy case).
2. Records can be cut into chains of lengths μ iff Σ_i min(m, μ_i) ≥ M_m for all m: of two chains the longer
   gives the other a record along a path of conflicts, as no record conflicts with three of a chain.
3. A bucket of size S is k_S chains, as even as can be, for which Σ min(m, length) = min(S, m·k_S).

So b_S buckets of size S can keep all windows iff Σ_S min(S, m·k_S)·b_S ≥ M_m for all m. That is the condition
for a table of as many records whose values have the counts M_1, M_2 − M_1, … and the threshold f′ each: its
plans, by any method, are the plans here, with the same loss and the same bound. `docs/proofs/proximity.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem


def cover(problem: BucketProblem, most: int) -> list[int]:
    """M_1, M_2, …: how many records 1, 2, … windows cover at most, until they cover all, or `most` windows.

    >>> problem = BucketProblem(
    ...     counts=(2, 1, 1, 3), thresholds=(Fraction(1, 2),) * 4, max_bucket=9, windows=(2, 3, 3, 4)
    ... )
    >>> cover(problem, 9)
    [3, 6, 7]
    """
    total = np.concatenate([[0], np.cumsum(problem.counts)])
    # the first value of the largest window that ends with each value
    begins = np.searchsorted(np.array(problem.windows), np.arange(problem.n_values), side="right")
    best, found = np.zeros(problem.n_values + 1, dtype=np.int64), [0]
    while found[-1] < problem.n_rows and len(found) <= most:
        best[1:] = np.maximum.accumulate(best[begins] + total[1:] - total[begins])
        found.append(int(best[-1]))
    return found[1:]


def without_windows(problem: BucketProblem) -> BucketProblem:
    """The problem of single values that has the same valid settings.

    More windows than the largest bucket has people never matter: a bucket takes no more than its size. What
    they would add is one record a value.

    >>> problem = BucketProblem(
    ...     counts=(2, 1, 1, 3), thresholds=(Fraction(1, 2),) * 4, max_bucket=9, windows=(2, 3, 3, 4)
    ... )
    >>> without_windows(problem).counts
    (3, 3, 1)
    """
    covered = cover(problem, problem.largest_size)
    counts = [int(more) for more in np.diff(covered, prepend=0)]
    counts += [1] * (problem.n_rows - covered[-1])
    thresholds = problem.thresholds[:1] * len(counts)
    return replace(problem, counts=tuple(counts), thresholds=thresholds, windows=())


def densest_share(problem: BucketProblem) -> Fraction:
    """The share of the records that the fullest window holds: the least limit that any release can keep."""
    return Fraction(cover(problem, 1)[0], problem.n_rows)


def deal(problem: BucketProblem, sizes: tuple[int, ...], n_buckets: tuple[int, ...]) -> Ints:
    """Values × sizes: how many records of each value go to each size, for a valid setting.

    From the least value on, each record goes to a chain that no conflicting record is in, of these to the one
    that lacks most. If a chain that lacks as much, or more, had taken a record of a valid deal instead of
    another, the two could exchange what they take from there on: the greedy choice is never wrong.
    """
    chains = _Chains(problem, sizes, n_buckets)
    loads = np.zeros((problem.n_values, len(sizes)), dtype=np.int64)
    first = 0
    for value, count in enumerate(problem.counts):
        while problem.windows[first] <= value:
            chains.release(first)
            first += 1
        loads[value] = chains.take(value, count)
    return loads


ROUNDS = 128
"""In how many rounds buckets trade records: more change the spread of their contents no further."""


def mix(
    contents: Ints, keeps: Callable[[Ints], Bools], stream: np.random.Generator, rounds: int = ROUNDS
) -> Ints:
    """Buckets × places after buckets have traded at random, value for value, where both keep what they must.

    Dealt in order, all buckets hold much the same, and tell nothing about who has which number, not even
    how columns go with it on average. Every trade can be undone as likely as done: any contents that trades
    lead to are equally likely in the end, whoever the people are.
    """
    mixed, n_pairs = np.sort(contents, axis=1), len(contents) // 2
    for _ in range(rounds if n_pairs else 0):
        order = stream.permutation(len(mixed))
        both = np.stack([order[:n_pairs], order[n_pairs : 2 * n_pairs]])
        place = stream.integers(mixed.shape[1], size=both.shape)
        traded = mixed[both]
        rows = np.arange(n_pairs)
        traded[0, rows, place[0]], traded[1, rows, place[1]] = (
            mixed[both[1], place[1]],
            mixed[both[0], place[0]],
        )
        traded = np.sort(traded, axis=2)
        is_kept = keeps(traded[0]) & keeps(traded[1])
        mixed[both[:, is_kept]] = traded[:, is_kept]
    return mixed


def keeps_windows(problem: BucketProblem, size: int) -> Callable[[Ints], Bools]:
    """Whether buckets of a size, as ascending codes, keep every window: no k + 1 of them are in one."""
    ends, most = np.array(problem.windows, dtype=np.int64), int(problem.capacity(size)[0])

    def keeps(contents: Ints) -> Bools:
        return np.asarray((contents[:, most:] >= ends[contents[:, : size - most]]).all(axis=1))

    return keeps


class _Chains:
    """How many chains of each size lack how many records, and which are waiting for a window to end."""

    def __init__(self, problem: BucketProblem, sizes: tuple[int, ...], n_buckets: tuple[int, ...]) -> None:
        most = problem.capacity_table(sizes)[0].tolist()
        longest = max(-(-size // k) for size, k in zip(sizes, most, strict=True))
        self._free = [[0] * len(sizes) for _ in range(longest + 1)]  # by records that are lacking
        for j, (size, k, b) in enumerate(zip(sizes, most, n_buckets, strict=True)):
            length, longer = divmod(size, k)
            self._free[length][j] += (k - longer) * b
            if longer:
                self._free[length + 1][j] += longer * b
        self._taken: dict[int, list[tuple[int, int, int]]] = {}

    def release(self, value: int) -> None:
        """The chains that took a record of the value conflict with no later one."""
        for lacking, j, n_chains in self._taken.pop(value):
            self._free[lacking][j] += n_chains

    def take(self, value: int, count: int) -> list[int]:
        """How many of a value's records go to chains of each size."""
        loads, taken = [0] * len(self._free[0]), []
        for lacking in range(len(self._free) - 1, 0, -1):
            row = self._free[lacking]
            for j, n_free in enumerate(row):
                if n_free and count:
                    n_chains = min(n_free, count)
                    row[j] -= n_chains
                    loads[j] += n_chains
                    count -= n_chains
                    taken.append((lacking - 1, j, n_chains))
            if not count:
                break
        if count:
            raise InternalError("a setting of buckets that has room for every window could not be filled")
        self._taken[value] = taken
        return loads
