"""Linear estimates from buckets: Anatomy's, and the regression of bucket sums on bucket contents.

Anatomy's is the papers' one: inside a bucket every matching is taken as equally likely. The regression is
unbiased whatever the data, and noisy.

Estimators weigh buckets as if the score varied alike within every sensitive value; their error bars must not.
An estimate Σ_z ℓ_z·(Anatomy's total of z) gives every bucket the factor b_g = Σ_z ℓ_z·c(g,z)/|g|. The records
of value z, of within-value variance v_z, are dealt without replacement, so the assignment adds exactly
v_z·(Σ_g c(g,z)·b_g² − (Σ_g c(g,z)·b_g)²/o_z), up to the factor o_z/(o_z−1).

`Geometry` is what bucket contents can tell about the sensitive values, decomposed once per release.

Write o_z for the counts of the sensitive values, p_z for the mean score of value z's records, c(g,z) for
the contents, t = O^(-1/2) Σ_g c(g,·) y_g/|g| for Anatomy's estimates in units of √o. The publisher's
assignment of records to places is uniformly random within each value, and without replacement. Then

    E t = S β,  Cov t = v (S − S²),   S = O^(-1/2) Σ_g c(g,·) c(g,·)ᵀ/|g| O^(-1/2),  β = O^(1/2) p,

where v is the within-value variance of the score (taken as one number). In S's eigenvectors the components
of t are uncorrelated, with mean λ·β and variance v·λ(1−λ): λ = 1 is known exactly (the total over all values
always is), λ = 0 not at all. Anatomy takes β to be t: it shrinks every direction by its λ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.question.targets import (
    Estimates,
    Score,
    Targets,
    as_targets_by_components,
    different_weights,
)

_NOTHING = 1e-9
"""Eigenvalues below this tell nothing; a bucket of a million people can still give one above it."""

_ROUNDING = 1e-12
"""An eigenvalue this close to 1 is 1."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spectrum:
    """The eigenvectors of S: what the contents tell, whatever the data."""

    counts: Floats
    eigenvalues: Floats
    """λ, of the directions that tell something."""
    vectors: Floats
    """Values × directions: U."""
    hidden: Floats
    """Values × directions that tell nothing: O^(1/2) U₀."""

    @classmethod
    def of(cls, buckets: Buckets) -> Spectrum:
        """Decompose a release."""
        o = buckets.counts
        root = np.sqrt(o)
        scaled = buckets.composition.scale_columns(1 / root)
        eigenvalues, U = np.linalg.eigh(scaled.gram(buckets.copies / buckets.type_size))
        told = eigenvalues > _NOTHING
        lam = np.where(eigenvalues > 1 - _ROUNDING, 1.0, eigenvalues)[told]
        return cls(counts=o, eigenvalues=lam, vectors=U[:, told], hidden=root[:, None] * U[:, ~told])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Geometry:
    """The eigenvectors of S, and those of the random-effects model in the space they span."""

    counts: Floats
    scatter: Floats
    """Values × values: how the shares of the values scatter together, per unit of τ²."""
    eigenvalues: Floats
    """λ, of the directions that tell something."""
    directions: Floats
    """Values × directions: O^(1/2) U."""
    hidden: Floats
    """Values × directions that tell nothing: O^(1/2) U₀."""
    spread: Floats
    """ω: how much the values' differences add to the variance of each contrast."""
    contrast: Floats
    """Contrasts × values: from Anatomy's estimates of the values' totals to uncorrelated contrasts."""
    binomial: Floats
    """Values × contrasts: their covariance with the totals, per unit of v."""
    random: Floats
    """Values × contrasts: the same per unit of τ²."""

    @classmethod
    def of(cls, buckets: Buckets) -> Geometry:
        """Decompose a release whose values scatter alike, and independently of each other."""
        spectrum = Spectrum.of(buckets)
        return cls.scattered(spectrum, np.eye(len(spectrum.counts)))

    @classmethod
    def scattered(cls, spectrum: Spectrum, scatter: Floats) -> Geometry:
        """The same with any scatter of the values (values × values)."""
        o, lam, U = spectrum.counts, spectrum.eigenvalues, spectrum.vectors
        root, half = np.sqrt(o), np.sqrt(lam)
        # w = Λ^(-1/2) Uᵀ t has covariance v·I + τ²·G: its eigenvectors serve every v and τ² at once.
        own = scatter.diagonal()
        is_diagonal = np.count_nonzero(scatter) == np.count_nonzero(own)
        inner = (U.T * (o * own)) @ U if is_diagonal else U.T @ (root[:, None] * scatter * root) @ U
        G = half[:, None] * inner * half[None, :]
        known = half * (U.T @ root)  # the direction of the overall total, which carries the mean
        spread, R = _orthogonal_eigenvectors(G, known)
        loaded = (U * half) @ R
        return cls(
            counts=o,
            scatter=scatter,
            eigenvalues=lam,
            directions=root[:, None] * U,
            hidden=spectrum.hidden,
            spread=np.maximum(spread, 0.0),
            contrast=R.T @ (U / half).T / root[None, :],
            binomial=root[:, None] * loaded,
            random=(o * own * root)[:, None] * loaded
            if is_diagonal
            else (o[:, None] * scatter * root) @ loaded,
        )

    def times_scatter(self, weights: Floats) -> Floats:
        """Weights (… × values) times the scatter, which is diagonal where values are many."""
        own = self.scatter.diagonal()
        if np.count_nonzero(self.scatter) == np.count_nonzero(own):
            return np.asarray(weights * own)
        return np.asarray(weights @ self.scatter)

    def centre(self, weights: Floats) -> Floats:
        """Weights (… × values) minus their mean over people: the total over all values is known."""
        mean = weights @ self.counts / self.counts.sum()
        return np.asarray(weights - np.asarray(mean)[..., None])


def _orthogonal_eigenvectors(G: Floats, known: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of G restricted to the complement of one direction.

    A reflection H = I − 2vvᵀ takes that direction to an axis, which is then left out: no product of matrices,
    of which each takes as long as several questions where there are a thousand values.
    """
    axis = int(np.argmax(np.abs(known)))
    v = known / np.linalg.norm(known)
    v[axis] += 1.0 if v[axis] >= 0 else -1.0
    v /= np.linalg.norm(v)
    turned = G @ v
    turned -= (v @ turned) * v
    others = np.delete(np.arange(len(v)), axis)
    inside = (G - 2 * np.outer(v, turned) - 2 * np.outer(turned, v))[np.ix_(others, others)]
    values, vectors = _eigenvectors(inside)
    found = np.zeros((len(v), len(others)))
    found[others] = vectors
    found -= 2 * np.outer(v, v[others] @ vectors)
    return values, found


def _eigenvectors(A: Floats) -> tuple[Floats, Floats]:
    """Of a symmetric matrix; one that is diagonal, as where values scatter by 1/o, has none to be sought."""
    own = A.diagonal()
    if np.abs(A - np.diag(own)).max(initial=0.0) > _ROUNDING * np.abs(own).max(initial=0.0):
        return np.linalg.eigh(A)
    order = np.argsort(own, kind="stable")
    return own[order], np.eye(len(own))[:, order]


_CELLS_AT_ONCE = 8_000_000
"""Of types of buckets × estimates: with fakes nearly every bucket is a type of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """Σ_g q_g·s_g/|g|, with the variance of a uniformly random matching."""

    name = "anatomy"
    assumption = (
        "within a bucket every matching of people with sensitive values is equally likely; where the "
        "sensitive values depend on the columns asked about, the estimate leans towards independence by more "
        "than its interval"
    )
    formula = "Σ_g y_g·s_g/|g|, variance Σ_g Σ(y−ȳ)²·Σ(s−s̄)²/(|g|−1)"

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        by_value = sums.by_value
        terms = np.einsum("tz,zt->t", targets.weights, by_value[:, targets.score])
        own = np.arange(len(targets.score))
        first, second = targets.pairs()
        variance = targets.add_up(self._covariance(sums, targets, own, own))
        np.add.at(variance, targets.target[first], 2 * self._covariance(sums, targets, first, second))
        return Estimates(
            mean=as_targets_by_components(targets.add_up(terms)),
            variance=as_targets_by_components(np.maximum(variance, 0.0)),
            weight=np.ones((targets.n_targets, 1)),
        )

    def _covariance(self, sums: ScoreSums, targets: Targets, first: Ints, second: Ints) -> Floats:
        """Of pairs of terms: doubly centred sums of products (SPEC: hypergeometric for counts)."""
        buckets = sums.buckets
        result = np.zeros(len(first))
        for k, (i, j) in enumerate(zip(first, second, strict=True)):
            a, b = targets.weights[i], targets.weights[j]
            held = buckets.composition @ np.stack([a * b, a, b], axis=1)  # types × 3
            values = held[:, 0] - held[:, 1] * held[:, 2] / buckets.type_size
            where, squares = sums.bucket_products(targets.score[i], targets.score[j])
            rows = np.zeros(len(buckets.size))
            rows[where] = squares
            rows -= _column(sums, targets.score[i]) * _column(sums, targets.score[j]) / buckets.size
            result[k] = (rows * values[buckets.type_of] / np.maximum(buckets.size - 1, 1)).sum()
        return result


def _column(sums: ScoreSums, score: int) -> Floats:
    dense = np.zeros(len(sums.buckets.size))
    where, found = sums.in_buckets(score)
    dense[where] = found
    return dense


def value_variances(sums: ScoreSums, scores: Ints) -> Floats:
    """Terms × values: the variance within each value of each term's score, by Anatomy's estimates.

    In a bucket Anatomy mixes values, so these lie between the truth and the variance over everybody.
    """
    used, place = np.unique(scores, return_inverse=True)
    counts = sums.buckets.counts[:, None]
    mean = sums.by_value[:, used] / counts
    square = mean.copy()
    numbers = np.flatnonzero(~sums.is_count[used])
    if len(numbers):
        squared = [_square(sums.scores[k]) for k in used[numbers]]
        square[:, numbers] = ScoreSums.of(sums.buckets, squared).by_value / counts
    return np.asarray(np.maximum(square - mean**2, 0.0).T[place.ravel()])


def _square(score: Score) -> Score:
    return Score(rows=score.rows, values=None if score.values is None else score.values**2)


def assignment_variance(buckets: Buckets, loads: Floats) -> Floats:
    """Estimates × values: what one unit of v_z adds to the variance of estimates with these ℓ_z."""
    held = buckets.composition
    weighted = held.transpose().scale_columns(buckets.copies)
    step = max(1, _CELLS_AT_ONCE // len(buckets.copies))
    parts = [np.zeros((0, len(buckets.counts)))]
    for start in range(0, len(loads), step):
        factors = held @ loads[start : start + step].T / buckets.type_size[:, None]
        first, second = weighted @ factors, weighted @ factors**2
        variance = second - first**2 / buckets.counts[:, None]
        # what is known exactly leaves nothing but the rounding of a difference
        parts.append(np.where(variance < 1e-12 * second, 0.0, variance).T)
    return np.concatenate(parts)


def ratio(own: Floats, alike: Floats) -> Floats:
    """By how much variances differ from those of values that all vary alike; 1 where both are 0."""
    return np.asarray(np.divide(own, alike, out=np.ones_like(alike), where=alike > 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regression:
    """Generalized least squares, β = t/λ in every direction that the release tells anything about."""

    geometry: Geometry
    name = "regression"
    assumption = (
        "none about the data for the estimate, which uses only the publisher's random assignment; the "
        "interval takes the shares within each value from Anatomy's estimates"
    )
    formula = "O^½ U Λ⁻¹ Uᵀ O^-½ · Anatomy's totals by value, variance from the random assignment"

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target; one that the release tells nothing about has an infinite variance."""
        g = self.geometry
        different, place, factor = different_weights(targets.weights)
        directed = targets.weights[different] @ g.directions  # different weights × directions
        t = g.directions.T @ (sums.by_value / g.counts[:, None])  # directions × scores
        terms = factor * ((directed / g.eigenvalues)[place] * t.T[targets.score]).sum(axis=1)
        noise = directed * np.sqrt((1 - g.eigenvalues) / g.eigenvalues)
        alike = targets.add_up(sums.variance[targets.score] * factor**2 * (noise**2).sum(axis=1)[place])
        loads = (directed / g.eigenvalues) @ g.directions.T / g.counts
        by_value = assignment_variance(sums.buckets, loads)[place]
        within = value_variances(sums, targets.score)
        own = targets.add_up(factor**2 * (within * by_value).sum(axis=1))
        variance = alike.copy()
        first, second = targets.pairs()
        cross = factor[first] * factor[second] * (noise[place[first]] * noise[place[second]]).sum(axis=1)
        cross *= score_covariances(sums, targets, first, second)
        np.add.at(variance, targets.target[first], 2 * cross)
        hidden = np.abs(targets.weights[different] @ g.hidden).sum(axis=1)[place]
        unknown = targets.add_up(np.abs(factor) * hidden)
        variance = variance * ratio(own, alike)
        variance = np.where(unknown > 1e-6 * np.sqrt(g.counts.sum()), np.inf, np.maximum(variance, 0.0))
        return Estimates(
            mean=as_targets_by_components(targets.add_up(terms)),
            variance=as_targets_by_components(variance),
            weight=np.ones((targets.n_targets, 1)),
        )

    def estimate_values(self, sums: ScoreSums) -> tuple[Floats, Floats]:
        """Scores × values: every value's total of every score, and its variance (infinite: nothing is told).

        What `estimate` gives for each value alone, without a target for each pair of score and value.
        """
        g = self.geometry
        loads = g.directions / g.eigenvalues
        t = g.directions.T @ (sums.by_value / g.counts[:, None])
        by_value = assignment_variance(sums.buckets, loads @ g.directions.T / g.counts)
        every_score = np.arange(sums.by_value.shape[1])
        variance = value_variances(sums, every_score) @ by_value.T
        unknown = np.abs(g.hidden).sum(axis=1) > 1e-6 * np.sqrt(g.counts.sum())
        return np.asarray((loads @ t).T), np.where(unknown, np.inf, np.maximum(variance, 0.0))


def score_covariances(sums: ScoreSums, targets: Targets, first: Ints, second: Ints) -> Floats:
    """The covariance over rows of the scores of pairs of terms."""
    pairs = zip(targets.score[first], targets.score[second], strict=True)
    return np.array([sums.covariance(int(i), int(j)) for i, j in pairs])
