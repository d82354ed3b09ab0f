"""How wide the intervals of the matching are to be, found by trying it on tables like the published one.

What is uncertain about effects is known to first order only. How wrong that is differs by release: where
columns tell much, or buckets are nearly alike, errors are half or twice as large. So the release is tried on
itself (a parametric bootstrap: Efron and Tibshirani 1993, chapter 6): a whole table is drawn from the
posterior, its values are dealt anew over the same places, as the publisher did, effects and matching are
fitted to that, and questions about it are estimated whose answers are known. The part of the variance that
effects have is then multiplied until squared errors are as large as they should be.

That is a function of the release alone, and the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.by_type import PlacesByType
from dalenius.mechanisms.bucketize.estimate.drawing import draw_values
from dalenius.mechanisms.bucketize.estimate.posterior import Posterior
from dalenius.mechanisms.rows.effects import Quasi
from dalenius.question.targets import Estimates, Score, Targets
from dalenius.randomness import Randomness

_TABLES, _QUESTIONS = 2, 100
"""How many tables are tried, and how many questions about each."""
_MOST_CELLS = 1_000_000
"""Rows × values of a table that is tried; of larger releases a part of the buckets."""
_FEWEST_ROWS = 1_000
"""Fewer teach no effects, and there is nothing to try."""
_LEAST_COUNT = 20.0
_SELECTED = 0.01
"""The share of all people that a question is expected to be about."""
_USUAL, _BELIEVED = 1.0, 0.5
"""What is taken without a trial, and how far a trial is believed (a logarithm): two tables are few.

With 0.7 and 0.75 intervals were narrower still, and on Adult and the demo's table too narrow. Settled on
Adult, KDD's education and occupation and the demo's table (docs/coverage.md).
"""
_LEAST, _MOST = 0.02, 20.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calibrated:
    """The matching of a release, with the widths that trying it gives: when it is first asked."""

    posterior: Posterior
    buckets: Buckets
    name = Posterior.name
    assumption = Posterior.assumption
    formula = Posterior.formula
    _scale: list[float] = field(default_factory=list)

    def estimate(self, sums: ScoreSums, targets: Targets) -> Estimates:
        """Estimate every target."""
        if not self._scale:
            self._scale.append(find_scale(self.posterior, self.buckets))
        return self.posterior.estimate(sums, targets, self._scale[0])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tried:
    """Questions about a table that was drawn: how wrong estimates were, and how wrong they should be."""

    square: Floats
    """Squared errors."""
    matching: Floats
    effects: Floats
    """Variances: by the matching, and by the effects if these are as uncertain as they seem."""

    def scale(self) -> float:
        """What effects' variances are to be multiplied by for squared errors to be as large as expected."""
        low, high = np.log(_LEAST), np.log(_MOST)
        for _ in range(30):
            middle = (low + high) / 2
            expected = np.maximum(self.matching + np.exp(middle) * self.effects, 1e-12)
            low, high = (middle, high) if (self.square / expected).mean() > 1 else (low, middle)
        return float(np.exp((low + high) / 2))


def find_scale(posterior: Posterior, buckets: Buckets) -> float:
    """What the variances that effects cause are to be multiplied by, for this release."""
    people = np.bincount(buckets.row_bucket, minlength=len(buckets.size))
    if buckets.n_rows < _FEWEST_ROWS or (people != buckets.size).any():  # people left: not all can be dealt
        return _USUAL
    stream = Randomness.seeded(0).stream("matching", "calibration")
    own = _Part.of(posterior, buckets)
    tried = [one for _ in range(_TABLES) if (one := _try(posterior, buckets, own, stream)) is not None]
    if not tried:
        return _USUAL
    found = Tried(
        square=np.concatenate([one.square for one in tried]),
        matching=np.concatenate([one.matching for one in tried]),
        effects=np.concatenate([one.effects for one in tried]),
    ).scale()
    return float(_USUAL * (found / _USUAL) ** _BELIEVED)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Some buckets of a release, with the people in them."""

    chosen: Ints
    """Which buckets."""
    rows: Ints
    """Who is in them."""
    buckets: Buckets
    columns: tuple[Quasi, ...]
    """Of these people."""
    region: Ints
    """Of each of these buckets."""

    @classmethod
    def of(cls, posterior: Posterior, buckets: Buckets) -> _Part:
        every = -(-buckets.n_rows * buckets.composition.shape[1] // _MOST_CELLS)
        chosen = np.arange(0, len(buckets.size), every)
        place = np.full(len(buckets.size), -1)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[buckets.row_bucket] >= 0)
        home = place[buckets.row_bucket[rows]]
        region = np.zeros(len(chosen), dtype=np.int64)
        region[home] = posterior.features.region_of_row[rows]
        kinds = buckets.type_of[chosen]
        return cls(
            chosen=chosen,
            rows=rows,
            buckets=replace(
                buckets,
                row_bucket=home.astype(np.int32),
                size=buckets.size[chosen],
                type_of=kinds,
                copies=np.bincount(kinds, minlength=len(buckets.copies)).astype(np.float64),
            ),
            columns=tuple(
                Quasi(codes=column.codes[rows], is_number=column.is_number)
                for column in posterior.features.columns
            ),
            region=np.unique(region, return_inverse=True)[1].ravel().astype(np.int64),
        )

    def deal(self, value: Ints, stream: np.random.Generator) -> Buckets:
        """The people of each value, at random over its places in their region."""
        buckets, n_values = self.buckets, self.buckets.composition.shape[1]
        held = buckets.composition.take(buckets.type_of)
        home = np.repeat(held.rows, held.data.astype(np.int64))
        slot = self.region[home] * n_values + np.repeat(held.columns, held.data.astype(np.int64))
        person = self.region[buckets.row_bucket] * n_values + value
        row_bucket = np.empty(len(value), dtype=np.int32)
        row_bucket[np.lexsort((stream.random(len(value)), person))] = home[np.argsort(slot, kind="stable")]
        return replace(buckets, row_bucket=row_bucket)


def _try(posterior: Posterior, buckets: Buckets, own: _Part, stream: np.random.Generator) -> Tried | None:
    """Draw a table, publish it, and ask; None: no question is about enough people."""
    value = draw_values(posterior, buckets, stream, chosen=own.chosen)[own.rows]
    dealt = own.deal(value, stream)
    asked = list(_questions(own, posterior.numbers, stream))
    if not asked:
        return None
    found = Posterior.of(dealt, own.columns, own.region, posterior.numbers)
    places = PlacesByType.of(dealt.row_bucket, dealt.type_of, dealt.composition)
    sums = ScoreSums.of(dealt, [Score(rows=rows) for rows, _ in asked], None, places)
    targets = Targets.of([[(k, weights)] for k, (_, weights) in enumerate(asked)])
    parts = found.parts(sums, targets)
    truth = np.array([weights[value[rows]].sum() for rows, weights in asked])
    return Tried(square=(parts.mean - truth) ** 2, matching=parts.match, effects=parts.by_effects[:, 0])


def _questions(
    own: _Part, numbers: Floats | None, stream: np.random.Generator
) -> Iterator[tuple[Ints, Floats]]:
    """Rows and weights of the values: sets of codes of one to four columns, and a set or range of values.

    One in three is about one code of one column, one in three about one value, as people ask.
    """
    counts, n_rows = own.buckets.counts, len(own.rows)
    of_codes = [np.bincount(column.codes).astype(np.float64) for column in own.columns]
    for k in range(_QUESTIONS):
        n = 1 if k % 3 == 1 else min(int(stream.integers(1, 5)), len(own.columns))
        part = _SELECTED ** (1 / (n + 1))
        rows = np.ones(n_rows, dtype=bool)
        for j in stream.choice(len(own.columns), n, replace=False).tolist():
            codes = own.columns[j].codes
            some = _some(of_codes[j], 0.0 if k % 3 == 1 else part, stream)
            rows &= some[codes]
        held = _some(counts, 0.0 if k % 3 == 2 else part, stream)
        if numbers is not None:  # numbers are asked about as ranges: as many of them, one after the other
            order = np.argsort(numbers, kind="stable")
            first = int(stream.integers(len(order) - held.sum() + 1))
            held = np.isin(np.arange(len(order)), order[first : first + int(held.sum())])
        if rows.mean() * counts[held].sum() >= _LEAST_COUNT and not held.all() and not rows.all():
            yield np.flatnonzero(rows), held.astype(np.float64)


def _some(counts: Floats, part: float, stream: np.random.Generator) -> Bools:
    """A set of codes, at least one, likelier common ones."""
    n = max(1, int(np.ceil(part * len(counts))))
    chosen = stream.choice(len(counts), n, replace=False, p=(counts / counts.sum() + 1 / len(counts)) / 2)
    return np.isin(np.arange(len(counts)), chosen)
