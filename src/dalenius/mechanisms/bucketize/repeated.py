"""Several independent bucketizations of one table: a person's value is in the person's bucket each time.

The records of a value are dealt uniformly at random, so Pr[in bucket g | value x] = c(g,x)/o_x, and for a
person in g_1 … g_r the belief in x is proportional to o_x·Π_i c(g_i,x)/o_x. Two buckets that share a single
value give it away. The attacker here looks at one person's buckets; who also uses everybody else's can
only be surer.

Round-robin leaves few different contents, so for two releases every pair of them is looked at. More
releases, or contents that are drawn at random (fakes), are simulated with fixed coins, so that the result is
repeatable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.base import Repeated
from dalenius.mechanisms.bucketize.apply import mix_contents
from dalenius.mechanisms.bucketize.contents.varied import VariedLayout
from dalenius.mechanisms.bucketize.fakes.plan import (
    FakePlan,
    count_values,
    deal_contents,
    simulate_contents,
)
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem, Run, Together
from dalenius.mechanisms.bucketize.regions.plan import problem_of_region
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RepeatedContents:
    """The different contents of a plan's buckets."""

    real: Floats
    """Contents × values: how many people of a bucket have each value."""
    believed: Floats
    """The same as an attacker expects it, who sees fakes among the values."""
    weight: Floats
    """How many buckets have each content."""
    counts: Floats
    """How many people of the table have each value."""
    is_complete: bool
    """Whether these are all contents that the plan has, as it has them."""

    def with_withheld(self, kept: Sequence[int], counts: Sequence[int]) -> RepeatedContents:
        """Of the whole table, of which only so many records of each value are in buckets.

        The people that are in no bucket are one content more: what they share is not being published.
        """
        wide = self.among(np.array(kept) > 0)
        rest = np.array([counts], dtype=np.float64) - np.array([kept])
        return replace(
            wide,
            real=np.concatenate([wide.real, rest]),
            believed=np.concatenate([wide.believed, rest]),
            weight=np.append(self.weight, 1.0),
            counts=np.array(counts, dtype=np.float64),
        )

    def among(self, occur: Bools) -> RepeatedContents:
        """The same with all values of the table, of which only these occur here."""

        def widen(cells: Floats) -> Floats:
            wide = np.zeros((*cells.shape[:-1], len(occur)))
            wide[..., occur] = cells
            return wide

        return replace(self, real=widen(self.real), believed=widen(self.believed), counts=widen(self.counts))


_MOST_PAIRS = 4_000_000
_MOST_CELLS = 8_000_000
"""Of contents × contents, and of contents × values, that are looked at."""
_PEOPLE = 20_000
"""How many people are drawn in all, where posteriors are simulated."""


def repeat_buckets(
    parts: Sequence[RepeatedContents],
    thresholds: Sequence[Fraction],
    times: int,
    groups: Sequence[Together | Run] = (),
) -> Repeated:
    """The largest posterior of the value or group that it is worst for; how often the best guess is right.

    Regions are parts: who is in which is published, and all releases of a table have the same.
    """
    limits = np.array([float(limit) for limit in (*thresholds, *(group.threshold for group in groups))])
    is_exact = times == 2 and all(c.is_complete and len(c.weight) ** 2 <= _MOST_PAIRS for c in parts)
    n_people = max(1, _PEOPLE // len(parts))
    found = [
        _try_all_pairs(part, groups) if is_exact else _simulate(part, times, n_people, groups)
        for part in parts
    ]
    largest = np.max([of_values for of_values, _ in found], axis=0)
    people = [part.counts.sum() for part in parts]
    # the value whose promise is broken worst: by the ratio of the odds, among equals the surest
    ratio = largest * (1 - limits) / np.maximum((1 - largest) * limits, 1e-12)
    worst = int(np.lexsort((-largest, -ratio))[0])
    return Repeated(
        times=times,
        posterior=float(largest[worst]),
        promised=float(limits[worst]),
        about="the sensitive value of the worst-off person",
        how="exact" if is_exact else "simulated",
        success=float(np.average([success for _, success in found], weights=people)),
        success_of_one=float(np.average([_guess_from_one(part) for part in parts], weights=people)),
    )


def repeat_table(plan: BucketizePlan, times: int) -> Repeated:
    """Releases of a whole table by one plan."""
    if plan.regions is None:
        parts = [
            varied_contents(plan.buckets, plan.problem)
            if plan.is_varied
            else plan_contents(plan.buckets, plan.problem, plan.fakes)
        ]
    else:
        parts = [
            plan_contents(own, problem_of_region(plan.problem, counts), None).among(counts > 0)
            for own, counts in zip(plan.regions.plans, plan.regions.counts, strict=True)
        ]
    return repeat_buckets(parts, plan.thresholds, times, plan.problem.together())


def repeat_part(
    plan: BucketizePlan, whole: Histogram, thresholds: Sequence[Fraction], times: int
) -> Repeated:
    """Releases by one plan of a part of the table's records, each time another part."""
    planned = dict(zip(plan.histogram.values, plan.histogram.counts, strict=True))
    kept = [planned.get(value, 0) for value in whole.values]
    contents = plan_contents(plan.buckets, plan.problem, plan.fakes)
    return repeat_buckets([contents.with_withheld(kept, whole.counts)], thresholds, times)


def plan_contents(plan: BucketPlan, problem: BucketProblem, fakes: FakePlan | None) -> RepeatedContents:
    """The contents of a plan's buckets: all of them, or simulated ones where they are random or very many."""
    counts = np.array(problem.counts, dtype=np.float64)
    real, believed, weights = [], [], []
    share = max(1, _MOST_CELLS // max(1, len(counts) * len(plan.sizes)))
    mixed = mix_contents(plan, problem, Randomness.seeded(0)) if problem.is_mixed else []
    for j, n_buckets in enumerate(plan.n_buckets):
        if mixed:
            found = count_values(mixed[j][:share].astype(np.int32), len(counts))
            seen, weight = found.astype(np.float64), np.full(len(found), n_buckets / len(found))
        elif fakes is None:
            found, weight = _deal_some(plan, j, len(counts))
            seen = found.astype(np.float64)
        else:
            found = simulate_contents(plan, problem, j)[:share]
            weight = np.full(len(found), n_buckets / len(found))
            law, stream = fakes.laws[j], Randomness.seeded(0).stream("repeated", "fakes", j)
            listed = found.copy()
            np.add.at(listed, (np.arange(len(found))[:, None], law.draw(found == 0, stream)), 1)
            seen = listed - law.fake_probability(listed)
        real.append(found)
        believed.append(seen)
        weights.append(weight)
    all_weights = np.concatenate(weights)
    return RepeatedContents(
        real=np.concatenate(real).astype(np.float64),
        believed=np.concatenate(believed).astype(np.float64),
        weight=all_weights,
        counts=counts,
        is_complete=fakes is None
        and not mixed
        and np.array_equal(all_weights @ np.concatenate(real), counts),
    )


def varied_contents(plan: BucketPlan, problem: BucketProblem) -> RepeatedContents:
    """The contents of some buckets of a plan after they have traded, simulated."""
    counts = np.array(problem.counts, dtype=np.float64)
    layout = VariedLayout(plan, problem, Randomness.seeded(0))
    most, found = max(1, _MOST_CELLS // len(counts)), []
    for bucket, codes, held in layout.contents():  # by numbers, which are random
        first = int(bucket[0])
        real = np.zeros((int(bucket[-1]) + 1 - first, len(counts)))
        real[bucket - first, codes] = held
        found.append(real[: most - first + 1])
        if first + len(real) > most:
            break
    some = np.concatenate(found)
    return RepeatedContents(
        real=some,
        believed=some,
        weight=np.full(len(some), layout.n_buckets / len(some)),
        counts=counts,
        is_complete=False,
    )


def _deal_some(plan: BucketPlan, j: int, n_values: int) -> tuple[Ints, Floats]:
    """What round-robin leaves in the buckets of the j-th size: it changes where a value's places end."""
    n_buckets = plan.n_buckets[j]
    ends = np.cumsum([row[j] for row in plan.loads])
    starts = np.unique(np.concatenate([[0], ends % n_buckets]))
    kept = starts[:: len(starts) * n_values // _MOST_CELLS + 1]
    weight = np.diff(kept, append=n_buckets).astype(np.float64)
    return count_values(deal_contents(plan, j, kept), n_values), weight


def _try_all_pairs(contents: RepeatedContents, groups: Sequence[Together | Run]) -> tuple[Floats, float]:
    """Per value and group the largest posterior over all pairs of contents; the success of the best guess."""
    c, o = contents.real, np.maximum(contents.counts, 1.0)
    evidence = (c / o) @ c.T
    largest = np.zeros(len(o) + len(groups))
    best = np.zeros_like(evidence)
    for x in range(len(o)):
        mine = np.outer(c[:, x], c[:, x]) / o[x]
        best = np.maximum(best, mine)
        largest[x] = np.divide(mine, evidence, out=np.zeros_like(mine), where=mine > 0).max()
    for g, group in enumerate(groups, start=len(o)):
        together = (c[:, group.own] / o[group.own]) @ c[:, group.own].T
        largest[g] = np.divide(together, evidence, out=np.zeros_like(evidence), where=together > 0).max()
    success = contents.weight @ best @ contents.weight / contents.counts.sum()
    return largest, float(success)


def _simulate(
    contents: RepeatedContents, times: int, n_people: int, groups: Sequence[Together | Run]
) -> tuple[Floats, float]:
    """The same of so many random people, whose contents are drawn given their values."""
    stream = Randomness.seeded(0).stream("repeated", "people")
    m, counts = len(contents.counts), contents.counts
    n_people = max(1, min(n_people, _MOST_CELLS // m))
    places = contents.weight @ contents.real
    # every value at least once, so that rare ones are not left out of the largest
    drawn = stream.choice(m, size=n_people, p=places / places.sum())
    value = np.concatenate([np.flatnonzero(places), drawn])
    belief = np.tile(counts, (len(value), 1))
    for _ in range(times):
        belief *= contents.believed[_draw_contents(contents, value, stream)] / np.maximum(counts, 1.0)
    belief /= np.maximum(belief.sum(axis=1, keepdims=True), 1e-300)
    together = [belief[:, group.own].sum(axis=1).max() for group in groups]
    largest = np.append(belief.max(axis=0), together)
    return largest, float(belief[-n_people:].max(axis=1).mean())


def _draw_contents(contents: RepeatedContents, value: Ints, stream: np.random.Generator) -> Ints:
    """For each person of a value, the content of a bucket, ∝ how many places for the value it has."""
    chosen = np.zeros(len(value), dtype=np.int64)
    for x in np.unique(value):
        mine = value == x
        places = np.cumsum(contents.weight * contents.real[:, x])
        chosen[mine] = np.searchsorted(places, stream.random(int(mine.sum())) * places[-1], side="right")
    return np.minimum(chosen, len(contents.weight) - 1)


def _guess_from_one(contents: RepeatedContents) -> float:
    """The success of guessing the commonest value of one bucket."""
    return float(contents.weight @ contents.believed.max(axis=1) / contents.counts.sum())
