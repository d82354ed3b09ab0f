"""Proximity at the edges: no number, no end, zero, signs. Hits are counted guess by guess, not by windows."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement
from math import inf, isfinite, nan

import pyarrow as pa
import pytest

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.apply import mix_contents
from dalenius.mechanisms.bucketize.config import BucketizeConfig
from dalenius.mechanisms.bucketize.table_plan import plan_promise
from dalenius.promises.proximity import Distance, Proximity
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram

Number = float | None
NUMBERS: tuple[Number, ...] = (None, -inf, -110.0, -100.0, 0.0, 1.0, 1.1, nan)
SCHEMA = pa.schema([("x", pa.float64())])


def most_hit(numbers: list[Number], within: Distance) -> int:
    """How many of the numbers the best guess is near; what is no number is only itself."""
    finite = [Fraction(repr(x)) for x in numbers if x is not None and isfinite(x)]
    reach = [abs(x) * within.amount if within.is_share else within.amount for x in finite]
    ends = [(x - r, x + r) for x, r in zip(finite, reach, strict=True)]
    hits = [sum(low <= guess <= high for low, high in ends) for guess, _ in ends]
    others = Counter(str(x) for x in numbers if x is None or not isfinite(x))
    return max([*hits, *others.values()])


@pytest.mark.parametrize(("within", "at_most"), [("10%", Fraction(1, 2)), ("0.1", Fraction(1, 4))])
def test_no_guess_at_the_edges_hits_more_than_the_limit(within: str, at_most: Fraction) -> None:
    """All 330 tables of four people with these numbers: published iff they can be, and then within it."""
    promise = Proximity(within=Distance.parse(within), at_most=at_most)
    n_published = 0
    for places in combinations_with_replacement(range(len(NUMBERS)), 4):
        numbers = [NUMBERS[place] for place in places]
        counted = {(NUMBERS[place],): count for place, count in Counter(places).items()}
        can_be_kept = most_hit(numbers, promise.within) <= 4 * at_most
        try:
            plan = plan_promise(BucketizeConfig(), promise, Histogram.of(("x",), counted), SCHEMA)
        except PromiseNotMet:
            assert not can_be_kept
            continue
        assert can_be_kept
        n_published += 1
        for held in mix_contents(plan.buckets, plan.problem, Randomness.seeded(sum(places))):
            for bucket in held.tolist():
                own = [plan.histogram.values[code][0] for code in bucket]
                assert most_hit(own, promise.within) <= at_most * len(own)
    assert n_published > 20
