"""Bucket contents at random: what is left when a plan's loads are all that anybody can know of them.

Round-robin gives buckets a handful of different contents, which follow from the histogram: an attacker who
knows it would recognise most fakes at once. So with fakes the contents are mixed first. Two buckets of one
size pool their places; what a capacity forces on both stays with both, the rest is dealt again at random.
Repeated over random pairs this is the curveball walk (Strona et al., 2014), whose limit is the uniform
distribution over all contents with the plan's loads where a bucket's values are distinct.

Fakes: σ values in each bucket that are nobody's, so that who knows all others is not sure of the last.

The paper's 1/(1+σ) holds for an attacker who takes a fake for as likely as a real value. Who knows the
histogram does better (0.89 instead of 0.5 for uniform fakes on Adult, ℓ = 7, σ = 1), so the fakes' law is
chosen against him: v = w^τ, w the odds of a value to be in a bucket, with the τ at which his exact Bayes
posterior is least on average. A manifest states that average, or how often he is right who also counts the
fakes of all buckets (`fake_counting`), whichever is more. No law gets below `floor`: the others' values and
the histogram alone, without the sensitive table, already tell the likeliest value.

Where thresholds differ by value: a fake is only ever a value that its threshold allows in a bucket of that
size, so every entry, real or fake, is within its threshold of the bucket's people, and who knows which ones
are fakes still learns no more than the thresholds allow. A value that is twice or more in a bucket is real
for certain, and so is the last person's if somebody else in the bucket has it too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.arrays import Floats, Int32s, Ints
from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.apply import NumberedBuckets
from dalenius.mechanisms.bucketize.fakes.law import (
    MOST_SETS,
    FakeLaw,
    content_weights,
    counting_success,
    last_success,
)
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram, write_cells

ROUNDS = 40
"""How often each bucket trades; twenty leave nothing that a χ² test over all tables would see."""


def mix_contents(contents: Int32s, capacity: Ints, stream: np.random.Generator) -> Int32s:
    """Mix buckets of one size.

    Args:
        contents: buckets × places, the code at each place.
        capacity: how often each value may be in a bucket of this size.
        stream: the coins.
    """
    mixed = np.sort(contents, axis=1)
    n_pairs = len(mixed) // 2
    if not n_pairs:
        return mixed
    for _ in range(ROUNDS):
        order = stream.permutation(len(mixed))
        first, second = order[:n_pairs], order[n_pairs : 2 * n_pairs]
        mixed[first], mixed[second] = _trade(mixed[first], mixed[second], capacity, stream)
    return np.sort(mixed, axis=1)


def _trade(one: Int32s, two: Int32s, capacity: Ints, stream: np.random.Generator) -> tuple[Int32s, Int32s]:
    """Deal the pooled places of pairs of buckets again; a value above its capacity stays on both sides."""
    pooled = np.sort(np.concatenate([one, two], axis=1), axis=1)
    n, width = pooled.shape
    is_new = np.ones((n, width), dtype=bool)
    is_new[:, 1:] = pooled[:, 1:] != pooled[:, :-1]
    place = np.broadcast_to(np.arange(width), (n, width))
    start = np.maximum.accumulate(np.where(is_new, place, 0), axis=1)
    rank = place - start
    run = np.cumsum(is_new, axis=1) - 1 + np.arange(n)[:, None] * width
    length = np.bincount(run.ravel(), minlength=n * width)[run]
    forced = np.maximum(length - capacity[pooled], 0)
    key = stream.random((n, width))
    key = np.where(rank < forced, -1.0, np.where(rank >= length - forced, 2.0, key))
    dealt = np.take_along_axis(pooled, np.argsort(key, axis=1), axis=1)
    return dealt[:, : width // 2], dealt[:, width // 2 :]


TAUS = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.4)
_TRIED = 1_500
_STATED = 20_000
"""How many simulated buckets of a size a law is tried on, and stated for."""
_NEVER_REAL = 1e-3
"""The weight of values that a size's buckets never really have, as a part of the least other weight."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FakePlan:
    """The laws of the fakes by bucket size, and how sure of the last person the best attacker is."""

    n_fakes: int
    laws: tuple[FakeLaw, ...]
    posterior: float
    """The average over people, rounded up."""
    largest: float
    """The surest that he can be of anybody."""
    floor: float
    """How often he is right from the others' values and the histogram alone."""

    def statement(self) -> str:
        """What a manifest says about corruption."""
        return (
            "who knows the sensitive values of all others in a bucket, the histogram and the law of the "
            f"{self.n_fakes} fakes, and counts the fakes that each value has in all buckets, is right about "
            f"the last person {self.posterior:.0%} of the time in simulated releases, averaged over people "
            f"({self.floor:.0%} from the others and the histogram alone); of some people he is surer, up to "
            f"{self.largest:.1%}; who knows fewer others is less sure"
        )

    def to_summary(self) -> dict[str, Any]:
        """As `plan --json` prints it."""
        return {
            "per_bucket": self.n_fakes,
            "posterior": self.posterior,
            "largest_posterior": self.largest,
            "posterior_without_table": self.floor,
            "naive_posterior": float(Fraction(1, 1 + self.n_fakes)),
        }

    def to_dict(self, plan: BucketPlan, histogram: Histogram) -> dict[str, Any]:
        """What a manifest says: enough to estimate and to check; the histogram is public anyway."""
        return {
            **self.to_summary(),
            "values": [list(write_cells(v)) for v in histogram.values],
            "sizes": [
                {
                    "size": law.size,
                    "counts": [row[j] for row in plan.loads],
                    "real": [None if math.isinf(w) else w for w in law.real.tolist()],
                    "fake": law.fake.tolist(),
                }
                for j, law in enumerate(self.laws)
            ],
        }


def plan_fakes(plan: BucketPlan, problem: BucketProblem, n_fakes: int) -> FakePlan:
    """Choose the fakes' law; from the counts alone, with coins that everybody may know."""
    _refuse_impossible(plan, problem, n_fakes)
    samples = [simulate_contents(plan, problem, j) for j in range(len(plan.sizes))]
    people = [size * b / plan.n_rows for size, b in zip(plan.sizes, plan.n_buckets, strict=True)]

    def laws_at(tau: float) -> tuple[FakeLaw, ...]:
        return tuple(
            _law(_real_weights(plan, problem, j), problem.capacity(size), size, n_fakes, tau)
            for j, size in enumerate(plan.sizes)
        )

    def average(values: Iterable[float]) -> float:
        return float(sum(share * value for share, value in zip(people, values, strict=True)))

    def try_out(tau: float) -> float:
        pairs = zip(laws_at(tau), samples, strict=True)
        return average(_success(law, counts[:_TRIED])[0] for law, counts in pairs)

    laws = laws_at(min(TAUS, key=try_out))
    found = [_success(law, counts) for law, counts in zip(laws, samples, strict=True)]
    counting = [_counting(law, counts) for law, counts in zip(laws, samples, strict=True)]
    mean = max(average(success for success, _ in one) for one in (found, counting))
    error = 3 * math.sqrt(
        mean * (1 - mean) / sum(len(s) * law.size for s, law in zip(samples, laws, strict=True))
    )
    floor = average(
        _floor(law.real, problem.capacity(law.size), counts)
        for law, counts in zip(laws, samples, strict=True)
    )
    return FakePlan(
        n_fakes=n_fakes,
        laws=laws,
        posterior=min(1.0, math.ceil((mean + error) * 100) / 100),
        largest=min(1.0, math.ceil(max(largest for _, largest in (*found, *counting)) * 1000) / 1000),
        floor=round(floor, 3),
    )


def deal_contents(plan: BucketPlan, j: int, buckets: Ints) -> Int32s:
    """Buckets × places: what round-robin gives these buckets of the j-th size."""
    ends = np.cumsum([row[j] for row in plan.loads])
    places = buckets[:, None] + np.arange(plan.sizes[j]) * plan.n_buckets[j]
    codes = np.searchsorted(ends, places.ravel(), side="right")
    return codes.reshape(places.shape).astype(np.int32)


def count_values(contents: Int32s, n_values: int) -> Ints:
    """Buckets × values: how often each value is in each bucket."""
    place = np.arange(len(contents))[:, None] * n_values + contents
    return np.bincount(place.ravel(), minlength=len(contents) * n_values).reshape(len(contents), n_values)


class MixedLayout(NumberedBuckets):
    """The places of a plan with mixed contents and fakes, before any record is looked at."""

    def __init__(
        self, plan: BucketPlan, problem: BucketProblem, fakes: FakePlan, randomness: Randomness
    ) -> None:
        self.plan = plan
        self.numbers = randomness.stream("bucketize", "numbers").permutation(sum(plan.n_buckets)) + 1
        self._contents, self._fakes = [], []
        for j, law in enumerate(fakes.laws):
            dealt = deal_contents(plan, j, np.arange(plan.n_buckets[j]))
            mixed = mix_contents(
                dealt, problem.capacity(plan.sizes[j]), randomness.stream("bucketize", "mix", j)
            )
            stream = randomness.stream("bucketize", "fakes", j)
            self._contents.append(mixed)
            self._fakes.append(np.concatenate(list(_draw_fakes(law, mixed, problem.n_values, stream))))
        codes = np.concatenate([contents.ravel() for contents in self._contents])
        self._order = np.argsort(codes, kind="stable")
        self._ends = np.cumsum(np.bincount(codes, minlength=problem.n_values))
        widths = np.repeat(plan.sizes, plan.n_buckets)
        self._bucket_of_place = np.repeat(self.numbers, widths)

    def places(self, value: int) -> Ints:
        """The bucket number of every place of a value."""
        start = self._ends[value - 1] if value else 0
        return np.asarray(self._bucket_of_place[self._order[start : self._ends[value]]])

    def contents(self) -> Iterator[tuple[Ints, Int32s, Ints]]:
        """Batches of (bucket, value code, count), fakes among them, by bucket number and code."""
        first = 0
        buckets, codes = [], []
        for contents, fakes in zip(self._contents, self._fakes, strict=True):
            listed = np.concatenate([contents, fakes.astype(np.int32)], axis=1)
            numbers = self.numbers[first : first + len(contents)]
            buckets.append(np.repeat(numbers, listed.shape[1]))
            codes.append(listed.ravel())
            first += len(contents)
        pairs = np.stack([np.concatenate(buckets), np.concatenate(codes).astype(np.int64)])
        found, counts = np.unique(pairs, axis=1, return_counts=True)
        yield found[0], found[1].astype(np.int32), counts.astype(np.int64)


def _draw_fakes(law: FakeLaw, contents: Int32s, n_values: int, stream: np.random.Generator) -> Iterator[Ints]:
    yield np.zeros((0, law.n_fakes), dtype=np.int64)
    for start in range(0, len(contents), _STATED):
        part = contents[start : start + _STATED]
        yield law.draw(count_values(part, n_values) == 0, stream)


def _law(real: Floats, capacity: Ints, size: int, n_fakes: int, tau: float) -> FakeLaw:
    finite = np.isfinite(real) & (real > 0)
    fake = np.zeros_like(real)
    fake[finite] = real[finite] ** tau
    never = (real == 0) & (capacity > 0)
    fake[never] = _NEVER_REAL * (fake[finite].min() if finite.any() else 1.0)
    return FakeLaw(size=size, n_fakes=n_fakes, real=real, fake=fake)


def _real_weights(plan: BucketPlan, problem: BucketProblem, j: int) -> Floats:
    mean = np.array([row[j] for row in plan.loads]) / plan.n_buckets[j]
    return content_weights(mean, problem.capacity(plan.sizes[j]), plan.sizes[j])


def simulate_contents(plan: BucketPlan, problem: BucketProblem, j: int) -> Ints:
    """Simulated contents of buckets of the j-th size, up to `_STATED`."""
    stream = Randomness.seeded(0).stream("fakes", "sample", j)
    buckets = stream.permutation(plan.n_buckets[j])[:_STATED]
    mixed = mix_contents(deal_contents(plan, j, buckets), problem.capacity(plan.sizes[j]), stream)
    return stream.permutation(count_values(mixed, problem.n_values))


def _success(law: FakeLaw, counts: Ints) -> tuple[float, float]:
    stream = Randomness.seeded(0).stream("fakes", "trial", law.size)
    return last_success(law, counts, law.draw(counts == 0, stream))


def _counting(law: FakeLaw, counts: Ints) -> tuple[float, float]:
    return counting_success(law, counts, Randomness.seeded(0).stream("fakes", "counted", law.size))


def _floor(real: Floats, capacity: Ints, counts: Ints) -> float:
    """The likeliest value given the others' alone: its odds are w_y as long as another one fits.

    Contents c = k + y come with Π w^c/c!, and are matched to the people in S!/Π c! ways: the c! cancel.
    """
    bucket, value = np.nonzero(counts)
    known = counts[bucket].copy()
    known[np.arange(len(bucket)), value] -= 1
    odds = np.where(known < capacity, np.minimum(real, 1e12), 0.0)
    likeliest = odds.max(axis=1) / odds.sum(axis=1)
    weight = counts[bucket, value] / counts.sum(axis=1)[bucket]
    return float((likeliest * weight).sum() / len(counts))


def _refuse_impossible(plan: BucketPlan, problem: BucketProblem, n_fakes: int) -> None:
    for j, size in enumerate(plan.sizes):
        real, capacity = _real_weights(plan, problem, j), problem.capacity(size)
        n_possible = int((np.isfinite(real) & (capacity > 0)).sum())
        n_free = size - int(capacity[np.isinf(real)].sum())
        if n_possible - min(n_free, n_possible) < n_fakes:
            raise PromiseNotMet(
                f"fakes = {n_fakes}: of the {n_possible} values that may or may not be in a bucket of {size} "
                f"people, fewer than {n_fakes} can be absent",
                hint="use fewer fakes, or equal thresholds: where they differ, buckets of one size hold the "
                "same values and a fake would be known for one",
            )
        if math.comb(size + n_fakes, n_fakes) > MOST_SETS:
            raise PromiseNotMet(
                f"fakes = {n_fakes}: in buckets of {size} nobody could tell what they do to an answer "
                f"({math.comb(size + n_fakes, n_fakes)} ways to choose them)",
                hint="use fewer fakes or a smaller max_bucket",
            )
