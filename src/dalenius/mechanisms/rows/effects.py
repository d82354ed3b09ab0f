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
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from dalenius.arrays import Bools, Codes, Floats, Ints
from dalenius.mechanisms.rows.climbing import CLOSE, descend, no_pairs, settle
from dalenius.mechanisms.rows.kinds import Kinds, find_kinds, is_hardly_alike

if TYPE_CHECKING:
    import scipy.sparse as sp

MOST_CODES = 48
"""Different values of a column that have an effect of their own; rarer ones have one together."""
_SMOOTH = 0.3
"""How far along the people of a column, sorted by it, effects are alike."""
_ROUNDS, _SETTLED = 30, 1e-6
_USUAL, _BELIEVED = 0.1, 3.0
"""The variance of log-odds that is expected of a column, and how many effects' worth that is believed."""
_FARTHEST = 12.0
"""Of a variance's logarithm from 0. Where a column all but determines the value, mixed steps lead to where
numbers overflow."""
_NOTHING = 1e-9
MOST_TOLD = 50_000
"""So many people tell all that main effects can be believed; settled on the demo's table of a million."""


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

    columns: tuple[Quasi, ...]
    starts: Ints
    region_of_row: Ints
    means: Floats
    """Regions × features."""
    sizes: Floats
    """How many rows each region has."""
    kinds: Kinds
    """Which combinations of features there are."""
    kind_of_row: Ints
    region_of_kind: Ints
    """People of two regions are of two kinds."""
    _covariance: list[Floats] = field(default_factory=list)
    _components: list[Components] = field(default_factory=list)

    @classmethod
    def of(cls, columns: Sequence[Quasi], region_of_row: Ints) -> Features:
        """Merge and list the columns' codes."""
        merged = tuple(column.merged() for column in columns)
        starts = np.cumsum([0, *(int(column.codes.max()) + 1 for column in merged)])
        columns_of_kind, region_of_kind = [column.codes for column in merged], region_of_row
        kind_of_row = np.arange(len(region_of_row))
        if not is_hardly_alike([region_of_row, *columns_of_kind]):
            listed, kind_of_row = find_kinds([region_of_row, *columns_of_kind])
            region_of_kind, *columns_of_kind = listed.T
        places = np.stack(
            [codes + start for codes, start in zip(columns_of_kind, starts, strict=False)], axis=1
        )
        sizes = np.bincount(region_of_row).astype(np.float64)
        sums = [_count_codes(column.codes, region_of_row, len(sizes)) for column in merged]
        return cls(
            columns=merged,
            starts=starts,
            region_of_row=region_of_row,
            means=np.concatenate(sums, axis=1) / sizes[:, None],
            sizes=sizes,
            kinds=Kinds.of(places, int(starts[-1])),
            kind_of_row=kind_of_row,
            region_of_kind=region_of_kind,
        )

    @property
    def indicators(self) -> sp.csr_array:
        """Rows × features."""
        from scipy.sparse import csr_array

        listed = self.kinds.places[self.kind_of_row]
        n, width = listed.shape
        entries = np.ones(n * width), listed.ravel(), np.arange(n + 1) * width
        return csr_array(entries, shape=(n, self.kinds.n_features))

    def covariance(self) -> Floats:
        """Features × features, within regions."""
        if not self._covariance:
            n = len(self.region_of_row)
            square = self.kinds.cross(np.bincount(self.kind_of_row).astype(np.float64)) / n
            self._covariance.append(square - (self.means * (self.sizes / n)[:, None]).T @ self.means)
        return self._covariance[0]

    def components(self) -> Components:
        """Of which variances are learned."""
        if not self._components:
            self._components.append(Components.of(self))
        return self._components[0]

    def with_score(self, rows: Codes, values: Floats | None, chosen: Bools | None = None) -> Floats:
        """The covariance of each feature with a score; `chosen`: whether each row is among them, if known."""
        n, kinds = len(self.region_of_row), self.kinds
        if values is None and len(rows) > n / 2:  # of the others, who are fewer, it is the opposite
            if chosen is None:
                chosen = np.zeros(n, dtype=bool)
                chosen[rows] = True
            return -self.with_score(np.flatnonzero(~chosen), None)
        kind = rows if len(kinds) == n else self.kind_of_row[rows]  # no two are alike: both in their order
        if len(rows) > len(kinds):  # added up by kind first
            values, kind = np.bincount(kind, values, len(kinds)).astype(np.float64), np.arange(len(kinds))
        if len(self.sizes) == 1:
            shares = np.array([len(kind) if values is None else values.sum()]) / n
        else:
            shares = np.bincount(self.region_of_kind[kind], values, len(self.sizes)) / n
        return np.asarray(kinds.add_some(kind, values) / n - shares @ self.means)


def _count_codes(codes: Codes, region: Ints, n_regions: int) -> Floats:
    """Regions × codes."""
    n_codes = int(codes.max()) + 1
    place = codes if n_regions == 1 else region * n_codes + codes
    return np.bincount(place, minlength=n_regions * n_codes).reshape(n_regions, n_codes).astype(np.float64)


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
    larger: float = 1.0
    """How many times as large as the precision says the effects' variances are after the release."""

    def effects(self, place: Floats) -> Floats:
        """Features × values, from coordinates."""
        return np.asarray(self.features @ place @ self.values.T)

    def gradient(self, of_effects: Floats) -> Floats:
        """By coordinates, from that by effects."""
        return np.asarray(self.features.T @ of_effects @ self.values)

    @property
    def told(self) -> Floats:
        """What the contents tell of each direction, from at most `MOST_TOLD` people.

        That values depend on columns by main effects is nearly so. An error that comes from the "nearly" does
        not become smaller with more people: a posterior that believes the model too much is too sharp where
        there are many (coarsened posteriors: Miller and Dunson 2019).
        """
        return np.asarray((self.precision - 1) * min(1.0, MOST_TOLD / max(self.n_rows, 1)))

    def evidence(self, surprise: Floats) -> float:
        """How much likelier these variances make the release than no effects: a logarithm, to first order."""
        gradient = self.gradient(surprise)
        return float((gradient**2 / self.precision - np.log(self.precision)).sum()) / 2


def find_basis(
    features: Features,
    told: Floats,
    surprise: Floats,
    traits: Floats | None = None,
    larger: float = 1.0,
    believed: Floats | None = None,
) -> Basis:
    """Learn the effects' variances from how estimates without effects (features × values) differ from none.

    Args:
        features: of the columns.
        told: I, values × values.
        surprise: the gradient of the log-likelihood at no effect.
        traits: values × traits, where effects on values are those on their traits.
        larger: how many times larger than learned the effects' variances are taken to be; but not those of
            each single number beside smooth effects, of which little is learned.
        believed: what is told of how uncertain effects are, where it is not what variances are learned by.
    """
    if traits is not None:
        own = None if believed is None else traits.T @ believed @ traits
        found = find_basis(features, traits.T @ told @ traits, surprise @ traits, None, larger, own)
        return replace(found, values=traits @ found.values, is_smooth=True)
    V = features.covariance()
    known, E = _axes(told)
    some = known > _NOTHING * max(float(known.max()), 1.0)
    kinds = features.components().kinds
    sizes = features.components().learn_sizes(known[some], (surprise @ E[:, some] / np.sqrt(known[some])).T)
    root = np.zeros_like(V)
    for k, (size, ((begin, end), kernel)) in enumerate(zip(sizes, kinds, strict=True)):
        is_rough = k + 1 < len(kinds) and kinds[k + 1][0] == (begin, end)
        root[begin:end, begin:end] += size * (1.0 if is_rough else larger) * kernel
    for begin, end in {ends for ends, _ in kinds}:
        root[begin:end, begin:end] = _root(root[begin:end, begin:end])
    m, U = _axes(root.T @ V @ root)
    known, E = (known, E) if believed is None else _axes(believed)
    return Basis(
        features=root @ U,
        values=E,
        precision=1 + np.outer(m, known),
        n_rows=len(features.region_of_row),
    )


def _axes(square: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues, none of them negative, and eigenvectors."""
    values, vectors = np.linalg.eigh(square)
    return np.maximum(values, 0.0), vectors


def _root(block: Floats) -> Floats:
    values, vectors = _axes(block)
    return np.asarray(vectors * np.sqrt(values))


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Components:
    """Kinds of effects, and their covariances in coordinates in which V is 1."""

    kinds: list[tuple[tuple[int, int], Floats]]
    """Ends of a column's features, and their covariance."""
    white: Floats
    """Features × coordinates."""
    parts: Floats
    """Kinds × coordinates × coordinates."""

    @classmethod
    def of(cls, features: Features) -> Components:
        """Of all columns."""
        V, kinds = features.covariance(), _kinds(features)
        values, vectors = np.linalg.eigh(V)
        kept = values > 1e-8 * values.max()
        white = vectors[:, kept] / np.sqrt(values[kept])
        loads = white.T @ V
        parts = [loads[:, begin:end] @ kernel @ loads[:, begin:end].T for (begin, end), kernel in kinds]
        return cls(kinds=kinds, white=white, parts=np.stack(parts))

    def learn_sizes(self, known: Floats, contrasts: Floats) -> Floats:
        """The size of each kind, from contrasts (directions × features) of covariance V + e·V D V."""
        y, flat = contrasts @ self.white, self.parts.reshape(len(self.parts), -1)

        def improve(logs: Floats) -> Floats:
            size = np.exp(np.clip(logs, -_FARTHEST, _FARTHEST))
            r, Q = np.linalg.eigh((size @ flat).reshape(self.parts.shape[1:]))
            left = 1 / (1 + known[:, None] * np.maximum(r, 0.0))  # directions × features
            seen = (y @ Q * left) @ Q.T
            found = flat @ ((seen.T * known) @ seen).ravel()  # traces of products of each part with a matrix
            expected = flat @ ((Q * (known @ left)) @ Q.T).ravel()
            evidence = size * expected  # how many of the effects the release tells
            return np.asarray(np.log((size**2 * found + _BELIEVED * _USUAL) / (evidence + _BELIEVED)))

        start = np.full(len(self.parts), np.log(_USUAL))
        found = settle(improve, start, _ROUNDS, _SETTLED)
        return np.asarray(np.exp(np.clip(found, -_FARTHEST, _FARTHEST)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Climb:
    """Coordinates of effects on their way to the most likely ones."""

    place: Floats
    pairs: tuple[tuple[Floats, Floats], ...] = ()
    """Of the last steps, in coordinates: how far, and how the gradient changed, but for the prior's part."""

    def of_more(self, times: float) -> Climb:
        """As it would have been with so many times the rows, all alike."""
        pairs = tuple((moved, times * change) for moved, change in self.pairs)
        return Climb(place=self.place, pairs=pairs)

    def in_other(self, basis: Basis, other: Basis) -> Climb:
        """The same effects, in the coordinates of another basis."""
        (rows, columns), (back, across) = _turn(basis, other), _turn(other, basis)
        pairs = tuple((rows @ moved @ columns.T, back.T @ change @ across) for moved, change in self.pairs)
        return Climb(place=rows @ self.place @ columns.T, pairs=pairs)


def _turn(basis: Basis, other: Basis) -> tuple[Floats, Floats]:
    """The directions of features, and of values, in the coordinates of another basis."""
    features, values = np.linalg.pinv(other.features), np.linalg.pinv(other.values)
    return features @ basis.features, values @ basis.values


def climb(
    basis: Basis,
    start: Climb,
    gain: Callable[[Floats], tuple[float, Floats]],
    n_rows: float,
    rounds: int,
    close: float = CLOSE,
) -> Climb:
    """Coordinates of the most likely effects.

    Args:
        basis: in which they are.
        start: where to begin.
        gain: the log-likelihood of effects, and its gradient by them.
        n_rows: how many of the rows it is about.
        rounds: how many steps at most.
        close: end earlier where a few steps gain less than this.
    """
    # in these units the posterior's standard deviation is about 1, were there only these rows
    unit = np.sqrt(1 + (basis.precision - 1) * (n_rows / basis.n_rows))

    def lost(flat: Floats) -> tuple[float, Floats]:
        place = flat.reshape(unit.shape) / unit
        gained, gradient = gain(basis.effects(place))
        slope = (place - basis.gradient(gradient)) / unit
        return 0.5 * float((place**2).sum()) - gained, slope.ravel()

    pairs = no_pairs()
    pairs.extend(((moved * unit).ravel(), ((moved + change) / unit).ravel()) for moved, change in start.pairs)
    place = descend(lost, (start.place * unit).ravel(), rounds, close, pairs).reshape(unit.shape) / unit
    steps = [(moved.reshape(unit.shape) / unit, change.reshape(unit.shape) * unit) for moved, change in pairs]
    return Climb(place=place, pairs=tuple((moved, change - moved) for moved, change in steps))
