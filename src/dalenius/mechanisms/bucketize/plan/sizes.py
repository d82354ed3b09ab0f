"""Which bucket sizes a search considers.

Up to a size of 64 all of them. Beyond, only those where a capacity ⌊f′_i·S⌋ grows are worth a bucket: a
larger bucket with the same capacities costs more and takes no more of any value. What is then missing
is divisibility: sizes that let buckets add up to n.
"""

from __future__ import annotations

from math import floor, log

from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, ValueClasses

_EVERY_SIZE_UP_TO = 64
_MANY = 192  # sizes beyond 64 after which further levels of capacity are left out
_GRID = log(1.03)  # the ratio of neighbouring large sizes where too many thresholds differ
_EVEN_SPLITS = 16


def candidate_sizes(problem: BucketProblem) -> tuple[int, ...]:
    """The bucket sizes to search, ascending; empty if max_bucket is below ⌈1/f′⌉ for every value.

    >>> from fractions import Fraction
    >>> candidate_sizes(BucketProblem(counts=(2, 2), thresholds=(Fraction(1, 2),) * 2, max_bucket=50))
    (2, 3, 4)
    """
    small, large = problem.smallest_size, problem.largest_size
    every = set(range(small, min(large, _EVERY_SIZE_UP_TO) + 1))
    if large > _EVERY_SIZE_UP_TO:
        every |= _growing_sizes(problem, large) | _even_sizes(problem.n_rows, small, large)
    return tuple(sorted(size for size in every if small <= size <= large))


def _growing_sizes(problem: BucketProblem, large: int) -> set[int]:
    """Sizes at which some capacity reaches 1, 2, …; each with its successor, for divisibility."""
    thresholds = {*ValueClasses.of(problem).thresholds, *(group.threshold for group in problem.groups)}
    found: set[int] = set()
    level = 1
    while len(found) <= _MANY:
        steps = {-(-level * t.denominator // t.numerator) for t in thresholds}
        steps = {size for size in steps if size <= large}
        if not steps:
            break
        found |= {size for size in steps if size > _EVERY_SIZE_UP_TO}
        level += 1
    kept = _thin(found) if len(found) > _MANY else found
    return kept | {size + 1 for size in kept}


def _thin(sizes: set[int]) -> set[int]:
    """The smallest and the largest size of each cell of a geometric grid."""
    cells: dict[int, list[int]] = {}
    for size in sorted(sizes):
        cells.setdefault(floor(log(size) / _GRID), []).append(size)
    return {size for cell in cells.values() for size in (cell[0], cell[-1])}


def _even_sizes(n_rows: int, small: int, large: int) -> set[int]:
    """The sizes of b buckets as even as possible, for the fewest and the most buckets that can be."""
    most = n_rows // small
    splits = range(max(most - _EVEN_SPLITS, 1), most + 1)
    return largest_even_sizes(n_rows, large) | {size for b in splits for size in _split(n_rows, b)}


def largest_even_sizes(n_rows: int, large: int) -> set[int]:
    """The same for the fewest buckets."""
    fewest = -(-n_rows // large)
    splits = range(fewest, min(fewest + _EVEN_SPLITS, n_rows + 1))
    return {size for b in splits for size in _split(n_rows, b)}


def _split(n_rows: int, n_buckets: int) -> tuple[int, int]:
    return n_rows // n_buckets, -(-n_rows // n_buckets)
