"""Unbiased totals Σ_r a_r(X_r) over records, many at once, and all that their intervals need.

With the part's mean ā = Σ_{x ∈ SA_j} a(x)·π_x, b = a − ā, β = Σ b²·π and ν = Σ b³·π, π_x the chance of x
to be a replacement (1/m_j where all are alike), a record published as y contributes

    to the estimate    ā + b(y)/p                          whose mean is a(X) (equation 7, record by record),
    to its variance    (1−p)/p²·b(y)² + (1−p)/p·β          whose mean is Var = (1−p)/p²·β + (1−p)/p·b(X)².

So the variance is at least the *floor* Σ (1−p)/p²·β, which is public, and grows with the answer by about
the *slope* Σ (1−p)/p·ν / Σ β (exactly, for a count in one part). One coin moves the estimate by the range of
a over SA_j, divided by p; half of that, averaged over the variance, is the *half step*.

Parts are dealt at random and values are drawn at random, but given the parts the expectation is the table's
true answer whatever the parts are: dealing adds no variance, and the error bar is the one given the parts.

Intervals for totals, also where few records count.

The score interval solves (|estimate − T| − half step)² ≤ z²·Var(T) for T, Var(T) = variance + slope·(T −
estimate), but never below its public floor: Wilson's idea for a mixture of binomials, with a correction for
continuity. Fixing the variance at the estimate instead fails at small counts. Hoeffding's interval holds at
its confidence for any number of records, and is wide. Both are cut to what is possible.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dalenius.arrays import Floats, Ints, normal_quantile
from dalenius.mechanisms.perturb.channel import Laws


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Totals:
    """Estimates of totals, an entry of each array per total."""

    estimate: Floats
    variance: Floats
    """Unbiased."""
    floor: Floats
    """What the variance is at least."""
    slope: Floats
    half_step: Floats
    low: Floats
    """What the total is at least, whatever the coins hide."""
    high: Floats
    squared_ranges: Floats
    """Σ (range/p)², for Hoeffding's inequality."""

    @classmethod
    def joined(cls, pieces: Sequence[tuple[Ints, Totals]], n_totals: int) -> Totals:
        """Totals from pieces that hold those of the given positions; a total without a piece is 0."""
        arrays = {field.name: np.zeros(n_totals) for field in fields(cls)}
        for where, piece in pieces:
            for name, array in arrays.items():
                array[where] = getattr(piece, name)
        return cls(**arrays)


_CELLS_AT_ONCE = 500_000
"""Totals × cells that are in memory together."""


def totals_of_products(laws: Laws, cells: Ints, scores: Floats | None, weights: Floats) -> Totals:
    """Σ_r s_r·w(X_r) for each row w of `weights` (totals × values).

    Args:
        laws: the laws of the parts.
        cells: the cell of each record that counts.
        scores: s_r of these records; None: 1.
        weights: what each value counts, a row per total.
    """
    sums = _PartSums.of(laws, cells, scores)
    step = max(1, _CELLS_AT_ONCE // len(laws.code))
    pieces = [
        (
            np.arange(start, min(start + step, len(weights))),
            _products(laws, sums, weights[start : start + step]),
        )
        for start in range(0, len(weights), step)
    ]
    return Totals.joined(pieces, len(weights))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PartSums:
    """Power sums of the records' scores."""

    by_cell: Floats
    squares_by_cell: Floats
    total: Floats
    """Per part, as those below."""
    squares: Floats
    cubes: Floats
    sizes_cubed: Floats
    positive: Floats
    negative: Floats

    @classmethod
    def of(cls, laws: Laws, cells: Ints, scores: Floats | None) -> _PartSums:
        s = np.ones(len(cells)) if scores is None else scores

        def sum_cells(values: Floats) -> Floats:
            return np.bincount(cells, values, len(laws.code)).astype(np.float64)

        by_cell, squares = sum_cells(s), sum_cells(s**2)
        return cls(
            by_cell=by_cell,
            squares_by_cell=squares,
            total=laws.per_part(by_cell),
            squares=laws.per_part(squares),
            cubes=laws.per_part(sum_cells(s**3)),
            sizes_cubed=laws.per_part(sum_cells(np.abs(s) ** 3)),
            positive=laws.per_part(sum_cells(np.maximum(s, 0.0))),
            negative=laws.per_part(sum_cells(np.minimum(s, 0.0))),
        )


def _products(laws: Laws, sums: _PartSums, weights: Floats) -> Totals:
    asked = weights[:, laws.code]  # totals × cells
    most = np.maximum.reduceat(asked, laws.first, axis=1)
    least = np.minimum.reduceat(asked, laws.first, axis=1)
    span = most - least
    mean = np.where(span == 0, least, laws.average(asked))
    centred = asked - mean[:, laws.part]
    squares = centred * centred
    beta = laws.average(squares)
    skew = laws.average(squares * centred)  # a power of 3 would be ten times as slow
    p = laws.keep
    p_cell = p[laws.part]
    return Totals(
        estimate=mean @ sums.total + centred @ (sums.by_cell / p_cell),
        variance=squares @ (sums.squares_by_cell * (1 - p_cell) / p_cell**2)
        + beta @ (sums.squares * (1 - p) / p),
        floor=beta @ (sums.squares * (1 - p) / p**2),
        slope=_ratio(skew @ (sums.cubes * (1 - p) / p), beta @ sums.squares),
        half_step=_ratio((beta * span) @ (sums.sizes_cubed / p**3), beta @ (sums.squares / p**2)) / 2,
        low=least @ sums.positive + most @ sums.negative,
        high=most @ sums.positive + least @ sums.negative,
        squared_ranges=span**2 @ (sums.squares / p**2),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Term:
    """Scores of some records, and what each value counts for them."""

    places: Ints
    """Which records, as positions in the cells of the total."""
    scores: Floats | None
    """Their scores; None: 1."""
    weights: Floats


def total_of_terms(laws: Laws, cells: Ints, terms: Sequence[Term]) -> Totals:
    """One total whose a_r(x) = Σ_t s_t(r)·w_t(x) is no product, from terms that share no value."""
    moments = _Moments(laws, cells)
    for term in terms:
        moments.add(term)
    return moments.total()


class _Moments:
    """What a_r is at the published value, and its moments and ends over SA_j, record by record."""

    def __init__(self, laws: Laws, cells: Ints) -> None:
        self._laws, self._part, self._code = laws, laws.part[cells], laws.code[cells]
        self._powers = np.zeros((3, len(cells)))
        self._published = np.zeros(len(cells))
        self._covered = np.zeros(len(cells))
        self._least, self._most = np.full(len(cells), np.inf), np.full(len(cells), -np.inf)

    def add(self, term: Term) -> None:
        """Take in what one term says of its values."""
        laws, places = self._laws, term.places
        s = np.ones(len(places)) if term.scores is None else term.scores
        own, part = term.weights[laws.code], self._part[places]
        for k in range(3):
            self._powers[k, places] += s ** (k + 1) * laws.average(own ** (k + 1))[part]
        self._published[places] += s * term.weights[self._code[places]]
        is_own = own != 0
        n_own = laws.per_part(is_own.astype(np.float64))[part]
        n_own = np.where(s != 0, n_own, 0.0)
        self._covered[places] += n_own
        bounds = np.stack(
            [
                np.minimum.reduceat(np.where(is_own, own, np.inf), laws.first)[part],
                np.maximum.reduceat(np.where(is_own, own, -np.inf), laws.first)[part],
            ]
        )
        ends = np.where(n_own > 0, s * np.where(n_own > 0, bounds, 0.0), np.nan)
        self._least[places] = np.fmin(self._least[places], np.fmin(*ends))
        self._most[places] = np.fmax(self._most[places], np.fmax(*ends))

    def total(self) -> Totals:
        """Add the records up."""
        laws = self._laws
        uncovered = self._covered < laws.size[self._part]  # some value of the part counts 0
        least = np.where(uncovered, np.minimum(self._least, 0.0), self._least)
        most = np.where(uncovered, np.maximum(self._most, 0.0), self._most)
        span = most - least
        mean, square, cube = self._powers
        mean = np.where(span == 0, least, mean)
        beta = np.where(span == 0, 0.0, np.maximum(square - mean**2, 0.0))
        skew = np.where(span == 0, 0.0, cube - 3 * mean * square + 2 * mean**3)
        centred = np.where(span == 0, 0.0, self._published - mean)
        p = laws.keep[self._part]
        return Totals(
            estimate=_one((mean + centred / p).sum()),
            variance=_one(((1 - p) / p**2 * centred**2 + (1 - p) / p * beta).sum()),
            floor=_one(((1 - p) / p**2 * beta).sum()),
            slope=_ratio(_one(((1 - p) / p * skew).sum()), _one(beta.sum())),
            half_step=_ratio(_one((beta * span / p**3).sum()), _one((beta / p**2).sum())) / 2,
            low=_one(least.sum()),
            high=_one(most.sum()),
            squared_ranges=_one(((span / p) ** 2).sum()),
        )


def _one(value: float) -> Floats:
    return np.array([value], dtype=np.float64)


def _ratio(above: Floats, below: Floats) -> Floats:
    """0 where nothing varies."""
    found: Floats = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return found


Ends = tuple[Floats, Floats]


def score_ends(totals: Totals, confidence: float) -> Ends:
    """The ends of the score interval of each total."""
    z2 = normal_quantile((1 + confidence) / 2) ** 2
    below, above = _reach(totals, -totals.slope, z2), _reach(totals, totals.slope, z2)
    return _possible(totals, totals.estimate - below, totals.estimate + above)


def hoeffding_ends(totals: Totals, confidence: float) -> Ends:
    """The ends of an interval that holds with at least that probability, whatever the number of records."""
    reach = np.sqrt(math.log(2 / (1 - confidence)) / 2 * totals.squared_ranges)
    return _possible(totals, totals.estimate - reach, totals.estimate + reach)


def _reach(totals: Totals, slope: Floats, z2: float) -> Floats:
    """The d > 0 at which (d − c)² = z²·(variance + slope·d), c the half step."""
    middle = 2 * totals.half_step + z2 * slope
    product = totals.half_step**2 - z2 * totals.variance
    root = np.sqrt(np.maximum(middle**2 - 4 * product, 0.0))
    at_least = totals.half_step + np.sqrt(z2 * totals.floor)
    found: Floats = np.maximum((middle + root) / 2, at_least)
    return found


def _possible(totals: Totals, low: Floats, high: Floats) -> Ends:
    """Where the whole interval is impossible, the nearest possible number is left of it."""
    return np.clip(low, totals.low, totals.high), np.clip(high, totals.low, totals.high)
