"""Shrinkage: regression and Anatomy joined by how much the sensitive values seem to differ.

The values' mean scores p_z scatter around the overall mean with variance τ² = ρ·s², s² the variance of the
score; within a value its variance is v = (1−ρ)·s². ρ = 0 gives Anatomy's estimate, ρ → 1 the regression. ρ is
not known, and is integrated out: every ρ of a grid gives a best linear prediction of the *realised* totals
(not of o_z·p_z) with its own posterior variance, and is weighted by its marginal likelihood and prior. The
likelihood is tempered: values differ in few independent ways (`prior.evidence_weight`). The values asked
about may besides go a way of their own (`own_way_variance`). Where the regression's interval is not much
wider than what all this gives, the interval spans both (`targets.spanning`).

Heavier tails for what is asked about. That all values scatter alike is wrong where most hardly differ and a
few differ wholly (a disease that only women have), and a release tells little about a rare value. So the
values of a question may, beside the scatter that all share, differ from the rest by a number δ ~ N(0, η·s²)
of their own, in the direction u of the question's weights a. The contrasts, of covariance V = s²·diag((1−ρ) +
ρ·ω), have mean δ·h, and a prediction with factors c misses δ·(Σ a·u·o − c·h) of the total. What the contrasts
leave of δ's variance, η·s²/(1 + η·s²·hᵀV⁻¹h), adds to the error.

What they say about δ itself is not used: large contrasts of common values would be taken for the asked
values' own way, and were when tried (99 % intervals then held 0.78 to 0.90 on synthetic tables).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.prior import (
    SCALE_OF_NUMBERS,
    ScatterPrior,
    evidence_weight,
    log_density_of_numbers,
    relative_scale,
)
from dalenius.mechanisms.bucketize.estimate.regression import (
    Geometry,
    Regression,
    assignment_variance,
    ratio,
    score_covariances,
    value_variances,
)
from dalenius.question.targets import Estimates, Targets, different_weights

SIZES = (0.0, 1.0, 8.0)
"""η/κ, as variances of log-odds: no way of their own, an ordinary one, and a far one."""
OWN_WAYS = np.array([0.6, 0.25, 0.15])
"""How likely each is. Settled on synthetic tables, among them `dalenius demo`'s: docs/coverage.md."""
RHO = np.exp(np.linspace(np.log(2e-5), np.log(0.9), 32))
_CELLS_AT_ONCE = 4_000_000
"""Targets × grid of ρ × kinds of buckets that are in memory together."""
_ROUNDING = 1e-11


def own_way_variance(
    geometry: Geometry,
    weights: Floats,
    place: Ints,
    variance: Floats,
    scale: Floats,
    by_rho: Iterable[tuple[float, Floats]],
) -> Floats:
    """Targets × η × ρ: what a way of their own adds to the variance.

    Args:
        geometry: of the release.
        weights: different weights × values, centred.
        place: which of these weights each target has.
        variance: s² of each target's score.
        scale: its κ.
        by_rho: each ρ, with the factors of the best prediction (different weights × contrasts).
    """
    largest = np.maximum(np.abs(weights).max(axis=1), 1e-300)
    h = (weights @ geometry.binomial) / largest[:, None]
    whole = (weights**2 @ geometry.counts) / largest
    eta = np.minimum(np.outer(scale, SIZES), 1.0)
    parts = []
    for rho, factors in by_rho:
        told = (h**2 / ((1 - rho) + rho * geometry.spread)).sum(axis=1)[place]
        missed = (whole - (factors * h).sum(axis=1))[place]
        parts.append((missed**2 * variance)[:, None] * eta / (1 + eta * told[:, None]))
    return np.stack(parts, axis=2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Joint:
    """The score that each target is about, where it is one (or a linear combination, a number)."""

    is_one: Bools
    is_number: Bools
    weights: Floats
    """Targets × values, centred."""
    z: Floats
    """Targets × contrasts."""
    variance: Floats
    scale: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shrinkage:
    """A best linear prediction with the degree of shrinkage integrated out."""

    geometry: Geometry
    prior: ScatterPrior
    rho: Floats = field(default_factory=lambda: RHO)
    """The grid of ρ, even in log ρ."""
    name = "shrinkage"
    assumption = (
        "the sensitive values' shares scatter around the overall share like random effects with heavy tails, "
        "and together as they do in the release's own columns; the interval is a posterior one, measured "
        "(docs/coverage.md), and spans the regression's, which needs no assumption, where that is at most "
        "twice as wide"
    )
    formula = "posterior mean of the realised total, p ~ (p̄, ρ·s²·Σ), ρ integrated out by marginal likelihood"

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target: for each η (none first) a component for each ρ."""
        g = self.geometry
        share = sums.total / g.counts.sum()
        surprise = sums.by_value - np.outer(g.counts, share)
        z = g.contrast @ surprise  # contrasts × scores
        base = targets.add_up((targets.weights @ g.counts) * share[targets.score])
        mean, variance = self.moments(sums, targets, z)
        joint = self._joint_scores(sums, targets, z)
        weight = self._weights(sums, targets, joint, z)
        different, place, factor = different_weights(joint.weights)
        by_rho = zip(self.rho, self._coefficients(joint.weights[different]), strict=True)
        size = joint.variance * factor**2
        own = own_way_variance(g, joint.weights[different], place, size, joint.scale, by_rho)
        own = np.where(joint.is_one[:, None, None], own, 0.0)
        return Estimates(
            mean=np.tile(base[:, None] + mean, (1, len(OWN_WAYS))),
            variance=(variance[:, None, :] + own).reshape(len(mean), -1),
            weight=(OWN_WAYS[:, None] * weight[:, None, :]).reshape(len(mean), -1),
            unbiased=Regression(geometry=g).estimate(sums, targets),
            is_posterior=True,
        )

    def log_likelihood(self, z: Floats, scale: Floats) -> Floats:
        """Scores × grid: of contrasts (contrasts × scores) of scores with these variances, by ρ."""
        relative = (z**2 / np.maximum(scale, 1e-300)).T
        rho = self.rho[:, None]
        spread = (1 - rho) + rho * self.geometry.spread  # grid × contrasts
        logs = -0.5 * (np.log(spread).sum(axis=1)[None, :] + relative @ (1 / spread).T)
        return np.asarray(evidence_weight(self.geometry) * logs)

    def _joint_scores(self, sums: ScoreSums, targets: Targets, z: Floats) -> _Joint:
        """Targets whose terms weigh the values alike are about one score, a linear combination."""
        n_terms = np.bincount(targets.target, minlength=targets.n_targets)
        first = np.minimum(np.cumsum(n_terms) - n_terms, len(targets.score) - 1)
        score = targets.score[first]
        found = _Joint(
            is_one=n_terms == 1,
            is_number=n_terms > 1,
            weights=self.geometry.centre(targets.weights[first]),
            z=z.T[score],
            variance=sums.variance[score],
            scale=np.where(n_terms > 1, SCALE_OF_NUMBERS, relative_scale(sums)[score]),
        )
        for target in np.flatnonzero(n_terms > 1):
            terms = np.arange(first[target], first[target] + n_terms[target])
            factors = _common_factors(targets.weights[terms])
            if factors is not None:
                scores = targets.score[terms]
                covariance = np.array([[sums.covariance(int(i), int(j)) for j in scores] for i in scores])
                found.is_one[target] = True
                found.z[target] = z[:, scores] @ factors
                found.variance[target] = max(float(factors @ covariance @ factors), 0.0)
        return found

    def _weights(self, sums: ScoreSums, targets: Targets, joint: _Joint, z: Floats) -> Floats:
        """Targets × grid: the posterior weight of each ρ."""
        prior = self.prior.log_density(joint.scale, self.rho)
        prior = np.where(joint.is_number[:, None], log_density_of_numbers(self.rho), prior)
        logs = self.log_likelihood(joint.z.T, joint.variance) + prior
        if not joint.is_one.all():  # the mean over the scores of a target
            by_score = self.log_likelihood(z, sums.variance)
            by_score += self.prior.log_density(relative_scale(sums), self.rho)
            n_terms = np.bincount(targets.target, minlength=targets.n_targets)
            mean = targets.add_up(by_score[targets.score]) / np.maximum(n_terms, 1)[:, None]
            logs = np.where(joint.is_one[:, None], logs, mean)
        weight = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    def moments(self, sums: ScoreSums, targets: Targets, z: Floats) -> tuple[Floats, Floats]:
        """Targets × grid: posterior mean (of what differs from the overall share) and variance."""
        mean = np.zeros((len(targets.score), len(self.rho)))
        alike, own = np.zeros_like(mean), np.zeros_like(mean)
        within = value_variances(sums, targets.score)
        step = max(1, _CELLS_AT_ONCE // (len(self.rho) * len(sums.buckets.copies)))
        for start in range(0, len(targets.score), step):
            part = slice(start, start + step)
            different, place, factor = different_weights(targets.weights[part])
            centred = self.geometry.centre(targets.weights[part][different])
            scores, factors = targets.score[part], np.stack([*self._coefficients(centred)])
            mean[part] = np.einsum("gtc,tc->tg", factors[:, place], z.T[scores] * factor[:, None])
            scale = (sums.variance[scores] * factor**2)[:, None]
            alike[part] = self._form(centred, centred)[place] * scale
            noise, scattered = self._own_variance(sums.buckets, centred, factors)
            own[part] = np.einsum("gtz,tz->tg", noise[:, place], within[part] * factor[:, None] ** 2)
            own[part] += scattered[place] * scale * self.rho
        variance = targets.add_up(alike)
        first, second = targets.pairs()
        if len(first):
            a, b = self.geometry.centre(targets.weights[first]), self.geometry.centre(targets.weights[second])
            cross = self._form(a, b) * score_covariances(sums, targets, first, second)[:, None]
            np.add.at(variance, targets.target[first], 2 * cross)
        fit = ratio(targets.add_up(own), targets.add_up(alike))
        return targets.add_up(mean), np.maximum(variance, 0.0) * fit

    def _own_variance(self, buckets: Buckets, weights: Floats, factors: Floats) -> tuple[Floats, Floats]:
        """What makes up the mean square error of the prediction if value z has the within-value variance v_z.

        Grid × weights × values: what one unit of v_z adds; weights × grid: what one unit of τ² does.

        A prediction with factors ℓ_z misses the total by Σ d_z·K_z plus the noise of the assignment, where
        d = a − O⁻¹ M ℓ is what it leaves of the weights a, and Cov K = τ²·O Σ O + diag(o_z·v_z).
        """
        g = self.geometry
        shape = (len(self.rho), len(weights), len(g.counts))
        flat = factors.reshape(len(self.rho) * len(weights), -1 if factors.size else 0)
        noise = assignment_variance(buckets, flat @ g.contrast).reshape(shape)
        seen = (flat @ g.binomial.T / g.counts).reshape(shape)  # M · contrastᵀ is `binomial`
        left = g.centre(weights[None] - seen)  # grid × weights × values
        missed = left * g.counts
        scattered = np.einsum("gtz,gtz->tg", g.times_scatter(missed), missed)
        return np.asarray(noise + left * missed), np.asarray(scattered)

    def _coefficients(self, weights: Floats) -> Iterator[Floats]:
        """For each ρ, terms × contrasts: the factors of the best prediction."""
        g = self.geometry
        binomial, random = weights @ g.binomial, weights @ g.random
        for r in self.rho:
            yield ((1 - r) * binomial + r * random) / ((1 - r) + r * g.spread)

    def _form(self, a: Floats, b: Floats) -> Floats:
        """Pairs × grid: the posterior covariance of the totals with weights a and b, per unit of s²."""
        g = self.geometry
        a0, a1 = a @ g.binomial, a @ g.random
        b0, b1 = (a0, a1) if b is a else (b @ g.binomial, b @ g.random)
        prior0 = (a * b) @ g.counts
        prior1 = (g.times_scatter(a * g.counts) * (b * g.counts)).sum(axis=1)
        columns = []
        for r in self.rho:
            told = (((1 - r) * a0 + r * a1) * ((1 - r) * b0 + r * b1) / ((1 - r) + r * g.spread)).sum(axis=1)
            prior = (1 - r) * prior0 + r * prior1
            # what is known exactly leaves nothing but the rounding of a difference
            columns.append(np.where(np.abs(prior - told) < _ROUNDING * np.abs(prior), 0.0, prior - told))
        return np.stack(columns, axis=1)


def _common_factors(weights: Floats) -> Floats | None:
    """Factors c with weights_i = c_i · weights_0, if there are such."""
    size = weights[0] @ weights[0]
    if size == 0:
        return None
    factors = weights @ weights[0] / size
    same = np.allclose(weights, factors[:, None] * weights[0], rtol=1e-9, atol=1e-12 * np.abs(weights).max())
    return factors if same else None
