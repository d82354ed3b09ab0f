"""The last step of an answer: HAVING, ORDER BY and LIMIT over the estimated groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from dalenius.ask.database import Database, Deadline
from dalenius.ask.query import Query
from dalenius.ask.totals import Floats


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
