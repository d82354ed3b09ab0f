"""Estimating from buckets that were made inside regions.

Which record of a value takes which place is random within the value *and the region*, so each region is a
release of its own, with its own mean scores p_zr. One regression or shrinkage over all buckets would take the
differences between regions for differences between values; per region both are as right as for a whole table.

Shrinkage learns how much values differ from all regions together: p_zr scatters around the region's mean
with variance ρ_r·s_r², ρ_r = σ²·κ_r (`estimate_prior`), with one σ² for a question, integrated out. Values
differ much the same way in one region as in the next, so the regions' errors do not average out like
independent ones: they are taken as correlated by `ALIKE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.prior import ScatterPrior, relative_scale, simple_conditions
from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Regression
from dalenius.mechanisms.bucketize.estimate.shrinkage import RHO, Shrinkage
from dalenius.question.targets import Estimates, Score, Targets

ALIKE = 0.3
"""The correlation of two regions' errors: with it, intervals hold wherever it was tried (docs/regions.md)."""
_LOG_SCATTER = np.linspace(np.log(0.002), np.log(50.0), 40)
"""The grid of log σ²."""
_ROUNDS = 3
_LEARNED = 0.8
_FLAT = ScatterPrior(weights=(1.0,) * 25)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regions:
    """The buckets of each region, as if each were a release."""

    region_of_row: Ints
    place_of_row: Ints
    """The number of each row in its region."""
    buckets: tuple[Buckets, ...]
    values: tuple[Ints, ...]
    """Of each region, the values that occur in it."""

    @classmethod
    def of(cls, buckets: Buckets, region_of_bucket: Ints) -> Regions:
        """Take a release apart."""
        region = region_of_bucket[buckets.row_bucket]
        order = np.argsort(region, kind="stable")
        n_regions = int(region_of_bucket.max()) + 1
        starts = np.searchsorted(region[order], np.arange(n_regions))
        place = np.empty(len(region), dtype=np.int64)
        place[order] = np.arange(len(region)) - starts[region[order]]
        parts = [_part(buckets, np.flatnonzero(region_of_bucket == r)) for r in range(n_regions)]
        return cls(
            region_of_row=region,
            place_of_row=place,
            buckets=tuple(part for part, _ in parts),
            values=tuple(values for _, values in parts),
        )

    def sums(self, scores: Sequence[Score]) -> list[ScoreSums]:
        """The scores, summed in the buckets of each region."""
        own: list[list[Score]] = [[] for _ in self.buckets]
        for score in scores:
            region = self.region_of_row[score.rows]
            order = np.argsort(region, kind="stable")
            ends = np.searchsorted(region[order], np.arange(1, len(self.buckets)))
            for r, rows in enumerate(np.split(order, ends)):
                numbers = None if score.values is None else score.values[rows]
                own[r].append(Score(rows=self.place_of_row[score.rows[rows]], values=numbers))
        return [ScoreSums.of(part, found) for part, found in zip(self.buckets, own, strict=True)]

    def targets(self, targets: Targets, region: int, terms: Bools) -> Targets:
        """Some terms of the targets, for the values of a region."""
        return Targets(
            n_targets=targets.n_targets,
            target=targets.target[terms],
            score=targets.score[terms],
            weights=targets.weights[np.ix_(terms, self.values[region])],
        )


def _part(buckets: Buckets, own: Ints) -> tuple[Buckets, Ints]:
    """Some buckets and their rows, and the values that they hold."""
    contents = buckets.composition.take(buckets.type_of[own])
    values, value = np.unique(contents.columns, return_inverse=True)
    number = np.full(len(buckets.size), -1, dtype=np.int64)
    number[own] = np.arange(len(own))
    home = number[buckets.row_bucket]
    part = Buckets.of(home[home >= 0], contents.rows, value.ravel().astype(np.int64), contents.data)
    return part, values.astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionalRegression:
    """The sum of the regions' regressions."""

    regions: Regions
    parts: tuple[Regression, ...]
    name = Regression.name
    assumption = Regression.assumption
    formula = f"in each region {Regression.formula}"

    @classmethod
    def of(cls, regions: Regions) -> RegionalRegression:
        """Decompose every region."""
        parts = tuple(Regression(geometry=Geometry.of(part)) for part in regions.buckets)
        return cls(regions=regions, parts=parts)

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target; one that a region tells nothing about has an infinite variance."""
        mean, variance = np.zeros((targets.n_targets, 1)), np.zeros((targets.n_targets, 1))
        every = np.ones(len(targets.score), dtype=bool)
        for r, own in enumerate(self.regions.sums(sums.scores)):
            found = self.parts[r].estimate(own, self.regions.targets(targets, r, every))
            mean, variance = mean + found.mean, variance + found.variance
        return Estimates(mean=mean, variance=variance, weight=np.ones((targets.n_targets, 1)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionalShrinkage:
    """Shrinkage towards each region's own mean, by a degree that all regions tell together."""

    regions: Regions
    parts: tuple[Shrinkage, ...]
    log_prior: Floats
    """Of each σ² of the grid."""
    name = Shrinkage.name
    assumption = (
        "in every region the sensitive values' shares scatter around the region's share like random "
        f"effects, and the errors of two regions are correlated by {ALIKE}; the interval is a posterior one, "
        "its coverage was measured (docs/regions.md)"
    )
    formula = f"in each region {Shrinkage.formula}; one σ² = ρ/κ for all regions"

    @classmethod
    def of(cls, regions: Regions, columns: Sequence[Codes]) -> RegionalShrinkage:
        """Learn from simple conditions on the columns (their codes) how much values differ inside regions."""
        parts = tuple(Shrinkage(geometry=Geometry.of(part), prior=_FLAT) for part in regions.buckets)
        logs = np.zeros((1, len(_LOG_SCATTER)))
        conditions = simple_conditions(columns)
        if conditions:
            targets = Targets.of([[(i, np.zeros(1))] for i in range(len(conditions))])
            sums = regions.sums(conditions)
            logs = np.sum([_evidence(*pair, targets) for pair in zip(parts, sums, strict=True)], axis=0)
        weight = np.full(len(_LOG_SCATTER), 1 / len(_LOG_SCATTER))
        for _ in range(_ROUNDS if conditions else 0):
            weight = _normalise(logs + np.log(weight)).mean(axis=0)
        flat = (1 - _LEARNED) / len(_LOG_SCATTER)
        return cls(regions=regions, parts=parts, log_prior=np.log(_LEARNED * weight + flat))

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        shape = targets.n_targets, len(_LOG_SCATTER)
        mean, variance, deviation, logs = (np.zeros(shape) for _ in range(4))
        for r, own in enumerate(self.regions.sums(sums.scores)):
            part, counts = self.parts[r], own.buckets.counts
            share = own.total[targets.score] / own.buckets.n_rows
            mean += targets.add_up((targets.weights[:, self.regions.values[r]] @ counts) * share)[:, None]
            varied = self.regions.targets(targets, r, own.variance[targets.score] > 0)
            moments = part.moments(own, varied, _contrasts(part, own))
            at = _positions(own, varied)
            mean += _read_off(moments[0], at)
            spread = np.maximum(_read_off(moments[1], at), 0.0)
            variance += spread
            deviation += np.sqrt(spread)
            logs += _evidence(part, own, varied)
        together = (1 - ALIKE) * variance + ALIKE * deviation**2
        weight = _normalise(logs + self.log_prior)
        return Estimates(mean=mean, variance=together, weight=weight, is_posterior=True)


def _contrasts(part: Shrinkage, sums: ScoreSums) -> Floats:
    g = part.geometry
    return np.asarray(g.contrast @ (sums.by_value - np.outer(g.counts, sums.total / g.counts.sum())))


def _evidence(part: Shrinkage, sums: ScoreSums, targets: Targets) -> Floats:
    """Targets × grid: the log-likelihood of each σ², a mean over the target's terms; 0 where it has none."""
    logs = part.log_likelihood(_contrasts(part, sums), sums.variance)
    n_terms = np.bincount(targets.target, minlength=targets.n_targets)
    by_target = targets.add_up(logs[targets.score]) / np.maximum(n_terms, 1)[:, None]
    return _read_off(by_target, _positions(sums, targets))


def _positions(sums: ScoreSums, targets: Targets) -> Floats:
    """Targets × grid: where each σ² lies on the grid of ρ = σ²·κ, κ the mean of a target's terms."""
    scale = np.log(relative_scale(sums))[targets.score]
    n_terms = np.bincount(targets.target, minlength=targets.n_targets)
    log_rho = targets.add_up(scale) / np.maximum(n_terms, 1)
    step = np.log(RHO[1] / RHO[0])
    place = (_LOG_SCATTER[None, :] + log_rho[:, None] - np.log(RHO[0])) / step
    return np.asarray(np.clip(place, 0.0, len(RHO) - 1.0))


def _read_off(by_rho: Floats, place: Floats) -> Floats:
    """Between two points of the grid of ρ, by linear interpolation."""
    lower = np.minimum(place.astype(np.int64), len(RHO) - 2)
    rest, row = place - lower, np.arange(len(by_rho))[:, None]
    return np.asarray(by_rho[row, lower] * (1 - rest) + by_rho[row, lower + 1] * rest)


def _normalise(logs: Floats) -> Floats:
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
