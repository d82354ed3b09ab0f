"""The law of bucket contents and of fakes, and what an attacker who knows both can tell.

Among contents with given loads a bucket of size S holds counts c with a probability proportional to
Π_x w_x^c_x / c_x!, c_x at most the capacity and Σ c_x = S, in the limit of many buckets: w makes the expected
counts those of the plan. σ fakes are drawn from the values that the bucket does not have, a set F with a
probability proportional to Π_{x∈F} v_x. Who knows all of a bucket's people but one (values K) sees σ+1
values U left over. By Bayes the odds that y ∈ U is the person's are

    (w_y / v_y) / e_σ(v over the values outside K and y),

e_σ the elementary symmetric polynomial; a value of K that is left over is the person's for certain. With
v = w the odds differ only by e_σ, so that is where the search for the best v starts; v = 1 are uniform fakes,
for which a common value, hardly ever absent and so hardly ever fake, gives itself away.

An attacker may count the fakes, too: the sensitive table less the histogram is how many fakes each value has
in all.

The law of one bucket leaves that out. With many buckets and few values it hardly matters. With many rare
values it does: one of which no bucket has a fake is real wherever it is listed. Exact Bayes over all buckets
is out of reach except for toy tables; this attacker takes the law whose expected numbers of fakes are the
counted ones, and is never worse than one who looks at a bucket alone, except for chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.errors import ReleaseCorrupt

_STEPS = 400
_TOLERANCE = 1e-10
_SHRINKS = 0.9
"""Steps by which the error does not shrink so far are halved."""
MOST_SETS = 20_000
"""Of possible sets of fakes in a bucket that a Bayesian looks through."""
_FLOATS_AT_ONCE = 4_000_000
_COUNTING_STEPS = 8
_CELLS_AT_ONCE = 4_000_000
_ATTACKED = 4_000
_LEAST_BUCKETS = 1_000
_MOST_REPEATS = 20
"""Buckets that are attacked, and releases that are simulated to have that many."""


def content_weights(mean: Floats, capacity: Ints, size: int) -> Floats:
    """w: the weights under which a bucket's expected counts are `mean` (which adds up to `size`).

    >>> content_weights(np.array([1.0, 0.5, 0.5]), np.array([1, 1, 1]), 2).round(6).tolist()
    [inf, 1.0, 1.0]
    """
    mean, capacity = np.asarray(mean, dtype=np.float64), np.asarray(capacity, dtype=np.int64)
    weights = np.where(mean >= capacity, np.inf, np.where(mean > 0, 1.0, 0.0))
    free = np.flatnonzero((mean > 0) & (mean < capacity))
    places = size - int(capacity[(mean >= capacity) & (mean > 0)].sum())
    if not len(free) or not places:
        return weights
    target, limit = mean[free], capacity[free]
    w = target / (limit - target)
    step, last = 1.0, np.inf
    for _ in range(_STEPS):
        expected = _expect_counts(w, limit, places)
        error = float(np.abs(expected - target).max())
        # where few values share few places, a whole step goes twice as far as it should, to and fro
        step, last = (step if error < _SHRINKS * last else 0.5), error
        w = w * (target / expected) ** step * ((limit - expected) / (limit - target)) ** step
        w = w / np.exp(np.log(w).mean())
        if error < _TOLERANCE:
            break
    weights[free] = w
    return weights


def _expect_counts(w: Floats, capacity: Ints, places: int) -> Floats:
    """E c_x under Π w^c/c!, c ≤ capacity, Σ c = places."""
    m = len(w)
    terms = np.zeros((m, places + 1))
    terms[:, 0] = 1.0
    for c in range(1, places + 1):
        terms[:, c] = np.where(c <= capacity, terms[:, c - 1] * w / c, 0.0)
    before = [np.eye(1, places + 1)[0]]
    after = [np.eye(1, places + 1)[0]]
    for x in range(m):
        before.append(_times(before[-1], terms[x]))
        after.append(_times(after[-1], terms[m - 1 - x]))
    expected = np.zeros(m)
    counts = np.arange(places + 1)
    for x in range(m):
        others = _times(before[x], after[m - 1 - x])
        law = terms[x] * others[::-1]
        expected[x] = (counts * law).sum() / law.sum()
    return expected


def _times(one: Floats, two: Floats) -> Floats:
    product = np.convolve(one, two)[: len(one)]
    return np.asarray(product / product.max())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FakeLaw:
    """Of the buckets of one size."""

    size: int
    n_fakes: int
    real: Floats
    """w of each value; infinite for one that fills its capacity in every bucket, 0 for an absent one."""
    fake: Floats
    """v of each value; 0 for values that are never fakes."""

    def symmetric(self, allowed: Bools) -> Floats:
        """Rows × (σ+1): e_0 … e_σ of v over the allowed values of each row."""
        return symmetric_polynomials(np.where(allowed, self.fake, 0.0), self.n_fakes)

    def inclusion(self, absent: Bools) -> Floats:
        """Buckets × values: how likely each of a bucket's absent values is among its fakes.

        >>> law = FakeLaw(size=2, n_fakes=2, real=np.ones(3), fake=np.array([1.0, 1.0, 2.0]))
        >>> law.inclusion(np.array([[True, True, True], [True, False, True]])).tolist()
        [[0.6, 0.6, 0.8], [1.0, 0.0, 1.0]]
        """
        weight = np.where(absent, self.fake, 0.0)
        whole = self.symmetric(absent)
        without = np.ones(weight.shape)  # e_k of all other values, for k from 0 to σ−1
        for k in range(1, self.n_fakes):
            without = whole[:, k, None] - weight * without
        return np.asarray(weight * without / np.maximum(whole[:, -1:], 1e-300))

    def draw(self, absent: Bools, stream: np.random.Generator) -> Ints:
        """Buckets × σ: distinct fakes among each bucket's absent values, a set with probability ∝ Π v."""
        step = max(1, _FLOATS_AT_ONCE // (absent.shape[1] * (self.n_fakes + 1)))
        starts = range(0, len(absent), step)
        drawn = [self._draw(np.where(absent[s : s + step], self.fake, 0.0), stream) for s in starts]
        return np.concatenate(drawn) if drawn else np.zeros((0, self.n_fakes), dtype=np.int64)

    def _draw(self, weight: Floats, stream: np.random.Generator) -> Ints:
        """Value after value: taken with the probability that a set of the size still needed has it."""
        n, m = weight.shape
        rest = np.zeros((m + 1, n, self.n_fakes + 1))  # e_k of the values from x on
        rest[m, :, 0] = 1.0
        for x in range(m - 1, -1, -1):
            rest[x] = rest[x + 1]
            rest[x, :, 1:] += weight[:, x, None] * rest[x + 1, :, :-1]
        drawn = np.zeros((n, self.n_fakes), dtype=np.int64)
        left, rows = np.full(n, self.n_fakes), np.arange(n)
        for x in range(m):
            included = weight[:, x] * rest[x + 1, rows, np.maximum(left - 1, 0)]
            chosen = (left > 0) & (stream.random(n) * rest[x, rows, left] < included)
            drawn[chosen, self.n_fakes - left[chosen]] = x
            left -= chosen
        return drawn

    def fake_probability(self, counts: Ints, known: Ints | None = None) -> Floats:
        """Buckets × values: how likely each published entry is a fake, given the bucket's published counts.

        Every set F of σ values that are published once is weighed by Π_{x∈F} v_x/w_x over e_σ(v outside the
        rest). Values that are known to be somebody's (counted in `known`) are no fakes.
        """
        single = (counts == 1) & (self.fake > 0) & np.isfinite(self.real)
        if known is not None:
            single &= known == 0
        result = np.zeros(counts.shape)
        if not self.n_fakes:
            return result
        if (single.sum(axis=1) < self.n_fakes).any():
            raise ReleaseCorrupt(f"a bucket lists fewer than {self.n_fakes} values that could be its fakes")
        for n_single in np.unique(single.sum(axis=1)):
            rows = np.flatnonzero(single.sum(axis=1) == n_single)
            candidates = np.argsort(~single[rows], axis=1, kind="stable")[:, :n_single]
            result[rows] = self._inclusion(counts[rows], candidates)
        return result

    def _inclusion(self, counts: Ints, candidates: Ints) -> Floats:
        sets = np.array(list(combinations(range(candidates.shape[1]), self.n_fakes)), dtype=np.int64)
        ratio = np.divide(self.fake, self.real, out=np.zeros_like(self.fake), where=self.real > 0)
        # a value that is never real is surely fake: a ratio beyond all others
        ratio = np.where((self.real == 0) & (self.fake > 0), 1e12, ratio)
        outside = self.symmetric((counts == 0) & (self.fake > 0))  # rows × (σ+1)
        result = np.zeros(counts.shape)
        step = max(1, _FLOATS_AT_ONCE // max(sets.size, 1))
        for start in range(0, len(counts), step):
            rows = slice(start, start + step)
            members = candidates[rows][:, sets]  # rows × sets × σ
            inside = symmetric_polynomials(self.fake[members].reshape(-1, self.n_fakes), self.n_fakes)
            inside = inside.reshape(*members.shape[:2], -1)
            normaliser = (inside * outside[rows, None, ::-1]).sum(axis=2)  # e_σ of the union
            weight = ratio[members].prod(axis=2) / np.maximum(normaliser, 1e-300)
            weight /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
            block = np.zeros((members.shape[0], counts.shape[1]))
            at = np.broadcast_to(np.arange(len(block))[:, None, None], members.shape)
            np.add.at(block, (at, members), np.broadcast_to(weight[:, :, None], members.shape))
            result[rows] = block
        return result

    def last_posterior(self, known: Ints, left: Ints) -> Floats:
        """Trials × (σ+1): how likely each value that is left over is the last person's.

        Args:
            known: trials × values, the counts of the people whose values are known.
            left: trials × (σ+1), the values that are left over, the person's among them.
        """
        is_certain = np.take_along_axis(known, left, axis=1) > 0
        odds = np.zeros(left.shape)
        for k in range(left.shape[1]):
            y = left[:, k]
            outside = (known == 0) & (self.fake > 0)
            outside[np.arange(len(y)), y] = False
            normaliser = self.symmetric(outside)[:, -1]
            with np.errstate(divide="ignore", invalid="ignore"):
                odds[:, k] = np.where(self.fake[y] > 0, self.real[y] / self.fake[y] / normaliser, np.inf)
        certain = is_certain | np.isinf(odds)
        odds = np.where(certain.any(axis=1, keepdims=True), certain.astype(np.float64), odds)
        return np.asarray(odds / np.maximum(odds.sum(axis=1, keepdims=True), 1e-300))


def symmetric_polynomials(weights: Floats, degree: int) -> Floats:
    """Rows × (degree+1): the elementary symmetric polynomials of each row.

    >>> symmetric_polynomials(np.array([[1.0, 2.0, 3.0]]), 2).tolist()
    [[1.0, 6.0, 11.0]]
    """
    result = np.zeros((len(weights), degree + 1))
    result[:, 0] = 1.0
    for x in range(weights.shape[1]):
        result[:, 1:] += weights[:, x, None] * result[:, :-1]
    return result


def last_trials(contents: Ints, fakes: Ints) -> tuple[Ints, Ints, Floats]:
    """One trial for each value of each bucket: the others' counts, what is left over, the share of people.

    The first of what is left over is the person's own value.
    """
    bucket, value = np.nonzero(contents)
    known = contents[bucket].copy()
    known[np.arange(len(bucket)), value] -= 1
    left = np.concatenate([value[:, None], fakes[bucket]], axis=1)
    return known, left, contents[bucket, value] / contents.sum(axis=1)[bucket]


def likeliest_is_first(posterior: Floats) -> Floats:
    """1 where the first value is the likeliest; a part of 1 where several are."""
    is_best = posterior >= posterior.max(axis=1, keepdims=True) * (1 - 1e-12)
    return np.asarray(is_best[:, 0] / is_best.sum(axis=1))


def last_success(law: FakeLaw, contents: Ints, fakes: Ints) -> tuple[float, float]:
    """The expected success of who looks at one bucket on its last person, and the surest he ever is.

    Args:
        law: what he knows.
        contents: buckets × values, the real counts.
        fakes: buckets × σ.
    """
    known, left, weight = last_trials(contents, fakes)
    best = law.last_posterior(known, left).max(axis=1)
    return float((best * weight).sum() / len(contents)), float(best.max())


def fit_to_counts(law: FakeLaw, contents: Ints, fakes: Ints) -> FakeLaw:
    """The law under which the buckets have as many fakes of each value as they really have.

    Args:
        law: the fakes were drawn by it.
        contents: buckets × values, the real counts.
        fakes: buckets × σ.
    """
    seen = np.bincount(fakes.ravel(), minlength=contents.shape[1])
    found = law
    for _ in range(_COUNTING_STEPS):
        expected = expect_fakes(found, contents == 0)
        ratio = np.divide(seen, expected, out=np.zeros_like(found.fake), where=expected > 0)
        found = replace(found, fake=found.fake * ratio)
    return found


def expect_fakes(law: FakeLaw, absent: np.ndarray) -> Floats:
    """How many fakes of each value buckets without these values have on average."""
    step = max(1, _CELLS_AT_ONCE // absent.shape[1])
    parts = (_expect(law, absent[start : start + step]) for start in range(0, len(absent), step))
    return np.asarray(sum(parts, np.zeros(absent.shape[1])))


def _expect(law: FakeLaw, absent: np.ndarray) -> Floats:
    """Pr[x is a fake] = v_x·e_{σ−1}(others)/e_σ(all), where e_k(others) = e_k(all) − v_x·e_{k−1}(others)."""
    weights = np.where(absent, law.fake, 0.0)
    polynomials = law.symmetric(absent)
    others = np.ones_like(weights)
    for k in range(1, law.n_fakes):
        others = np.maximum(polynomials[:, k, None] - weights * others, 0.0)
    return np.asarray((weights * others / np.maximum(polynomials[:, -1:], 1e-300)).sum(axis=0))


def counting_success(law: FakeLaw, contents: Ints, stream: np.random.Generator) -> tuple[float, float]:
    """How often this attacker is right about the last person, in simulated releases, and the surest he is."""
    n_repeats = min(_MOST_REPEATS, math.ceil(_LEAST_BUCKETS / len(contents)))
    right = largest = 0.0
    for _ in range(n_repeats):
        fakes = law.draw(contents == 0, stream)
        counted = fit_to_counts(law, contents, fakes)
        known, left, weight = last_trials(contents[:_ATTACKED], fakes[:_ATTACKED])
        posterior = counted.last_posterior(known, left)
        right += float((likeliest_is_first(posterior) * weight).sum() / weight.sum())
        largest = max(largest, float(posterior.max()))
    return right / n_repeats, largest
