"""Exact Bayes over all small series: what an attacker who sees the tables of all dates can know.

She knows who is in the table at which date and takes people's values as independent with known frequencies.
Every table of values, every way the publisher's coins can fall and every pattern of coming and going is
listed; beliefs are sums of fractions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import combinations_with_replacement, permutations, product
from math import prod

import pytest

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.apply import Layout
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness

World = tuple[int, ...]
"""The value of each person."""
Presence = tuple[tuple[bool, ...], ...]
"""Of each person, at which dates she is in the table."""
Bucket = tuple[frozenset[int], tuple[int, ...]]
"""People, and values in ascending order."""
Table = frozenset[Bucket]
Series = tuple[Table | None, ...]
"""What is published at each date; None: nothing, because the thresholds cannot be kept."""
Law = Iterator[tuple[Fraction, Series]]
Thresholds = tuple[Fraction, ...]


@cache
def contents(counts: tuple[int, ...], thresholds: Thresholds) -> tuple[tuple[int, ...], ...] | None:
    """The values of every bucket that the product plans for these counts."""
    present = [i for i, count in enumerate(counts) if count]
    problem = BucketProblem(
        counts=tuple(counts[i] for i in present),
        thresholds=tuple(thresholds[i] for i in present),
        max_bucket=sum(counts),
    )
    try:
        plan: BucketPlan = plan_buckets(problem)
    except PromiseNotMet:
        return None
    found: dict[int, list[int]] = defaultdict(list)
    for buckets, codes, numbers in Layout.shuffled(plan, Randomness.seeded(0)).contents():
        for bucket, code, n in zip(buckets.tolist(), codes.tolist(), numbers.tolist(), strict=True):
            found[bucket] += [present[code]] * n
    return tuple(tuple(values) for values in found.values())


@cache
def deal(
    values: tuple[tuple[int, int], ...], thresholds: Thresholds
) -> tuple[tuple[Fraction, Table | None], ...]:
    """Every way to bucketize people (person, value), with its probability."""
    counts = Counter(value for _, value in values)
    planned = contents(tuple(counts[i] for i in range(len(thresholds))), thresholds) if values else ()
    if planned is None:
        return ((Fraction(1), None),)
    places = [(bucket, value) for bucket, held in enumerate(planned) for value in held]
    ways: Counter[Table] = Counter()
    own = [[person for person, value in values if value == code] for code in range(len(thresholds))]
    slots = [[bucket for bucket, value in places if value == code] for code in range(len(thresholds))]
    for orders in product(*(permutations(people) for people in own)):
        members: dict[int, set[int]] = defaultdict(set)
        for people, buckets in zip(orders, slots, strict=True):
            for person, bucket in zip(people, buckets, strict=True):
                members[bucket].add(person)
        ways[frozenset((frozenset(p), tuple(sorted(planned[b]))) for b, p in members.items())] += 1
    total = sum(ways.values())
    return tuple((Fraction(n, total), table) for table, n in ways.items())


def newcomers(presence: Presence, date: int) -> list[int]:
    return [p for p, dates in enumerate(presence) if dates[date] and not any(dates[:date])]


def publish_kept(world: World, presence: Presence, thresholds: Thresholds) -> Law:
    """The product's: who stays keeps the bucket, and its values stay whoever has left."""
    n_dates = len(presence[0])
    cohorts = [deal(tuple((p, world[p]) for p in newcomers(presence, d)), thresholds) for d in range(n_dates)]
    for outcome in product(*cohorts):
        tables: list[Table | None] = []
        for date in range(n_dates):
            so_far = [table for _, table in outcome[: date + 1]]
            here = {p for p, dates in enumerate(presence) if dates[date]}
            listed = [(people & here, values) for table in so_far if table for people, values in table]
            tables.append(None if None in so_far else frozenset(one for one in listed if one[0]))
        yield prod((chance for chance, _ in outcome), start=Fraction(1)), tuple(tables)


def publish_naively(world: World, presence: Presence, thresholds: Thresholds) -> Law:
    """The twin: every date is bucketized by itself."""
    dates = range(len(presence[0]))
    tables = [
        deal(tuple((p, world[p]) for p, here in enumerate(presence) if here[d]), thresholds) for d in dates
    ]
    for outcome in product(*tables):
        yield prod((chance for chance, _ in outcome), start=Fraction(1)), tuple(table for _, table in outcome)


def publish_without_the_absent(world: World, presence: Presence, thresholds: Thresholds) -> Law:
    """Another: who stays keeps the bucket, and the values of those who have left are taken out."""
    for chance, tables in publish_kept(world, presence, thresholds):
        yield (
            chance,
            tuple(
                table and frozenset((people, tuple(sorted(world[p] for p in people))) for people, _ in table)
                for table in tables
            ),
        )


def publish_what_fits(
    world: World,
    presence: Presence,
    thresholds: Thresholds,
    *,
    wait: bool,
    dealt: tuple[Table, ...] = (),
    tables: Series = (),
) -> Law:
    """Newcomers who cannot have buckets are left out of this date and of all later ones.

    With `wait`, a twin, nothing is published at such a date, and they come with those of the next.
    """
    date = len(tables)
    if date == len(presence[0]):
        yield Fraction(1), tables
        return
    here = {p for p, dates in enumerate(presence) if dates[date]}
    known = {p for table in dealt for people, _ in table for p in people}
    new = sorted(here - known) if wait else newcomers(presence, date)
    for chance, fresh in deal(tuple((p, world[p]) for p in new), thresholds):
        made = dealt if fresh is None else (*dealt, fresh)
        listed = [(people & here, values) for table in made for people, values in table]
        shown = None if fresh is None and wait else frozenset(one for one in listed if one[0])
        rest = publish_what_fits(world, presence, thresholds, wait=wait, dealt=made, tables=(*tables, shown))
        for own, series in rest:
            yield chance * own, series


def beliefs(
    publish: Callable[[World, Presence, Thresholds], Law],
    presence: Presence,
    thresholds: Thresholds,
    prior: Sequence[Fraction],
) -> dict[tuple[int, int], Fraction]:
    """The largest belief, over everything that can be published, that a published person has a value."""
    total: dict[Series, Fraction] = defaultdict(Fraction)
    having: dict[tuple[Series, int, int], Fraction] = defaultdict(Fraction)
    for world in product(range(len(thresholds)), repeat=len(presence)):
        weight = prod((prior[value] for value in world), start=Fraction(1))
        for chance, tables in publish(world, presence, thresholds):
            total[tables] += weight * chance
            for person, value in enumerate(world):
                having[tables, person, value] += weight * chance
    largest: dict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for (tables, person, value), mass in having.items():
        if any(table and any(person in people for people, _ in table) for table in tables):
            largest[person, value] = max(largest[person, value], mass / total[tables])
    return largest


def patterns(n_people: int, n_dates: int) -> Iterator[Presence]:
    """All ways to come and go, up to the names of people."""
    somewhere = [dates for dates in product((False, True), repeat=n_dates) if any(dates)]
    yield from combinations_with_replacement(somewhere, n_people)


HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PRIORS = {2: (HALF, HALF), 3: (HALF, THIRD, Fraction(1, 6))}
SKEWED = {2: (Fraction(9, 10), Fraction(1, 10)), 3: (Fraction(8, 10), Fraction(1, 10), Fraction(1, 10))}
SIZES = [
    (4, 2, (HALF, HALF)),
    (4, 2, (Fraction(2, 3), HALF)),
    (4, 2, (HALF, HALF, HALF)),
    (4, 2, (Fraction(2, 3), HALF, THIRD)),
    (3, 3, (HALF, Fraction(2, 3), THIRD)),
    (4, 3, (Fraction(2, 3), HALF)),
]
"""People, dates, thresholds."""
N_CASES = 17_076
"""Series of tables (patterns × tables × priors) that the attacker below goes through."""


def test_nobody_is_believed_to_have_a_value_with_more_than_its_threshold() -> None:
    n_cases = 0
    for n_people, n_dates, thresholds in SIZES:
        for presence in patterns(n_people, n_dates):
            for prior in (PRIORS[len(thresholds)], SKEWED[len(thresholds)]):
                n_cases += len(thresholds) ** n_people
                for (_, value), belief in beliefs(publish_kept, presence, thresholds, prior).items():
                    assert belief <= thresholds[value]
    assert n_cases == N_CASES


@pytest.mark.parametrize("publish", [publish_naively, publish_without_the_absent])
def test_the_twins_are_caught(publish: Callable[[World, Presence, Thresholds], Law]) -> None:
    """One person leaves a table of four, the others stay."""
    presence = ((True, True), (True, True), (True, True), (True, False))
    thresholds = (HALF, HALF, HALF)
    found = beliefs(publish, presence, thresholds, PRIORS[3])
    assert max(found.values()) > HALF
    assert max(beliefs(publish_kept, presence, thresholds, PRIORS[3]).values()) <= HALF


def test_a_newcomer_in_the_place_of_one_who_left_would_tell_who_stayed() -> None:
    """m-invariance: the newcomer has the value of the one who left, so that the bucket is as before.

    Of two people {A, B} one leaves, and one comes who is as she was: if the one who stays has A, B came
    twice. Who knows that A is nine times as common believes B of the one who stays with 9/10, not with 1/2.
    """
    prior = (Fraction(9, 10), Fraction(1, 10))
    weight = {value: prior[value] * prior[1 - value] ** 2 for value in (0, 1)}
    assert weight[1] / sum(weight.values()) == Fraction(9, 10)


def test_newcomers_who_do_not_fit_are_left_out_for_good_and_waiting_would_tell_them() -> None:
    """How far any belief about a published person passes its threshold, by both rules."""
    passed = {True: Fraction(0), False: Fraction(0)}
    for n_people, n_dates, thresholds in SIZES:
        for presence, wait in product(patterns(n_people, n_dates), (True, False)):
            found = beliefs(
                partial(publish_what_fits, wait=wait), presence, thresholds, PRIORS[len(thresholds)]
            )
            over = [belief - thresholds[value] for (_, value), belief in found.items()]
            passed[wait] = max([passed[wait], *over])
    assert passed == {True: 1 - THIRD, False: 0}  # who waits is certain of a value of which 1/3 is promised


@pytest.mark.parametrize("redrawn", [Fraction(1, 100), HALF])
def test_that_a_value_has_changed_tells_which_it_was_to_who_knows_which_values_change(
    redrawn: Fraction,
) -> None:
    """What `changed = "leaves"` does not cover: of a bucket {A, B} one leaves, since her value changed.

    At the second date everybody's value is drawn anew with some probability. With `"stays"` nothing shows.
    """
    prior = (Fraction(9, 10), Fraction(1, 10))
    having: dict[tuple[bool, int], Fraction] = defaultdict(Fraction)
    for before, after in product(((0, 1), (1, 0)), product((0, 1), repeat=2)):
        chance = prod((prior[value] for value in before), start=Fraction(1))
        for old, new in zip(before, after, strict=True):
            chance *= redrawn * prior[new] + (1 - redrawn) * (old == new)
        leaves = before[0] != after[0] and before[1] == after[1]
        having[True, before[0]] += chance if leaves else 0
        having[False, before[0]] += chance
    assert having[True, 1] / (having[True, 0] + having[True, 1]) >= prior[0]
    assert having[False, 1] / (having[False, 0] + having[False, 1]) == HALF
