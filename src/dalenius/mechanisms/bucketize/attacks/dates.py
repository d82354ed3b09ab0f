"""What the tables of several dates tell together, of people who came, stayed and left.

Linking: a person's bucket lists the values of everybody who came with her, so the belief is the value's share
of them. Across dates: whoever is in another bucket at another date, or in one that lists other values, has a
value that both have. Who stays: where people with some values leave sooner, those who are still there have
the other values more often than their buckets say; no threshold is about that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.linking import (
    LINKING,
    commonest_value,
    count_listed,
    dense_shares,
    is_above,
    mark_broken,
    same_values,
)
from dalenius.threats.original import expect_right, link
from dalenius.threats.result import AttackResult, Threat

_ACROSS = Threat(
    knows="everybody's quasi-identifiers and the tables of all dates",
    wants="the person's sensitive value, from the buckets that she was in",
    covered=True,
)
_STAYING = Threat(
    knows="a person's bucket, and that people with some values leave sooner",
    wants="the sensitive value of somebody whose bucket others have left",
    covered=False,
)


def attack_dates(case: BucketCase, earlier: Sequence[BucketCase]) -> Iterator[AttackResult]:
    """On the table of the last date, with those before it at hand."""
    guess = commonest_value(case)
    yield attack_linking_of_all(case, guess)
    yield from (attack_across_dates(case, before) for before in earlier)
    yield attack_who_stays(case, guess)


def attack_linking_of_all(case: BucketCase, guess: Ints) -> AttackResult:
    """Every bucket's posterior, exactly: of everybody who came with the bucket."""
    listed, size = case.listed, case.size
    believed = count_listed(case, guess) / listed
    n_rows = len(case.row_bucket)
    n_broken = int(is_above(case, listed).sum())
    result = AttackResult(
        name="linking",
        threat=LINKING,
        success=float(believed @ size) / n_rows,
        baseline=float(case.frequency.max()),
        control=float(case.frequency[guess] @ size) / n_rows,
        bound=float(case.limits[guess] @ size) / n_rows,
        holds=True,
        n_trials=n_rows,
        detail={
            "entries_above_threshold": n_broken,
            "largest_posterior": float((case.st_count / listed[case.st_bucket]).max()),
            "absent": int((listed - size).sum()),
        },
        advice="the buckets do not keep the thresholds: publish again, and `dalenius verify` it",
    )
    return mark_broken(result, "entries of the sensitive table") if n_broken else result


def attack_across_dates(case: BucketCase, before: BucketCase) -> AttackResult:
    """Guess from the buckets of two dates; the promise is that this is no better than from the later one."""
    people = link(case.people, before.people, case.value, case.n_values)
    alone = dense_shares(case, people.first)
    right_alone = expect_right(alone, people.truth)
    trials = max(len(people.truth), 1)
    then = _shares_then(case, before, people.second)
    moved = _find_moved(case, before, people.first, people.second, then)
    both = alone * then / np.maximum(case.frequency, 1e-12)
    # Of who is in the same bucket, which lists the same, what it lists; else what both have.
    believed = np.where((moved & (both.sum(axis=1) > 0))[:, None], both, alone)
    return case.make_result(
        f"linking across dates ({before.release.path.name})",
        _ACROSS,
        successes=expect_right(believed, people.truth),
        trials=len(people.truth),
        control=right_alone / trials,
        bound=right_alone / trials,
        n_failed=people.n_failed,
        detail={"moved": int(moved.sum())},
        advice='people who stay must keep their buckets: publish with [series] kind = "dates"',
    )


def _shares_then(case: BucketCase, before: BucketCase, rows: Ints) -> Floats:
    """What the buckets of the earlier date list, by the values of the later one."""
    renumber = same_values(case, before)
    return np.where(renumber >= 0, dense_shares(before, rows)[:, renumber], 0.0)


def _find_moved(case: BucketCase, before: BucketCase, first: Ints, second: Ints, then: Floats) -> Bools:
    """Who is in a bucket of another number, or one that lists other values than it did."""
    other = np.abs(then - dense_shares(case, first)).max(axis=1, initial=0.0) > 1e-9
    number = case.numbers[case.row_bucket[first]]
    return np.asarray(other | (number != before.numbers[before.row_bucket[second]]))


def attack_who_stays(case: BucketCase, guess: Ints) -> AttackResult:
    """How often the bucket's commonest value is right, of those whose buckets others have left."""
    truth, home = case.row_truth(), case.row_bucket
    rows = np.flatnonzero(((case.listed > case.size)[home]) & (truth >= 0))
    believed = count_listed(case, guess) / case.listed
    return case.make_result(
        "who stays",
        _STAYING,
        successes=float((truth[rows] == guess[home[rows]]).sum()),
        trials=len(rows),
        control=float(believed[home[rows]].mean()) if len(rows) else None,
        n_failed=len(home) - len(rows),
        advice="if people with some values leave sooner, who stays is told by it; a smaller threshold leaves "
        "room for that",
    )
