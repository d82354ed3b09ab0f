"""Sensitive values that a question does not tell apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.ask.grouping import GroupCodes
from dalenius.ask.lookup import Lookup
from dalenius.ask.query import Expression, Query, atoms, columns_of
from dalenius.ask.totals import Floats, Total


def value_classes(
    lookup: Lookup,
    query: Query,
    totals: tuple[Total, ...],
    keys: tuple[GroupCodes, ...],
    arguments: dict[Expression, Floats],
) -> Iterator[NDArray[np.int64]]:
    """Sensitive values for which the question says the same about every row."""
    conditions = [query.where, *(total.condition for total in totals)]
    tables: list[NDArray[Any]] = [
        lookup.truths(atom)
        for condition in conditions
        for atom in atoms(condition)
        if lookup.sensitive_part(columns_of(atom))
    ]
    tables += [key.codes for key in keys if _is_mixed(key.codes)]
    tables += [np.nan_to_num(table, nan=np.inf) for table in arguments.values() if _is_mixed(table)]
    n_values = lookup.sensitive.n_rows
    labels = [
        table[:, 0] if table.shape[1] == 1 else _row_labels(table) for table in tables if len(table) > 1
    ]
    if not labels:
        yield np.arange(n_values)
        return
    _, inverse = np.unique(np.stack(labels, axis=1), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    for label in range(inverse.max() + 1):
        yield np.flatnonzero(inverse == label)


def _is_mixed(table: NDArray[Any]) -> bool:
    return table.shape[0] > 1 and bool(table.shape[1] > 1)


def _row_labels(table: NDArray[Any]) -> NDArray[np.int64]:
    return np.asarray(np.unique(table, axis=0, return_inverse=True)[1]).ravel()
