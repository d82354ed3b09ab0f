"""A table that is possible: every count within its range, and counts that add up to what is known exactly.

The estimates are moved as little as possible, in units of their own errors: to the nearest point, by weighted
least squares, of the box of possible counts and of the planes on which the groups of all sensitive values add
up to the number of rows.

The last step of an answer: HAVING, ORDER BY and LIMIT over the estimated groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats
from dalenius.ask.estimation import Column, TotalEstimates
from dalenius.question.database import Database, Deadline
from dalenius.question.query import Query


def project(estimate: Floats, std_error: Floats, low: Floats, high: Floats, total: float | None) -> Floats:
    """The nearest point with low ≤ x ≤ high and, if given, Σ x = total.

    >>> project(np.array([-1.0, 4.0]), np.ones(2), np.zeros(2), np.full(2, 9.0), 3.0).round(6).tolist()
    [0.0, 3.0]
    """
    clipped = np.clip(estimate, low, high)
    if total is None or not len(estimate):
        return np.asarray(clipped)
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


def make_consistent(totals: TotalEstimates) -> TotalEstimates:
    """Move every count to what is possible; sums of numbers are left as they are."""
    moved = totals.columns.estimate.copy()
    low, high = totals.possible
    counts = np.flatnonzero(totals.is_count & np.isfinite(low) & np.isfinite(high))
    moved[counts] = np.clip(moved[counts], low[counts], high[counts])
    error = totals.columns.std_error
    for members, total in _planes(totals):
        moved[members] = project(
            totals.columns.estimate[members], error[members], low[members], high[members], total
        )
    columns = Column(
        estimate=moved,
        std_error=error,
        low=np.minimum(totals.columns.low, moved),
        high=np.maximum(totals.columns.high, moved),
    )
    return replace(totals, columns=columns)


def _planes(totals: TotalEstimates) -> list[tuple[list[int], float]]:
    """Counts over the same rows whose sensitive values are all values, each once: they add up to the rows."""
    planes = []
    for first, own, keys in zip(totals.first, totals.summands, totals.keys, strict=True):
        by_score: dict[tuple[int, int], list[tuple[int, Floats]]] = {}
        position = first
        for key in keys:
            for k, terms in enumerate(own.groups[key]):
                if totals.is_count[position] and len(terms) == 1:
                    score, weights = terms[0]
                    by_score.setdefault((k, score), []).append((position, weights))
                position += 1
        for members in by_score.values():
            covered = np.sum([weights for _, weights in members], axis=0)
            if (covered == 1).all():
                places = [place for place, _ in members]
                planes.append((places, float(totals.columns.estimate[places].sum())))
    return planes


def order_groups(
    database: Database,
    deadline: Deadline,
    query: Query,
    keys: Sequence[tuple[int, ...]],
    key_values: Sequence[pa.Array],
    estimates: Mapping[str, Floats],
) -> list[int]:
    """The groups that HAVING and LIMIT leave, in the order asked for, or of the keys.

    Args:
        database: where the clauses are evaluated.
        deadline: when that must be done.
        query: the question.
        keys: the codes of each group's keys.
        key_values: the values of each key, by code.
        estimates: by the names that the query's last clauses use (`a0`, `i0`), one number a group.
    """
    if not query.groups and not query.finish:
        return list(range(len(keys)))
    table = {"__id": pa.array(np.arange(len(keys)))}
    for k, cells in enumerate(key_values):
        table[f"g{k}"] = cells.take(pa.array([key[k] for key in keys], pa.int64()))
    for name, estimate in estimates.items():
        table[name] = pa.array(estimate, from_pandas=True)
    clauses = query.finish
    if query.groups and "ORDER BY" not in clauses:
        by_keys = "ORDER BY " + ", ".join(f"g{k}" for k in range(len(key_values)))
        head, limit = _split_limit(clauses)
        clauses = f"{head} {by_keys} {limit}"
    return database.finish(clauses, pa.table(table), deadline)


def _split_limit(clauses: str) -> tuple[str, str]:
    for word in ("LIMIT ", "OFFSET "):
        at = clauses.rfind(word)
        if at >= 0 and clauses[at + len(word) :].replace("OFFSET", "").replace(" ", "").isdigit():
            return clauses[:at], clauses[at:]
    return clauses, ""
