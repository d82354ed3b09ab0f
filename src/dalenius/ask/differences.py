"""Differences between the groups of an answer with intervals of their own, and how certain their order is.

Two groups of one release err together, so the error of a difference is not that of its parts. Every group is
asked about as a condition, and the differences as formulas, which every model can answer. A group's rank is
at least 1 + the number of groups that are surely above it, with intervals of its differences that hold
together (Bonferroni), so that a rank's range holds as often as an interval does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from dalenius.arrays import normal_quantile
from dalenius.ask.formulas import Estimated, Wanted, estimate_formulas
from dalenius.errors import QueryError
from dalenius.question.answer import Difference, Group, Rank, finite
from dalenius.question.database import Request, Workspace
from dalenius.question.model import Estimation, Model
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Bounded,
    Condition,
    Every,
    Expression,
    Formula,
    Item,
    Query,
    Root,
    StatisticRef,
)
from dalenius.sql import literal

_MOST_GROUPS = 40
Compared = tuple[tuple[Difference, ...], tuple[Rank, ...]]


def compare_groups(
    model: Model, asked: Estimated, request: Request, workspace: Workspace, shown: Sequence[Group]
) -> Compared:
    """Every pair of groups of a question, in the order in which they are shown, and the rank of each."""
    query, keys = asked.query, asked.question.keys
    if not 2 <= len(keys) <= _MOST_GROUPS:
        raise QueryError(
            f"differences are between 2 to {_MOST_GROUPS} groups; the question has {len(keys)}",
            hint="GROUP BY something coarser",
        )
    items = [item for item in query.items if not isinstance(item.formula, StatisticRef)]
    if not items:
        raise QueryError("differences are of counts, sums and what is made of them, not of order statistics")
    cells = [
        tuple(values[code].as_py() for values, code in zip(asked.question.key_values, key, strict=True))
        for key in keys
    ]
    heads = [group.name for group in query.groups]
    place = {group: number for number, group in enumerate(shown)}
    cells.sort(key=lambda own: place.get(tuple(zip(heads, own, strict=True)), len(place)))
    names = [tuple(zip(heads, own, strict=True)) for own in cells]
    conditions = [is_in(query, own) for own in cells]
    found: list[Difference] = []
    ranks: list[Rank] = []
    for item in items:
        differences = _differences(model, query, item, conditions, request, workspace)
        pairs = [
            replace(one, first=names[i], second=names[j])
            for (i, j), one in zip(combinations(range(len(keys)), 2), differences, strict=True)
        ]
        found += pairs
        ranks += _rank(item.name, names, pairs, request.confidence)
    return tuple(found), tuple(ranks)


def is_in(query: Query, cells: Sequence[Any]) -> Condition:
    """That somebody is in a group."""
    parts = []
    for key, cell in zip(query.groups, cells, strict=True):
        x = key.expression
        if cell is None or isinstance(cell, bool | int | float):
            text = "NULL" if cell is None else repr(cell)
            sql = f"({x.sql}) IS NOT DISTINCT FROM {text}"
        else:
            sql = f"CAST({x.sql} AS VARCHAR) IS NOT DISTINCT FROM {literal(str(cell))}"
        parts.append(Expression(sql=sql, columns=x.columns))
    return Every(parts=tuple(parts))


def ask_apart(
    model: Model,
    query: Query,
    conditions: Sequence[Condition],
    request: Request,
    workspace: Workspace,
) -> tuple[Estimated, Estimation]:
    """A question without groups whose aggregates are those of the given one, under each of the conditions."""
    aggregates = tuple(_inside(one, condition) for condition in conditions for one in query.aggregates)
    single = replace(query, groups=(), aggregates=aggregates, items=(), finish="", statistics=())
    evaluated = model.evaluate([single], workspace)
    workspace.deadline.check()
    estimation = model.estimation(evaluated, request.estimator, request.confidence)
    asked = Estimated(
        number=0,
        query=single,
        question=evaluated.questions[0],
        totals=estimation.totals(0),
        is_moved=False,
    )
    return asked, estimation


def _differences(
    model: Model,
    query: Query,
    item: Item,
    conditions: Sequence[Condition],
    request: Request,
    workspace: Workspace,
) -> list[Difference]:
    """Of the pairs of groups, in the order of `combinations`; their names are still to be told."""
    n_own = len(query.aggregates)
    asked, estimation = ask_apart(model, query, conditions, request, workspace)
    formulas = [_shift(item.formula, k * n_own) for k in range(len(conditions))]
    pairs = list(combinations(range(len(formulas)), 2))
    apart = [Arithmetic(operator="-", left=formulas[i], right=formulas[j]) for i, j in pairs]
    wanted = [Wanted.of(asked, formula) for formula in (*formulas, *apart)]
    columns = estimate_formulas(estimation, wanted, request.confidence)
    variance = [float(column.std_error[0]) ** 2 for column in columns]
    made = []
    for number, (i, j) in enumerate(pairs, start=len(formulas)):
        column = columns[number]
        made.append(
            Difference(
                column=item.name,
                first=(),
                second=(),
                estimate=finite(column.estimate[0]),
                std_error=finite(column.std_error[0]),
                low=finite(column.low[0]),
                high=finite(column.high[0]),
                covariance=finite((variance[i] + variance[j] - variance[number]) / 2),
            )
        )
    return made


def _inside(aggregate: Aggregate, condition: Condition) -> Aggregate:
    parts = [part for part in (aggregate.condition, condition) if part is not None]
    return replace(aggregate, condition=Every(parts=tuple(parts)))


def _shift(formula: Formula, by: int) -> Formula:
    match formula:
        case AggregateRef(index=index):
            return AggregateRef(index=index + by)
        case Arithmetic(left=left, right=right):
            return replace(formula, left=_shift(left, by), right=_shift(right, by))
        case Root(part=part) | Bounded(part=part):
            return replace(formula, part=_shift(part, by))
        case _:
            return formula


def _rank(column: str, names: Sequence[Any], pairs: Sequence[Difference], confidence: float) -> list[Rank]:
    """Rank 1 is the largest."""
    n_groups = len(names)
    normal = normal_quantile((1 + confidence) / 2)
    wider = normal_quantile(1 - (1 - confidence) / (2 * (n_groups - 1))) / normal
    above, below = np.zeros(n_groups, dtype=int), np.zeros(n_groups, dtype=int)
    for (i, j), one in zip(combinations(range(n_groups), 2), pairs, strict=True):
        if one.estimate is None or one.low is None or one.high is None:
            continue
        if one.estimate - wider * (one.estimate - one.low) > 0:
            above[j], below[i] = above[j] + 1, below[i] + 1
        elif one.estimate + wider * (one.high - one.estimate) < 0:
            above[i], below[j] = above[i] + 1, below[j] + 1
    return [
        Rank(column=column, group=name, low=int(1 + above[k]), high=int(n_groups - below[k]))
        for k, name in enumerate(names)
    ]
