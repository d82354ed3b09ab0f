"""Secrets that are numbers: every total from a score and its sums in the buckets, without a matrix of values.

Many different numbers (salaries, say) are too many for an effect each. Each number z has instead a few traits
φ(z): which of some bins of about as many people it is in, neighbouring bins having like effects, and the
number itself. A column's effect on z is β·φ(z). To first order around no effect the most likely effects are
known in closed form, and a total with score s and weights w (any function of the number) is

    Σ_g s̄_g·Σ_z c(g,z)·w_z + Cov(s, x)·β·φᵀΩw,    Ω = Σ_g diag(c) − c cᵀ/|g|:

what uniform matchings give, plus what the effects of the columns x add inside buckets. That is a linear
model of how likely a value is, fitted by least squares. The uniform matchings of a bucket of k people have
the variance Σ(s − s̄)²·Σ(w − w̄)²/(k − 1); of that the columns explain a part, which is taken off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Floats, Ints, Sparse, to_scipy
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.rows.effects import Basis, Features, Quasi, find_basis
from dalenius.mechanisms.rows.traits import OWN, neighbours, standard_units
from dalenius.question.targets import Estimates, Targets

_ONE = np.zeros(1, dtype=np.int64)
N_BINS = 32
RHO = 1e-3
"""The relative variance of what is no main effect."""
_BENT, _POWER = 250.0, 6
"""How many times larger that is for weights that have nothing to do with the number itself, if columns
explained all of the numbers' ranks, and how fast it grows with what they explain: where effects are strong,
how many are above a level cannot go on rising by main effects. Settled on synthetic salaries
(docs/coverage.md)."""
LARGER = ((1.0, 0.75), (6.0, 0.25))
"""How much larger effects may be than was learned, and how likely."""
_MOST_EXPLAINED = 0.9
_ROUNDS, _BELIEVED = 4, 2.0
"""How often single effects' variances are learned, and how many traits' worth those of their column count."""


def bins_of(numbers: Floats, counts: Floats) -> Ints:
    """The bin of each number: about as many people in each.

    >>> bins_of(np.array([7.5, 2.0, 9.0]), np.array([5.0, 5.0, 10.0])).tolist()
    [1, 0, 2]
    """
    order = np.argsort(numbers, kind="stable")
    place = np.empty(len(order))
    place[order] = np.cumsum(counts[order]) - counts[order] / 2
    return np.asarray(np.unique(np.floor(place / counts.sum() * N_BINS), return_inverse=True)[1]).ravel()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Traits:
    """φ of every value, never written down: with many values it would be the largest table of all."""

    bin_of: Ints
    root: Floats
    """Bins × bins: a root of how the bins' effects go together."""
    number: Floats
    """In standard units; 0: NULL."""

    @classmethod
    def of(cls, numbers: Floats, counts: Floats) -> Traits:
        """Of these numbers (NaN: NULL), of which there are so many."""
        known = np.isfinite(numbers)
        bins = bins_of(np.where(known, numbers, np.inf), counts)
        root = neighbours(np.bincount(bins, counts).astype(float), OWN[-1])
        return cls(bin_of=bins, root=root, number=standard_units(numbers, counts))

    def covariance(self, counts: Floats) -> Floats:
        """Traits × traits: Cov(φ) over people, of whom so many have each value."""
        n_bins, n_people = len(self.root), counts.sum()
        people = np.bincount(self.bin_of, counts, n_bins)
        sums = self.root.T @ np.bincount(self.bin_of, counts * self.number, n_bins)
        square = np.block(
            [
                [(self.root.T * people) @ self.root, sums[:, None]],
                [sums[None, :], np.array([[counts @ self.number**2]])],
            ]
        )
        mean = np.append(self.root.T @ people, counts @ self.number) / n_people
        return np.asarray(square / n_people - np.outer(mean, mean))

    def under(self, weights: Floats, times: Floats) -> Floats:
        """Terms × traits: Σ w·φ over the values, each so many times, for weights values × terms."""
        n_values = len(self.bin_of)
        own = sp.csc_array((times, self.bin_of, np.arange(n_values + 1)), shape=(len(self.root), n_values))
        return np.column_stack([np.asarray(own @ weights).T @ self.root, weights.T @ (times * self.number)])

    def inside(self, contents: Sparse) -> Floats:
        """Contents of buckets × traits: Σ φ over what they hold."""
        shape = (contents.shape[0], len(self.root))
        bins = Sparse.of(contents.rows, self.bin_of[contents.columns], contents.data, shape)
        return np.column_stack([bins @ self.root, contents @ self.number])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weighed:
    """Targets, and what is made of their weights alone."""

    targets: Targets
    across: Floats
    """Values × terms: the weights."""
    held: Floats
    """Contents of buckets × terms: Σ w over what they hold."""
    squares: Floats
    """The same of w²."""
    own: Floats
    """Terms × traits: Σ w·φ over all people."""
    mean: Floats
    variance: Floats
    """Of each term's weights over all people."""

    @classmethod
    def of(cls, buckets: Buckets, traits: Traits, targets: Targets) -> Weighed:
        """Of these targets."""
        contents, counts = to_scipy(buckets.composition), buckets.counts
        across = np.ascontiguousarray(targets.weights.T)
        squared = across**2
        mean = counts @ across / buckets.n_rows
        return cls(
            targets=targets,
            across=across,
            held=np.asarray(contents @ across),
            squares=np.asarray(contents @ squared),
            own=traits.under(across, counts),
            mean=mean,
            variance=counts @ squared / buckets.n_rows - mean**2,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Numbers:
    """The effects of the columns on a secret that is a number, and how uncertain they are."""

    traits: Traits
    features: Features
    covariance: Floats
    """Features × features."""
    basis: Basis
    place: Floats
    """The most likely effects, in the basis' coordinates."""
    held: Floats
    """Contents of buckets × traits: Σ φ over what they hold."""
    white: Floats
    strength: list[float] = field(default_factory=list)
    """Which part of the numbers' ranks the columns explain, once that was asked for."""
    name = "matching"
    assumption = (
        "a number depends on the published columns by a main effect of each, of a size that the release "
        "teaches; the interval is a posterior one, measured (docs/coverage.md)"
    )
    formula = "what uniform matchings inside the buckets give, plus what the effects of the columns add"

    @classmethod
    def of(
        cls, buckets: Buckets, columns: Sequence[Quasi], numbers: Floats, region_of_bucket: Ints | None
    ) -> Numbers:
        """Fit the effects to the sums of the columns in the buckets."""
        if region_of_bucket is None:
            region_of_bucket = np.zeros(len(buckets.size), dtype=np.int64)
        traits = Traits.of(numbers, buckets.counts)
        held = traits.inside(buckets.composition)
        features = Features.of(columns, region_of_bucket[buckets.row_bucket])
        in_bucket = held[buckets.type_of]
        by_region = np.zeros((len(features.sizes), held.shape[1]))
        np.add.at(by_region, region_of_bucket, in_bucket)
        told = (in_bucket / buckets.size[:, None]).T @ in_bucket
        known = told - (by_region / features.sizes[:, None]).T @ by_region
        surprise = _in_buckets(features, buckets, in_bucket) - features.means.T @ by_region
        basis, V = find_basis(features, known, surprise), features.covariance()
        for _ in range(_ROUNDS):
            basis = _with_outliers(basis, V, known, surprise)
        values, vectors = np.linalg.eigh(V)
        kept = 1e-8 * values.max() < values
        return cls(
            traits=traits,
            held=held,
            features=features,
            covariance=V,
            basis=basis,
            place=basis.gradient(surprise) / basis.precision,
            white=vectors[:, kept] / np.sqrt(values[kept]),
        )

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        weighed = Weighed.of(sums.buckets, self.traits, _merged(targets))
        left = 1 - self._explained(sums.buckets, weighed)
        rest_of = RHO * (1 + self._bent(sums.buckets, weighed))
        uniform_mean, match = _uniform(sums, weighed)
        added, effects, rest = self._spread(sums, weighed)
        return Estimates(
            mean=np.tile((uniform_mean + added)[:, None], len(LARGER)),
            variance=(left * match + rest_of * rest)[:, None] + effects,
            weight=np.tile([share for _, share in LARGER], (targets.n_targets, 1)),
            is_posterior=True,
            is_unbounded=True,
        )

    def _explained(self, buckets: Buckets, weighed: Weighed) -> Floats:
        """Of each target: the least part of its weights' variance that the effects explain."""
        least = np.full(weighed.targets.n_targets, _MOST_EXPLAINED)
        np.minimum.at(least, weighed.targets.target, self._share(buckets, weighed))
        return least

    def _share(self, buckets: Buckets, weighed: Weighed) -> Floats:
        """Of each of some terms: the part of its weights' variance that the effects explain."""
        one = np.ones((len(buckets.counts), 1))
        together = weighed.own / buckets.n_rows
        together -= np.outer(weighed.mean, self.traits.under(one, buckets.counts / buckets.n_rows))
        means = self.basis.features @ (self.place @ (together @ self.basis.values).T)  # features × terms
        told = np.einsum("ft,fg,gt->t", means, self.covariance, means, optimize=True)
        variance = weighed.variance
        return np.asarray(np.divide(told, variance, out=np.ones_like(told), where=variance > 0))

    def _strength(self, buckets: Buckets) -> float:
        """The part of the variance of the numbers' ranks that the effects explain."""
        counts, order = buckets.counts / buckets.n_rows, np.argsort(self.traits.number, kind="stable")
        rank = np.empty(len(order))
        rank[order] = np.cumsum(counts[order]) - counts[order] / 2
        target = Targets(n_targets=1, target=_ONE, score=_ONE, weights=rank[None])
        return float(np.clip(self._share(buckets, Weighed.of(buckets, self.traits, target))[0], 0.0, 1.0))

    def _bent(self, buckets: Buckets, weighed: Weighed) -> Floats:
        """By how much larger what is no main effect is of each target."""
        if not self.strength:
            self.strength.append(self._strength(buckets))
        counts, number = buckets.counts / buckets.n_rows, self.traits.number
        variance = weighed.variance * (number**2 @ counts)
        straight = np.divide(
            ((counts * number) @ weighed.across) ** 2,
            variance,
            out=np.ones_like(variance),
            where=variance > 0,
        )
        found = np.zeros(weighed.targets.n_targets)
        np.maximum.at(found, weighed.targets.target, 1 - straight)
        return _BENT * self.strength[0] ** _POWER * found

    def _moved(self, buckets: Buckets, weighed: Weighed) -> Floats:
        """Terms × traits: wᵀΩφ."""
        scale = (buckets.copies / buckets.type_size)[:, None]
        return np.asarray(weighed.own - weighed.held.T @ (scale * self.held))

    def _spread(self, sums: ScoreSums, weighed: Weighed) -> tuple[Floats, Floats, Floats]:
        """Of each target: what effects add, and variances by effects (for each of `LARGER`) and the rest."""
        targets = weighed.targets
        used, place = np.unique(targets.score, return_inverse=True)
        place = place.ravel()
        related = sums.with_features(self.features, used.tolist())
        with_features = np.stack(related) if related else np.zeros((0, len(self.white)))
        loads, plain = (with_features @ self.basis.features)[place], (with_features @ self.white)[place]
        moved = self._moved(sums.buckets, weighed)
        turned = moved @ self.basis.values
        told = self.basis.told
        added = targets.add_up(np.einsum("tf,fv,tv->t", loads, self.place, turned, optimize=True))
        parts = [times / (1 + times * told) for times, _ in LARGER]
        by_times = [((loads**2 @ part) * turned**2).sum(axis=1) for part in parts]
        effects = targets.add_up(np.stack(by_times, axis=1))
        free = np.maximum(sums.variance[targets.score] - (plain**2).sum(axis=1), 0.0)
        rest = targets.add_up(free * (moved**2).sum(axis=1))
        for first, second, i, j in _pairs(targets):
            both = sums.covariance(first, second) - float(plain[i[0]] @ plain[j[0]])
            cross = [((loads[i] * loads[j]) @ part * turned[i] * turned[j]).sum(axis=1) for part in parts]
            np.add.at(effects, targets.target[i], 2 * np.stack(cross, axis=1))
            np.add.at(rest, targets.target[i], 2 * both * (moved[i] * moved[j]).sum(axis=1))
        return added, np.maximum(effects, 0.0), np.maximum(rest, 0.0)


def _with_outliers(basis: Basis, V: Floats, told: Floats, surprise: Floats) -> Basis:
    """The same with a variance for each effect: of a column's values one may be far from all others.

    MacKay's rule (1992): what was found of an effect, by how much of it the release determines.
    """
    prior = (basis.features**2).sum(axis=1)
    used = prior > 0
    found = (basis.features @ (basis.gradient(surprise) / basis.precision)) ** 2
    left = basis.features**2 @ (1 / basis.precision)
    square = np.divide(found.sum(axis=1), prior, out=np.zeros_like(prior), where=used)
    certain = np.divide((prior[:, None] - left).sum(axis=1), prior, out=np.zeros_like(prior), where=used)
    root = np.sqrt((_BELIEVED + square) / (_BELIEVED + certain))[:, None] * basis.features
    m, U = np.linalg.eigh(root.T @ V @ root)
    known = np.maximum(np.einsum("fv,fg,gv->v", basis.values, told, basis.values), 0.0)
    precision = 1 + np.outer(np.maximum(m, 0.0), known)
    return Basis(features=root @ U, values=basis.values, precision=precision, n_rows=basis.n_rows)


def _in_buckets(features: Features, buckets: Buckets, held: Floats) -> Floats:
    """Features × traits: what uniform matchings give, from the columns' sums in each bucket."""
    n, n_buckets = buckets.n_rows, len(buckets.size)
    of_rows = sp.csr_array((np.ones(n), (buckets.row_bucket, np.arange(n))), shape=(n_buckets, n))
    return np.asarray((of_rows @ features.indicators).T @ (held / buckets.size[:, None]))


def _merged(targets: Targets) -> Targets:
    """Terms of one target that have the same score are one: AVG's sum and count cancel where they can."""
    key = targets.target * (int(targets.score.max()) + 1) + targets.score
    found, place = np.unique(key, return_inverse=True)
    if len(found) == len(key):
        return targets
    n_terms = len(key)
    weights = sp.csr_array((np.ones(n_terms), (place.ravel(), np.arange(n_terms)))) @ targets.weights
    first = np.searchsorted(np.sort(key, kind="stable"), found)
    order = np.argsort(key, kind="stable")[first]
    return Targets(
        n_targets=targets.n_targets,
        target=targets.target[order],
        score=targets.score[order],
        weights=np.asarray(weights),
    )


def _uniform(sums: ScoreSums, weighed: Weighed) -> tuple[Floats, Floats]:
    """Of each target: its mean and variance if every matching of a bucket is as likely as the next."""
    buckets, targets, held = sums.buckets, weighed.targets, weighed.held
    n_terms, n_types = len(targets.score), len(buckets.copies)
    less = np.maximum(buckets.size - 1, 1)
    scatter = np.maximum(weighed.squares - held**2 / buckets.type_size[:, None], 0.0)
    mean, variance = np.zeros(n_terms), np.zeros(n_terms)
    for score in np.unique(targets.score).tolist():
        terms = np.flatnonzero(targets.score == score)
        (where, own), products = sums.in_buckets(score), _products(sums, score, score)
        # buckets of a type hold the same: numbers are added up by type before they meet the terms
        mean[terms] = np.bincount(buckets.type_of[where], own / buckets.size[where], n_types) @ held[:, terms]
        variance[terms] = np.bincount(buckets.type_of, products / less, n_types) @ scatter[:, terms]
    both = targets.add_up(variance)
    for first, second, i, j in _pairs(targets):
        own = buckets.composition @ (weighed.across[:, i] * weighed.across[:, j])
        own -= held[:, i] * held[:, j] / buckets.type_size[:, None]
        by_type = np.bincount(buckets.type_of, _products(sums, first, second) / less, n_types)
        np.add.at(both, targets.target[i], 2 * by_type @ own)
    return targets.add_up(mean), np.maximum(both, 0.0)


def _pairs(targets: Targets) -> Iterator[tuple[int, int, Ints, Ints]]:
    """All pairs of terms of one target by their two scores, which groups by the secret share."""
    i, j = targets.pairs()
    scores = np.sort([targets.score[i], targets.score[j]], axis=0)
    found, place = np.unique(scores, axis=1, return_inverse=True)
    order, ends = np.argsort(place.ravel(), kind="stable"), np.cumsum(np.bincount(place.ravel()))
    for (first, second), end, n in zip(found.T.tolist(), ends, np.bincount(place.ravel()), strict=True):
        some = order[end - n : end]
        yield first, second, i[some], j[some]


def _products(sums: ScoreSums, first: int, second: int) -> Floats:
    """Of each bucket: Σ (s − s̄)(t − t̄) over its people."""
    found = np.zeros(len(sums.buckets.size))
    one, two = np.zeros_like(found), np.zeros_like(found)
    for array, (where, values) in (
        (found, sums.bucket_products(first, second)),
        (one, sums.in_buckets(first)),
        (two, sums.in_buckets(second)),
    ):
        array[where] = values
    return found - one * two / sums.buckets.size
