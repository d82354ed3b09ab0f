"""How many tuples of a domain satisfy a condition, from its text to its contraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.tuples.answer.network import Weights, integer_weights, sum_selection
from dalenius.mechanisms.tuples.answer.selection import Atoms, Selection
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.question.database import Database, Deadline, Limits, Workspace
from dalenius.question.sql import parse

Columns = Mapping[str, Any]
Tables = Mapping[str, pa.Table]


def atoms_of(columns: Columns, tables: Tables | None = None) -> Atoms:
    """The evaluator of expressions over these columns' values."""
    limits = Limits()
    workspace = Workspace(database=Database(tables or {}, limits), deadline=Deadline(limits))
    return Atoms(domain=Domain.of(columns), workspace=workspace)


def selection_of(columns: Columns, predicate: str, tables: Tables | None = None) -> Selection:
    """Where the condition is TRUE."""
    query = parse(f"SELECT COUNT(*) FROM t WHERE {predicate}", columns, tables)
    return atoms_of(columns, tables).select(query.where)


def domain_counts_by(
    columns: Columns,
    predicate: str,
    by: Sequence[str],
    *,
    tables: Tables | None = None,
    weights: Weights | None = None,
) -> np.ndarray:
    """The number of tuples for each combination of values of some columns, or the sum of their weights."""
    names, sizes = list(columns), [len(values) for values in columns.values()]
    kept = tuple(names.index(name) for name in by)
    return sum_selection(
        selection_of(columns, predicate, tables), integer_weights(weights or {}, names, sizes), kept
    )


def domain_count(
    columns: Columns, predicate: str, *, tables: Tables | None = None, weights: Weights | None = None
) -> Fraction:
    """The number of tuples, or the sum of their weights."""
    return Fraction(domain_counts_by(columns, predicate, (), tables=tables, weights=weights).item())
