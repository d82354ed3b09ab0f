"""Releases of one synthetic table by every mechanism, each seed other coins, and the intervals they give.

Where the rows of all releases are the table's, releases are drawn in memory by the mechanisms' own kernels,
and questions are evaluated on the rows once. Suppression withholds other rows each time: such releases are
published and opened like any other.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from bench.coverage_questions import QUASI, people, questions, truths
from dalenius.ask import answer_asked, open_for_asking
from dalenius.mechanisms.alphabeta import answer as alphabeta
from dalenius.mechanisms.alphabeta.apply import first_view, next_view, union
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView
from dalenius.mechanisms.bucketize.answer import BucketizedRows
from dalenius.mechanisms.bucketize.apply import Assigner, Layout
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.fakes.estimate import PublishedFakes
from dalenius.mechanisms.bucketize.fakes.plan import MixedLayout
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan
from dalenius.mechanisms.frapp import answer as frapp
from dalenius.mechanisms.frapp.apply import frapp_view
from dalenius.mechanisms.frapp.plan import FrappLaw
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.mechanisms.perturb.answer import PerturbedRows
from dalenius.mechanisms.perturb.apply import Perturber
from dalenius.mechanisms.perturb.channel import Laws
from dalenius.mechanisms.perturb.mechanism import PerturbTablePlan
from dalenius.mechanisms.rows.estimation import Found, RowEstimator, RowModel, TargetEstimation
from dalenius.mechanisms.tuples.answer.estimation import TupleModel
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.plain import Stated
from dalenius.question.answer import Answer
from dalenius.question.database import Database, Deadline, Limits, Request, Workspace
from dalenius.question.model import Asked, Estimators, Model
from dalenius.question.query import Query
from dalenius.question.sql import parse
from dalenius.question.targets import Score, Targets
from dalenius.randomness import Randomness
from dalenius.tables.columns import CodedTable

LEVELS = (0.9, 0.95, 0.99)
ONE_VIEW = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 60))
SERIES = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 60), views=3, decay=Fraction(716531, 10**6))
GAMMA_F = Fraction(1, 3)
Held = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""From a seed: ends of intervals (levels × questions × columns × 2), and the truth (questions × columns)."""


def subjects(n_questions: int) -> dict[str, Callable[[], Held]]:
    """What is measured, by name."""
    texts = questions(n_questions, seed=1)
    found: dict[str, Callable[[], Held]] = {}
    for estimator in ("matching", "shrinkage", "regression", "anatomy"):
        found[f"bucketize, {estimator}"] = partial(from_bucketized, texts, estimator)
    for estimator in ("matching", "shrinkage"):
        found[f"bucketize with fakes, {estimator}"] = partial(from_bucketized, texts, estimator, fakes=1)
    for method in ("small-domain", "least-variance", "uniform"):
        found[f"perturb, {method}"] = partial(from_perturbed, texts, method)
    for kind, name in (("one", "one view"), ("series", "3 views"), ("frapp", "FRAPP view")):
        found[f"alpha-beta, {name}"] = partial(from_views, kind, texts)
    for estimator in ("matching", "shrinkage"):
        found[f"suppress, {estimator}"] = partial(from_suppressed, texts, estimator, n_batches=1)
        found[f"suppress, 5 batches, {estimator}"] = partial(from_suppressed, texts, estimator, n_batches=5)
    return found


def ends_of(answers_at: Callable[[float], Sequence[Answer]]) -> np.ndarray:
    """Levels × questions × columns × 2."""
    return np.array(
        [
            [
                [
                    (-np.inf if row.low is None else row.low, np.inf if row.high is None else row.high)
                    for row in answer.rows
                ]
                for answer in answers_at(level)
            ]
            for level in LEVELS
        ]
    )


@dataclass(slots=True, eq=False)
class Remembering:
    """An estimator whose estimates are made once and asked at several levels, in the same order each time."""

    estimator: RowEstimator
    _estimation: TargetEstimation | None = None
    _found: list[tuple[Targets, Found]] = field(default_factory=list)
    _next: int = 0

    @property
    def formula(self) -> str:
        """The estimator's own."""
        return self.estimator.formula

    @property
    def assumption(self) -> str | None:
        """The estimator's own."""
        return self.estimator.assumption

    def estimation(self, scores: Sequence[Score]) -> Remembering:
        """Begin again."""
        self._estimation = self._estimation or self.estimator.estimation(scores)
        self._next = 0
        return self

    def estimate(self, targets: Targets) -> Found:
        """The estimates that came at this place before."""
        if self._next == len(self._found):
            assert self._estimation is not None
            self._found.append((targets, self._estimation.estimate(targets)))
        known, found = self._found[self._next]
        assert known is targets or np.array_equal(known.weights, targets.weights)
        self._next += 1
        return found

    def possible_range(self, targets: Targets) -> tuple[np.ndarray, np.ndarray]:
        """The estimator's own, which is soon said."""
        assert self._estimation is not None
        return self._estimation.possible_range(targets)


def remembering(model: RowModel, estimator: str) -> RowModel:
    """The model with one estimator, which remembers."""
    made = Remembering(model.estimators[estimator])
    return replace(model, estimators=Estimators(makers={estimator: lambda: made}))


def from_rows(drawn: tuple[pa.Table, Callable[[int], RowModel]], texts: list[str], estimator: str) -> Held:
    """Ask models that all have the rows of the table."""
    table, model_of = drawn
    truth = truths(table, texts)
    asked = Questions.of(model_of(0), texts, table.column_names)
    return lambda seed: (asked.ends(remembering(model_of(seed), estimator), estimator), truth)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Questions:
    """Questions that were evaluated once, for all models of the same values."""

    queries: tuple[Query, ...]
    asked: Asked
    workspace: Workspace

    @classmethod
    def of(cls, model: Model, texts: Iterable[str], names: Iterable[str]) -> Questions:
        """Without a limit of time that matters."""
        deadline = Deadline(Limits(seconds=1e6))
        workspace = Workspace(database=Database({}, Limits()), deadline=deadline)
        queries = tuple(parse(text, names) for text in texts)
        return cls(queries=queries, asked=model.evaluate(queries, workspace), workspace=workspace)

    def ends(self, model: Model, estimator: str) -> np.ndarray:
        """The ends of the model's intervals."""
        return ends_of(
            lambda level: answer_asked(
                model,
                self.queries,
                self.asked,
                Request(confidence=level, estimator=estimator),
                self.workspace,
            )
        )


def from_bucketized(texts: list[str], estimator: str, fakes: int = 0) -> Held:
    """Ask bucketized releases."""
    return from_rows(bucketized(people(), fakes), texts, estimator)


def from_perturbed(texts: list[str], method: str) -> Held:
    """Ask perturbed releases."""
    return from_rows(perturbed(people(), method), texts, "reconstruction")


def policy(table: pa.Table, promise: dict[str, object], **rest: object) -> dalenius.Policy:
    """A policy for the table, in memory unless it has a release."""
    return dalenius.Policy.from_dict(
        {
            "source": table,
            "release": "unused",
            "columns": {"quasi": list(QUASI), "sensitive": ["disease"]},
            "promise": promise,
            **rest,
        }
    )


def bucketized(table: pa.Table, fakes: int = 0) -> tuple[pa.Table, Callable[[int], RowModel]]:
    """Releases with thresholds 3f + 0.05 and buckets of least loss; with fakes ℓ = 4."""
    rules = policy(
        table,
        {"kind": "l-diversity", "l": 4}
        if fakes
        else {"kind": "f-privacy", "default": {"times": 3, "plus": "0.05"}},
        mechanism={"kind": "bucketize", **({"fakes": fakes} if fakes else {})},
    )
    plan = dalenius.plan(rules)
    assert isinstance(plan, BucketizePlan)
    encoder = plan.histogram.encoder(plan.schema)
    codes = encoder.encode(table.combine_chunks().to_batches()[0])
    empty = BucketizedRows(
        rows=CodedTable.of(table.select(list(QUASI))),
        sensitive=CodedTable.of(pa.table(encoder.cells)),
        buckets=Buckets.of(
            np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.ones(1)
        ),
        has_fakes=plan.fakes is not None,
    )

    def model(seed: int) -> RowModel:
        randomness = Randomness.seeded(seed)
        layout = (
            MixedLayout(plan.buckets, plan.problem, plan.fakes, randomness)
            if plan.fakes
            else Layout.shuffled(plan.buckets, randomness)
        )
        rows = Assigner(layout, randomness).assign(codes) - 1
        bucket, value, count = (np.concatenate(part) for part in zip(*layout.contents(), strict=True))
        bucket, value = bucket - 1, value.astype(np.int64)
        listed = None
        if plan.fakes:
            listed = count
            stated = json.loads(json.dumps(plan.fakes.to_dict(plan.buckets, plan.histogram)))
            known = PublishedFakes.of(Stated.of(stated, "fakes"), len(plan.histogram.columns))
            count = known.expected_counts(bucket, value, count, np.bincount(rows))
        return replace(empty, buckets=Buckets.of(rows, bucket, value, count, listed)).model()

    return table, model


def perturbed(table: pa.Table, method: str) -> tuple[pa.Table, Callable[[int], RowModel]]:
    """Releases with ρ2 = 1/2."""
    plan = dalenius.plan(
        policy(
            table,
            {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"},
            mechanism={"kind": "perturb", "method": method},
        )
    )
    assert isinstance(plan, PerturbTablePlan)
    encoder = plan.histogram.encoder(plan.schema)
    codes = encoder.encode(table.combine_chunks().to_batches()[0])
    laws = Laws.of(plan.perturbation.channels, len(plan.histogram))
    empty = PerturbedRows(
        rows=CodedTable.of(table.select(list(QUASI))),
        sensitive=CodedTable.of(pa.table(encoder.cells)),
        laws=laws,
        cells=np.zeros(0, dtype=np.int64),
    )

    def model(seed: int) -> RowModel:
        parts, values = Perturber(plan.perturbation, Randomness.seeded(seed)).perturb(codes)
        return replace(empty, cells=laws.cells(parts, values)).model()

    return table, model


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Views:
    """Views of a table whose whole tuple is protected."""

    table: pa.Table
    kind: str
    """one, series or frapp."""

    def distinct(self) -> pa.Table:
        """What answers are about: the different rows, or for FRAPP the rows."""
        if self.kind == "frapp":
            return self.table
        return self.table.group_by(self.table.column_names).aggregate([])

    def domain(self) -> Domain:
        """All combinations of the columns' values."""
        return Domain.of(
            {name: sorted(set(self.table[name].to_pylist())) for name in self.table.column_names}
        )

    def model(self, domain: Domain, seed: int) -> TupleModel:
        """The views of a seed."""
        stream = Randomness.seeded(seed).stream("views")
        rows, gamma = domain.encode(self.table), Fraction(1, 2)
        if self.kind == "frapp":
            frapp_law = FrappLaw(k=Fraction(1), gamma_f=GAMMA_F, domain_size=domain.size)
            stated = PublishedFrapp(
                domain=domain, law=frapp_law, gamma=gamma, domain_size=domain.size, counts_rows=True
            )
            return frapp.model_of(stated, domain.names, frapp_view(domain, rows, GAMMA_F, stream))
        law, rows = (ONE_VIEW if self.kind == "one" else SERIES), union(domain, [rows])
        views = [first_view(domain, rows, law, stream)]
        while len(views) < law.views:
            views.append(next_view(domain, rows, views, law, stream))
        view = PublishedView(
            domain=domain,
            law=law,
            noise=None,
            d=Fraction(1, 10),
            gamma=gamma,
            adversary="independent",
            promised_views=len(views),
            domain_size=domain.size,
            index=len(views),
            counts_rows=False,
        )
        return alphabeta.model_of(view, domain.names, views)


def from_views(kind: str, texts: list[str]) -> Held:
    """Ask views of one domain."""
    views = Views(table=people(), kind=kind)
    domain, truth = views.domain(), truths(views.distinct(), texts)
    first = views.model(domain, 0)
    asked = Questions.of(first, texts, domain.names)
    return lambda seed: (asked.ends(views.model(domain, seed), first.estimators.names[0]), truth)


def from_suppressed(texts: list[str], estimator: str, n_batches: int) -> Held:
    """Publish with ℓ = 7 and safe suppression, in one release or as a series of batches by age group.

    The truth is that of the published records, which a column of numbers tells.
    """
    table = people().append_column("uid", pa.array(np.arange(3_000)))
    table = table.sort_by("age") if n_batches > 1 else table
    size = table.num_rows // n_batches
    batches = [table.slice(k * size, size) for k in range(n_batches)]

    def held(seed: int) -> tuple[np.ndarray, np.ndarray]:
        with tempfile.TemporaryDirectory() as folder:
            kept = set().union(*(_publish(batch, Path(folder), seed, n_batches > 1) for batch in batches))
            published = table.filter(pa.array([uid in kept for uid in table["uid"].to_pylist()]))
            release = dalenius.open_release(Path(folder) / "r")
            model = open_for_asking(release.stored).model
        assert isinstance(model, RowModel)
        asked = Questions.of(model, texts, table.column_names)
        return asked.ends(remembering(model, estimator), estimator), truths(published, texts)

    return held


def _publish(batch: pa.Table, folder: Path, seed: int, in_series: bool) -> Iterable[int]:
    rules = dalenius.Policy.from_dict(
        {
            "source": batch,
            "release": "r",
            "columns": {"quasi": [*QUASI, "uid"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 7},
            "suppress": {"method": "safe"},
            **({"series": {"kind": "batches"}, "ledger": {"path": "ledger"}} if in_series else {}),
        },
        folder=folder,
    )
    release = dalenius.publish(rules, seed=seed)
    return list(pq.read_table(release.path / "qit.parquet")["uid"].to_pylist())
