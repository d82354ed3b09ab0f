"""From a question to scores of rows and weights of sensitive values.

What a question sums depends on a person's row and on the person's sensitive value. Sensitive values on which
all its conditions say the same form a class; within a class only the row matters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.ask.columns import Bits
from dalenius.ask.lookup import Lookup
from dalenius.ask.names import ROW
from dalenius.ask.query import Expression, Query, atoms, columns_of
from dalenius.ask.totals import Floats, Total, totals_of
from dalenius.ask.truth import rows_where
from dalenius.errors import QueryError
from dalenius.mechanisms.bucketize.estimate_buckets import Score

_MOST_GROUPS = 50_000

Key = tuple[int, ...]
Term = tuple[int, Floats]
"""A score, and the weight of each sensitive value."""


@dataclass(slots=True, kw_only=True, eq=False)
class Summands:
    """What a question adds up: per group and total, scores with weights."""

    totals: tuple[Total, ...]
    key_values: tuple[pa.Array, ...]
    """The different values of each group key, by code."""
    groups: dict[Key, list[list[Term]]] = field(default_factory=dict)
    """By the group's key codes, the terms of each total."""

    def terms(self, key: Key) -> list[list[Term]]:
        """The terms of a group's totals; the group comes into being when it is first asked for."""
        if key not in self.groups:
            if len(self.groups) >= _MOST_GROUPS:
                raise QueryError(
                    f"the question has more than {_MOST_GROUPS} groups", hint="group by fewer or coarser keys"
                )
            self.groups[key] = [[] for _ in self.totals]
        return self.groups[key]

    def group(self, key: Key) -> tuple[Any, ...]:
        """The values of a group's keys."""
        return tuple(values[code].as_py() for values, code in zip(self.key_values, key, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Key:
    """A group key's codes: sensitive values × different row values (each 1 if they do not matter)."""

    codes: NDArray[np.int64]
    columns: tuple[str, ...]


class ScoreList:
    """Scores of one or many questions; the same rows are kept once."""

    def __init__(self) -> None:
        self.scores: list[Score] = []
        self._known: dict[bytes, int] = {}

    def add(self, rows: NDArray[np.int64], values: Floats | None) -> int:
        """The number of a score."""
        self.scores.append(Score(rows=rows, values=values))
        return len(self.scores) - 1

    def add_set(self, bits: Bits, rows: NDArray[np.int64]) -> int:
        """The number of the score that is 1 on a set of rows."""
        key = bits.tobytes()
        if key not in self._known:
            self._known[key] = self.add(rows, None)
        return self._known[key]


def summands(lookup: Lookup, query: Query, scores: ScoreList) -> Summands:
    """Evaluate a question's conditions, keys and arguments on the release's values."""
    totals = totals_of(query.aggregates)
    keys, key_values = _group_keys(lookup, query)
    result = Summands(totals=totals, key_values=key_values)
    if not query.groups:
        result.terms(())
    arguments = _arguments(lookup, totals)
    for members in _classes(lookup, query, totals, keys, arguments):
        _add_class(lookup, query, result, keys, arguments, members, scores)
    return result


def _group_keys(lookup: Lookup, query: Query) -> tuple[tuple[_Key, ...], tuple[pa.Array, ...]]:
    keys, values = [], []
    for group in query.groups:
        column = lookup.values(group.expression).combine_chunks()
        encoded = column.dictionary_encode(null_encoding="encode")
        encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        n_outer = lookup.sensitive.n_rows if lookup.sensitive_part(group.expression.columns) else 1
        keys.append(_Key(codes=codes.reshape(n_outer, -1), columns=group.expression.columns))
        values.append(encoded.dictionary)
    return tuple(keys), tuple(values)


def _arguments(lookup: Lookup, totals: tuple[Total, ...]) -> dict[Expression, Floats]:
    """Of every argument: sensitive values × row values; NaN is NULL."""
    summed = {total.argument for total in totals if total.kind == "sum"}
    found = {}
    for argument in {total.argument: None for total in totals if total.argument is not None}:
        column = lookup.values(argument).combine_chunks()
        if argument in summed:
            flat = _numbers(column, argument)
        else:
            flat = np.where(column.is_null().to_numpy(zero_copy_only=False), np.nan, 0.0)
        n_outer = lookup.sensitive.n_rows if lookup.sensitive_part(argument.columns) else 1
        found[argument] = flat.reshape(n_outer, -1)
    return found


def _numbers(column: pa.Array, argument: Expression) -> Floats:
    kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise QueryError(
            f"SUM and AVG need numbers; {argument.sql.replace(ROW + '.', '')} is {kind}",
            hint="use COUNT, or CAST",
        )
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _classes(
    lookup: Lookup,
    query: Query,
    totals: tuple[Total, ...],
    keys: tuple[_Key, ...],
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


def _add_class(
    lookup: Lookup,
    query: Query,
    result: Summands,
    keys: tuple[_Key, ...],
    arguments: dict[Expression, Floats],
    members: NDArray[np.int64],
    scores: ScoreList,
) -> None:
    value = int(members[0])
    where = rows_where(lookup, query.where, value)
    rows = lookup.rows.rows(where)
    if not len(rows):
        return
    secret_groups = _secret_groups(keys, members)
    groups, member_of = _row_groups(lookup, keys, rows, value)
    for row_key in groups:
        for secret_key, _ in secret_groups:
            result.terms(_join(row_key, secret_key))
    for index, total in enumerate(result.totals):
        bits = where if total.condition is None else where & rows_where(lookup, total.condition, value)
        parts = _scores(lookup, total, arguments, bits, value, scores, rows, member_of, len(groups))
        for row_key, score in zip(groups, parts, strict=True):
            if score is None:
                continue
            for secret_key, those in secret_groups:
                weights = np.zeros(lookup.sensitive.n_rows)
                weights[those] = _weights(total, arguments, those)
                result.terms(_join(row_key, secret_key))[index].append((score, weights))


def _secret_groups(
    keys: tuple[_Key, ...], members: NDArray[np.int64]
) -> list[tuple[tuple[int, ...], NDArray[np.int64]]]:
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


def _row_groups(
    lookup: Lookup, keys: tuple[_Key, ...], rows: NDArray[np.int64], value: int
) -> tuple[list[tuple[int, ...]], NDArray[np.int64]]:
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


def _join(row_key: tuple[int, ...], secret_key: tuple[int, ...]) -> Key:
    return tuple(secret if row == -1 else row for row, secret in zip(row_key, secret_key, strict=True))


def _scores(
    lookup: Lookup,
    total: Total,
    arguments: dict[Expression, Floats],
    bits: Bits,
    value: int,
    scores: ScoreList,
    where_rows: NDArray[np.int64],
    member_of: NDArray[np.int64],
    n_groups: int,
) -> list[int | None]:
    """The score of each group of rows; None where no row counts."""
    rows = where_rows if total.condition is None else lookup.rows.rows(bits)
    values: Floats | None = None
    if total.argument is not None and (table := arguments[total.argument]).shape[1] > 1:
        own = table[value if len(table) > 1 else 0]
        numbers = own[lookup.quasi(total.argument.columns).codes[rows]]
        present = ~np.isnan(numbers)
        rows, numbers = rows[present], numbers[present]
        if total.kind == "sum":
            rows, values = rows[numbers != 0], numbers[numbers != 0]
        bits = lookup.rows.no_rows()  # no longer what was counted
    if n_groups == 1:
        if not len(rows):
            return [None]
        is_set = total.argument is None or arguments[total.argument].shape[1] == 1
        return [scores.add_set(bits, rows) if is_set else scores.add(rows, values)]
    mine = member_of[np.searchsorted(where_rows, rows)]
    order = np.argsort(mine, kind="stable")
    ends = np.cumsum(np.bincount(mine, minlength=n_groups))
    result: list[int | None] = []
    for begin, end in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
        part = order[begin:end]
        chosen = None if values is None else values[part]
        result.append(scores.add(rows[part], chosen) if len(part) else None)
    return result


def _weights(total: Total, arguments: dict[Expression, Floats], those: NDArray[np.int64]) -> Floats:
    """What one person of each sensitive value adds, as far as the value alone decides it."""
    if total.argument is None or arguments[total.argument].shape[1] > 1:
        return np.ones(len(those))
    table = arguments[total.argument]
    own = table[those, 0] if len(table) > 1 else np.full(len(those), table[0, 0])
    return np.where(np.isnan(own), 0.0, own if total.kind == "sum" else 1.0)
