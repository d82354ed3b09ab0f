"""Asking a release: SQL in, estimates with error bars out. Releases that were asked stay open, encoded once.

>>> from dalenius.ask import ask, ask_many, Answer
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats
from dalenius.ask.differences import compare_groups
from dalenius.ask.finishing import Result, finish, make_consistent
from dalenius.ask.formulas import (
    Estimated,
    Wanted,
    aggregate,
    estimate_formulas,
    estimates_alone,
    is_certain,
    is_open,
)
from dalenius.ask.independence import measure_independence
from dalenius.ask.literals import Known, note_unknown
from dalenius.ask.statistics import estimate_statistics
from dalenius.errors import InputError, QueryError, ReleaseCorrupt, did_you_mean
from dalenius.mechanisms import registry
from dalenius.question.answer import Answer, AnswerRow
from dalenius.question.database import Database, Deadline, Limits, Remembered, Request, Workspace
from dalenius.question.model import Asked, Estimation, Model, Question
from dalenius.question.query import AggregateRef, Query, StatisticRef
from dalenius.question.sql import not_too_deep, parse_shared
from dalenius.release.admission import admit
from dalenius.release.blame import blamed_on
from dalenius.release.folder import StoredRelease, list_malformed

__all__ = ["Answer", "AnswerRow", "Limits", "Options", "ask", "ask_many"]


_KEPT_OPEN = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A release's encoded form, and what was found out about its values so far."""

    model: Model
    databases: dict[str, Database] = field(default_factory=dict)
    """By how much memory each may use."""
    remembered: Remembered = field(default_factory=Remembered)
    texts: Known = field(default_factory=dict)

    def workspace(self, request: Request) -> Workspace:
        """For questions with auxiliary tables nothing is shared with other questions."""
        deadline, memory = Deadline(request.limits), request.limits.memory
        if request.tables:
            return Workspace(database=Database(request.tables, request.limits), deadline=deadline)
        database = self.databases.get(memory)
        if database is None:
            database = Database({}, request.limits)
            self.databases.clear()  # whoever asks has one limit
            self.databases[memory] = database
        return Workspace(database=database, deadline=deadline, remembered=self.remembered)


_open: OrderedDict[tuple[str, str, int], Opened] = OrderedDict()


def open_for_asking(release: StoredRelease) -> Opened:
    """The release's encoded form; the last few are kept."""
    room = registry.find_room(release.mechanism, release.method, "answer")
    if room is None:
        raise QueryError(f"releases of mechanism {release.mechanism!r} cannot be asked")
    key = (str(release.path.resolve()), str(release.manifest.id), len(release.earlier))
    if key not in _open:
        admit(release)
        try:
            model: Model = room.load(release)
        except list_malformed() as error:
            raise ReleaseCorrupt(
                f"{release.path}: the tables are not those of {release.mechanism} ({type(error).__name__})",
                hint="`dalenius verify` lists what is wrong",
            ) from error
        _open[key] = Opened(model=model)
        while len(_open) > _KEPT_OPEN:
            _open.popitem(last=False)
    _open.move_to_end(key)
    return _open[key]


class Options(TypedDict, total=False):
    """How questions are answered; None: as if it were not given."""

    confidence: float
    """The share of intervals that should hold the truth."""
    estimator: str | None
    """One of the mechanism's estimators, instead of its default."""
    tables: Mapping[str, pa.Table] | None
    """Auxiliary tables to join with, or that sub-selects may read, by name."""
    consistent: bool
    """Move the estimates to a table that is possible: no negative counts, totals that add up."""
    differences: bool
    """Compare every pair of groups, and say between which ranks each group is."""
    independence: bool
    """Test whether the two columns that a question groups by are independent."""
    limits: Limits | None
    """Time and memory, for all questions together; by default the time grows with their number."""


def ask(release: StoredRelease, sql: str, **options: Unpack[Options]) -> Answer:
    """Answer a question from a release, as `ask_many` does."""
    return ask_many(release, [sql], **options)[0]


def ask_many(release: StoredRelease, sqls: Iterable[str], **options: Unpack[Options]) -> list[Answer]:
    """Answer many questions; work that they share is done once."""
    texts = list(sqls)
    for name in options:
        if name not in Options.__annotations__:
            hint = did_you_mean(name, Options.__annotations__)
            if name in Limits.__dataclass_fields__:
                hint = f"it is one of the limits: limits=Limits({name}=…), Limits from dalenius.ask"
            raise InputError(f"questions have no option {name!r}", hint=hint)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    request = Request(**{"limits": Limits(seconds=60.0 + 0.5 * len(texts))} | given)
    if not 0 < request.confidence < 1:
        raise InputError(f"confidence {request.confidence} is not between 0 and 1", hint="for example 0.95")
    with blamed_on(release), not_too_deep():
        return _answer(release, texts, request)


def _answer(release: StoredRelease, texts: list[str], request: Request) -> list[Answer]:
    """Answer with the estimator that the request names, or else with the mechanism's default."""
    opened = open_for_asking(release)
    model = opened.model
    known = model.estimators.names
    if request.estimator and request.estimator not in known:
        hint = did_you_mean(request.estimator, known)
        raise InputError(f"estimator {request.estimator!r} is unknown for this mechanism", hint=hint)
    request = replace(request, estimator=request.estimator or known[0])
    workspace = opened.workspace(request)
    queries = [parse_shared(text, model.names, request.tables) for text in texts]
    answers: list[Answer] = []
    for start in range(0, len(queries), model.together):
        part = queries[start : start + model.together]
        answers += answer_asked(model, part, model.evaluate(part, workspace), request, workspace)
    n_withheld = _n_withheld(release)
    return [
        _about_published(
            replace(answer, notes=(*note_unknown(release, query, opened.texts), *answer.notes)), n_withheld
        )
        for answer, query in zip(answers, queries, strict=True)
    ]


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
    assumption = f"{answer.assumption}; {note}" if answer.assumption else note
    return replace(answer, assumption=assumption, notes=(*answer.notes, note))


def answer_asked(
    model: Model, queries: Sequence[Query], asked: Asked, request: Request, workspace: Workspace
) -> list[Answer]:
    """Answer questions that were evaluated on the release's values, all at once."""
    estimation = model.estimation(asked, request.estimator, request.confidence)
    estimated = [
        _estimate_totals(estimation, number, query, question, request.consistent)
        for number, (query, question) in enumerate(zip(queries, asked.questions, strict=True))
    ]
    workspace.deadline.check()
    items = [
        Wanted.of(one, item.formula)
        for one in estimated
        for item in one.query.items
        if not isinstance(item.formula, StatisticRef)
    ]
    others = [(one, k) for one in estimated for k in _named_besides(one.query)]
    found_items = estimate_formulas(estimation, items, request.confidence)
    columns = iter(
        Result(
            column=column,
            is_certain=is_certain(estimation, wanted, column),
            is_open=is_open(estimation, wanted, column),
        )
        for wanted, column in zip(items, found_items, strict=True)
    )
    named = zip(others, estimates_alone(estimation, [aggregate(*pair) for pair in others]), strict=True)
    by_question: dict[int, dict[str, Floats]] = {}
    for (one, k), estimate in named:
        by_question.setdefault(one.number, {})[f"a{k}"] = estimate
    answers = []
    for one in estimated:
        found = iter(estimate_statistics(model, one, request, workspace))
        results = [
            next(found) if isinstance(item.formula, StatisticRef) else next(columns)
            for item in one.query.items
        ]
        answer = finish(model, one, results, by_question.get(one.number, {}), request, workspace)
        if request.differences:
            shown = list(dict.fromkeys(row.group for row in answer.rows))
            differences, ranks = compare_groups(model, one, request, workspace, shown)
            answer = replace(answer, differences=differences, ranks=ranks)
        if request.independence:
            found_test = measure_independence(model, one, request, workspace)
            answer = replace(answer, independence=found_test)
        answers.append(answer)
    return answers


def _estimate_totals(
    estimation: Estimation, number: int, query: Query, question: Question, consistent: bool
) -> Estimated:
    totals = estimation.totals(number)
    if consistent:
        is_count = np.array([total.kind == "count" for total in question.totals], dtype=bool)
        totals = make_consistent(totals, is_count, estimation.possible(number))
    return Estimated(number=number, query=query, question=question, totals=totals, is_moved=consistent)


def _named_besides(query: Query) -> list[int]:
    """The aggregates that HAVING and ORDER BY may name and that are not selected."""
    if not query.finish:
        return []
    selected = [item.formula for item in query.items]
    return [k for k in range(len(query.aggregates)) if AggregateRef(index=k) not in selected]
