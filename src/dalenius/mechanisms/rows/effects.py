"""Main effects of the published columns on a sensitive value: their features, their sizes, their coordinates.

p(z | x) ∝ f_z·exp(Σ_j β_j(x_j, z)): a main effect of each column. The effects of a column are normal with a
variance of its own, and in part smooth along a column of numbers. These variances are learned from the
release (variance components, by expectation–maximization on the first-order statistics). What a release tells
about effects is the mechanism's: around β = 0 the log-likelihood is quadratic, with an information I about
values times the covariance V of the columns. Its eigenvectors give the variances, steps of about the right
length, and how uncertain the effects are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from dalenius.arrays import Codes, Floats, Ints

MOST_CODES = 48
"""Different values of a column that have an effect of their own; rarer ones have one together."""
_SMOOTH = 0.3
"""How far along the people of a column, sorted by it, effects are alike."""
_ROUNDS = 30
_USUAL, _BELIEVED = 0.1, 3.0
"""The variance of log-odds that is expected of a column, and how many effects' worth that is believed."""
_NOTHING = 1e-9
_MEMORY = 25
"""Steps that the search for the most likely effects remembers."""


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
class Basis:
    """Coordinates in which effects are independent and of variance 1, before and (to first order) after."""

    features: Floats
    """Features × directions: effects of a unit in each direction."""
    values: Floats
    """Values × directions: effects on the values of a unit in each direction."""
    precision: Floats
    """Directions of features × of values: 1 + what the contents tell."""

    n_rows: int
    is_smooth: bool = False
    """Whether effects on values are those on what near ones have in common."""

    def effects(self, place: Floats) -> Floats:
        """Features × values, from coordinates."""
        return np.asarray(self.features @ place @ self.values.T)

    def gradient(self, of_effects: Floats) -> Floats:
        """By coordinates, from that by effects."""
        return np.asarray(self.features.T @ of_effects @ self.values)

    def evidence(self, surprise: Floats) -> float:
        """How much likelier these variances make the release than no effects: a logarithm, to first order."""
        gradient = self.gradient(surprise)
        return float((gradient**2 / self.precision - np.log(self.precision)).sum()) / 2


def find_basis(
    features: Features, told: Floats, surprise: Floats, traits: Floats | None = None, larger: float = 1.0
) -> Basis:
    """Learn the effects' variances from how estimates without effects (features × values) differ from none.

    Args:
        features: of the columns.
        told: I, values × values.
        surprise: the gradient of the log-likelihood at no effect.
        traits: values × traits, where effects on values are those on their traits.
        larger: how many times larger than learned the effects' variances are taken to be; but not those of
            each single number beside smooth effects, of which little is learned.
    """
    if traits is not None:
        found = find_basis(features, traits.T @ told @ traits, surprise @ traits, larger=larger)
        return replace(found, values=traits @ found.values, is_smooth=True)
    V = features.covariance()
    known, E = np.linalg.eigh(told)
    known = np.maximum(known, 0.0)
    some = known > _NOTHING * max(float(known.max()), 1.0)
    kinds = _kinds(features)
    sizes = _variance_components(V, kinds, known[some], (surprise @ E[:, some] / np.sqrt(known[some])).T)
    root = np.zeros_like(V)
    for k, (size, ((begin, end), kernel)) in enumerate(zip(sizes, kinds, strict=True)):
        is_rough = k + 1 < len(kinds) and kinds[k + 1][0] == (begin, end)
        root[begin:end, begin:end] += size * (1.0 if is_rough else larger) * kernel
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
            smooth = np.exp(-0.5 * ((place[:, None] - place) / _SMOOTH) ** 2)
            found.append(((begin, end), smooth / _varying(smooth, counts)))
    return found


def _varying(kernel: Floats, counts: Floats) -> float:
    """The variance of effects of this covariance over people: what all people have in common is no effect."""
    share = counts / counts.sum()
    return float(share @ np.diag(kernel) - share @ kernel @ share)


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


def climb(
    basis: Basis, start: Floats, gain: Callable[[Floats], tuple[float, Floats]], n_rows: int, rounds: int
) -> Floats:
    """Coordinates of the most likely effects.

    Args:
        basis: in which they are.
        start: where to begin.
        gain: the log-likelihood of effects, and its gradient by them.
        n_rows: how many of the rows it is about.
        rounds: how many steps at most.
    """
    from scipy.optimize import minimize

    # in these units the posterior's standard deviation is about 1, were there only these rows
    unit = np.sqrt(1 + (basis.precision - 1) * (n_rows / basis.n_rows))

    def lost(flat: Floats) -> tuple[float, Any]:
        place = flat.reshape(unit.shape) / unit
        gained, gradient = gain(basis.effects(place))
        slope = (place - basis.gradient(gradient)) / unit
        return 0.5 * float((place**2).sum()) - gained, slope.ravel()

    options: Any = {"maxiter": rounds, "maxcor": _MEMORY, "ftol": 1e-12}
    found = minimize(lost, (start * unit).ravel(), method="L-BFGS-B", jac=True, options=options)
    return np.asarray(found.x.reshape(unit.shape) / unit)
