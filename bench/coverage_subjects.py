"""Releases of one synthetic table by every mechanism, drawn in memory by the mechanisms' own kernels.

A subject draws a release from a seed: the same plan, other coins. Questions are parsed and looked up once,
because the rows stay in the order of the table. Suppression and batches withhold other rows each time, and
are published and opened like any release (bench/batch_coverage.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pyarrow as pa

import dalenius
from dalenius.ask.answer import Answer
from dalenius.ask.asking import answer_from_rows
from dalenius.ask.bucketized import BucketizedModel
from dalenius.ask.columns import Table
from dalenius.ask.database import Database, Deadline, Limits
from dalenius.ask.domain_atoms import open_atoms
from dalenius.ask.lookup import Lookup
from dalenius.ask.model import Model
from dalenius.ask.names import ROW
from dalenius.ask.perturbed import PerturbedModel
from dalenius.ask.request import Request
from dalenius.ask.sql import parse
from dalenius.ask.view_answer import answer_evaluated
from dalenius.ask.view_question import evaluate
from dalenius.ask.viewed import ViewModel, _join
from dalenius.histogram import Encoder
from dalenius.mechanisms.alphabeta.apply import first_view, frapp_view, next_view, union
from dalenius.mechanisms.alphabeta.domain import Domain
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView
from dalenius.mechanisms.bucketize.apply import Assigner, Layout
from dalenius.mechanisms.bucketize.estimate_buckets import Buckets
from dalenius.mechanisms.bucketize.fake_estimate import PublishedFakes
from dalenius.mechanisms.bucketize.fakes import MixedLayout
from dalenius.mechanisms.bucketize.mechanism import BucketizePlan
from dalenius.mechanisms.perturb.apply import Perturber
from dalenius.mechanisms.perturb.laws import Laws
from dalenius.mechanisms.perturb.mechanism import PerturbTablePlan
from dalenius.randomness import Randomness

QUASI = ("age", "sex", "region", "school")
ONE_VIEW = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 60))
SERIES = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 60), views=3, decay=Fraction(716531, 10**6))
GAMMA_F = Fraction(1, 3)
Answered = Callable[[int, float], list[Answer]]
"""The answers to the questions, from the release of a seed, at a confidence."""


def people(n: int = 3_000, seed: int = 1) -> pa.Table:
    """A table whose twelve diseases depend on age, sex and schooling, some strongly."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(20, 60, n), rng.integers(2, size=n)
    school = np.clip(rng.normal(2.5 + (age < 35) * 1.0, 1.3, n).round(), 0, 5).astype(int)
    lean = rng.normal(size=(12, 3)) * 0.9
    utility = (
        np.outer((age - 40) / 12, lean[:, 0])
        + np.outer(sex - 0.5, 2 * lean[:, 1])
        + np.outer(school - 2.5, lean[:, 2])
    )
    disease = (utility - 0.12 * np.arange(12) + rng.gumbel(size=(n, 12))).argmax(axis=1)
    return pa.table(
        {
            "age": age,
            "sex": np.array(["F", "M"])[sex],
            "region": rng.integers(1, 9, n),
            "school": school,
            "disease": np.array([f"d{k:02d}" for k in range(12)])[disease],
        }
    )


def questions(n: int, seed: int) -> list[str]:
    """Random conditions on one to three quasi columns and on the disease, of all sizes."""
    rng = np.random.default_rng(seed)
    domains = {
        "age": list(range(20, 60)),
        "sex": ["F", "M"],
        "region": list(range(1, 9)),
        "school": list(range(6)),
    }
    diseases = [f"d{k:02d}" for k in range(12)]
    texts = []
    for _ in range(n):
        columns = rng.choice(QUASI, int(rng.integers(1, 4)), replace=False).tolist()
        share = rng.choice([0.15, 0.35, 0.7])
        parts = [_membership(column, domains[column], share, rng) for column in columns]
        parts.append(_membership("disease", diseases, rng.choice([0.05, 0.2, 0.5]), rng))
        texts.append(
            "SELECT COUNT(*), SUM(age), AVG(age), COUNT(*) FILTER (WHERE sex = 'F') / COUNT(*) "
            f"FROM t WHERE {' AND '.join(parts)}"
        )
    return texts


def _membership(column: str, domain: list[object], share: float, rng: np.random.Generator) -> str:
    chosen = rng.choice(len(domain), max(1, round(share * len(domain))), replace=False)
    return f"{column} IN ({', '.join(repr(domain[k]) for k in sorted(chosen))})"


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


def from_rows(model_of: Callable[[int], Model], texts: list[str], estimator: str) -> Answered:
    """Ask models that all have the rows of the table."""
    made = lru_cache(maxsize=1)(model_of)  # one release is asked at several levels
    first = made(0)
    database, remembered = Database({}, Limits()), {}
    queries = [parse(text, [*first.rows.columns, *first.sensitive.columns]) for text in texts]

    def answers(seed: int, confidence: float) -> list[Answer]:
        lookup = Lookup(
            rows=first.rows,
            sensitive=first.sensitive,
            database=database,
            deadline=Deadline(Limits()),
            remembered=remembered,
        )
        request = Request(confidence=confidence, estimator=estimator)
        return answer_from_rows(made(seed), lookup, queries, request)

    return answers


def bucketized(table: pa.Table, fakes: int = 0) -> Callable[[int], Model]:
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
    encoder = Encoder.of(plan.histogram, plan.schema)
    codes = encoder.encode(table.combine_chunks().to_batches()[0])
    empty = BucketizedModel(
        rows=Table.of(table.select(list(QUASI))),
        sensitive=Table.of(pa.table(dict(zip(encoder.columns, encoder.cells, strict=True)))),
        buckets=Buckets.of(
            np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.zeros(1, dtype=int), np.ones(1)
        ),
        has_fakes=plan.fakes is not None,
    )

    def model(seed: int) -> Model:
        randomness = Randomness.seeded(seed)
        layout = (
            MixedLayout(plan.buckets, plan.problem, plan.fakes, randomness)
            if plan.fakes
            else Layout.shuffled(plan.buckets, randomness)
        )
        rows = Assigner(layout, randomness).assign(codes) - 1
        bucket, value, count = (np.concatenate(part) for part in zip(*layout.contents(), strict=True))
        bucket, value = bucket - 1, value.astype(np.int64)
        if plan.fakes:
            known = PublishedFakes.read({"fakes": plan.fakes.to_dict(plan.buckets, plan.histogram)})
            assert known is not None
            count = known.expected_counts(bucket, value, count, np.bincount(rows))
        return replace(empty, buckets=Buckets.of(rows, bucket, value, count))

    return model


def perturbed(table: pa.Table, method: str) -> Callable[[int], Model]:
    """Releases with ρ2 = 1/2."""
    plan = dalenius.plan(
        policy(
            table,
            {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"},
            mechanism={"kind": "perturb", "method": method},
        )
    )
    assert isinstance(plan, PerturbTablePlan)
    encoder = Encoder.of(plan.histogram, plan.schema)
    codes = encoder.encode(table.combine_chunks().to_batches()[0])
    laws = Laws.of(plan.perturbation.channels, len(plan.histogram))
    empty = PerturbedModel(
        rows=Table.of(table.select(list(QUASI))),
        sensitive=Table.of(pa.table(dict(zip(encoder.columns, encoder.cells, strict=True)))),
        laws=laws,
        cells=np.zeros(0, dtype=np.int64),
    )

    def model(seed: int) -> Model:
        parts, values = Perturber(plan.perturbation, Randomness.seeded(seed)).perturb(codes)
        return replace(empty, cells=laws.cells(parts, values))

    return model


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

    def model(self, seed: int) -> ViewModel:
        """The views of a seed."""
        domain, stream = self.domain(), Randomness.seeded(seed).stream("views")
        rows = domain.encode(self.table)
        views: list[tuple[np.ndarray, ...]]
        if self.kind == "frapp":
            views = [frapp_view(domain, rows, GAMMA_F, stream)]
        else:
            law, rows = (ONE_VIEW if self.kind == "one" else SERIES), union(domain, [rows])
            views = [first_view(domain, rows, law, stream)]
            while len(views) < law.views:
                views.append(next_view(domain, rows, views, law, stream))
        view = PublishedView(
            domain=domain,
            law={"one": ONE_VIEW, "series": SERIES}.get(self.kind),
            gamma_f=GAMMA_F if self.kind == "frapp" else None,
            noise=None,
            index=len(views),
            counts_rows=self.kind == "frapp",
        )
        codes, shown = (
            _join(domain, views) if len(views) > 1 else (views[0], np.ones((1, len(views[0][0])), dtype=int))
        )
        return ViewModel(view=view, names=domain.names, codes=codes, shown=shown)


def from_views(views: Views, texts: list[str]) -> Answered:
    """Ask views of one domain."""
    domain = views.domain()
    queries = [parse(text, domain.names) for text in texts]
    with open_atoms(domain.arrays(), {}, ROW) as atoms:
        evaluated = [evaluate(query, atoms, domain.sizes) for query in queries]
    database = Database({}, Limits())
    made = lru_cache(maxsize=1)(views.model)

    def answers(seed: int, confidence: float) -> list[Answer]:
        model = made(seed)
        request = Request(confidence=confidence)
        return [
            answer_evaluated(model, query, question, request, database, Deadline(Limits()))
            for query, question in zip(queries, evaluated, strict=True)
        ]

    return answers
