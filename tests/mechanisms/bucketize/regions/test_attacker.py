"""Does it tell anything where regions are cut? An attacker who knows the rule and all quasi-identifiers.

Exact Bayes: every table of eight people is equally likely, every random assignment is enumerated, and the
attacker sees the regions, the buckets' contents and who is in which bucket.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import chain, product

import pyarrow as pa
import pytest

from dalenius.mechanisms.bucketize.apply import Layout
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from tests.mechanisms.bucketize.memory_scan import grown

SIDE = ("west",) * 4 + ("east",) * 4
LIMIT = {"ill": Fraction(1, 2), "well": Fraction(1)}
Table = tuple[str, ...]
Release = tuple[object, ...]
TABLES = [t for t in product(("ill", "well"), repeat=8) if 1 <= t.count("ill") <= 4]


def cut_where_sure(values: Table) -> bool:
    """The rule of this house."""
    tree, _ = grown(pa.table({"side": SIDE, "value": values}), LIMIT, least=4)
    return tree.n_regions == 2


def cut_where_eligible(values: Table) -> bool:
    """The obvious rule: cut if both halves keep the threshold as they are."""
    return max(values[:4].count("ill"), values[4:].count("ill")) <= 2


def cut_with_slack(values: Table) -> bool:
    """The same with room to spare: at most half of what the threshold allows."""
    return max(values[:4].count("ill"), values[4:].count("ill")) <= 1


@cache
def places(n_ill: int, n_well: int) -> dict[str, tuple[int, ...]]:
    """The buckets that a region's records of each value go to; buckets of one person are all called 0."""
    counts = {value: n for value, n in (("ill", n_ill), ("well", n_well)) if n}
    problem = BucketProblem(
        counts=tuple(counts.values()), thresholds=tuple(LIMIT[v] for v in counts), max_bucket=8
    )
    layout = Layout.shuffled(plan_buckets(problem), Randomness.seeded(1))
    held = {value: layout.places(code).tolist() for code, value in enumerate(counts)}
    size = Counter(bucket for own in held.values() for bucket in own)
    return {value: tuple(b if size[b] > 1 else 0 for b in own) for value, own in held.items()}


@cache
def arrangements(items: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All different orders, which are equally likely under a random shuffle."""
    if not items:
        return [()]
    firsts = sorted(set(items))
    rest = {one: tuple(sorted((Counter(items) - Counter([one])).elements())) for one in firsts}
    return [(one, *more) for one in firsts for more in arrangements(rest[one])]


@cache
def region_releases(values: Table) -> dict[Release, Fraction]:
    """What a region is published as: each person's bucket and the contents, with probabilities."""
    held = places(values.count("ill"), values.count("well"))
    people = [i for value in held for i, own in enumerate(values) if own == value]
    dealt = list(product(*(arrangements(tuple(sorted(own))) for own in held.values())))
    found: dict[Release, Fraction] = defaultdict(Fraction)
    for one in dealt:
        bucket = dict(zip(people, chain(*one), strict=True))
        found[tuple(held.items()), tuple(bucket[i] for i in range(len(values)))] += Fraction(1, len(dealt))
    return found


def releases(values: Table, cut: Callable[[Table], bool]) -> dict[Release, Fraction]:
    if not cut(values):
        return {("whole", key): p for key, p in region_releases(values).items()}
    west, east = region_releases(values[:4]), region_releases(values[4:])
    return {(a, b): p * q for (a, p), (b, q) in product(west.items(), east.items())}


def posteriors(cut: Callable[[Table], bool]) -> list[tuple[Fraction, Fraction]]:
    """The probability of each release, and the largest posterior of being ill of anybody in it."""
    seen: dict[Release, list[tuple[Fraction, Table]]] = defaultdict(list)
    for table in TABLES:
        for release, p in releases(table, cut).items():
            seen[release].append((p / len(TABLES), table))
    found = []
    for cases in seen.values():
        total = sum((p for p, _ in cases), Fraction(0))
        ill = [sum((p for p, t in cases if t[i] == "ill"), Fraction(0)) / total for i in range(8)]
        found.append((total, max(ill)))
    assert sum(p for p, _ in found) == 1
    return found


def test_the_sure_rule_tells_nothing_that_buckets_do_not() -> None:
    assert {cut_where_sure(table) for table in TABLES} == {True, False}
    assert max(worst for _, worst in posteriors(cut_where_sure)) == LIMIT["ill"]


@pytest.mark.parametrize(
    ("rule", "broken"), [(cut_where_eligible, Fraction(4, 135)), (cut_with_slack, Fraction(16, 405))]
)
def test_cutting_where_halves_are_eligible_tells_who_is_ill(
    rule: Callable[[Table], bool], broken: Fraction
) -> None:
    """The broken controls, with the numbers of docs/regions.md: the threshold is 1/2."""
    found = posteriors(rule)
    assert max(worst for _, worst in found) == 1
    assert sum(p for p, worst in found if worst > LIMIT["ill"]) == broken
