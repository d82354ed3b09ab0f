"""What a release in memory answers: for each condition and each sensitive value, the estimated count.

The same plans, deals and estimators as a published release has; only files are left out. The papers' pools of
count queries are asked of them, cell by cell as `compare` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Protocol

import numpy as np

from dalenius.arrays import Bools, Floats, Int32s, Ints
from dalenius.evaluate.original import CountQuestion, Original
from dalenius.evaluate.workload import AnatomyWorkload, Cells, EqualityPool
from dalenius.mechanisms.bucketize.apply import Assigner, Layout
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import plan_anatomy
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.dealing import deal
from dalenius.mechanisms.perturb.apply import Perturber
from dalenius.mechanisms.perturb.channel import Laws
from dalenius.mechanisms.perturb.estimate import totals_of_products
from dalenius.mechanisms.perturb.plan.layout import PerturbPlan
from dalenius.mechanisms.suppress.d_suppression import minimal_suppression
from dalenius.randomness import Randomness
from dalenius.reproduce.census import sensitive_codes, value_counts


class Answering(Protocol):
    """A release in memory."""

    def by_value(self, conditions: Sequence[Ints]) -> Floats:
        """Values × conditions, the estimated counts; a condition is given as the records that satisfy it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrueCounts:
    """The table itself."""

    sensitive: Int32s
    n_values: int

    def by_value(self, conditions: Sequence[Ints]) -> Floats:
        """The true counts."""
        codes = self.sensitive.astype(np.int64)  # once, instead of in every bincount
        counted = [np.bincount(codes[rows], minlength=self.n_values) for rows in conditions]
        return np.stack(counted, axis=1).astype(np.float64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bucketized:
    """Records in buckets, with Anatomy's estimator."""

    buckets: Buckets
    place: Ints
    """Where each record of the table is among the published ones; -1: it is withheld."""

    @classmethod
    def of(cls, plan: BucketPlan, sensitive: Int32s, randomness: Randomness) -> Bucketized:
        """Put all records into the plan's buckets."""
        layout = Layout.shuffled(plan, randomness)
        home = Assigner(layout, randomness).assign(sensitive) - 1
        bucket, value, count = (np.concatenate(parts) for parts in zip(*layout.contents(), strict=True))
        return cls(buckets=Buckets.of(home, bucket - 1, value, count), place=np.arange(len(sensitive)))

    def by_value(self, conditions: Sequence[Ints]) -> Floats:
        """Σ_g c(g, condition)·c(g, value)/|g|."""
        types, buckets = self._type_of_record, self.buckets
        n_types = len(buckets.copies)
        # the records without a type are counted last, and cut off
        counted = [np.bincount(types[rows], minlength=n_types + 1)[:n_types] for rows in conditions]
        share = np.stack(counted, axis=1) / buckets.type_size[:, None]
        return buckets.composition.transpose() @ share

    @cached_property
    def _type_of_record(self) -> Ints:
        """The type of each record's bucket; one beyond the last for those that are withheld."""
        types = self.buckets.type_of[self.buckets.row_bucket].astype(np.int64)
        return np.append(types, len(self.buckets.copies))[self.place]


@dataclass(frozen=True, kw_only=True, eq=False)
class Perturbed:
    """Records with values perturbed part by part."""

    laws: Laws
    cells: Ints

    def by_value(self, conditions: Sequence[Ints]) -> Floats:
        """The sum of the parts' reconstructions."""
        counted = [np.bincount(self.cells[rows], minlength=len(self.laws.code)) for rows in conditions]
        return np.asarray(self._of_one_record @ np.stack(counted, axis=1))

    @classmethod
    def of(cls, plan: PerturbPlan, sensitive: Int32s, randomness: Randomness) -> Perturbed:
        """Perturb all records."""
        parts, published = Perturber(plan, randomness).perturb(sensitive)
        laws = Laws.of(plan.channels, plan.n_values)
        return cls(laws=laws, cells=laws.cells(parts, published))

    @cached_property
    def _of_one_record(self) -> Floats:
        """Values × cells: what a record adds to the estimates, which are sums over records."""
        each, laws = np.eye(self.laws.n_values), self.laws
        found = [totals_of_products(laws, np.array([cell]), None, each) for cell in range(len(laws.code))]
        return np.stack([totals.estimate for totals in found], axis=1)


def anatomy(original: Original, ell: int, randomness: Randomness) -> Bucketized:
    """Anatomy, after minimal suppression where the table is too skewed: a baseline, nothing to publish.

    Minimal suppression tells which value was the commonest (section 1.2 of the suppression paper).
    """
    codes, counts = sensitive_codes(original), value_counts(original)
    kept = minimal_suppression(counts, ell)
    quota = np.stack([np.array(kept), np.array(counts) - np.array(kept)], axis=1)
    is_kept = deal(codes, quota, randomness.stream("withhold")) == 0
    problem = BucketProblem(counts=kept, thresholds=(Fraction(1, ell),) * len(kept), max_bucket=2 * ell)
    found = Bucketized.of(plan_anatomy(problem), codes[is_kept], randomness)
    place = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
    return Bucketized(buckets=found.buckets, place=place)


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionPool:
    """Conditions on quasi-identifiers, as the records that satisfy them, and what is counted there."""

    conditions: list[Ints]
    is_counted: Bools | None
    """Values × conditions: which sensitive values a query counts together; None: each by itself."""
    original: Original

    def cells(self, release: Answering) -> Cells:
        """True and estimated answers, side by side."""
        scale = np.full(len(self._truth), float(self.original.n_rows))
        return Cells(truth=self._truth, estimate=self._answers(release), scale=scale)

    @cached_property
    def _truth(self) -> Floats:
        codes = sensitive_codes(self.original)
        return self._answers(TrueCounts(sensitive=codes, n_values=int(codes.max()) + 1))

    def _answers(self, release: Answering) -> Floats:
        by_value = release.by_value(self.conditions)
        if self.is_counted is None:
            return by_value.ravel()
        return np.asarray(np.where(self.is_counted, by_value, 0.0).sum(axis=0))


def anatomy_pool(original: Original, n_queries: int, stream: np.random.Generator) -> QuestionPool:
    """Anatomy's random OR-predicates on 1 to 7 columns, at an expected selectivity of 1 %."""
    return pool_of(original, AnatomyWorkload(n_questions=n_queries).draw(original, stream))


def pool_of(original: Original, queries: Sequence[CountQuestion]) -> QuestionPool:
    """Queries, each of which counts some of the sensitive values together."""
    (sensitive,) = original.sensitive
    is_counted = np.zeros((len(original.cells[sensitive]), len(queries)), dtype=bool)
    conditions = []
    for number, query in enumerate(queries):
        asked = dict(query.conditions)
        is_counted[list(asked.pop(sensitive)), number] = True
        conditions.append(original.rows(CountQuestion(conditions=tuple(asked.items()))))
    return QuestionPool(conditions=conditions, is_counted=is_counted, original=original)


def equality_pool(original: Original, n_conditions: int, stream: np.random.Generator) -> QuestionPool:
    """The perturbation paper's pool (10.9): A = a for 1 to 3 columns, with each sensitive value."""
    drawn = [EqualityPool().condition(original, stream) for _ in range(n_conditions)]
    return QuestionPool(conditions=[original.rows(one) for one in drawn], is_counted=None, original=original)
