"""Several rows per person become one: whose values they are, as a set.

::

    source = { path = "visits.csv", persons = { unit = "patient", values = "disease" } }

Every value of the column becomes a column of its own, true for the people who have it in any row. The other
columns must be the same in all rows of a person.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.errors import PolicyError, SourceError, refuse_unknown_keys
from dalenius.sql import identifier, one_row
from dalenius.tables.frames import COUNTED, GATHERED
from dalenius.tables.histogram import label_cell

MOST_VALUES = 64
"""More different values are refused: each of them is a column."""
_EXAMPLE = 'source = { path = "visits.csv", persons = { unit = "patient", values = "disease" } }'


@dataclass(frozen=True, slots=True, kw_only=True)
class Persons:
    """Whose rows are whose, and which column's values are gathered."""

    unit: str
    values: str
    count: str | None = None
    """A new column: how many rows a person has; None: that is not told."""
    drop: tuple[str, ...] = ()
    """Columns that differ between the rows of a person."""

    @classmethod
    def of(cls, given: Any) -> Persons:
        """Check what a policy says."""
        if not isinstance(given, Mapping):
            raise PolicyError("source: persons must be a table", hint=_EXAMPLE)
        refuse_unknown_keys(given, ("unit", "values", "count", "drop"), "source persons")
        for key in ("unit", "values"):
            if not isinstance(given.get(key), str) or not given[key]:
                raise PolicyError(f"source: persons needs {key}, the name of a column", hint=_EXAMPLE)
        count, drop = given.get("count"), given.get("drop", [])
        if count is not None and (not isinstance(count, str) or not count):
            raise PolicyError("source: persons.count must be the name of the new column")
        if not isinstance(drop, list | tuple) or not all(isinstance(name, str) for name in drop):
            raise PolicyError("source: persons.drop must be a list of columns", hint='drop = ["visit_date"]')
        return cls(unit=given["unit"], values=given["values"], count=count, drop=tuple(drop))


def gather(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: tuple[str, ...], asked: Persons
) -> pa.Table:
    """One row per person of a table to select from."""
    unknown = [name for name in (asked.unit, asked.values, *asked.drop) if name not in columns]
    if unknown:
        raise PolicyError(
            f"source: persons: there is no column {unknown[0]!r}", hint=f"columns: {', '.join(columns)}"
        )
    kept = [name for name in columns if name not in (asked.unit, asked.values, *asked.drop)]
    unit, cell = identifier(asked.unit), identifier(asked.values)
    n_nobodys = one_row(connection, f"SELECT count(*) FROM {relation} WHERE {unit} IS NULL")[0]
    refuse_nobodys(asked.unit, n_nobodys)
    _refuse_differing(connection, relation, unit, kept)
    query = f"SELECT DISTINCT {cell} AS v FROM {relation} WHERE {cell} IS NOT NULL ORDER BY v"
    values = connection.sql(query).to_arrow_table().column(0)
    names = _name_columns(values.to_pylist(), asked, kept)
    connection.register("persons_values", pa.table({"v": values, "n": range(len(values))}))
    has = [f"coalesce(bool_or(n = {n}), false) AS {identifier(name)}" for n, name in enumerate(names)]
    same = [f"any_value(r.{identifier(name)}) AS {identifier(name)}" for name in kept]
    counted = [f"count(*) AS {identifier(asked.count)}"] if asked.count else []
    listed = ", ".join([f"r.{unit}", *same, *counted, *has])
    found = connection.sql(
        f"SELECT {listed} FROM {relation} AS r LEFT JOIN persons_values AS p ON r.{cell} = p.v "
        f"GROUP BY r.{unit} ORDER BY r.{unit}"
    ).to_arrow_table()
    counting = {COUNTED: asked.count} if asked.count else {}
    return found.replace_schema_metadata({GATHERED: json.dumps(names), **counting})


def refuse_nobodys(unit: str, n_rows: int) -> None:
    """Every row is somebody's."""
    if n_rows:
        rows, they = ("1 row has", "row it is") if n_rows == 1 else (f"{n_rows:,} rows have", "rows they are")
        raise SourceError(
            f"{rows} no {unit!r}: whose {they} is not known",
            hint="take such rows out of the file (a line of totals has none), or give each its own",
        )


def _refuse_differing(
    connection: duckdb.DuckDBPyConnection, relation: str, unit: str, kept: list[str]
) -> None:
    """A person has one age; a column that says otherwise is not the person's."""
    for name in kept:
        column = identifier(name)
        query = (
            f"SELECT count(*) FROM (SELECT {unit} FROM {relation} GROUP BY {unit} HAVING "
            f"count(DISTINCT {column}) + (count(*) > count({column}))::INT > 1)"
        )
        n_differ = one_row(connection, query)[0]
        if n_differ:
            raise SourceError(
                f"column {name!r} differs between the rows of {n_differ} people: it is not a person's",
                hint=f'leave it out, persons = {{ …, drop = ["{name}"] }}, or give every person one value',
            )


def _name_columns(values: list[Any], asked: Persons, kept: list[str]) -> list[str]:
    if not 1 <= len(values) <= MOST_VALUES:
        raise SourceError(
            f"column {asked.values!r} has {len(values)} different values; persons takes 1 to {MOST_VALUES}",
            hint="make them coarser in the source: chapters instead of codes",
        )
    names = [label_cell(value) for value in values]
    others = {name.lower() for name in (*kept, asked.unit, asked.count or "")}
    if len({name.lower() for name in names}) < len(names) or others & {name.lower() for name in names}:
        raise SourceError(
            f"values of {asked.values!r} become columns, and two columns would have one name (case aside)",
            hint="rename a column, or a value, in the source",
        )
    return names
