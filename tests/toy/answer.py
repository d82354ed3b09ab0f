"""Asking a release of roulette: every record counts what makes up, on average, for the spins of the wheel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.rows.estimation import RowModel
from dalenius.question.model import Estimators
from dalenius.question.targets import Estimates, Range, Score, Targets
from dalenius.release.folder import StoredRelease
from dalenius.tables.codes import Encoder, in_one_piece
from dalenius.tables.columns import CodedTable
from tests.toy.published import Wheel, read


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inversion:
    """The only estimator."""

    wheel: Wheel
    code: Ints
    """Which value each row is published with."""
    formula = "a record published as y counts ([x=y] - s/m)/(1-s) towards value x"
    assumption = None

    def estimation(self, scores: Sequence[Score]) -> _Estimation:
        """Prepare estimates from scores of the published rows."""
        return _Estimation(wheel=self.wheel, code=self.code, scores=tuple(scores))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Estimation:
    wheel: Wheel
    code: Ints
    scores: tuple[Score, ...]

    def estimate(self, targets: Targets) -> Estimates:
        found = np.array([self._moments(table) for table in self._tables(targets)]).reshape(-1, 2)
        return Estimates(
            mean=found[:, :1], variance=np.maximum(found[:, 1:], 0.0), weight=np.ones((len(found), 1))
        )

    def possible_range(self, targets: Targets) -> Range:
        ends = [(table.min(axis=1).sum(), table.max(axis=1).sum()) for table in self._tables(targets)]
        low, high = np.array(ends).reshape(-1, 2).T
        return low, high

    def _moments(self, table: Floats) -> tuple[float, float]:
        """The estimate of Σ table[row, own value], and of its variance over the spins."""
        spin, rows = float(self.wheel.spin), np.arange(len(table))
        expected = (1 - spin) * table + spin * table.mean(axis=1, keepdims=True)
        square = (1 - spin) * table**2 + spin * (table**2).mean(axis=1, keepdims=True)
        variance = (square - expected**2) / (1 - spin) ** 2  # of a row, by its own value
        counted, spread = self.wheel.towards(table), self.wheel.towards(variance)
        return float(counted[rows, self.code].sum()), float(spread[rows, self.code].sum())

    def _tables(self, targets: Targets) -> list[Floats]:
        """Per target, what each row adds to it if its own value is the first, the second, …"""
        tables = [np.zeros((len(self.code), self.wheel.n_values))] * targets.n_targets
        for target, score, weights in zip(targets.target, targets.score, targets.weights, strict=True):
            one = self.scores[score]
            values = np.ones(len(one.rows)) if one.values is None else one.values
            tables[target] = tables[target].copy()
            tables[target][one.rows] += values[:, None] * weights
        return tables


def load(release: StoredRelease) -> RowModel:
    """Read and encode the table."""
    quasi, secret = release.columns("quasi"), release.columns("sensitive")
    data, values = release.read("data", [*quasi, *secret]), release.read("wheel", secret)
    code = Encoder.of({name: in_one_piece(values.column(name)) for name in secret}).find(data)
    if (code < 0).any():
        raise ReleaseCorrupt(f"{release.path}: records have values that are not on the wheel")
    own = Inversion(wheel=read(release.manifest).wheel, code=code.astype(np.int64))
    return RowModel(
        rows=CodedTable.of(data.select(quasi)),
        sensitive=CodedTable.of(values),
        estimators=Estimators(makers={"inversion": lambda: own}),
        summary=f"data: {len(code)} rows; a wheel of {own.wheel.n_values} values",
    )
