"""Asking a perturbed release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.ask.columns import Table
from dalenius.ask.perturbed_terms import merge_terms, without_overlap
from dalenius.ask.totals import Floats
from dalenius.errors import DaleniusError, ReleaseCorrupt
from dalenius.mechanisms.bucketize.estimate_buckets import Ints, Score
from dalenius.mechanisms.bucketize.estimate_targets import Range, Targets
from dalenius.mechanisms.perturb.estimate import Term, Totals, total_of_terms, totals_of_products
from dalenius.mechanisms.perturb.interval import Ends, hoeffding_ends, score_ends
from dalenius.mechanisms.perturb.laws import Laws
from dalenius.mechanisms.perturb.public import PublicParts
from dalenius.release.reader import StoredRelease
from dalenius.sql import identifiers

_ENDS: dict[str, Callable[[Totals, float], Ends]] = {
    "reconstruction": score_ends,
    "hoeffding": hoeffding_ends,
}
_FORMULA = (
    "a record published as y in part j counts ((m_j-1+gamma_j)[x=y] - 1)/(gamma_j-1) towards value x, and 0 "
    "towards values that the part does not have: unbiased, and not cut at 0. "
)
_INTERVALS = {
    "reconstruction": "Interval: score interval of a total with a correction for continuity; Fieller's for "
    "AVG and ratios, other arithmetic of totals to first order",
    "hoeffding": "Interval: Hoeffding's inequality, which holds for any number of records (for ratios and "
    "arithmetic of totals to first order)",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerturbedModel:
    """The published table of a perturbed release, encoded."""

    rows: Table
    sensitive: Table
    laws: Laws
    cells: Ints
    """The part and value of each published row."""
    default_estimator = "reconstruction"
    estimators = tuple(_ENDS)

    @classmethod
    def load(cls, release: StoredRelease) -> PerturbedModel:
        """Read and encode the table and the parts."""
        quasi, secret = release.columns("quasi"), release.columns("sensitive")
        with release.connect() as connection:
            public = PublicParts.read(connection, release.manifest)
            data = connection.sql(
                f"SELECT {identifiers((*quasi, *secret, 'part'))} FROM data"
            ).to_arrow_table()
        laws = Laws.of(public.channels, public.values.num_rows)
        codes = _codes(data.select(list(secret)), public.values)
        parts = data.column("part").fill_null(0).to_numpy() - 1
        if (codes < 0).any() or parts.min() < 0 or parts.max() >= len(public.channels):
            raise ReleaseCorrupt(f"{release.path}: the table and the manifest do not have the same parts")
        try:
            cells = laws.cells(parts, codes)
        except DaleniusError as error:
            raise ReleaseCorrupt(f"{release.path}: {error.message}") from error
        return cls(
            rows=Table.of(data.select(list(quasi))),
            sensitive=Table.of(public.values),
            laws=laws,
            cells=cells,
        )

    def estimation(self, scores: Sequence[Score], estimator: str) -> _Estimation:
        """Prepare estimates from scores of the published rows."""
        return _Estimation(model=self, scores=tuple(scores), ends=_ENDS[estimator])

    def assumption(self, estimator: str) -> None:
        """Nothing: the intervals rest on the publisher's coins, whose law is public."""

    def formula(self, estimator: str) -> str:
        """How the estimate comes about."""
        return _FORMULA + _INTERVALS[estimator]

    def summary(self) -> str:
        """What was read."""
        keep = self.laws.keep
        return (
            f"data: {self.rows.n_rows} rows in {len(keep)} parts that keep {keep.min():.2%} to "
            f"{keep.max():.2%} of their values; {self.sensitive.n_rows} sensitive values"
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """Estimates of targets."""

    totals: Totals
    ends: Callable[[Totals, float], Ends]

    @property
    def estimate(self) -> Floats:
        return self.totals.estimate

    @property
    def std_error(self) -> Floats:
        return np.sqrt(self.totals.variance)

    def intervals(self, confidence: float, possible: Range) -> Range:  # noqa: ARG002  (they heed it already)
        return self.ends(self.totals, confidence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Estimation:
    model: PerturbedModel
    scores: tuple[Score, ...]
    ends: Callable[[Totals, float], Ends]
    _known: list[tuple[Targets, Totals]] = field(default_factory=list)
    """The last targets and their totals: what is estimated is then asked for its range."""

    def estimate(self, targets: Targets) -> _Found:
        return _Found(totals=self._totals(targets), ends=self.ends)

    def possible_range(self, targets: Targets) -> tuple[Floats, Floats]:
        totals = self._totals(targets)
        return totals.low, totals.high

    def _totals(self, targets: Targets) -> Totals:
        if not self._known or self._known[0][0] is not targets:
            self._known[:] = [(targets, self._computed(targets))]
        return self._known[0][1]

    def _computed(self, targets: Targets) -> Totals:
        """Targets of one term share the work of their score; the others are added up record by record."""
        pieces = []
        by_score: dict[int, list[int]] = {}
        bounds = np.searchsorted(targets.target, np.arange(targets.n_targets + 1))
        for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
            if end - begin == 1:
                by_score.setdefault(int(targets.score[begin]), []).append(begin)
            elif end > begin:
                pieces.append((np.array([number]), self._total(targets, range(begin, end))))
        for score, terms_of_score in by_score.items():
            found = self._products(self.scores[score], targets.weights[terms_of_score])
            pieces.append((targets.target[terms_of_score], found))
        return Totals.joined(pieces, targets.n_targets)

    def _products(self, score: Score, weights: Floats) -> Totals:
        return totals_of_products(self.model.laws, self.model.cells[score.rows], score.values, weights)

    def _total(self, targets: Targets, terms: Sequence[int]) -> Totals:
        merged = merge_terms([(self.scores[targets.score[t]], targets.weights[t]) for t in terms])
        if not merged:  # the terms cancel
            return Totals.joined([], 1)
        if len(merged) == 1:
            ((score, weights),) = merged
            return self._products(score, weights[None, :])
        rows = np.unique(np.concatenate([score.rows for score, _ in merged]))
        parts = [
            Term(places=np.searchsorted(rows, score.rows), scores=score.values, weights=weights)
            for score, weights in without_overlap(merged)
        ]
        return total_of_terms(self.model.laws, self.model.cells[rows], parts)


def _codes(cells: pa.Table, values: pa.Table) -> Ints:
    """Which of the listed values each row has; -1: none of them."""
    codes = np.zeros(cells.num_rows, dtype=np.int64)
    known = np.zeros(values.num_rows, dtype=np.int64)
    for name in values.column_names:
        listed = values.column(name).combine_chunks().unique()
        for_rows, for_values = (
            pc.index_in(table.column(name), value_set=listed).fill_null(-1).to_numpy().astype(np.int64)
            for table in (cells, values)
        )
        combined = np.concatenate([known, codes]) * (len(listed) + 1)
        combined += np.concatenate([for_values, for_rows]) + 1
        _, ranks = np.unique(combined, return_inverse=True)
        known, codes = ranks[: len(known)], ranks[len(known) :]
    order = np.argsort(known)
    found = np.minimum(np.searchsorted(known[order], codes), len(known) - 1)
    return np.where(known[order][found] == codes, order[found], -1)
