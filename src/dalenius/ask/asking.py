"""Asking a release: SQL in, answers with error bars out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.ask.estimation import (
    Column,
    TotalEstimates,
    Wanted,
    estimate_formulas,
    estimate_totals,
    is_exact,
)
from dalenius.ask.finishing import make_consistent, order_groups
from dalenius.ask.lookup import Lookup
from dalenius.ask.opened import open_for_asking
from dalenius.ask.summands import ScoreList, Summands, summands
from dalenius.ask.view_answer import answer_from_views
from dalenius.ask.viewed import ViewModel
from dalenius.errors import InputError, did_you_mean
from dalenius.question.answer import Answer, AnswerRow, finite
from dalenius.question.database import Limits, Request
from dalenius.question.model import Estimation, Model
from dalenius.question.query import AggregateRef, Formula, Query
from dalenius.question.ratios import possible_ratio
from dalenius.question.sql import parse_shared
from dalenius.question.targets import Score
from dalenius.release.folder import StoredRelease

_TOGETHER = 128
"""How many questions are estimated in one go."""


def ask(
    release: StoredRelease,
    sql: str,
    *,
    confidence: float = 0.95,
    estimator: str | None = None,
    tables: Mapping[str, pa.Table] | None = None,
    consistent: bool = False,
    limits: Limits | None = None,
) -> Answer:
    """Answer a question from a release; `ask_many` explains the arguments."""
    return ask_many(
        release,
        [sql],
        confidence=confidence,
        estimator=estimator,
        tables=tables,
        consistent=consistent,
        limits=limits,
    )[0]


def ask_many(
    release: StoredRelease,
    sqls: Iterable[str],
    *,
    confidence: float = 0.95,
    estimator: str | None = None,
    tables: Mapping[str, pa.Table] | None = None,
    consistent: bool = False,
    limits: Limits | None = None,
) -> list[Answer]:
    """Answer many questions; work that they share is done once.

    Args:
        release: The opened release.
        sqls: The questions.
        confidence: The share of intervals that should hold the truth.
        estimator: One of the mechanism's estimators; None: its default.
        tables: Auxiliary tables that sub-selects may read, by name.
        consistent: Move the estimates to a table that is possible: no negative counts, totals that add up.
        limits: Time and memory, for all questions together; by default the time grows with their number.
    """
    texts = list(sqls)
    if not 0 < confidence < 1:
        raise InputError(f"confidence {confidence} is not between 0 and 1", hint="for example 0.95")
    opened = open_for_asking(release)
    model = opened.model
    if estimator is not None and estimator not in model.estimators:
        hint = did_you_mean(estimator, model.estimators)
        raise InputError(f"estimator {estimator!r} is unknown for this mechanism", hint=hint)
    limits = limits or Limits(seconds=60.0 + 0.5 * len(texts))
    request = Request(
        confidence=confidence,
        estimator=estimator or model.default_estimator,
        tables=tables or {},
        consistent=consistent,
        limits=limits,
    )
    if isinstance(model, ViewModel):
        questions = [parse_shared(text, model.names, request.tables) for text in texts]
        return answer_from_views(model, questions, request, opened.database_for(request))
    lookup = opened.lookup(model, request)
    names = [*model.rows.columns, *model.sensitive.columns]
    queries = [parse_shared(text, names, request.tables) for text in texts]
    answers: list[Answer] = []
    for start in range(0, len(queries), _TOGETHER):
        answers += answer_from_rows(model, lookup, queries[start : start + _TOGETHER], request)
    return [_about_published(answer, _n_withheld(release)) for answer in answers]


def _n_withheld(release: StoredRelease) -> int:
    return sum(one.manifest.rows.suppressed or 0 for one in release.parts)


def _about_published(answer: Answer, n_withheld: int) -> Answer:
    """Where records were withheld, even an exact answer is about the published ones only."""
    if not n_withheld:
        return answer
    note = (
        f"this is about the published records; {n_withheld} more were withheld, and of the commonest "
        "sensitive values a larger share than of the others"
    )
    return replace(answer, assumption=f"{answer.assumption}; {note}" if answer.assumption else note)


def answer_from_rows(
    model: Model, lookup: Lookup, queries: Sequence[Query], request: Request
) -> list[Answer]:
    """Answer questions of a bucketized or perturbed release, all at once."""
    return answer_evaluated(model, lookup, evaluate(lookup, queries), request)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """Questions whose conditions were evaluated on the published rows."""

    queries: tuple[Query, ...]
    scores: tuple[Score, ...]
    summands: tuple[Summands, ...]


def evaluate(lookup: Lookup, queries: Sequence[Query]) -> Evaluated:
    """What the questions add up: it depends on the rows alone, not on what was drawn about their secret."""
    scores = ScoreList()
    parts = []
    for query in queries:
        lookup.deadline.check()
        parts.append(summands(lookup, query, scores))
    return Evaluated(queries=tuple(queries), scores=tuple(scores.scores), summands=tuple(parts))


def answer_evaluated(model: Model, lookup: Lookup, asked: Evaluated, request: Request) -> list[Answer]:
    """Estimate what the questions add up."""
    queries = asked.queries
    assert request.estimator is not None  # noqa: S101  (ask_many put the default there)
    estimation = model.estimation(asked.scores, request.estimator)
    totals = estimate_totals(estimation, asked.summands, request.confidence, model.rows.n_rows)
    if request.consistent:
        totals = make_consistent(totals)
    lookup.deadline.check()
    columns = _columns(lookup, queries, totals, estimation, request)
    return [
        _finish(model, lookup, query, number, totals, columns[number], request)
        for number, query in enumerate(queries)
    ]


def _columns(
    lookup: Lookup,
    queries: Sequence[Query],
    totals: TotalEstimates,
    estimation: Estimation,
    request: Request,
) -> list[dict[str, list[Column]]]:
    """For each question its items (i), and where HAVING or ORDER BY may name them its aggregates (a)."""
    wanted, places = [], []
    for number, query in enumerate(queries):
        listed: dict[str, list[Formula]] = {"i": [item.formula for item in query.items], "a": []}
        if query.finish:
            listed["a"] = [AggregateRef(index=k) for k in range(len(query.aggregates))]
        mine, own = totals.of_question(number), totals.summands[number]
        for letter, formulas in listed.items():
            for formula in formulas:
                possible = possible_ratio(formula, query.aggregates, lookup.range)
                wanted.append(
                    Wanted(query=query, formula=formula, summands=own, totals=mine, possible=possible)
                )
                places.append((number, letter))
    found: list[dict[str, list[Column]]] = [{"i": [], "a": []} for _ in queries]
    for (number, letter), column in zip(
        places, estimate_formulas(estimation, wanted, request.confidence), strict=True
    ):
        found[number][letter].append(column)
    return found


def _finish(
    model: Model,
    lookup: Lookup,
    query: Query,
    number: int,
    totals: TotalEstimates,
    estimated: dict[str, list[Column]],
    request: Request,
) -> Answer:
    own, columns = totals.summands[number], estimated["i"]
    order = _order(lookup, query, totals, number, estimated)
    rows = [
        _row(query, own.group(totals.keys[number][i]), item.name, found, i, request, model.rows.n_rows)
        for i in order
        for item, found in zip(query.items, columns, strict=True)
    ]
    exact = all(row.status == "exact" for row in rows)
    name = request.estimator or ""
    assumption = None if exact else model.assumption(name)
    if request.consistent and not exact:
        moved = "moved to the nearest table that is possible, which is no longer unbiased"
        assumption = moved if assumption is None else f"{assumption}; {moved}"
    return Answer(
        rows=tuple(rows),
        confidence=request.confidence,
        assumption=assumption,
        explain=_explain(model, query, name),
    )


def _row(
    query: Query, group: tuple[Any, ...], name: str, found: Column, i: int, request: Request, n_rows: int
) -> AnswerRow:
    exact = bool(is_exact(found, n_rows)[i])
    undetermined = bool(np.isinf(found.std_error[i]))
    status = (
        "exact"
        if exact
        else "undetermined"
        if undetermined
        else "consistent"
        if request.consistent
        else "estimate"
    )
    estimate = float(found.estimate[i])
    return AnswerRow(
        group=tuple(zip((key.name for key in query.groups), group, strict=True)),
        column=name,
        estimate=finite(estimate),
        std_error=0.0 if exact else finite(found.std_error[i]),
        low=finite(estimate if exact else found.low[i]),
        high=finite(estimate if exact else found.high[i]),
        status=status,  # type: ignore[arg-type]
    )


def _order(
    lookup: Lookup, query: Query, totals: TotalEstimates, number: int, estimated: dict[str, list[Column]]
) -> list[int]:
    """The groups that HAVING and LIMIT leave, in the order asked for, or of the keys."""
    values = totals.summands[number].key_values
    estimates = {
        f"{letter}{k}": c.estimate for letter, columns in estimated.items() for k, c in enumerate(columns)
    }
    return order_groups(lookup.database, lookup.deadline, query, totals.keys[number], values, estimates)


def _explain(model: Model, query: Query, estimator: str) -> str:
    return "\n".join(
        [
            f"question: {query.text}",
            f"estimator: {estimator}: {model.formula(estimator)}",
            f"read: {model.summary()}",
            f"rests on: {model.assumption(estimator) or 'the coins of the publisher alone'}",
        ]
    )
