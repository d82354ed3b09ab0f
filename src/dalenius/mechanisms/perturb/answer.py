"""Terms of a target brought into the form that estimates need: few, and no two about the same value.

Asking a perturbed release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.errors import DaleniusError, ReleaseCorrupt
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.channel import Laws
from dalenius.mechanisms.perturb.estimate import (
    Ends,
    Term,
    Totals,
    hoeffding_ends,
    score_ends,
    total_of_terms,
    totals_of_products,
)
from dalenius.mechanisms.rows.estimation import RowModel
from dalenius.question.model import Estimators
from dalenius.question.targets import Range, Score, Targets
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifiers
from dalenius.tables.codes import Encoder, in_one_piece
from dalenius.tables.columns import CodedTable

ScoredTerm = tuple[Score, Floats]
"""A score of the rows, and the weight of each sensitive value."""


def merge_terms(terms: Sequence[ScoredTerm]) -> list[ScoredTerm]:
    """The same target in fewer terms: those with one score, then those with one direction of weights."""
    by_score: dict[tuple[bytes, bytes], ScoredTerm] = {}
    for score, weights in terms:
        key = score.rows.tobytes(), b"" if score.values is None else score.values.tobytes()
        known = by_score.get(key)
        by_score[key] = (score, weights if known is None else known[1] + weights)
    by_direction: dict[bytes, ScoredTerm] = {}
    for score, weights in by_score.values():
        nonzero = np.flatnonzero(weights)
        if not len(nonzero):
            continue
        scale = float(weights[nonzero[0]])
        direction = weights / scale
        scaled = _scale(score, scale)
        same = by_direction.get(direction.tobytes())
        by_direction[direction.tobytes()] = (scaled if same is None else add_up([same[0], scaled]), direction)
    return list(by_direction.values())


def without_overlap(terms: Sequence[ScoredTerm]) -> list[ScoredTerm]:
    """The same target in terms that share no value.

    Where terms overlap, values on which all of them say the same form an atom, with the sum of their scores.

    >>> one = Score(rows=np.array([0, 1]))
    >>> two = Score(rows=np.array([1]), values=np.array([5.0]))
    >>> found = without_overlap([(one, np.array([1.0, 1.0])), (two, np.array([0.0, 1.0]))])
    >>> [(score.values.tolist(), weights.tolist()) for score, weights in found]
    [([1.0, 1.0], [1.0, 0.0]), ([1.0, 6.0], [0.0, 1.0])]
    """
    stacked = np.stack([weights for _, weights in terms])
    if np.count_nonzero(stacked, axis=0).max() <= 1:
        return list(terms)
    columns, atom_of = np.unique(stacked, axis=1, return_inverse=True)
    found = []
    for atom, column in enumerate(columns.T):
        if column.any():
            parts = [_scale(terms[t][0], float(column[t])) for t in np.flatnonzero(column).tolist()]
            found.append((add_up(parts), (atom_of.ravel() == atom).astype(np.float64)))
    return found


def add_up(scores: Sequence[Score]) -> Score:
    """The sum of scores, on all their rows."""
    rows, places = np.unique(np.concatenate([score.rows for score in scores]), return_inverse=True)
    values = np.concatenate([_numbers(score) for score in scores])
    return Score(rows=rows, values=np.bincount(places, values, len(rows)).astype(np.float64))


def _scale(score: Score, scale: float) -> Score:
    return score if scale == 1 else Score(rows=score.rows, values=_numbers(score) * scale)


def _numbers(score: Score) -> Floats:
    return np.ones(len(score.rows)) if score.values is None else score.values


_ENDS: dict[str, Callable[[Totals, float], Ends]] = {
    "reconstruction": score_ends,
    "hoeffding": hoeffding_ends,
}
_FORMULA = (
    "a record published as y in part j counts ((m_j-1+gamma_j)[x=y] - 1)/(gamma_j-1) towards value x, and 0 "
    "towards values that the part does not have: unbiased, and not cut at 0. "
)
_WEIGHTED = (
    "a record published as y counts ([x=y] - q_x)/p towards value x, p the coin that keeps a value and q_x "
    "how often another becomes x: unbiased, and not cut at 0. "
)
_INTERVALS = {
    "reconstruction": "Interval: score interval of a total with a correction for continuity; Fieller's for "
    "AVG and ratios, other arithmetic of totals to first order",
    "hoeffding": "Interval: Hoeffding's inequality, which holds for any number of records (for ratios and "
    "arithmetic of totals to first order)",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PerturbedRows:
    """The published table of a perturbed release, encoded."""

    rows: CodedTable
    sensitive: CodedTable
    laws: Laws
    cells: Ints
    """The part and value of each published row."""

    @classmethod
    def load(cls, release: StoredRelease) -> PerturbedRows:
        """Read and encode the table and the parts."""
        quasi, secret = release.columns("quasi"), release.columns("sensitive")
        parts = published.read(release.manifest)
        with release.connect() as connection:
            values = parts.values(connection)
            data = connection.sql(
                f"SELECT {identifiers((*quasi, *secret, 'part'))} FROM data"
            ).to_arrow_table()
        laws = Laws.of(parts.channels, values.num_rows)
        codes = Encoder.of(dict(zip(secret, map(in_one_piece, values.columns), strict=True))).find(data)
        part = data.column("part").fill_null(0).to_numpy() - 1
        if (codes < 0).any() or part.min() < 0 or part.max() >= len(parts.channels):
            raise ReleaseCorrupt(f"{release.path}: the table and the manifest do not have the same parts")
        try:
            cells = laws.cells(part, codes.astype(np.int64))
        except DaleniusError as error:
            raise ReleaseCorrupt(f"{release.path}: {error.message}") from error
        return cls(
            rows=CodedTable.of(data.select(list(quasi))),
            sensitive=CodedTable.of(values),
            laws=laws,
            cells=cells,
        )

    def model(self) -> RowModel:
        """As questions are asked of it."""
        keep = self.laws.keep
        summary = (
            f"data: {self.rows.n_rows} rows in {len(keep)} parts that keep {keep.min():.2%} to "
            f"{keep.max():.2%} of their values; {self.sensitive.n_rows} sensitive values"
        )
        makers = {name: partial(_PerturbEstimator, name=name, release=self) for name in _ENDS}
        return RowModel(
            rows=self.rows, sensitive=self.sensitive, estimators=Estimators(makers=makers), summary=summary
        )


def load(release: StoredRelease) -> RowModel:
    """The model of a release."""
    return PerturbedRows.load(release).model()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PerturbEstimator:
    name: str
    release: PerturbedRows
    assumption = None  # the intervals rest on the publisher's coins, whose law is public

    @property
    def formula(self) -> str:
        formula = _FORMULA if self.release.laws.drawn is None else _WEIGHTED
        return formula + _INTERVALS[self.name]

    def estimation(self, scores: Sequence[Score]) -> _PerturbEstimation:
        return _PerturbEstimation(release=self.release, scores=tuple(scores), ends=_ENDS[self.name])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PerturbTotals:
    """Estimates of targets."""

    totals: Totals
    ends: Callable[[Totals, float], Ends]
    is_posterior = False

    @property
    def estimate(self) -> Floats:
        return self.totals.estimate

    @property
    def std_error(self) -> Floats:
        return np.sqrt(self.totals.variance)

    def intervals(self, confidence: float, possible: Range) -> Range:  # noqa: ARG002  (they heed it already)
        return self.ends(self.totals, confidence)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PerturbEstimation:
    release: PerturbedRows
    scores: tuple[Score, ...]
    ends: Callable[[Totals, float], Ends]
    _known: list[tuple[Targets, Totals]] = field(default_factory=list)
    """The last targets and their totals: what is estimated is then asked for its range."""

    def estimate(self, targets: Targets) -> _PerturbTotals:
        return _PerturbTotals(totals=self._totals(targets), ends=self.ends)

    def possible_range(self, targets: Targets) -> tuple[Floats, Floats]:
        totals = self._totals(targets)
        return totals.low, totals.high

    def _totals(self, targets: Targets) -> Totals:
        if not self._known or self._known[0][0] is not targets:
            self._known[:] = [(targets, self._compute(targets))]
        return self._known[0][1]

    def _compute(self, targets: Targets) -> Totals:
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
        return totals_of_products(self.release.laws, self.release.cells[score.rows], score.values, weights)

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
        return total_of_terms(self.release.laws, self.release.cells[rows], parts)
