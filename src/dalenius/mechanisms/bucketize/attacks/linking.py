"""What a bucket tells by itself.

Linking: the attacker knows a person's bucket and guesses its commonest value, or that the person's value is
of the group that the bucket has most of.

Near numbers: he guesses a secret number, give or take the distance of a promise of proximity.

Corruption: the attacker knows the sensitive values of q others of the bucket and takes them away.

Without fakes a bucket of which all others are known tells the last value: the success rises to 1, and no
threshold promises otherwise. With fakes the manifest states how often the best attacker is right, who knows
the histogram and the law of the fakes; that statement is the bound here.

Two bucketizations of the same people tell more together, and may share coins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.fakes import attack_last_person
from dalenius.mechanisms.bucketize.published import Entries
from dalenius.promises.groups import Group
from dalenius.promises.proximity import Proximity, ascending
from dalenius.promises.sets import Having
from dalenius.tables.codes import number
from dalenius.threats.chance import clopper_pearson
from dalenius.threats.original import Linked, expect_right, link, shared_coins, two_releases
from dalenius.threats.result import AttackResult, Threat, make_result

LINKING = Threat(
    knows="everybody's quasi-identifiers, and so each person's bucket",
    wants="the person's sensitive value: the bucket's commonest, among equals the table's commonest",
    covered=True,
)
_WANTS_GROUP = "whether the person's sensitive value is of a group: the group that the bucket has most of"
LINKING_GROUPS = replace(LINKING, wants=_WANTS_GROUP)
_SWEEP = (0, 1, 2, 4, 8, 16)
CORRUPTION = Threat(
    knows="a bucket's members and the sensitive values of all of them but one",
    wants="the last person's sensitive value",
    covered=False,
)


def attack_linking(case: BucketCase) -> AttackResult:
    """Success against the thresholds of the guessed values, and every bucket's posterior, exactly.

    A bucket whose people can be told apart is scored by the original. In the others the sensitive table is
    taken at its word: who guesses one value for a whole bucket is right as often as the bucket has it.
    """
    guess = commonest_value(case)
    known = case.known_buckets()
    truth = case.row_truth()
    right = np.bincount(case.row_bucket[truth == guess[case.row_bucket]], minlength=case.n_buckets)
    listed = count_listed(case, guess)
    successes = np.where(known, right, np.minimum(listed, case.size))
    n_rows = len(case.row_bucket)
    limits = case.limits
    bound = float(limits[guess] @ case.size) / n_rows
    values, n_broken = _per_value(case, guess, successes)
    weights = np.bincount(guess, case.size, case.n_values) / n_rows
    result = case.make_result(
        "linking",
        LINKING,
        successes=float(successes.sum()),
        trials=n_rows,
        control=float(weights @ case.frequency),
        bound=bound,
        detail={
            "taken_at_its_word": int(case.size[~known].sum()),
            "values": values,
            "entries_above_threshold": n_broken,
            "largest_posterior": max((v["largest_posterior"] for v in values), default=0.0),
        },
        advice="the buckets do not keep the thresholds: publish again, and `dalenius verify` it",
    )
    return result if not n_broken else mark_broken(result, "entries of the sensitive table")


def attack_linking_groups(case: BucketCase) -> AttackResult:
    """The same for the groups of values that have a threshold together."""
    held = np.array(
        [
            np.bincount(case.st_bucket, case.st_count * own[case.st_value], case.n_buckets)
            for own in case.in_group
        ]
    ).astype(np.int64)
    guess, size, truth = held.argmax(axis=0), case.size, case.row_truth()
    is_right = (truth >= 0) & case.in_group[guess[case.row_bucket], truth]
    right = np.bincount(case.row_bucket[is_right], minlength=case.n_buckets)
    successes = np.where(case.known_buckets(), right, np.minimum(held.max(axis=0), size))
    limits = np.array([float(group.at_most) for group in case.groups])
    shares = case.in_group @ case.frequency
    n_rows = len(case.row_bucket)
    sure = np.where(size > 0, held / np.maximum(size, 1), 0.0).max(axis=1)
    pairs = list(zip(case.groups, held, strict=True))
    n_above = [sum(map(int, own > _limits(group, size))) for group, own in pairs]
    result = make_result(
        "linking to groups",
        LINKING_GROUPS,
        successes=float(successes.sum()),
        trials=n_rows,
        baseline=float(shares.max()),
        control=float(shares[guess] @ size) / n_rows,
        bound=float(limits[guess] @ size) / n_rows,
        detail={
            "groups": [
                {
                    "group": group.name,
                    "at_most": float(group.at_most),
                    "largest_posterior": float(most),
                    "buckets_above_threshold": n,
                }
                for group, most, n in zip(case.groups, sure, n_above, strict=True)
            ]
        },
        advice="the buckets do not keep the thresholds: publish again, and `dalenius verify` it",
    )
    return result if not any(n_above) else mark_broken(result, "groups of values")


def _limits(group: Group | Having, size: Ints) -> Ints:
    """How many of the group every bucket may hold."""
    sizes, place = np.unique(size, return_inverse=True)
    return np.array([group.most(s) for s in sizes.tolist()], dtype=np.int64)[place]


def commonest_value(case: BucketCase) -> Ints:
    """The value that each bucket has most of; among equals the commonest in the table."""
    order = np.lexsort((case.frequency[case.st_value], case.st_count, case.st_bucket))
    last = np.append(np.flatnonzero(np.diff(case.st_bucket[order])), len(order) - 1)
    return np.asarray(case.st_value[order][last])


def count_listed(case: BucketCase, guess: Ints) -> Ints:
    """How often each bucket has the value that is guessed for it."""
    chosen = case.st_value == guess[case.st_bucket]
    return np.bincount(case.st_bucket[chosen], case.st_count[chosen], case.n_buckets).astype(np.int64)


def _per_value(case: BucketCase, guess: Ints, successes: Ints) -> tuple[list[dict[str, Any]], int]:
    """Calibration value by value; how many entries are above their threshold, in exact integers."""
    size = case.size
    share = np.minimum(case.st_count / np.maximum(size[case.st_bucket], 1), 1.0)
    highest = np.zeros(case.n_values)
    np.maximum.at(highest, case.st_value, share)
    trials = np.bincount(guess, size, case.n_values)
    right = np.bincount(guess, successes, case.n_values)
    above = np.bincount(case.st_value, is_above(case, size), case.n_values).astype(np.int64)
    rows = []
    for code in np.unique(case.st_value):
        limit = case.thresholds[code]
        low, high = clopper_pearson(right[code], trials[code])
        rows.append(
            {
                "value": case.labels[code],
                "at_most": None if limit is None else float(limit),
                "largest_posterior": float(highest[code]),
                "entries_above_threshold": int(above[code]),
                "guessed": int(trials[code]),
                "right": float(right[code] / trials[code]) if trials[code] else None,
                "low": low,
                "high": high,
            }
        )
    return rows, int(above.sum())


def is_above(case: BucketCase, size: Ints) -> Bools:
    """Whether each entry is above ⌊f′·|g|⌋, which is computed exactly for every value and size there is."""
    people = size[case.st_bucket]
    width = int(people.max(initial=0)) + 1
    place, keys = number(case.st_value * width + people)
    limits = [case.thresholds[key // width] for key in keys.tolist()]
    allowed = [
        -1 if limit is None else limit.numerator * (key % width) // limit.denominator
        for limit, key in zip(limits, keys.tolist(), strict=True)
    ]
    return np.asarray(case.st_count > np.array(allowed, dtype=np.int64)[place])


def mark_broken(result: AttackResult, what: str) -> AttackResult:
    """The result of an attack that found something above its threshold."""
    return replace(
        result,
        holds=False,
        p_value=0.0,
        advice=f"{what} are above their threshold: publish again, and `dalenius verify` it",
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LinkedPlaces:
    """The real places of the buckets, in an order that is random within each bucket."""

    bucket: Ints
    value: Ints
    rank: Ints
    """From 0 within each bucket: the last q are known to the attacker."""
    size: Ints
    """Of the place's bucket."""


def attack_corruption(case: BucketCase, stream: np.random.Generator) -> AttackResult:
    """Random victims with q random others known; the result is for all others known."""
    if case.n_fakes:
        return attack_last_person(case, stream)
    places = _real_places(case, stream)
    known = [q for q in _SWEEP if q < int(places.size.max(initial=1)) - 1]
    curve = [(q, _success(case, places, np.minimum(q, places.size - 1))) for q in known]
    successes = _success(case, places, places.size - 1)
    n = case.n_buckets
    return case.make_result(
        "corruption",
        CORRUPTION,
        successes=successes,
        trials=n,
        detail={
            "curve": [
                *({"known": str(q), "success": s / n} for q, s in curve),
                {"known": "all others", "success": successes / n},
            ]
        },
        advice="fakes = 1 or more in [mechanism] leaves the last person's value uncertain",
    )


def _real_places(case: BucketCase, stream: np.random.Generator) -> _LinkedPlaces:
    bucket, value = np.repeat(case.st_bucket, case.st_count), np.repeat(case.st_value, case.st_count)
    order = np.lexsort((stream.random(len(bucket)), bucket))
    bucket, value = bucket[order], value[order]
    rank = np.arange(len(bucket)) - np.searchsorted(bucket, bucket, side="left")
    size = np.bincount(bucket, minlength=case.n_buckets)[bucket]
    return _LinkedPlaces(bucket=bucket, value=value, rank=rank, size=size)


def _success(case: BucketCase, places: _LinkedPlaces, known: Ints) -> float:
    """Take the known values away and guess the commonest of what is left; expected successes, one a bucket.

    Every one of those left is as likely to be the victim.
    """
    is_left = places.rank < places.size - known
    key = (places.bucket * case.n_values + places.value)[is_left]
    keys, counts = np.unique(key, return_counts=True)
    most: Floats = np.zeros(case.n_buckets)
    np.maximum.at(most, keys // case.n_values, counts)
    n_left = np.bincount(places.bucket[is_left], minlength=case.n_buckets)
    return float((most / np.maximum(n_left, 1)).sum())


def attack_two_bucketizations(one: BucketCase, two: BucketCase) -> list[AttackResult]:
    """Guess the value that both buckets have, weighed by how often each has it: c₁(x)·c₂(x)/o_x."""
    people = link(one.people, two.people, one.value, one.n_values)
    together = two_releases(
        people,
        right=expect_right(_shares_of_both(one, two, people), people.truth),
        right_alone=expect_right(dense_shares(one, people.first), people.truth),
        baseline=float(one.frequency.max()),
    )
    return [together, _bucket_mates(one, two, people)]


def dense_shares(case: BucketCase, rows: Ints) -> Floats:
    """Rows × values: the shares of the rows' buckets."""
    table = sp.csr_array(
        (case.st_expected, (case.st_bucket, case.st_value)), shape=(case.n_buckets, case.n_values)
    )
    shares = table[case.row_bucket[rows]].toarray()
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _shares_of_both(one: BucketCase, two: BucketCase, people: Linked) -> Floats:
    renumber = same_values(one, two)
    second = dense_shares(two, people.second)
    second = np.where(renumber >= 0, second[:, renumber], 0.0)
    return np.asarray(dense_shares(one, people.first) * second / np.maximum(one.frequency, 1e-12))


def same_values(one: BucketCase, two: BucketCase) -> Ints:
    """The number in the second case of each value of the first; −1 where it has none."""
    number = {label: code for code, label in enumerate(two.labels)}
    return np.array([number.get(label, -1) for label in one.labels])


def _bucket_mates(one: BucketCase, two: BucketCase, people: Linked) -> AttackResult:
    """Pairs that share a bucket in one release share one in the other only by chance, given their values."""
    first, second = one.row_bucket[people.first], two.row_bucket[people.second]
    order = np.lexsort((second, first))
    pair = first[order][1:] == first[order][:-1]
    also = (second[order][1:] == second[order][:-1]) & pair
    together = _pairs_by_value(first, people.truth, one)
    chance = _chance_together(two)
    renumber = same_values(one, two)
    chance = np.where((renumber >= 0)[:, None] & (renumber >= 0), chance[np.ix_(renumber, renumber)], 0.0)
    return shared_coins(float(also.sum()), float((together * chance).sum()), int(pair.sum()))


def _pairs_by_value(bucket: Ints, value: Ints, case: BucketCase) -> Floats:
    """Values × values: how many pairs of people of one bucket have them, half of each in both its cells."""
    shape = (case.n_buckets, case.n_values)
    held = sp.csr_array((np.ones(len(bucket)), (bucket, value)), shape=shape)
    held.sum_duplicates()
    pairs = (held.T @ held).toarray()
    np.fill_diagonal(pairs, pairs.diagonal() - np.bincount(value, minlength=case.n_values))
    return np.asarray(pairs / 2)


def _chance_together(case: BucketCase) -> Floats:
    """Values × values: how likely random dealing brings a person of one and one of the other together.

    Σ_g c(g,x)·c(g,y)/(o_x·o_y); thresholds that differ keep some values together and others apart.
    """
    held = sp.csr_array(
        (case.st_expected, (case.st_bucket, case.st_value)), shape=(case.n_buckets, case.n_values)
    )
    counts = np.asarray(held.sum(axis=0), dtype=np.float64)
    together = (held.T @ held).toarray()
    np.fill_diagonal(together, together.diagonal() - counts)
    ways = np.outer(counts, counts)
    np.fill_diagonal(ways, counts * (counts - 1))
    return np.asarray(np.clip(together / np.maximum(ways, 1e-300), 0.0, 1.0) * (ways > 0))


NEAR_NUMBERS = Threat(
    knows="everybody's quasi-identifiers, and so each person's bucket",
    wants="a number near the person's own: the one that most values of the bucket are near",
    covered=True,
)


def attack_near_numbers(case: BucketCase, promise: Proximity) -> AttackResult:
    """In every bucket the guess that hits most of its values; every guess against the limit, exactly.

    As with single values, a bucket whose people can be told apart is scored by the original, and the others
    by their listed values.
    """
    entries = _entries(case)
    held, row_bucket = entries.count_near(promise), entries.bucket_of_row()
    best = np.lexsort((held, row_bucket))[np.append(entries.starts[1:], len(held)) - 1]
    rank, ends = _ranks(case, promise)
    begin = rank[case.st_value[best]]
    end = ends[begin]
    truth, own = case.row_truth(), case.row_bucket
    is_right = (truth >= 0) & (rank[truth] >= begin[own]) & (rank[truth] < end[own])
    right = np.bincount(own[is_right], minlength=case.n_buckets)
    successes = np.where(case.known_buckets(), right, np.minimum(held[best], case.size))
    n_rows = len(own)
    below = np.concatenate([[0.0], np.cumsum(case.frequency[np.argsort(rank)])])
    top, bottom = promise.at_most.as_integer_ratio()
    n_above = int(np.count_nonzero(held > top * case.size[row_bucket] // bottom))
    result = make_result(
        "near numbers",
        NEAR_NUMBERS,
        successes=float(successes.sum()),
        trials=n_rows,
        baseline=float((below[ends] - below[:-1]).max()),
        control=float((below[end] - below[begin]) @ case.size) / n_rows,
        bound=float(promise.at_most),
        detail={
            "within": promise.within.to_text(),
            "at_most": float(promise.at_most),
            "largest_posterior": float((held / np.maximum(case.size[row_bucket], 1)).max(initial=0.0)),
            "guesses_above_limit": n_above,
        },
        advice="the buckets do not keep the limit: publish again, and `dalenius verify` it",
    )
    return result if not n_above else mark_broken(result, "numbers that are near each other")


def _entries(case: BucketCase) -> Entries:
    return Entries(
        bucket=case.st_bucket,
        count=case.st_count,
        starts=np.flatnonzero(np.diff(case.st_bucket, prepend=-1)),
        code=case.st_value,
        values=case.values,
    )


def _ranks(case: BucketCase, promise: Proximity) -> tuple[Ints, Ints]:
    """The rank of each value among the numbers, and where those end that are near the one of each rank."""
    written = [value[0] for value in case.values]
    order = ascending(written)
    return np.argsort(order), np.array(promise.reach([written[code] for code in order]), dtype=np.int64)
