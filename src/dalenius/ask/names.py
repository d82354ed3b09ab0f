"""Which column a name in a question means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from dalenius.ask.functions import SUBSELECT, describe, is_allowed
from dalenius.ask.query import Expression
from dalenius.ask.refusal import refuse
from dalenius.errors import QueryError, did_you_mean

ROW = "__row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The names that a question may use."""

    text: str
    columns: Mapping[str, str]
    """Published columns by lower-case name."""
    qualifiers: frozenset[str]
    """The table's name or alias, in lower case."""
    tables: Mapping[str, pa.Table]
    """Auxiliary tables by lower-case name."""

    def expression(self, node: exp.Expr) -> Expression:
        """Check an expression and rewrite its columns; refuse what is not allowed in one."""
        used: set[str] = set()
        copy = node.copy()
        rewritten = self._rewrite(copy, used, inner=())
        return Expression(sql=rewritten.sql(dialect="duckdb", comments=False), columns=tuple(sorted(used)))

    def _rewrite(self, node: exp.Expr, used: set[str], inner: tuple[pa.Table, ...]) -> exp.Expr:
        """Check `node` and all below; resolve columns. `inner`: the tables of the sub-selects around it."""
        if isinstance(node, exp.Column):
            return self._column(node, used, inner)
        if isinstance(node, exp.Select):
            inner = (*inner, self._auxiliary(node))
        elif isinstance(node, exp.Table):
            return node  # looked at with its select
        elif not (is_allowed(node) or (type(node) in SUBSELECT and (inner or _holds_select(node)))):
            raise self.forbidden(node)
        for child in list(node.iter_expressions()):
            changed = self._rewrite(child, used, inner)
            if changed is not child:
                child.replace(changed)
        return node

    def _column(self, node: exp.Column, used: set[str], inner: tuple[pa.Table, ...]) -> exp.Expr:
        name, table = node.name.lower(), node.table.lower()
        if node.args.get("db") or node.args.get("catalog"):
            raise refuse(self.text, node, f"column {node.sql()!r} has more than one qualifier")
        for names, columns in reversed(inner):
            if (not table or table in names) and name in columns:
                return node
        if table and table not in self.qualifiers:
            raise refuse(self.text, node, f"there is no table {node.table!r} here", self._tables_hint())
        if name not in self.columns:
            raise self.unknown(node)
        published = self.columns[name]
        used.add(published)
        return exp.column(exp.to_identifier(published, quoted=True), table=ROW)

    def unknown(self, node: exp.Column) -> QueryError:
        """The error for a name that is no published column."""
        hint = did_you_mean(node.name, self.columns.values())
        return refuse(self.text, node, f"column {node.name!r} is not in the release", hint)

    def forbidden(self, node: exp.Expr) -> QueryError:
        """The error for a node that may not stand where it stands."""
        hint = (
            "only pure scalar functions are possible, e.g. abs, round, lower, substring, coalesce, CASE; "
            "aggregates (COUNT, SUM, AVG) only in SELECT, HAVING and ORDER BY"
        )
        return refuse(self.text, node, f"{describe(node)} is not possible here", hint)

    def _auxiliary(self, node: exp.Select) -> tuple[frozenset[str], frozenset[str]]:
        """Names and columns of a sub-select's table; it must be a table that the caller gave."""
        source = node.args.get("from_")
        table = source.this if source is not None else None
        allowed = {"expressions", "from_", "where", "group", "having", "order", "limit", "distinct"}
        other = [key for key, value in node.args.items() if value and key not in allowed]
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier) or other:
            what = other[0].rstrip("_").upper() if other else "a sub-select without one plain table"
            raise refuse(self.text, node, f"{what} is not possible in a sub-select", self._tables_hint())
        given = self.tables.get(table.name.lower())
        if given is None or table.args.get("db") or table.args.get("joins"):
            raise refuse(
                self.text, table, f"a sub-select cannot read the table {table.name!r}", self._tables_hint()
            )
        names = {table.alias_or_name.lower()}
        return frozenset(names), frozenset(name.lower() for name in given.column_names)

    def _tables_hint(self) -> str:
        known = ", ".join(sorted(self.tables)) or "none was given"
        return f"sub-selects can only read auxiliary tables given with the question ({known})"


def _holds_select(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery | exp.Exists)
