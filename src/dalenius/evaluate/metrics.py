"""How far off answers are, each measure with its definition, and its spread over seeds.

Relative error is |estimate − truth| / max(truth, floor). With a floor of 0 it is the papers' definition, and
questions whose true answer is 0 are left out. With a floor, usually a thousandth of the number of records
(`SMALL_SHARE`), small counts are measured against the floor, so that a handful of rare cells cannot
dominate the mean; no question is left out then.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dalenius.arrays import Floats
from dalenius.evaluate.workload import Cells

SMALL_SHARE = 0.001
"""Counts below this share of the records are measured against it."""
SELECTIVITIES = (0.0, 0.001, 0.005, 0.01, 0.05, 1.0)


def mean_squared_error(cells: Cells) -> float:
    """The mean of (estimate − truth)² over the answered cells."""
    return _mean((cells.answered.estimate - cells.answered.truth) ** 2)


def root_mean_squared_error(cells: Cells) -> float:
    """Its root, in the unit of the answers: records, for counts."""
    return float(np.sqrt(mean_squared_error(cells)))


def relative_errors(cells: Cells, small_share: float = SMALL_SHARE) -> Floats:
    """|estimate − truth| / max(|truth|, small_share·scale) of every answered cell where that is not 0.

    >>> cells = Cells(truth=np.array([0.0, 1, 50]), estimate=np.array([2.0, 3, 45]), scale=np.full(3, 1000.0))
    >>> relative_errors(cells, 0.01).tolist(), relative_errors(cells, 0).tolist()
    ([0.2, 0.2, 0.1], [2.0, 0.1])
    """
    answered = cells.answered
    against = np.maximum(np.abs(answered.truth), small_share * answered.scale)
    has = against > 0
    return np.asarray(np.abs(answered.estimate - answered.truth)[has] / against[has], dtype=float)


def mean_relative_error(cells: Cells, small_share: float = SMALL_SHARE) -> float:
    """The mean relative error; NaN where there is none."""
    return _mean(relative_errors(cells, small_share))


def median_relative_error(cells: Cells, small_share: float = SMALL_SHARE) -> float:
    """The median relative error; NaN where there is none."""
    errors = relative_errors(cells, small_share)
    return float(np.median(errors)) if len(errors) else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The error of the questions that between `low` and `high` of the records satisfy."""

    low: float
    high: float
    n_cells: int
    mean_relative_error: float
    median_relative_error: float
    rmse: float


def errors_by_selectivity(cells: Cells) -> tuple[Band, ...]:
    """Errors by truth/scale, for bands low ≤ selectivity < high; the last holds its upper end."""
    answered = cells.answered
    share = np.abs(answered.truth) / np.where(answered.scale > 0, answered.scale, np.nan)
    bands = []
    for low, high in pairwise(SELECTIVITIES):
        inside = (share >= low) & ((share < high) | ((high == SELECTIVITIES[-1]) & (share == high)))
        own = answered.where(inside)
        if inside.any():
            bands.append(
                Band(
                    low=low,
                    high=high,
                    n_cells=int(inside.sum()),
                    mean_relative_error=mean_relative_error(own),
                    median_relative_error=median_relative_error(own),
                    rmse=root_mean_squared_error(own),
                )
            )
    return tuple(bands)


@dataclass(frozen=True, slots=True, kw_only=True)
class BandSpread:
    """The errors of a band over several draws, by the name of the measure."""

    low: float
    high: float
    n_cells: int
    """Over all draws."""
    spreads: dict[str, Spread]


def bands_over_draws(draws: Sequence[Cells]) -> tuple[BandSpread, ...]:
    """The errors by selectivity of each draw, and their spread."""
    found: dict[tuple[float, float], list[Band]] = {}
    for cells in draws:
        for band in errors_by_selectivity(cells):
            found.setdefault((band.low, band.high), []).append(band)
    return tuple(
        BandSpread(
            low=low,
            high=high,
            n_cells=sum(band.n_cells for band in bands),
            spreads={
                "relative-error": Spread.of([band.mean_relative_error for band in bands]),
                "median-relative-error": Spread.of([band.median_relative_error for band in bands]),
                "rmse": Spread.of([band.rmse for band in bands]),
            },
        )
        for (low, high), bands in sorted(found.items())
    )


def distribution(counts: Floats) -> Floats:
    """Estimated counts as probabilities: negative ones become 0; with nothing left, all are alike.

    >>> distribution(np.array([3.0, -1, 1])).tolist(), distribution(np.array([0.0, 0])).tolist()
    ([0.75, 0.0, 0.25], [0.5, 0.5])
    """
    kept = np.maximum(np.nan_to_num(counts), 0.0)
    total = kept.sum()
    return np.asarray(kept / total if total > 0 else np.full(len(kept), 1 / len(kept)), dtype=float)


def total_variation(truth: Floats, estimate: Floats) -> float:
    """Half the sum of |p − q|: the share of the people who would have to move.

    >>> total_variation(np.array([1.0, 1]), np.array([3.0, 1]))
    0.25
    """
    return float(np.abs(distribution(truth) - distribution(estimate)).sum() / 2)


def hellinger(truth: Floats, estimate: Floats) -> float:
    """√(Σ(√p − √q)² / 2), between 0 and 1.

    >>> round(hellinger(np.array([1.0, 0]), np.array([0.0, 5])), 12)
    1.0
    """
    roots = np.sqrt(distribution(truth)) - np.sqrt(distribution(estimate))
    return float(np.sqrt((roots**2).sum() / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A measure over several seeds."""

    mean: float
    deviation: float | None
    """The standard deviation between seeds; None with one seed."""
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """The mean and the standard deviation of what each seed gave.

        >>> Spread.of([1.0, 3.0]).mean, round(Spread.of([1.0, 3.0]).deviation, 4)
        (2.0, 1.4142)
        """
        numbers = np.array(values, dtype=float)
        # the rounding of sums in another order must not look like a spread
        alike = bool(np.allclose(numbers, numbers[0], rtol=1e-12, atol=0.0))
        deviation = (0.0 if alike else float(numbers.std(ddof=1))) if len(numbers) > 1 else None
        mean = float(numbers[0]) if alike else float(numbers.mean())
        return cls(mean=mean, deviation=deviation, values=tuple(numbers.tolist()))

    @property
    def standard_error(self) -> float:
        """How far the mean over as many seeds is from the mean over all of them; NaN with one seed.

        >>> Spread.of([1.0, 3.0]).standard_error
        1.0
        """
        return math.nan if self.deviation is None else self.deviation / math.sqrt(len(self.values))

    def minus(self, other: Spread) -> Spread:
        """The differences, seed by seed: what the seeds have in common drops out.

        >>> Spread.of([1.0, 3.0]).minus(Spread.of([0.0, 2.0])).values
        (1.0, 1.0)
        """
        return Spread.of([one - two for one, two in zip(self.values, other.values, strict=True)])


def _mean(numbers: Floats) -> float:
    return float(numbers.mean()) if len(numbers) else float("nan")
