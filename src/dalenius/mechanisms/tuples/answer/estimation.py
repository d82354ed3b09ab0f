"""Estimates from views: how sums become totals, their covariances and intervals is a kernel's of each law.

Every estimate is a weighted sum over the view's rows, plus a multiple of a sum over the domain. Its
covariances have a known part, from the domain alone, and a part that is itself estimated, from the table.

`TupleModel` is a view, or several, as questions are asked of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, normal_quantile
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.tuples.answer.question import Sums, TupleQuestion, ViewRows, evaluate
from dalenius.mechanisms.tuples.answer.selection import Atoms
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes
from dalenius.mechanisms.tuples.interval import Interval
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.question.database import Workspace
from dalenius.question.model import (
    Column,
    Combination,
    Estimator,
    Estimators,
    Plane,
    Possible,
    null_sums,
    refuse_ratio_of_changes,
)
from dalenius.question.query import Query, has_ratios
from dalenius.question.targets import Range
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covariance:
    """Of two totals, per group: what the domain decides, and what is estimated, with its largest value."""

    known: Floats
    estimated: Floats
    most: Floats


class Kernel(Estimator, Protocol):
    """One way of estimating totals."""

    @property
    def spread(self) -> float:
        """The largest difference that one tuple that counts 1 can make."""

    @property
    def has_ratios(self) -> bool:
        """Whether totals are those of a table: averages and ratios of changes mean nothing."""

    def estimate(self, sums: Sums, summand: int) -> Floats:
        """A total, per group."""

    def covariance(self, sums: Sums, one: int, two: int) -> Covariance:
        """Of two totals, per group."""

    def count_intervals(self, sums: Sums, summand: int, confidence: float) -> list[Interval]:
        """Per group, an interval for how many tuples of the table the summand counts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TuplesAsked:
    """Questions whose conditions were evaluated on the domain's values."""

    questions: tuple[TupleQuestion, ...]
    divides: bool = False
    """Whether some result is an average, or a product or ratio of results."""


_FEW_TUPLES = 30
"""Below the variance of this many tuples a sum is not taken as normal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleEstimation:
    """Estimates of totals over the tuples of a table, from its views."""

    sums: tuple[Sums, ...]
    """Of each question."""
    kernel: Kernel
    confidence: float
    _known: dict[tuple[int, int, int], Covariance] = field(default_factory=dict)
    """The covariances of two totals of a question that were needed already."""
    certain = -1.0
    """Every denominator has an error worth heeding."""

    @classmethod
    def of(cls, asked: TuplesAsked, rows: ViewRows, kernel: Kernel, confidence: float) -> TupleEstimation:
        """From the rows that the views show."""
        sums = tuple(Sums(question=question, rows=rows) for question in asked.questions)
        return cls(sums=sums, kernel=kernel, confidence=confidence)

    def totals(self, question: int) -> Floats:
        """Groups × totals; a sum over tuples of which the domain has none is NaN."""
        sums = self.sums[question]
        numbers = range(len(sums.question.totals))
        found = np.stack([self.kernel.estimate(sums, k) for k in numbers], axis=1)
        nobody = np.stack([sums.count_domain(k) == 0 for k in numbers], axis=1)
        return np.where(null_sums(sums.question.totals, nobody), np.nan, found)

    def std_error(self, question: int, total: int) -> Floats:
        """Of one total, per group."""
        return _root(self._variance(question, {total: np.ones(len(self.sums[question].question.keys))}))

    def total(self, question: int, total: int, estimate: Floats) -> Column:
        """One total in every group, with its interval."""
        sums, error = self.sums[question], self.std_error(question, total)
        if sums.question.totals[total].kind == "count":
            low, high = self._count_interval(sums, total)
        else:
            low, high = self._sum_interval(question, total, estimate, error)
        # an estimate that is not possible is still the estimate: the interval reaches to it
        return Column(
            estimate=estimate, std_error=error, low=np.fmin(low, estimate), high=np.fmax(high, estimate)
        )

    def combine(self, combinations: Sequence[Combination]) -> list[Column]:
        """Linear combinations of totals, which are as normal as their many tuples make them."""
        z = normal_quantile((1 + self.confidence) / 2)
        without = {one.question for one in combinations if one.totals is None}
        own = {number: self.totals(number) for number in without}
        columns = []
        for asked in combinations:
            totals = own[asked.question] if asked.totals is None else asked.totals
            one = replace(asked, totals=totals)
            # of a NULL that is none of the totals' own it is not known whether it is one
            unknown = one.is_null & ~np.isnan(totals).any(axis=1)
            error = np.where(unknown, np.nan, _root(self._variance(one.question, _factors(one))))
            low, high = one.value - z * error, one.value + z * error
            columns.append(Column(estimate=one.value, std_error=error, low=low, high=high))
        return columns

    def covariances(self, pairs: Iterable[tuple[Combination, Floats, Combination, Floats]]) -> list[Floats]:
        """From the variances of the sums of pairs."""
        covariances = []
        for one, one_error, two, _ in pairs:
            first, second = _factors(one), _factors(two)
            none = np.zeros(len(one_error))
            both = {k: first.get(k, none) + second.get(k, none) for k in (*first, *second)}
            together, other = (self._variance(one.question, factors) for factors in (both, second))
            covariances.append((together - one_error**2 - other) / 2)
        return covariances

    def reach(self, question: int) -> Range:
        """Counts lie between 0 and what the domain has."""
        asked = self.sums[question].question
        low = np.full((len(asked.keys), len(asked.totals)), -np.inf)
        high = -low
        for k, total in enumerate(asked.totals):
            if total.kind == "count":
                high[:, k] = asked.count_domain(k)
                low[:, k] = 0.0 if self.kernel.has_ratios else -high[:, k]
        return low, high

    def possible(self, question: int) -> Possible:
        """Counts together are moved as little as can be."""
        asked, (low, high) = self.sums[question].question, self.reach(question)
        planes = [
            Plane(
                total=k,
                groups=np.arange(len(asked.keys)),
                std_error=np.maximum(self.std_error(question, k), 1e-6),
            )
            for k, total in enumerate(asked.totals)
            if total.kind == "count"
        ]
        return Possible(low=low, high=high, planes=tuple(planes))

    def is_rounding(self, column: Column) -> Bools:
        """None: errors are computed from whole numbers."""
        return np.zeros(len(column.estimate), dtype=np.bool_)

    def _variance(self, question: int, factors: dict[int, Floats]) -> Floats:
        """Of Σ factor·total, per group; the estimated part is moved to what is possible."""
        n_groups = len(self.sums[question].question.keys)
        known, estimated, most = np.zeros(n_groups), np.zeros(n_groups), np.zeros(n_groups)
        for i, by_one in factors.items():
            for j, by_two in factors.items():
                if j < i:
                    continue
                part = self._covariance(question, i, j)
                weight = by_one * by_two * (1.0 if i == j else 2.0)
                known += weight * part.known
                estimated += weight * part.estimated
                with np.errstate(invalid="ignore"):
                    most += np.where(weight == 0, 0.0, weight * part.most)
        most = np.where(np.isnan(most), np.inf, most)
        return known + np.clip(estimated, 0.0, np.maximum(most, 0.0))

    def _covariance(self, question: int, one: int, two: int) -> Covariance:
        if (question, one, two) not in self._known:
            self._known[question, one, two] = self.kernel.covariance(self.sums[question], one, two)
        return self._known[question, one, two]

    def _count_interval(self, sums: Sums, total: int) -> Range:
        found = self.kernel.count_intervals(sums, total, self.confidence)
        low, high = np.array([one[0] for one in found]), np.array([one[1] for one in found])
        return np.floor(low + 1e-6), np.ceil(high - 1e-6)

    def _sum_interval(self, question: int, total: int, estimate: Floats, error: Floats) -> Range:
        """Normal where many tuples make up the variance, else Bernstein's inequality, which covers too.

        The tuples of the table add at most M² each to the estimated part; how many there can be is bounded at
        half the allowed error probability, and Bernstein's inequality has the other half.
        """
        sums = self.sums[question]
        number = sums.question.summands[total].number
        largest = (number.largest if number is not None else 1.0) * self.kernel.spread
        miss = 1 - self.confidence
        reach = normal_quantile(1 - miss / 2) * error
        few = np.flatnonzero(error**2 <= _FEW_TUPLES * largest**2)
        if len(few):
            part = self._covariance(question, total, total)
            counts = self.kernel.count_intervals(sums, total, 1 - miss / 2)
            log_term = math.log(4 / miss)
            for i in few:
                bound = part.known[i] + min(counts[i][1] * largest**2, max(float(part.most[i]), 0.0))
                third = log_term * largest / 3
                reach[i] = third + math.sqrt(third**2 + 2 * bound * log_term)
        return estimate - reach, estimate + reach


def _factors(combination: Combination) -> dict[int, Floats]:
    """The factors of those totals that have any, per group."""
    return {i: np.nan_to_num(column) for i, column in enumerate(combination.factors.T) if column.any()}


def _root(variance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


@dataclass(frozen=True, kw_only=True, eq=False)
class TupleModel:
    """The tuples that a view shows, or all views of a series, encoded."""

    domain: Domain
    names: tuple[str, ...]
    """The columns that can be asked about."""
    codes: TupleCodes
    """Of every tuple that some view shows."""
    n_shown: tuple[int, ...]
    """How many rows each view shows."""
    counts_rows: bool
    """Whether a row that repeats another counts again."""
    estimators: Estimators[Kernel]
    noise: NoiseLaw | None = None
    """How inserted tuples spread over the domain; None: evenly."""
    together = 1  # what a question finds out about millions of rows is dropped before the next
    coins = "the coins of the mechanism alone, nothing about the data"
    more = "looser thresholds, fewer columns or a coarser domain would tell more"

    @cached_property
    def rows(self) -> ViewRows:
        """The rows, as questions look them up."""
        return ViewRows.of(self.domain, self.codes)

    def evaluate(self, queries: Sequence[Query], workspace: Workspace) -> TuplesAsked:
        """The questions as functions on the tuples of the domain."""
        atoms = Atoms(domain=self.domain, workspace=workspace)
        questions = []
        for query in queries:
            workspace.deadline.check()
            questions.append(evaluate(query, atoms, self.noise))
        return TuplesAsked(questions=tuple(questions), divides=any(map(has_ratios, queries)))

    def estimation(self, asked: TuplesAsked, estimator: str, confidence: float) -> TupleEstimation:
        """Estimate what the questions add up."""
        kernel = self.estimators[estimator]
        if asked.divides and not kernel.has_ratios:
            raise refuse_ratio_of_changes(estimator)
        return TupleEstimation.of(asked, self.rows, kernel, confidence)

    @property
    def summary(self) -> str:
        """What was read."""
        rows = ", ".join(f"{n:,}" for n in self.n_shown)
        counted = "rows" if self.counts_rows else "different rows"
        return (
            f"view: {rows} rows, of a domain of {self.domain.size:,} tuples; answers count {counted}, not "
            "clipped: an estimate may be negative"
        )


def read_codes(release: StoredRelease, domain: Domain) -> TupleCodes:
    """The tuples that a release's view shows."""
    try:
        return domain.encode(release.read("view", domain.names))
    except (pa.ArrowException, InputError) as error:
        raise ReleaseCorrupt(f"{release.path}: the view cannot be read") from error
