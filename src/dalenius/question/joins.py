"""Joins of a release with auxiliary tables: what a table of somebody else's says of published values.

`FROM t JOIN regions r ON r.district = t.district` gives each person the row of `regions` that has the
person's district. So `r.zone` is an expression over the published column `district`, and every estimator can
answer it: a scalar sub-select on the auxiliary table. For that a person must have at most one row there.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from dalenius.errors import did_you_mean
from dalenius.question.names import Join, refuse

_HINT = "possible: FROM t [LEFT] JOIN name ON t.column = name.column [AND …], or USING (column)"


def read_joins(
    text: str, select: exp.Select, columns: Mapping[str, str], tables: Mapping[str, pa.Table]
) -> tuple[Join, ...]:
    """The joins of a question about these published columns (by lower-case name), with auxiliary tables."""
    return tuple(_read(text, node, columns, tables) for node in select.args.get("joins") or ())


def _read(text: str, node: exp.Join, columns: Mapping[str, str], tables: Mapping[str, pa.Table]) -> Join:
    table = node.this
    side, kind = (str(node.args.get(key) or "").upper() for key in ("side", "kind"))
    if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER") or node.args.get("method"):
        what = " ".join(filter(None, (str(node.args.get("method") or "").upper(), side, kind)))
        raise refuse(text, table, f"a join cannot be answered if it is {what}", _HINT)
    if not isinstance(table, exp.Table) or table.name.lower() not in tables or table.args.get("db"):
        name = table.name if isinstance(table, exp.Table) else ""
        known = f"; given: {', '.join(sorted(tables))}" if tables else ""
        what = f"a release is joined only with tables that you give with the question, by name{known}"
        hint = f"--table {name or 'NAME'}=FILE, in Python tables={{{name or 'NAME'!r}: …}}"
        raise refuse(text, table, what, hint)
    given = tables[table.name.lower()]
    alias = table.alias_or_name.lower()
    own = {name.lower(): name for name in given.column_names}
    keys = tuple(_keys(text, node, alias, columns, own))
    _refuse_several(text, table, given, [key for _, key in keys])
    return Join(alias=alias, table=table.name, columns=own, keys=keys, is_outer=side == "LEFT")


def _keys(
    text: str, node: exp.Join, alias: str, columns: Mapping[str, str], own: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Pairs of a published column and one of the auxiliary table."""
    if using := node.args.get("using"):
        names = [name.name.lower() for name in using]
        return [(_column(text, node, n, columns), _column(text, node, n, own)) for n in names]
    on = node.args.get("on")
    if on is None:
        raise refuse(text, node.this, "a join cannot be answered without ON or USING", _HINT)
    pairs = []
    for part in on.flatten() if isinstance(on, exp.And) else [on]:
        sides = [part.this, part.expression] if isinstance(part, exp.EQ) else []
        if not all(isinstance(side, exp.Column) for side in sides) or not sides:
            raise refuse(text, part, "a join is on equal columns", _HINT)
        theirs = [_is_own(side, alias, columns, own) for side in sides]
        if theirs[0] == theirs[1]:
            raise refuse(text, part, "a join is on a published column and one of the joined table", _HINT)
        key, published = sides if theirs[0] else reversed(sides)
        pairs.append(
            (
                _column(text, part, published.name.lower(), columns),
                _column(text, part, key.name.lower(), own),
            )
        )
    return pairs


def _is_own(node: exp.Column, alias: str, columns: Mapping[str, str], own: Mapping[str, str]) -> bool:
    """Whether a column is one of the joined table."""
    if node.table:
        return node.table.lower() == alias
    return node.name.lower() in own and node.name.lower() not in columns


def _column(text: str, node: exp.Expr, name: str, columns: Mapping[str, str]) -> str:
    if name not in columns:
        raise refuse(
            text, node, f"there is no column {name!r} to join on", did_you_mean(name, columns.values())
        )
    return columns[name]


def _refuse_several(text: str, node: exp.Table, table: pa.Table, keys: list[str]) -> None:
    """A person with two rows would count twice."""
    known = table.select(keys).drop_null()
    counts = known.group_by(keys).aggregate([([], "count_all")]).column("count_all")
    if len(counts) and pc.max(counts).as_py() > 1:
        raise refuse(
            text,
            node,
            f"{node.name!r} has several rows with the same {', '.join(keys)}: people would count twice",
            "give it one row for each, or ask with a sub-select: WHERE … IN (SELECT …)",
        )
