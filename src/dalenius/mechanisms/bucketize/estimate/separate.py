"""Shrinkage where values are too many for it: each question by its own total of Anatomy's, and no other.

`shrinkage` predicts a total from the buckets' sums of all values together, which takes the eigenvectors of a
matrix of values × values. Where a value is in few buckets of many people (`is_alone`), sums of buckets tell
so little of each that what they tell of the others hardly helps. There, and where values are too many for
anything else, a total with weights a (centred: Σ o·a = 0) is predicted
from x = Σ_g y_g·F_g alone, F_g the mean of a over the bucket's values. In the model of `shrinkage`, scores of
mean p_z ~ (p̄, ρ·s²·σ_z) and of variance (1 − ρ)·s² within a value, with A = Σ_g c cᵀ/|g|, in units of s²:

    Var x = (1−ρ)·aᵀAa + ρ·Σ_z σ_z·(Aa)_z²,     Cov(K, x) = (1−ρ)·aᵀAa + ρ·Σ_z o_z·a_z·σ_z·(Aa)_z,
    Var K = (1−ρ)·Σ o·a² + ρ·Σ σ·o²·a²,         K̂ = γ·x with γ = Cov(K, x)/Var x.

These are sums over the entries of sparse tables, alike for one question and for one about every value. The
likelihood of ρ is that of all buckets' sums (`evidence`). All else (the prior of ρ, ways of their own,
variances that differ between values) is as there.
How far both are apart where both can be had: docs/speed.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Ints, to_scipy
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.evidence import Evidence
from dalenius.mechanisms.bucketize.estimate.prior import (
    SCALE_OF_NUMBERS,
    ScatterPrior,
    fit_weights,
    grid_of_rho,
    log_density_of_numbers,
    relative_scale,
    simple_conditions,
)
from dalenius.mechanisms.bucketize.estimate.regression import ratio, score_covariances, value_variances
from dalenius.mechanisms.bucketize.estimate.shrinkage import OWN_WAYS, SIZES
from dalenius.question.targets import Estimates, Targets, different_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_ROWS_AT_ONCE = 500
_MOST_TOLD = 4.0
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Forms:
    """Sums over values and types of buckets, of different weights a, which are centred."""

    weights: csr_array
    """Weights × values, before they were centred: most are 0."""
    mean: Floats
    """Σ o·a/n: what was taken off."""
    seen: csr_array
    """Weights × values: Aa, before."""
    told: Floats
    """aᵀAa."""
    scattered: Floats
    """Σ σ·(Aa)²."""
    shared: Floats
    """Σ o·a·σ·(Aa)."""
    binomial: Floats
    """Σ o·a²."""
    random: Floats
    """Σ σ·o²·a²."""
    largest: Floats

    @classmethod
    def of(cls, buckets: Buckets, scatter: Floats, weights: Floats) -> _Forms:
        """Of weights × values."""
        from scipy.sparse import csr_array

        o, n, a = buckets.counts, buckets.n_rows, csr_array(weights)
        held = to_scipy(buckets.composition)
        in_types = (a @ held.T).tocsr()  # weights × types: Σ c·a
        seen = (in_types.multiply(buckets.copies / buckets.type_size).tocsr() @ held).tocsr()
        mean, square = np.asarray(a @ o) / n, o**2 * scatter
        both = a.multiply(seen)
        per_bucket = in_types.multiply(in_types)
        high, low = weights.max(axis=1), weights.min(axis=1)
        largest = np.maximum(high - mean, mean - low)
        some = largest > _ROUNDING * np.maximum(high, -low)  # all others weigh every value alike: they are 0
        return cls(
            weights=a,
            mean=mean,
            seen=seen,
            told=some * np.maximum(per_bucket @ (buckets.copies / buckets.type_size) - n * mean**2, 0.0),
            scattered=some
            * _centred(
                np.asarray(seen.multiply(seen) @ scatter),
                np.asarray(seen @ (scatter * o)),
                mean,
                square.sum(),
            ),
            shared=some
            * (both @ (o * scatter) - mean * (seen @ (o * scatter) + a @ square - mean * square.sum())),
            binomial=some * (a.multiply(a) @ o - n * mean**2),
            random=some * _centred(a.multiply(a) @ square, a @ square, mean, square.sum()),
            largest=np.where(some, largest, 1.0),
        )

    def own(self, buckets: Buckets, within: Floats) -> tuple[Floats, Floats, Floats]:
        """Weights × scores: what a total, its estimate and both vary by together, of variances within values.

        Σ v·o·a², Σ over buckets of F²·(what their v add up to), Σ v·a·(Aa).

        Args:
            buckets: of the release.
            within: scores × values: v.
        """
        a, v = self.weights, within.T
        mean, whole = self.mean[:, None], within @ buckets.counts
        loaded = v * buckets.counts[:, None]
        held = to_scipy(buckets.composition)
        in_types = (a @ held.T).multiply(1 / buckets.type_size).tocsr()
        added = (held @ v) * buckets.copies[:, None]
        total = a.multiply(a) @ loaded - 2 * mean * (a @ loaded) + mean**2 * whole
        estimated = in_types.multiply(in_types) @ added - 2 * mean * (in_types @ added) + mean**2 * whole
        both = a.multiply(self.seen) @ v - mean * (a @ loaded + self.seen @ v - mean * whole)
        return np.maximum(total, 0.0), np.maximum(estimated, 0.0), both

    def crossed(self, scatter: Floats, o: Floats, one: Ints, two: Ints) -> tuple[Floats, ...]:
        """The same sums of pairs of weights: a and b, aᵀAb, Σ σ·(Aa)(Ab), Σ o·a·σ·(Ab) and with b for a."""
        a, b = (self.weights[pair].toarray() - self.mean[pair, None] for pair in (one, two))
        Aa, Ab = (self.seen[pair].toarray() - self.mean[pair, None] * o for pair in (one, two))
        return (
            (a * b) @ o,
            (a * b) @ (scatter * o**2),
            (a * Ab).sum(axis=1),
            (Aa * Ab) @ scatter,
            (a * Ab) @ (o * scatter),
            (b * Aa) @ (o * scatter),
        )


def is_alone(buckets: Buckets) -> bool:
    """Whether what buckets tell of other values hardly helps to know one: Σ c²/|g| is small for most values.

    It is the variance that a unit of the values' scatter adds to the sums over a value's buckets, beside that
    of their people. Above, both ways of estimating differ by more than a small part of their errors.
    """
    held = buckets.composition
    weight = (buckets.copies / buckets.type_size)[held.rows]
    return float((held.data**2 * weight).sum()) <= _MOST_TOLD * held.n_columns


def _centred(square: Any, linear: Any, mean: Floats, whole: float) -> Floats:
    """Σ w·(x − mean·o)² from Σ w·x², Σ w·o·x and Σ w·o²."""
    return np.asarray(np.maximum(square - 2 * mean * linear + mean**2 * whole, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Asked:
    """What targets are about: scores, and which of the different weights."""

    targets: Targets
    place: Ints
    factor: Floats
    first: Ints
    """A term of each target."""
    is_one: Bools
    """Whether all its terms weigh the values alike: it is then about one score, a linear combination."""
    variance: Floats
    """Of that score."""
    scale: Floats
    """Its κ."""

    @classmethod
    def of(cls, sums: ScoreSums, targets: Targets, place: Ints, factor: Floats) -> _Asked:
        n_terms = np.bincount(targets.target, minlength=targets.n_targets)
        first = np.minimum(np.cumsum(n_terms) - n_terms, len(place) - 1)
        variance = targets.add_up(sums.variance[targets.score] * factor**2)
        one, two = targets.pairs()
        both = factor[one] * factor[two] * score_covariances(sums, targets, one, two)
        np.add.at(variance, targets.target[one], 2 * both)
        differ = targets.add_up((place != place[first][targets.target]).astype(np.float64))
        scale = np.where(n_terms > 1, SCALE_OF_NUMBERS, relative_scale(sums)[targets.score[first]])
        return cls(
            targets=targets,
            place=place,
            factor=factor,
            first=first,
            is_one=differ == 0,
            variance=np.maximum(variance, 0.0),
            scale=scale,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Separate:
    """A best linear prediction of each total from its own estimate, with the shrinkage integrated out."""

    buckets: Buckets
    evidence: Evidence
    prior: ScatterPrior
    rho: Floats
    """The grid of ρ, even in log ρ."""
    name = "shrinkage"
    assumption = (
        "the sensitive values' shares scatter around the overall share like random effects with heavy tails, "
        "each value's independently of the others; the interval is a posterior one (docs/speed.md)"
    )
    formula = "posterior mean of the realised total given Anatomy's, p ~ (p̄, ρ·s²·Σ), ρ integrated out"

    @classmethod
    def of(cls, buckets: Buckets, columns: Sequence[Codes], rho: Floats) -> Separate:
        """Learn how much values scatter from simple conditions on the columns."""
        sums, o = ScoreSums.of(buckets, simple_conditions(columns)), buckets.counts
        found = []
        for exponent in (0.0, 1.0):
            own = Evidence.of(buckets, (o.mean() / o) ** exponent)
            logs = own.log_likelihood(own.squares(own.surprise(sums)), sums.variance, grid_of_rho(sums))
            found.append((*fit_weights(logs), own))
        _, prior, evidence = max(found, key=lambda one: one[0])
        return cls(buckets=buckets, evidence=evidence, prior=prior, rho=rho)

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target: for each η (none first) a component for each ρ."""
        different, place, factor = different_weights(targets.weights)
        forms = _Forms.of(self.buckets, self.evidence.scatter, targets.weights[different])
        asked, n = _Asked.of(sums, targets, place, factor), self.buckets.n_rows
        told, scattered, shared = forms.told[:, None], forms.scattered[:, None], forms.shared[:, None]
        spread = (1 - self.rho) * told + self.rho * scattered  # of x: weights × grid
        gain = ((1 - self.rho) * told + self.rho * shared) / np.maximum(spread, 1e-300)
        used, score = np.unique(targets.score, return_inverse=True)
        known = (forms.mean * n)[place] * (sums.total / n)[targets.score]
        seen = (forms.weights @ sums.by_value[:, used])[place, score.ravel()] - known
        mean = targets.add_up(factor[:, None] * (known[:, None] + gain[place] * seen[:, None]))
        variance = self._variance(sums, asked, forms, gain)
        ways = self._own_ways(asked, forms, gain, spread)
        weight = self._weights(sums, asked)
        return Estimates(
            mean=np.tile(mean, (1, len(OWN_WAYS))),
            variance=(variance[:, None] + ways).reshape(len(mean), -1),
            weight=(OWN_WAYS[:, None] * weight[:, None]).reshape(len(mean), -1),
            is_posterior=True,
        )

    def _variance(self, sums: ScoreSums, asked: _Asked, forms: _Forms, gain: Floats) -> Floats:
        """Targets × grid: of what the prediction misses."""
        rho, targets, place, factor = self.rho, asked.targets, asked.place, asked.factor
        noise = forms.binomial[:, None] - (2 * gain - gain**2) * forms.told[:, None]
        effects = (
            forms.random[:, None] - 2 * gain * forms.shared[:, None] + gain**2 * forms.scattered[:, None]
        )
        noise, effects = np.maximum((1 - rho) * noise, 0.0), np.maximum(rho * effects, 0.0)
        scale = (sums.variance[targets.score] * factor**2)[:, None]
        alike = targets.add_up((noise + effects)[place] * scale)
        used, score = np.unique(targets.score, return_inverse=True)
        total, estimated, both = (
            (part[place, score.ravel()] * factor**2)[:, None]
            for part in forms.own(self.buckets, value_variances(sums, used))
        )
        own = np.maximum(total - 2 * gain[place] * both + gain[place] ** 2 * estimated, 0.0)
        fit = ratio(targets.add_up(own + effects[place] * scale), alike)
        one, two = targets.pairs()
        if len(one):
            shared = factor[one] * factor[two] * score_covariances(sums, targets, one, two)
            cross, differ = (noise + effects)[place[one]], np.flatnonzero(place[one] != place[two])
            cross[differ] = self._cross(forms, gain, place[one[differ]], place[two[differ]])
            np.add.at(alike, targets.target[one], 2 * cross * shared[:, None])
        return np.asarray(np.maximum(alike, 0.0) * fit)

    def _cross(self, forms: _Forms, gain: Floats, one: Ints, two: Ints) -> Floats:
        """Pairs of weights × grid: the covariance of what both predictions miss, per unit of scores'."""
        pairs, place = np.unique(np.stack([one, two]), axis=1, return_inverse=True)
        found, (a, b) = np.zeros((pairs.shape[1], len(self.rho))), pairs
        for begin in range(0, len(a), _ROWS_AT_ONCE):
            part = slice(begin, begin + _ROWS_AT_ONCE)
            sums = forms.crossed(self.evidence.scatter, self.buckets.counts, a[part], b[part])
            binomial, random, told, scattered, left, right = (each[:, None] for each in sums)
            g, h = gain[a[part]], gain[b[part]]
            noise = binomial - (g + h - g * h) * told
            effects = random - h * left - g * right + g * h * scattered
            found[part] = (1 - self.rho) * noise + self.rho * effects
        return found[place.ravel()]

    def _own_ways(self, asked: _Asked, forms: _Forms, gain: Floats, spread: Floats) -> Floats:
        """Targets × η × grid: what a way of their own adds to the variance (`shrinkage`)."""
        first, largest = asked.place[asked.first], forms.largest[:, None]
        missed = ((forms.binomial[:, None] - gain * forms.told[:, None]) / largest)[first]
        told = ((forms.told[:, None] / largest) ** 2 / np.maximum(spread, 1e-300))[first]
        eta = np.minimum(np.outer(asked.scale, SIZES), 1.0)[:, :, None]
        found = (missed**2 * asked.variance[:, None])[:, None] * eta / (1 + eta * told[:, None])
        return np.where(asked.is_one[:, None, None], found, 0.0)

    def _weights(self, sums: ScoreSums, asked: _Asked) -> Floats:
        """Targets × grid: the posterior weight of each ρ; of several scores the mean of their logarithms."""
        targets, evidence = asked.targets, self.evidence
        surprise = sums.keep("surprise", evidence, lambda: evidence.surprise(sums))
        squares = sums.keep("squares", evidence, lambda: evidence.squares(surprise))
        by_score = evidence.log_likelihood(squares, sums.variance, self.rho)
        by_score += self.prior.log_density(relative_scale(sums), self.rho)
        n_terms = np.bincount(targets.target, minlength=targets.n_targets)
        logs = targets.add_up(by_score[targets.score]) / np.maximum(n_terms, 1)[:, None]
        is_joined = asked.is_one & (n_terms > 1)
        if is_joined.any():
            forms = self._joined_forms(sums, surprise, asked)[is_joined]
            logs[is_joined] = evidence.add_logs(
                forms / np.where(asked.variance > 0, asked.variance, np.inf)[is_joined, None], self.rho
            )
            logs[is_joined] += log_density_of_numbers(self.rho)
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def _joined_forms(self, sums: ScoreSums, surprise: Floats, asked: _Asked) -> Floats:
        """Targets × grid: the quadratic form of the linear combination of each target's scores.

        From those of single scores, and of sums of two of them: groups by the sensitive value share these.
        """
        targets, factor = asked.targets, asked.factor
        size = np.maximum(np.sqrt((surprise**2).sum(axis=0)), 1e-300)
        unit = surprise / size
        evidence = self.evidence
        own = sums.keep("units", evidence, lambda: evidence.squares(unit))
        single = evidence.forms(own, self.rho)
        times = factor * size[targets.score]
        found = targets.add_up((times**2)[:, None] * single[targets.score])
        one, two = targets.pairs()
        pairs, place = np.unique(
            np.stack([targets.score[one], targets.score[two]]), axis=1, return_inverse=True
        )
        key = (evidence, pairs.tobytes())
        added = sums.keep("pairs", key, lambda: evidence.squares(unit[:, pairs[0]] + unit[:, pairs[1]]))
        both = evidence.forms(added, self.rho)
        crossed = both - single[pairs[0]] - single[pairs[1]]  # twice the product
        np.add.at(found, targets.target[one], (times[one] * times[two])[:, None] * crossed[place.ravel()])
        return np.maximum(found, 0.0)
