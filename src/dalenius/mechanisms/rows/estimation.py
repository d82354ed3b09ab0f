"""From scores and weights to numbers: every total is a target, and so is every combination of totals.

`RowModel` is a release with a row per person, as questions are asked of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Protocol

import numpy as np

from dalenius.arrays import Bools, Floats, divide
from dalenius.mechanisms.rows.lookup import Lookup
from dalenius.mechanisms.rows.summands import ScoreList, Summands, Term, summands
from dalenius.question.database import Workspace
from dalenius.question.model import (
    Column,
    Combination,
    Estimator,
    Estimators,
    Plane,
    Possible,
    Total,
    null_sums,
    refuse_ratio_of_changes,
)
from dalenius.question.query import Query, has_ratios
from dalenius.question.targets import Estimates, Range, Score, Targets, largest_error
from dalenius.tables.columns import CodedTable

_WEIGHTS_AT_ONCE = 8_000_000
_EXACT = 1e-9
"""A standard error below this part of the number of people is rounding."""


_Scaled = tuple[int, Floats, float]
"""A term whose weights are still to be multiplied by a number: groups share weights, which may be large."""


class Found(Protocol):
    """Estimates of targets, and their errors."""

    @property
    def estimate(self) -> Floats:
        """The estimate of each target."""

    @property
    def std_error(self) -> Floats:
        """Its standard error; infinite where the release tells nothing."""

    @property
    def is_posterior(self) -> bool:
        """Whether that is of a law of the truth, not of an estimate that may be impossible."""

    def intervals(self, confidence: float, possible: Range) -> Range:
        """The ends of each target's interval, which is still to be cut to what is possible."""


class TargetEstimation(Protocol):
    """Estimates of totals from the scores of one call."""

    def estimate(self, targets: Targets) -> Found:
        """Estimate linear combinations of the scores' totals by sensitive value."""

    def possible_range(self, targets: Targets) -> Range:
        """The least and the most that each target can be, whatever the secret; −∞ and ∞ where unknown."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowsAsked:
    """Questions whose conditions were evaluated on the published rows."""

    questions: tuple[Summands, ...]
    scores: tuple[Score, ...]
    divides: bool = False
    """Whether a ratio of totals is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowEstimation:
    """Estimates of every total in every group of several questions, and of what is made of them."""

    asked: RowsAsked
    source: TargetEstimation
    confidence: float
    n_rows: int
    _known: list[tuple[tuple[Column, ...], tuple[Range, ...], bool]] = field(default_factory=list)
    """All totals, once they were asked for: combinations of them need none."""
    certain = 0.03
    """Below this relative error of the denominator the first order is as good."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """Of each question, groups × totals."""
        return self._all()[0]

    def _all(self) -> tuple[tuple[Column, ...], tuple[Range, ...], bool]:
        """Estimate all totals at once."""
        if not self._known:
            questions = self.asked.questions
            targets = [terms for one in questions for terms in _every_total(one)]
            found, ranges, is_posterior = _estimate(self.source, targets, self.confidence)
            ends = np.cumsum([0, *(len(one.groups) * len(one.totals) for one in questions)]).tolist()
            columns, possible = [], []
            for one, (start, end) in zip(questions, pairwise(ends), strict=True):
                part = slice(start, end)
                shape = (len(one.groups), len(one.totals))
                own = {f.name: getattr(found, f.name)[part].reshape(shape) for f in fields(Column)}
                possible.append((ranges[0][part].reshape(shape), ranges[1][part].reshape(shape)))
                columns.append(_settle(Column(**own), possible[-1], one.totals, self.n_rows))
            self._known.append((tuple(columns), tuple(possible), is_posterior))
        return self._known[0]

    def reach(self, question: int) -> Range:
        """What the totals can be, whatever the secret: not estimated for that where they were not yet."""
        if self._known:
            return self._known[0][1][question]
        asked = self.asked.questions[question]
        found = [_bound(self.source, Targets.of(_scale(part))) for part in _pieces(_every_total(asked))]
        shape = (len(asked.groups), len(asked.totals))
        low, high = (np.concatenate(ends).reshape(shape) for ends in zip(*found, strict=True))
        return low, high

    def totals(self, question: int) -> Floats:
        """Groups × totals; a sum over people who are known to be none is NaN."""
        return self.columns[question].estimate

    def std_error(self, question: int, total: int) -> Floats:
        """Of one total, per group."""
        return self.columns[question].std_error[:, total]

    def total(self, question: int, total: int, estimate: Floats) -> Column:
        """One total in every group, with its interval."""
        low, high = self.columns[question].low[:, total], self.columns[question].high[:, total]
        error = self.std_error(question, total)
        if self._all()[2]:  # it was not cut to what is possible, as the interval was
            least, most = self.reach(question)
            error = np.fmin(error, largest_error(estimate, (least[:, total], most[:, total])))
        # an estimate that is not possible is still the estimate: the interval reaches to it
        return Column(
            estimate=estimate, std_error=error, low=np.fmin(low, estimate), high=np.fmax(high, estimate)
        )

    def combine(self, combinations: Sequence[Combination]) -> list[Column]:
        """Linear combinations of totals, each a target of its own in every group."""
        found = self._estimate_each([self._terms(one.question, one.factors) for one in combinations])
        return [
            Column(
                estimate=column.estimate,
                std_error=np.where(self._is_unknown(one), np.nan, column.std_error),
                low=column.low,
                high=column.high,
            )
            for one, column in zip(combinations, found, strict=True)
        ]

    def _is_unknown(self, combination: Combination) -> Bools:
        """What is NULL for certain has no error; other NULLs may be numbers."""
        if not combination.is_null.any():
            return combination.is_null
        uncertain = (combination.factors != 0) & (self.columns[combination.question].std_error > 0)
        return np.asarray(combination.is_null & uncertain.any(axis=1))

    def covariances(self, pairs: Iterable[tuple[Combination, Floats, Combination, Floats]]) -> list[Floats]:
        """From the errors of the sums of pairs, the first of each scaled to the error of the second."""
        listed = list(pairs)
        sums = [
            self._terms(one.question, one.factors * divide(two_error, one_error)[:, None] + two.factors)
            for one, one_error, two, two_error in listed
        ]
        covariances = []
        for (_, one_error, _, two_error), found in zip(listed, self._estimate_each(sums), strict=True):
            with np.errstate(invalid="ignore"):  # of what the release tells nothing about
                twice = (found.std_error**2 - 2 * two_error**2) * one_error
                covariances.append(divide(twice, 2 * two_error))
        return covariances

    def possible(self, question: int) -> Possible:
        """The same, and which counts add up to the rows that they are of."""
        low, high = self.reach(question)
        return Possible(low=low, high=high, planes=tuple(self._planes(question)))

    def _planes(self, question: int) -> Iterable[Plane]:
        """Counts over the same rows whose sensitive values are all values, each once: they add up to rows."""
        asked, error = self.asked.questions[question], self.columns[question].std_error
        by_score: dict[tuple[int, int], list[tuple[int, Floats]]] = {}
        for group, own in enumerate(asked.groups.values()):
            for k, terms in enumerate(own):
                if asked.totals[k].kind == "count" and len(terms) == 1:
                    score, weights = terms[0]
                    by_score.setdefault((k, score), []).append((group, weights))
        for (k, _), members in by_score.items():
            if (np.sum([weights for _, weights in members], axis=0) == 1).all():
                groups = np.array([group for group, _ in members])
                yield Plane(total=k, groups=groups, std_error=error[groups, k])

    def is_rounding(self, column: Column) -> Bools:
        """Which errors are too small to be any."""
        return _is_exact(column, self.n_rows)

    def _terms(self, question: int, factors: Floats) -> list[list[_Scaled]]:
        """The linear combination of totals with these factors (groups × totals), group by group."""
        return [
            [
                (score, weights, float(factors[i, k]))
                for k, parts in enumerate(own)
                if factors[i, k] != 0 and np.isfinite(factors[i, k])
                for score, weights in parts
            ]
            for i, own in enumerate(self.asked.questions[question].groups.values())
        ]

    def _estimate_each(self, terms: Sequence[list[list[_Scaled]]]) -> list[Column]:
        """Estimate lists of targets all at once, and give each list its own column."""
        found, _, _ = _estimate(
            self.source, [target for targets in terms for target in targets], self.confidence
        )
        ends = np.cumsum([0, *(len(targets) for targets in terms)])
        return [
            Column(**{field.name: getattr(found, field.name)[start:end] for field in fields(Column)})
            for start, end in pairwise(ends.tolist())
        ]


def _every_total(asked: Summands) -> list[list[_Scaled]]:
    """Each total of each group as a target."""
    return [
        [(score, weights, 1.0) for score, weights in parts] for own in asked.groups.values() for parts in own
    ]


def _pieces(terms: list[list[_Scaled]]) -> Iterator[list[list[_Scaled]]]:
    """No more targets at once than their weights fit into memory."""
    n_values = max((len(weights) for parts in terms for _, weights, _ in parts), default=1)
    filled = np.cumsum([len(parts) for parts in terms]) * n_values // _WEIGHTS_AT_ONCE
    starts = np.flatnonzero(np.diff(filled, prepend=-1)).tolist() or [0]
    for start, end in pairwise([*starts, len(terms)]):
        yield terms[start:end]


def _estimate(
    source: TargetEstimation, terms: list[list[_Scaled]], confidence: float
) -> tuple[Column, Range, bool]:
    """Estimate targets given by their terms."""
    found = [_estimate_together(source, Targets.of(_scale(part)), confidence) for part in _pieces(terms)]
    if len(found) == 1:
        return found[0]
    columns = {
        field.name: np.concatenate([getattr(c, field.name) for c, _, _ in found]) for field in fields(Column)
    }
    possible = (
        np.concatenate([low for _, (low, _), _ in found]),
        np.concatenate([high for _, (_, high), _ in found]),
    )
    return Column(**columns), possible, found[0][2]


def _scale(terms: Sequence[list[_Scaled]]) -> list[list[Term]]:
    return [
        [(score, weights if factor == 1 else weights * factor) for score, weights, factor in parts]
        for parts in terms
    ]


def _estimate_together(
    source: TargetEstimation, targets: Targets, confidence: float
) -> tuple[Column, Range, bool]:
    if not len(targets.target):
        possible = _bound(source, targets)
        nothing = possible[0]
        return Column(estimate=nothing, std_error=nothing, low=nothing, high=nothing), possible, False
    estimates = source.estimate(targets)  # first: whom it counts in which buckets is not counted again
    possible = _bound(source, targets)
    found = bound_by(estimates, possible)
    low, high = found.intervals(confidence, possible)
    column = Column(estimate=found.estimate, std_error=found.std_error, low=low, high=high)
    return column, possible, found.is_posterior


def bound_by(found: Found, possible: Range) -> Found:
    """Estimates of targets that can be in this range: it is worked out once, for those who need it."""
    return found.bound(possible) if isinstance(found, Estimates) else found


def _bound(source: TargetEstimation, targets: Targets) -> Range:
    if not len(targets.target):
        return np.zeros(targets.n_targets), np.zeros(targets.n_targets)
    return source.possible_range(targets)


def _settle(found: Column, possible: Range, totals: tuple[Total, ...], n_rows: int) -> Column:
    """Totals of a question (groups × totals): counts are whole, intervals possible, sums over nobody NULL."""
    is_count = np.array([total.kind == "count" for total in totals], dtype=bool)
    known = is_count & _is_exact(found, n_rows)
    estimate = np.where(known, np.rint(found.estimate), found.estimate)
    settled = is_count & (possible[0] == possible[1])  # whatever rounding made of it
    estimate = np.where(settled, possible[0], estimate)
    low, high = np.maximum(found.low, possible[0]), np.minimum(found.high, possible[1])
    # a count is below a whole number as often as its law is below half a one less; a millionth is rounding
    low = np.where(is_count, np.floor(np.minimum(low + 0.5, estimate) + 1e-6), low)
    high = np.where(is_count, np.ceil(np.maximum(high - 0.5, estimate) - 1e-6), high)
    null = null_sums(totals, (estimate == 0) & (found.std_error == 0))
    return Column(
        estimate=np.where(null, np.nan, estimate),
        std_error=np.where(null | settled, 0.0, found.std_error),
        # where the estimate is impossible, the nearest possible number is all the interval that is left
        low=np.where(null, np.nan, np.minimum(low, possible[1])),
        high=np.where(null, np.nan, np.maximum(high, possible[0])),
    )


def _is_exact(column: Column, n_rows: int) -> Bools:
    """Which estimates have no error beyond rounding."""
    scale = np.fmax(np.abs(column.estimate), 1.0) + 1e-6 * n_rows
    return np.asarray(column.std_error <= _EXACT * scale * np.sqrt(n_rows))


class RowEstimator(Estimator, Protocol):
    """One way of estimating totals from a release's rows."""

    def estimation(self, scores: Sequence[Score]) -> TargetEstimation:
        """Prepare estimates from scores of the published rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowModel:
    """The rows and sensitive values of such a release, encoded."""

    rows: CodedTable
    """The quasi columns: a row per published row, or per kind of rows that are the same."""
    sensitive: CodedTable
    """The sensitive columns, a row per sensitive value."""
    estimators: Estimators[RowEstimator]
    """Of scores of these rows."""
    summary: str
    n_people: int | None = None
    """How many rows were published, where `rows` are kinds of them."""
    more: str = "looser thresholds would tell more"
    together = 128
    coins = "the coins of the publisher alone"

    @property
    def names(self) -> tuple[str, ...]:
        """The quasi columns, then the sensitive ones."""
        return (*self.rows.columns, *self.sensitive.columns)

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> RowsAsked:
        """What the questions add up; questions about the same rows share their scores."""
        lookup = Lookup(rows=self.rows, sensitive=self.sensitive, workspace=workspace)
        scores = ScoreList()
        questions = []
        for query in queries:
            workspace.deadline.check()
            questions.append(summands(lookup, query, scores))
        return RowsAsked(
            questions=tuple(questions), scores=tuple(scores.scores), divides=any(map(has_ratios, queries))
        )

    def estimation(self, asked: RowsAsked, estimator: str, confidence: float) -> RowEstimation:
        """Estimate what the questions add up."""
        chosen = self.estimators[estimator]
        if asked.divides and getattr(chosen, "is_change", False):
            raise refuse_ratio_of_changes(estimator)
        source = chosen.estimation(asked.scores)
        n_rows = self.rows.n_rows if self.n_people is None else self.n_people
        return RowEstimation(asked=asked, source=source, confidence=confidence, n_rows=n_rows)
