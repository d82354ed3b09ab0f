"""The last steps of an answer: a table that is possible, then HAVING, ORDER BY and LIMIT, rows and words.

In a possible table every count is within its range, and counts add up to what is known. The estimates are
moved as little as possible, in units of their own errors: to the nearest point, by weighted least squares, of
the box of possible counts and of the planes on which groups add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats
from dalenius.ask.formulas import Estimated
from dalenius.question.answer import Answer, AnswerRow, Status, finite
from dalenius.question.database import Request, Workspace
from dalenius.question.model import Column, Model, Possible
from dalenius.question.query import AggregateRef, Query
from dalenius.tables.histogram import label_cell


def project(estimate: Floats, std_error: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """The nearest point with low ≤ x ≤ high and Σ x = total.

    >>> project(np.array([-1.0, 4.0]), np.ones(2), np.zeros(2), np.full(2, 9.0), 3.0).round(6).tolist()
    [0.0, 3.0]
    """
    if not len(estimate):
        return estimate
    finite = np.where(np.isfinite(std_error), std_error, 1e6)
    variance = np.maximum(finite, 1e-9) ** 2
    # x(s) = clip(estimate + s·variance) grows with s: bisect for the s at which it adds up
    reach = (np.abs(high - estimate) + np.abs(low - estimate)).max() / variance.min() + 1.0
    below, above = -reach, reach
    for _ in range(200):
        shift = (below + above) / 2
        if np.clip(estimate + shift * variance, low, high).sum() < total:
            below = shift
        else:
            above = shift
    return np.asarray(np.clip(estimate + above * variance, low, high))


def make_consistent(totals: Floats, is_count: Bools, possible: Possible) -> Floats:
    """Move every count to what is possible; sums of numbers are left as they are.

    Args:
        totals: groups × totals.
        is_count: which totals are counts.
        possible: what they can be.
    """
    moved, low, high = totals.copy(), possible.low, possible.high
    counts = is_count & np.isfinite(low) & np.isfinite(high)
    moved[counts] = np.clip(totals[counts], low[counts], high[counts])
    for plane in possible.planes:
        cells = plane.groups, plane.total
        least, most = low[cells], high[cells]
        total = float(np.clip(totals[cells].sum(), least.sum(), most.sum()))
        moved[cells] = project(totals[cells], plane.std_error, least, most, total)
    return moved


_NAMED = 3
_MOVED = "moved to the nearest table that is possible, which is no longer unbiased"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """The estimates of an item, one per group."""

    column: Column
    is_certain: Bools
    """Which have no error but rounding."""
    is_open: Bools | None = None
    """Which have an interval as wide as what is possible at all; None: none."""


def finish(
    model: Model,
    asked: Estimated,
    results: Sequence[Result],
    others: Mapping[str, Floats],
    request: Request,
    workspace: Workspace,
) -> Answer:
    """The answer to a question whose items were estimated.

    Args:
        model: of the release.
        asked: the question.
        results: of each item.
        others: estimates that HAVING and ORDER BY may name besides, by the names that they use.
        request: how to answer.
        workspace: where the last clauses are evaluated.
    """
    query, question, keys = asked.query, asked.question, asked.question.keys
    by_name = dict(others)
    for k, (item, result) in enumerate(zip(query.items, results, strict=True)):
        by_name[f"i{k}"] = result.column.estimate
        if isinstance(item.formula, AggregateRef):
            by_name[f"a{item.formula.index}"] = result.column.estimate
    names = [key.name for key in query.groups]
    rows, certain, untold = [], [], []
    for i in _order_groups(asked, by_name, workspace):
        cells = [values[code].as_py() for values, code in zip(question.key_values, keys[i], strict=True)]
        group = tuple(zip(names, cells, strict=True))
        for item, result in zip(query.items, results, strict=True):
            rows.append(_row(group, item.name, result, i, request))
            certain.append(result.is_certain[i])
            if result.is_open is not None and result.is_open[i]:
                untold.append(", ".join([*(label_cell(cell) for cell in cells), item.name]))
    notes = (
        []
        if all(certain)
        else [model.estimators[request.estimator].assumption, _MOVED if request.consistent else None]
    )
    return Answer(
        rows=tuple(rows),
        confidence=request.confidence,
        assumption="; ".join(filter(None, notes)) or None,
        explain=_explain(model, query, request.estimator),
        notes=(_say_untold(untold, len(rows), model.more),) if untold else (),
    )


def _say_untold(names: Sequence[str], n_rows: int, more: str) -> str:
    """What a release cannot tell, in a sentence, and what would."""
    listed = "; ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    what = "this" if n_rows == 1 else listed
    return f"this release cannot tell {what}: the interval is nearly all that is possible; {more}"


def _row(
    group: tuple[tuple[str, object], ...], name: str, result: Result, i: int, request: Request
) -> AnswerRow:
    column, certain = result.column, bool(result.is_certain[i])
    status: Status = "consistent" if request.consistent else "estimate"
    if certain:  # a quantile's interval may be one number that most of its law has, and not all
        status = "exact"
    elif np.isinf(column.std_error[i]):
        status = "undetermined"
    return AnswerRow(
        group=group,
        column=name,
        estimate=finite(column.estimate[i]),
        std_error=0.0 if certain else finite(column.std_error[i]),
        low=finite(column.estimate[i] if certain else column.low[i]),
        high=finite(column.estimate[i] if certain else column.high[i]),
        status=status,
    )


def _explain(model: Model, query: Query, name: str) -> str:
    estimator = model.estimators[name]
    return "\n".join(
        [
            f"question: {query.text}",
            f"estimator: {name}: {estimator.formula}",
            f"read: {model.summary}",
            f"rests on: {estimator.assumption or model.coins}",
        ]
    )


def _order_groups(asked: Estimated, estimates: Mapping[str, Floats], workspace: Workspace) -> list[int]:
    """The groups that HAVING and LIMIT leave, in the order asked for, or of the keys."""
    query, keys = asked.query, asked.question.keys
    if not query.groups and not query.finish:
        return list(range(len(keys)))
    table = {"__id": pa.array(np.arange(len(keys)))}
    for k, cells in enumerate(asked.question.key_values):
        table[f"g{k}"] = cells.take(pa.array([key[k] for key in keys], pa.int64()))
    for name, estimate in estimates.items():
        table[name] = pa.array(estimate, from_pandas=True)
    clauses = query.finish
    if query.groups and "ORDER BY" not in clauses:
        by_keys = "ORDER BY " + ", ".join(f"g{k}" for k in range(len(query.groups)))
        head, limit = _split_limit(clauses)
        clauses = f"{head} {by_keys} {limit}"
    return workspace.database.finish(clauses, pa.table(table), workspace.deadline)


def _split_limit(clauses: str) -> tuple[str, str]:
    for word in ("LIMIT ", "OFFSET "):
        at = clauses.rfind(word)
        if at >= 0 and clauses[at + len(word) :].replace("OFFSET", "").replace(" ", "").isdigit():
            return clauses[:at], clauses[at:]
    return clauses, ""
