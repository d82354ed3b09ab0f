"""A model of the sensitive value given all quasi columns together, fitted to buckets.

p(z | x) ∝ f_z·exp(Σ_j β_j(x_j, z)): a main effect of each column. The effects of a column are normal with a
variance of its own, and in part smooth along a column of numbers. These variances are learned from the
release (variance components, by expectation–maximization on the first-order statistics). The effects are
then the most likely ones given everything that was published: the log-likelihood of a bucket is that of its
permanent, in the approximation of `matching`.

Around β = 0 the log-likelihood is quadratic, with the information I = Σ_g c cᵀ/|g| − o oᵀ/n about values
times the covariance V of the columns. Its eigenvectors give the variances, steps of about the right
length, and how uncertain the effects are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Codes, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.matching import Places

MOST_CODES = 48
"""Different values of a column that have an effect of their own; rarer ones have one together."""
_SMOOTH = 0.3
"""How far along the people of a column, sorted by it, effects are alike."""
_ROUNDS = 30
_USUAL, _BELIEVED = 0.1, 3.0
"""The variance of log-odds that is expected of a column, and how many effects' worth that is believed."""
_NOTHING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Quasi:
    """A published column: codes, which ascend with the cells where these are numbers."""

    codes: Codes
    is_number: bool = False

    def merged(self) -> Quasi:
        """With at most `MOST_CODES` codes: ranges of numbers, or the commonest values and the rest."""
        counts = np.bincount(self.codes)
        if len(counts) <= MOST_CODES:
            return self
        if self.is_number:
            place = (np.cumsum(counts) - counts / 2) / counts.sum()
            merged = np.unique(np.floor(place * MOST_CODES), return_inverse=True)[1].ravel()
        else:
            merged = np.full(len(counts), MOST_CODES - 1)
            merged[np.argsort(-counts, kind="stable")[: MOST_CODES - 1]] = np.arange(MOST_CODES - 1)
        return Quasi(codes=merged[self.codes], is_number=self.is_number)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """The columns as indicators of their codes, centred within regions."""

    indicators: sp.csr_array
    """Rows × features."""
    columns: tuple[Quasi, ...]
    starts: Ints
    region_of_row: Ints
    means: Floats
    """Regions × features."""
    sizes: Floats
    """How many rows each region has."""

    @classmethod
    def of(cls, columns: Sequence[Quasi], region_of_row: Ints) -> Features:
        """Merge and list the columns' codes."""
        merged = tuple(column.merged() for column in columns)
        starts = np.cumsum([0, *(int(column.codes.max()) + 1 for column in merged)])
        n, width = len(region_of_row), len(merged)
        places = np.stack(
            [c.codes.astype(np.int64) + s for c, s in zip(merged, starts, strict=False)], axis=1
        )
        indicators = sp.csr_array(
            (np.ones(n * width), places.ravel(), np.arange(n + 1) * width), shape=(n, int(starts[-1]))
        )
        sizes = np.bincount(region_of_row).astype(np.float64)
        sums = sp.csr_array((np.ones(n), (region_of_row, np.arange(n)))) @ indicators
        return cls(
            indicators=indicators,
            columns=merged,
            starts=starts,
            region_of_row=region_of_row,
            means=sums.toarray() / sizes[:, None],
            sizes=sizes,
        )

    def covariance(self) -> Floats:
        """Features × features, within regions."""
        n = len(self.region_of_row)
        square = (self.indicators.T @ self.indicators).toarray() / n
        return np.asarray(square - (self.means * (self.sizes / n)[:, None]).T @ self.means)

    def with_score(self, rows: Codes, values: Floats | None) -> Floats:
        """The covariance of each feature with a score."""
        n, width = len(self.region_of_row), int(self.starts[-1])
        weights = None if values is None else np.repeat(values, len(self.columns))
        listed = self.indicators.indices.reshape(n, -1)[rows].ravel()
        sums = np.bincount(listed, weights, width)
        shares = np.bincount(self.region_of_row[rows], values, len(self.sizes)) / n
        return np.asarray(sums / n - shares @ self.means)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contents:
    """What the contents of the buckets tell about effects, to first order around none."""

    known: Floats
    """Values × values: I."""
    hidden: Floats
    """Values × values: Ω = Σ_g diag(c) − c cᵀ/|g|, how matchings of a bucket vary."""
    log_share: Floats
    """Regions × values: log f_z."""

    @classmethod
    def of(cls, buckets: Buckets, region_of_bucket: Ints, sizes: Floats) -> Contents:
        """Of a release whose regions have these sizes."""
        held = buckets.composition
        square = held.gram(buckets.copies / buckets.type_size)
        counts = _by_region(buckets, region_of_bucket)
        with np.errstate(divide="ignore"):
            log_share = np.log(counts / sizes[:, None])
        return cls(
            known=square - (counts / sizes[:, None]).T @ counts,
            hidden=np.diag(buckets.counts) - square,
            log_share=np.maximum(log_share, -1e3),
        )


def _by_region(buckets: Buckets, region_of_bucket: Ints) -> Floats:
    """Regions × values: how often each occurs."""
    held, n_regions = buckets.composition.take(buckets.type_of), int(region_of_bucket.max()) + 1
    place = region_of_bucket[held.rows] * held.n_columns + held.columns
    counts = np.bincount(place, held.data, n_regions * held.n_columns)
    return np.asarray(counts.reshape(n_regions, held.n_columns), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Basis:
    """Coordinates in which effects are independent and of variance 1, before and (to first order) after."""

    features: Floats
    """Features × directions: effects of a unit in each direction."""
    values: Floats
    """Values × directions, orthogonal."""
    precision: Floats
    """Directions of features × of values: 1 + what the contents tell."""

    n_rows: int

    def effects(self, place: Floats) -> Floats:
        """Features × values, from coordinates."""
        return np.asarray(self.features @ place @ self.values.T)

    def gradient(self, of_effects: Floats) -> Floats:
        """By coordinates, from that by effects."""
        return np.asarray(self.features.T @ of_effects @ self.values)


def find_basis(features: Features, told: Floats, surprise: Floats) -> Basis:
    """Learn the effects' variances from how Anatomy's estimates (features × values) differ from no effect.

    `told` is I: values × values, or traits × traits where values have traits.
    """
    V = features.covariance()
    known, E = np.linalg.eigh(told)
    known = np.maximum(known, 0.0)
    some = known > _NOTHING * max(float(known.max()), 1.0)
    kinds = _kinds(features)
    sizes = _variance_components(V, kinds, known[some], (surprise @ E[:, some] / np.sqrt(known[some])).T)
    root = np.zeros_like(V)
    for size, ((begin, end), kernel) in zip(sizes, kinds, strict=True):
        root[begin:end, begin:end] += size * kernel
    for begin, end in {ends for ends, _ in kinds}:
        root[begin:end, begin:end] = _root(root[begin:end, begin:end])
    m, U = np.linalg.eigh(root.T @ V @ root)
    m = np.maximum(m, 0.0)
    return Basis(
        features=root @ U,
        values=E,
        precision=1 + np.outer(m, known),
        n_rows=len(features.region_of_row),
    )


def _root(block: Floats) -> Floats:
    values, vectors = np.linalg.eigh(block)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _kinds(features: Features) -> list[tuple[tuple[int, int], Floats]]:
    """Covariances of a column's effects: each by itself, and smooth along numbers."""
    found = []
    for column, *ends in zip(features.columns, features.starts, features.starts[1:], strict=False):
        begin, end = map(int, ends)
        counts = np.bincount(column.codes).astype(np.float64)
        found.append(((begin, end), np.eye(len(counts))))
        if column.is_number and len(counts) > 3:
            place = (np.cumsum(counts) - counts / 2) / counts.sum()
            found.append(((begin, end), np.exp(-0.5 * ((place[:, None] - place) / _SMOOTH) ** 2)))
    return found


def _variance_components(
    V: Floats, kinds: list[tuple[tuple[int, int], Floats]], known: Floats, contrasts: Floats
) -> Floats:
    """The size of each kind of effects, from contrasts (directions × features) of covariance V + e·V D V."""
    values, vectors = np.linalg.eigh(V)
    kept = values > 1e-8 * values.max()
    white = vectors[:, kept] / np.sqrt(values[kept])
    loads = white.T @ V
    parts = np.stack([loads[:, begin:end] @ kernel @ loads[:, begin:end].T for (begin, end), kernel in kinds])
    y = contrasts @ white
    size = np.full(len(parts), _USUAL)
    for _ in range(_ROUNDS):
        r, Q = np.linalg.eigh(np.tensordot(size, parts, axes=1))
        left = 1 / (1 + known[:, None] * np.maximum(r, 0.0))  # directions × features
        seen = (y @ Q * left) @ Q.T
        found = np.einsum("kd,jde,ke,k->j", seen, parts, seen, known, optimize=True)
        expected = np.einsum("de,jdf,fe,e->j", Q, parts, Q, known @ left, optimize=True)
        evidence = size * expected  # how many of the effects the release tells
        size = (size**2 * found + _BELIEVED * _USUAL) / (evidence + _BELIEVED)
    return np.asarray(size)


_STEPS = ((16, 80), (4, 40), (1, 25))
"""Of so many buckets one, and how many steps."""
_LEAST_ROWS = 8_000
MOST_CELLS = 8_000_000
"""Rows × values that effects are fitted to; of larger releases a part of the buckets."""
_MEMORY = 25
"""Steps that the search for the most likely effects remembers."""
_FIRST_ROUNDS, _SCALING_ROUNDS, _CLOSE = 40, 8, 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """Some buckets, and everything that is needed again and again to fit effects to them."""

    places: Places
    indicators: sp.csr_array
    """Rows × features, in the order of the buckets."""
    log_share: Floats
    """Rows (or 1) × values."""
    entry: Ints
    """Where each entry is in a matrix rows × values."""
    factors: Floats
    """Where the scaling is, for every slot."""
    held: Floats
    """Of each slot that has entries: how often the bucket holds the value, by k/(k−1)."""

    @classmethod
    def of(cls, features: Features, contents: Contents, places: Places) -> Fit:
        """Of the buckets that these places are in."""
        rows, n_values = places.rows, places.n_values
        power = np.full(len(places.held), np.inf)
        power[places.slot] = places.spread(places.power)
        region = features.region_of_row[rows] if len(features.sizes) > 1 else np.zeros(1, dtype=np.int64)
        return cls(
            places=places,
            indicators=features.indicators[rows].astype(np.float32),
            log_share=contents.log_share[region],
            entry=np.repeat(np.arange(len(rows)) * n_values, places.width) + places.value,
            factors=np.ones(len(places.held)),
            held=places.held / power,
        )

    def logs(self, effects: Floats) -> tuple[Floats, Floats]:
        """Of each entry log p, and rows × values: p."""
        found = self.indicators @ effects.astype(np.float32)
        found += self.log_share.astype(np.float32)
        found -= found.max(axis=1, keepdims=True)
        logs = found.ravel()[self.entry].astype(np.float64)
        np.exp(found, out=found)
        total = found.sum(axis=1, keepdims=True)
        found /= total
        return logs - self.places.spread(np.log(total[:, 0].astype(np.float64))), found

    def gain(self, effects: Floats) -> tuple[float, Floats]:
        """The log-likelihood of the buckets, and its gradient by effects."""
        places = self.places
        logs, share = self.logs(effects)
        weight = places.scale(logs, self.factors, _SCALING_ROUNDS)
        power = places.spread(places.power)
        gain = float((weight * (logs - np.log(np.maximum(weight, 1e-300)) / power)).sum())
        # the dual's value, whose gradient is `weight` even where values do not add up yet
        missing = np.bincount(places.slot, weight / power, len(places.held)) - self.held
        gain += float((missing * np.log(np.maximum(self.factors, 1e-300))).sum())
        share *= -1
        share.ravel()[self.entry] += weight
        return gain, (self.indicators.T @ share).astype(np.float64)

    def weights(self, effects: Floats, rounds: int, close: float) -> Floats:
        """How likely each entry is."""
        return self.places.scale(self.logs(effects)[0], self.factors, rounds, close)

    def most_likely(self, basis: Basis, start: Floats, rounds: int) -> Floats:
        """Coordinates of the effects that are most likely given these buckets and the effects' variances."""
        from scipy.optimize import minimize

        # in these units the posterior's standard deviation is about 1, were there only these buckets
        unit = np.sqrt(1 + (basis.precision - 1) * (len(self.places.rows) / basis.n_rows))

        def lost(flat: Floats) -> tuple[float, Any]:
            place = flat.reshape(unit.shape) / unit
            gain, gradient = self.gain(basis.effects(place))
            slope = (place - basis.gradient(gradient)) / unit
            return 0.5 * float((place**2).sum()) - gain, slope.ravel()

        self.weights(basis.effects(start), _FIRST_ROUNDS, _CLOSE)  # the search needs a smooth function
        options: Any = {"maxiter": rounds, "maxcor": _MEMORY, "ftol": 1e-12}
        found = minimize(lost, (start * unit).ravel(), method="L-BFGS-B", jac=True, options=options)
        return np.asarray(found.x.reshape(unit.shape) / unit)


def fit_effects(features: Features, contents: Contents, buckets: Buckets, basis: Basis) -> Floats:
    """Features × values: the most likely effects, first for a part of the buckets, then for ever more."""
    place = np.zeros(basis.precision.shape)
    cells = buckets.n_rows * buckets.composition.shape[1]
    for part, rounds in _STEPS:
        every = max(-(-cells // MOST_CELLS), min(part, int(buckets.n_rows // _LEAST_ROWS)))
        if part > 1 and every < part / 2:
            continue
        chosen = None if every <= 1 else np.arange(0, len(buckets.size), every)
        fit = Fit.of(features, contents, Places.of(buckets, chosen))
        place = fit.most_likely(basis, place, rounds)
    return basis.effects(place)
