"""Asking a series of batches at once: every total is the sum of the batches' totals.

Each batch was drawn by itself, so estimates and variances add. Averages, conditions on groups and everything
else are then made of the summed totals, as for a single release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa

from dalenius.ask.bucketized import BucketizedModel
from dalenius.ask.columns import Table
from dalenius.ask.model import Estimation, Model
from dalenius.ask.totals import Floats
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.bucketize.estimate_buckets import Ints, Score
from dalenius.mechanisms.bucketize.estimate_targets import Estimates, Targets, as_targets_by_components
from dalenius.release.reader import StoredRelease


def load_buckets(release: StoredRelease) -> BucketizedModel | BatchesModel:
    """A bucketized release, or all batches of a series that was opened whole."""
    if not release.earlier:
        return BucketizedModel.load(release)
    return BatchesModel.of([BucketizedModel.load(one) for one in (*release.earlier, release)])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchesModel:
    """Several releases about different people, as one."""

    rows: Table
    sensitive: Table
    batches: tuple[Model, ...]
    first_rows: tuple[int, ...]
    """Where each batch's rows begin, and where the last ends."""
    codes: tuple[Ints, ...]
    """For each batch, which of all sensitive values its own are."""

    @classmethod
    def of(cls, models: Sequence[Model]) -> BatchesModel:
        """Put the batches' rows one after the other, and find out which values they share."""
        values = Table.of(_joined([_cells(model.sensitive) for model in models]))
        known = values.combined(list(values.columns))
        ends = list(accumulate((model.sensitive.n_rows for model in models), initial=0))
        codes = known.codes.astype(np.int64)
        return cls(
            rows=Table.of(_joined([_cells(model.rows) for model in models])),
            sensitive=Table.of(pa.table(dict(known.values))),
            batches=tuple(models),
            first_rows=tuple(accumulate((model.rows.n_rows for model in models), initial=0)),
            codes=tuple(codes[begin:end] for begin, end in pairwise(ends)),
        )

    @property
    def default_estimator(self) -> str:
        """That of every batch."""
        return self.batches[0].default_estimator

    @property
    def estimators(self) -> tuple[str, ...]:
        """Those of every batch."""
        return self.batches[0].estimators

    def estimation(self, scores: Sequence[Score], estimator: str) -> _Sum:
        """Prepare the estimates of each batch from its own rows."""
        of_batches = zip(*(self._split(score) for score in scores), strict=True)
        parts = tuple(
            batch.estimation(own, estimator) for batch, own in zip(self.batches, of_batches, strict=True)
        )
        return _Sum(parts=parts, codes=self.codes)

    def assumption(self, estimator: str) -> str:
        """What the intervals rest on."""
        return f"in every batch: {self.batches[0].assumption(estimator)}"

    def formula(self, estimator: str) -> str:
        """How the estimate comes about."""
        of_batch = self.batches[0].formula(estimator)
        return f"the sum over the batches, with the sum of their variances, of: {of_batch}"

    def summary(self) -> str:
        """What was read."""
        parts = [f"batch {number}: {batch.summary()}" for number, batch in enumerate(self.batches, start=1)]
        return "\n      ".join([f"{len(parts)} batches, {self.rows.n_rows} rows in all", *parts])

    def _split(self, score: Score) -> list[Score]:
        """The score on each batch's own rows."""
        order = np.argsort(score.rows, kind="stable")
        rows = score.rows[order]
        values = None if score.values is None else score.values[order]
        ends = np.searchsorted(rows, self.first_rows)
        return [
            Score(rows=rows[begin:end] - first, values=None if values is None else values[begin:end])
            for (begin, end), first in zip(pairwise(ends), self.first_rows, strict=False)
        ]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sum:
    """Estimates that are sums over batches."""

    parts: tuple[Estimation, ...]
    codes: tuple[Ints, ...]

    def estimate(self, targets: Targets) -> Estimates:
        found = [part.estimate(own) for part, own in self._with_own_targets(targets)]
        mean = np.sum([one.estimate for one in found], axis=0)
        variance = np.sum([one.std_error**2 for one in found], axis=0)
        return Estimates(
            mean=as_targets_by_components(mean),
            variance=as_targets_by_components(variance),
            weight=np.ones((targets.n_targets, 1)),
        )

    def possible_range(self, targets: Targets) -> tuple[Floats, Floats]:
        ranges = [part.possible_range(own) for part, own in self._with_own_targets(targets)]
        lows, highs = zip(*ranges, strict=True)
        return np.sum(lows, axis=0), np.sum(highs, axis=0)

    def _with_own_targets(self, targets: Targets) -> list[tuple[Estimation, Targets]]:
        return [
            (part, replace(targets, weights=targets.weights[:, codes]))
            for part, codes in zip(self.parts, self.codes, strict=True)
        ]


def _cells(table: Table) -> pa.Table:
    return pa.table(
        {name: coded.values[name].take(pa.array(coded.codes)) for name, coded in table.columns.items()}
    )


def _joined(tables: Sequence[pa.Table]) -> pa.Table:
    try:
        return pa.concat_tables(tables)
    except pa.ArrowInvalid as error:
        raise ReleaseCorrupt("the batches of the series do not have the same columns") from error
