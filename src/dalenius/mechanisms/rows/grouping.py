"""Group keys: which the row decides, which the sensitive value, and which both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.rows.lookup import Lookup
from dalenius.question.model import Key
from dalenius.question.query import Query
from dalenius.question.totals import key_codes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupCodes:
    """A group key's codes: sensitive values × different row values (each 1 if they do not matter)."""

    codes: Ints
    columns: tuple[str, ...]


def group_codes(lookup: Lookup, query: Query) -> tuple[tuple[GroupCodes, ...], tuple[pa.Array, ...]]:
    """The keys of a question, and the different values of each by code."""
    keys, values = [], []
    for group in query.groups:
        codes, cells = key_codes(group, lookup.values(group.expression))
        n_outer = lookup.n_outer(group.expression)
        keys.append(GroupCodes(codes=codes.reshape(n_outer, -1), columns=group.expression.columns))
        values.append(cells)
    return tuple(keys), tuple(values)


def secret_groups(keys: tuple[GroupCodes, ...], members: Ints) -> list[tuple[tuple[int, ...], Ints]]:
    """The class, split by the keys that only the sensitive value decides; -1 stands for the other keys."""
    columns = [
        key.codes[members, 0] if len(key.codes) > 1 and key.codes.shape[1] == 1 else np.full(len(members), -1)
        for key in keys
    ]
    if not columns:
        return [((), members)]
    found, inverse = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    inverse = inverse.ravel()
    return [(tuple(key.tolist()), members[inverse == i]) for i, key in enumerate(found)]


def row_groups(
    lookup: Lookup, keys: tuple[GroupCodes, ...], rows: Ints, value: int
) -> tuple[list[tuple[int, ...]], Ints]:
    """The keys that the row decides: their combinations, and which one each row has."""
    columns = []
    for key in keys:
        if len(key.codes) > 1 and key.codes.shape[1] == 1:
            columns.append(np.full(len(rows), -1, dtype=np.int64))
        else:
            own = key.codes[value if len(key.codes) > 1 else 0]
            columns.append(own[lookup.quasi(key.columns).codes[rows]])
    if not columns:
        return [()], np.zeros(len(rows), dtype=np.int64)
    combined = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        _, first, combined = np.unique(
            combined * (column.max() + 2) + column + 1, return_index=True, return_inverse=True
        )
    found = [tuple(int(column[i]) for column in columns) for i in first]
    return found, combined.ravel()


def join_keys(row_key: tuple[int, ...], secret_key: tuple[int, ...]) -> Key:
    """One key out of what the row and what the sensitive value decide (-1: the other one does)."""
    return tuple(secret if row == -1 else row for row, secret in zip(row_key, secret_key, strict=True))
