"""From a question to scores of rows and weights of sensitive values.

What a question sums depends on a person's row and on the person's sensitive value. Sensitive values on which
all its conditions say the same form a class; within a class only the row matters.

Of the group keys the row decides some, the sensitive value some, and both together the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.arrays import Bits, Floats, Ints
from dalenius.errors import QueryError
from dalenius.mechanisms.rows.lookup import Lookup, rows_where
from dalenius.question.model import Key, Total, argument_numbers, key_codes, totals_of
from dalenius.question.query import Expression, Query, atoms, columns_of
from dalenius.question.targets import Score
from dalenius.tables.codes import in_one_piece


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
    is_secret = [len(key.codes) > 1 and key.codes.shape[1] == 1 for key in keys]
    if not any(is_secret):
        return [((-1,) * len(keys), members)]
    columns = [
        key.codes[members, 0] if secret else np.full(len(members), -1)
        for key, secret in zip(keys, is_secret, strict=True)
    ]
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


Argument = tuple[Floats, Floats]
"""What the sensitive value makes of an argument (values, or 1, × 1), times the rest: (values or 1) × rows."""


def argument_tables(lookup: Lookup, totals: tuple[Total, ...]) -> dict[Expression, Argument]:
    """Of every argument, in two factors; NaN is NULL."""
    summed = {total.argument for total in totals if total.kind == "sum"}
    found = {}
    listed = {total.argument: None for total in totals if total.argument is not None}
    lookup.prepare(listed)
    for argument in listed:
        cells = in_one_piece(lookup.values(argument))
        numbers = argument_numbers(cells, argument, argument in summed)
        found[argument] = _factors(numbers.reshape(lookup.n_outer(argument), -1))
    return found


def _factors(table: Floats) -> Argument:
    """A table of sensitive values × row values as a product of both where it is one, as age · salary is."""
    one = np.ones((1, 1))
    if table.shape[1] == 1:
        return table, one
    if not _is_mixed(table):
        return one, table
    at = np.unravel_index(np.argmax(np.nan_to_num(np.abs(table))), table.shape)
    if np.nan_to_num(table[at]) == 0:
        return one, table
    values, rows = table[:, at[1] : at[1] + 1] / table[at], table[at[0] : at[0] + 1]
    return (values, rows) if np.allclose(values * rows, table, 1e-12, 0.0, equal_nan=True) else (one, table)


def value_weights(total: Total, arguments: dict[Expression, Argument], those: Ints) -> Floats:
    """What one person of each sensitive value adds, as far as the value alone decides it."""
    if total.argument is None:
        return np.ones(len(those))
    table = arguments[total.argument][0]
    if len(table) == 1:
        own = np.full(len(those), table[0, 0])
    else:
        own = table[:, 0] if len(those) == len(table) else table[those, 0]
    return np.where(np.isnan(own), 0.0, own if total.kind == "sum" else 1.0)


def value_classes(
    lookup: Lookup,
    query: Query,
    totals: tuple[Total, ...],
    keys: tuple[GroupCodes, ...],
    arguments: dict[Expression, Argument],
) -> Iterator[Ints]:
    """Sensitive values for which the question says the same about every row."""
    conditions = [query.where, *(total.condition for total in totals)]
    tables: list[NDArray[Any]] = [
        lookup.truths(atom)
        for condition in conditions
        for atom in atoms(condition)
        if lookup.sensitive_part(columns_of(atom))
    ]
    tables += [key.codes for key in keys if _is_mixed(key.codes)]
    tables += [np.nan_to_num(table, nan=np.inf) for _, table in arguments.values() if _is_mixed(table)]
    n_values = lookup.sensitive.n_rows
    labels = [
        table[:, 0] if table.shape[1] == 1 else _row_labels(table) for table in tables if len(table) > 1
    ]
    if not labels:
        yield np.arange(n_values)
        return
    several = len(labels) > 1  # of one column numpy finds the different cells many times faster
    cells = np.stack(labels, axis=1) if several else labels[0]
    inverse = np.unique(cells, axis=0 if several else None, return_inverse=True)[1].ravel()
    for label in range(inverse.max() + 1):
        yield np.flatnonzero(inverse == label)


def _is_mixed(table: NDArray[Any]) -> bool:
    return table.shape[0] > 1 and bool(table.shape[1] > 1)


def _row_labels(table: NDArray[Any]) -> Ints:
    return np.asarray(np.unique(table, axis=0, return_inverse=True)[1]).ravel()


_MOST_GROUPS = 50_000

Term = tuple[int, Floats]
"""A score, and the weight of each sensitive value."""


@dataclass(slots=True, kw_only=True, eq=False)
class Summands:
    """What a question adds up: per group and total, scores with weights."""

    totals: tuple[Total, ...]
    key_values: tuple[pa.Array, ...]
    """The different values of each group key, by code."""
    lookup: Lookup
    groups: dict[Key, list[list[Term]]] = field(default_factory=dict)
    """By the group's key codes, the terms of each total."""

    @property
    def keys(self) -> tuple[Key, ...]:
        """The groups, in the order in which they came into being."""
        return tuple(self.groups)

    def range_of(self, argument: Expression) -> tuple[float, float]:
        """The least and the largest number that an argument can be."""
        return self.lookup.range(argument)

    def terms(self, key: Key) -> list[list[Term]]:
        """The terms of a group's totals; the group comes into being when it is first asked for."""
        if key not in self.groups:
            if len(self.groups) >= _MOST_GROUPS:
                raise QueryError(
                    f"the question has more than {_MOST_GROUPS} groups", hint="group by fewer or coarser keys"
                )
            self.groups[key] = [[] for _ in self.totals]
        return self.groups[key]


class ScoreList:
    """Scores of one or many questions; the same rows are kept once."""

    def __init__(self) -> None:
        self.scores: list[Score] = []
        self._known: dict[bytes, int] = {}

    def add(self, rows: Ints, values: Floats | None) -> int:
        """The number of a score."""
        self.scores.append(Score(rows=rows, values=values))
        return len(self.scores) - 1

    def add_set(self, bits: Bits, rows: Ints) -> int:
        """The number of the score that is 1 on a set of rows."""
        key = bits.tobytes()
        if key not in self._known:
            self._known[key] = self.add(rows, None)
        return self._known[key]


def summands(lookup: Lookup, query: Query, scores: ScoreList) -> Summands:
    """Evaluate a question's conditions, keys and arguments on the release's values."""
    totals = totals_of(query.aggregates)
    keys, key_values = group_codes(lookup, query)
    result = Summands(totals=totals, key_values=key_values, lookup=lookup)
    if not query.groups:
        result.terms(())
    arguments = argument_tables(lookup, totals)
    for members in value_classes(lookup, query, totals, keys, arguments):
        _add_class(lookup, query, result, keys, arguments, members, scores)
    return result


def _add_class(
    lookup: Lookup,
    query: Query,
    result: Summands,
    keys: tuple[GroupCodes, ...],
    arguments: dict[Expression, Argument],
    members: Ints,
    scores: ScoreList,
) -> None:
    value = int(members[0])
    where = rows_where(lookup, query.where, value)
    rows = lookup.rows.rows(where)
    if not len(rows):
        return
    by_secret = secret_groups(keys, members)
    groups, member_of = row_groups(lookup, keys, rows, value)
    for row_key in groups:
        for secret_key, _ in by_secret:
            result.terms(join_keys(row_key, secret_key))
    alike: dict[tuple[int, ...], Floats] = {}  # weights of totals to which every value of a group adds alike
    of_rows: dict[bytes, list[int | None]] = {}  # scores of totals that count the same rows
    for index, total in enumerate(result.totals):
        bits = where if total.condition is None else where & rows_where(lookup, total.condition, value)
        is_set = total.argument is None or arguments[total.argument][1].shape[1] == 1
        key = bits.tobytes() if is_set and len(groups) > 1 else b""
        parts = of_rows.get(key) if key else None
        if parts is None:
            parts = _scores(lookup, total, arguments, bits, value, scores, rows, member_of, len(groups))
            if key:
                of_rows[key] = parts
        of_total: dict[tuple[int, ...], Floats] = {}  # groups of rows weigh the values alike
        for row_key, score in zip(groups, parts, strict=True):
            if score is None:
                continue
            for secret_key, those in by_secret:
                weights = of_total.get(secret_key)
                if weights is None:
                    added = value_weights(total, arguments, those)
                    weights = _weights(added, those, lookup.sensitive.n_rows, secret_key, alike)
                    of_total[secret_key] = weights
                result.terms(join_keys(row_key, secret_key))[index].append((score, weights))


def _weights(
    added: Floats, those: Ints, n_values: int, key: tuple[int, ...], alike: dict[tuple[int, ...], Floats]
) -> Floats:
    """The weight of every sensitive value, of which some add something; what is alike is kept once."""
    is_alike = bool((added == 1).all())
    if is_alike and key in alike:
        return alike[key]
    weights = added
    if len(those) < n_values:
        weights = np.zeros(n_values)
        weights[those] = added
    if is_alike:
        alike[key] = weights
    return weights


def _scores(
    lookup: Lookup,
    total: Total,
    arguments: dict[Expression, Argument],
    bits: Bits,
    value: int,
    scores: ScoreList,
    where_rows: Ints,
    member_of: Ints,
    n_groups: int,
) -> list[int | None]:
    """The score of each group of rows; None where no row counts."""
    rows = where_rows if total.condition is None else lookup.rows.rows(bits)
    values: Floats | None = None
    if total.argument is not None and (table := arguments[total.argument][1]).shape[1] > 1:
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
        is_set = total.argument is None or arguments[total.argument][1].shape[1] == 1
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
