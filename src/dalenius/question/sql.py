"""SQL text to a `Query`, or a refusal that says where and why.

The text is parsed with sqlglot (DuckDB's dialect) and checked node by node against what is allowed. What
cannot be a weighted sum over a release is refused: joins with anything but an auxiliary table on published
columns, DISTINCT, windows, set operations, other statements.

`FROM t JOIN regions r ON r.district = t.district` gives each person the row of the auxiliary table `regions`
that has the person's district. So `r.zone` is an expression over the published column `district`, and every
estimator can answer it: a scalar sub-select on the auxiliary table. For that a person must have at most one
row there.

Questions that differ only in their lists of literals are parsed once.

A workload asks thousands of questions of a few shapes. `IN ('a', 'b')` and `IN (1, 2)` are lifted out of the
text, what is left is parsed and remembered, and the lists are put back into the parsed question. Where a
question is nothing but such conditions on columns, joined by AND, each of them is a shape: any choice of
columns, in any order, is put together from what is known of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from dalenius.errors import QueryError, did_you_mean
from dalenius.question.names import NO_WINDOW, POSSIBLE, Join, Scope, place, refuse
from dalenius.question.query import (
    Aggregate,
    Choice,
    Comparison,
    Condition,
    Either,
    Every,
    Expression,
    GroupKey,
    Item,
    Membership,
    Negation,
    Query,
    TruthTest,
)
from dalenius.question.results import ResultColumns, condition

_CLAUSES = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"}
_NAMES = {
    "with_": "a common table expression (WITH)",
    "distinct": "DISTINCT",
    "qualify": "QUALIFY",
    "windows": "a window",
    "sample": "a sample",
    "laterals": "a lateral join",
    "pivots": "PIVOT",
}
_MAX_LENGTH = 1_000_000


@contextmanager
def not_too_deep() -> Iterator[None]:
    """A question that is nested so deeply that Python gives up is refused, wherever that happens."""
    try:
        yield
    except RecursionError as error:
        raise QueryError("the question is nested too deeply", hint="ask in several questions") from error


@not_too_deep()
def parse(text: str, columns: Iterable[str], tables: Mapping[str, pa.Table] | None = None) -> Query:
    """The question that a text asks of a release with these columns.

    >>> parse("SELECT COUNT(*) FROM t WHERE age > 30", ["age", "disease"]).where.expression
    Expression(sql='__row."age" > 30', columns=('age',))
    """
    columns = tuple(columns)
    select = _only_select(text, columns)
    known = {name.lower(): name for name in columns}
    given = {name.lower(): table for name, table in (tables or {}).items()}
    scope = Scope(
        text=text,
        columns=known,
        qualifiers=_qualifiers(text, select),
        tables=given,
        joins=read_joins(text, select, known, given),
    )
    where = select.args.get("where")
    results = ResultColumns(scope=scope)
    results.add_groups(select)
    items = tuple(Item(name=name, formula=formula) for name, formula in results.items(select))
    finish = results.finish(select)
    return Query(
        text=text,
        where=_where(scope, where),
        groups=tuple(GroupKey(name=name, expression=scope.expression(node)) for name, node in results.groups),
        aggregates=tuple(results.aggregates) or (Aggregate(kind="count"),),
        items=items,
        finish=finish,
        statistics=tuple(results.statistics),
    )


def _where(scope: Scope, clause: exp.Where | None) -> Condition | None:
    """WHERE, and that people have a row in every table of an inner join."""
    parts: list[Condition] = [join.is_found for join in scope.joins if not join.is_outer]
    if clause is not None:
        parts.append(condition(scope, clause.this))
    return Every(parts=tuple(parts)) if len(parts) > 1 else next(iter(parts), None)


def _only_select(text: str, columns: Sequence[str]) -> exp.Select:
    if len(text) > _MAX_LENGTH:
        raise QueryError(f"the question has {len(text)} characters; at most {_MAX_LENGTH} are read")
    try:
        statements = [node for node in sqlglot.parse(text, dialect="duckdb") if node is not None]
    except sqlglot.errors.SqlglotError as error:
        raise _syntax_error(error, columns) from error
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise QueryError("the question is not SQL that can be read", hint=POSSIBLE) from error
    if not statements:
        raise QueryError("the question is empty", hint=POSSIBLE)
    if len(statements) > 1:
        raise refuse(text, statements[1], "only one statement can be asked at a time")
    if not isinstance(statements[0], exp.Select):
        raise _refuse_statement(text, statements[0])
    return statements[0]


def _refuse_statement(text: str, node: exp.Expr) -> QueryError:
    """What is no SELECT, by its name, or where the parser has none by its first word."""
    named = not isinstance(node, exp.Command | exp.Column)
    kind = type(node).__name__ if named else text.split(maxsplit=1)[0].rstrip(";")
    begin = place(text, len(text) - len(text.lstrip()))
    return QueryError(f"{begin}: {kind.upper()} cannot be asked of a release", hint=POSSIBLE)


def _syntax_error(error: sqlglot.errors.SqlglotError, columns: Sequence[str]) -> QueryError:
    details = getattr(error, "errors", None)
    if not details:
        return QueryError(f"the question is not SQL: {str(error).splitlines()[0]}", hint=POSSIBLE)
    first = details[0]
    word, what = first["highlight"], first["description"]
    if what.startswith("Required keyword"):  # the parser's own words name its classes
        what = "something is missing"
    where = f"line {first['line']}, column {max(1, first['col'] - len(word) + 1)}"
    return QueryError(f"{where}: {what} near {word!r}", hint=_suggest_quotes(word, columns) or POSSIBLE)


def _suggest_quotes(word: str, columns: Sequence[str]) -> str | None:
    """A way out where a column is a word of SQL, or has several words."""
    for column in columns:
        if word.lower() in re.split(r"\W+", column.lower()):
            name = exp.to_identifier(column, quoted=True).sql(dialect="duckdb")
            return f"if the column is meant, write it in double quotes: {name}"
    return None


def _qualifiers(text: str, select: exp.Select) -> frozenset[str]:
    """Check the clauses and the one table; its names."""
    for key, value in select.args.items():
        if value and key not in _CLAUSES:
            node = value[0] if isinstance(value, list) else value
            what = _NAMES.get(key, key.rstrip("_").upper())
            has_place = isinstance(node, exp.Expr) and any("start" in n.meta for n in node.walk())
            place = node if has_place else select
            hint = NO_WINDOW if key in {"windows", "qualify"} else POSSIBLE
            raise refuse(text, place, f"{what} cannot be answered from a release", hint)
    source = select.args.get("from_")
    if source is None:
        raise refuse(text, select, "the question names no table")
    table = source.this
    plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
    extra = plain and [k for k, v in table.args.items() if v and k not in {"this", "alias"}]
    if not plain or extra:
        what = (
            _NAMES.get(extra[0], "a qualified table name") if extra else "anything but one plain table name"
        )
        raise refuse(text, table, f"{what} cannot be asked; the release is one table, under any name")
    if set(table.name) & set("./\\"):  # in DuckDB such a name is a file's
        raise refuse(text, table, "a file cannot be asked; the release is one table, under any name")
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse(text, table, "renaming columns in FROM is not possible")
    return frozenset({table.alias_or_name.lower()})


_STRING = r"'(?:[^']|'')*'"
_INTEGER = r"\d{1,18}"
_LIST = re.compile(
    rf"""(?P<skip>"(?:[^"]|"")*"|(?<!\w){_STRING})
       | \bIN\s*\(\s*(?P<strings>{_STRING}(?:\s*,\s*{_STRING})*)\s*\)
       | \bIN\s*\(\s*(?P<integers>{_INTEGER}(?:\s*,\s*{_INTEGER})*)\s*\)""",
    re.IGNORECASE | re.VERBOSE,
)
_ITEM = re.compile(rf"{_STRING}|{_INTEGER}")
_UNSAFE = ("--", "/*", "$", "\\", "\x01")
"""Comments, dollar quotes and escapes: such texts are parsed as they are."""


_MARKER = "'\x01{}\x01'"
_NAME = r"""(?:"(?:[^"]|"")*"|[A-Za-z_]\w*)"""
_IN_LIST = r"\s+IN\s\('\x01\d+\x01'\)"
_LISTED = re.compile(f"({_NAME}){_IN_LIST}", re.IGNORECASE)
_CHAIN = re.compile(
    rf"\b(WHERE)\s+(?P<listed>{_NAME}{_IN_LIST}(?:\s+AND\s+{_NAME}{_IN_LIST})+)"
    r"(?=\s*(?:$|(?:GROUP|HAVING|ORDER|LIMIT)\b))",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lifted:
    marker: str
    """The literal that stands for the list in the parsed text."""
    text: str
    values: tuple[str, ...] | tuple[int, ...]


def parse_shared(text: str, columns: Iterable[str], tables: Mapping[str, pa.Table] | None = None) -> Query:
    """The same as `sql.parse`, faster for a text of a known shape.

    >>> parse_shared("SELECT COUNT(*) FROM t WHERE age IN (30, 31)", ["age"]).where.values
    (30, 31)
    """
    if tables or any(sign in text for sign in _UNSAFE):
        return parse(text, columns, tables)
    shape, lists = _lift(text)
    if not lists:
        return parse(text, columns)
    try:
        chain = _CHAIN.search(shape)
        if chain and chain["listed"].count("\x01") == 2 * len(lists) and _WHERE.findall(shape) == [chain[1]]:
            return _parse_each(shape, chain, tuple(columns), text, lists)
        return _put_back(_parse_shape(shape, tuple(columns)), text, lists)
    except QueryError:
        return parse(text, columns)  # for the place in the text as it was written


@lru_cache(maxsize=4096)
def _parse_shape(shape: str, columns: tuple[str, ...]) -> Query:
    return parse(shape, columns)


def _parse_each(
    shape: str, chain: re.Match[str], columns: tuple[str, ...], text: str, lists: list[_Lifted]
) -> Query:
    """A question whose conditions are lists of columns' values, all of which hold."""
    begin, end = chain.span("listed")
    found = []
    for name, lifted in zip(_LISTED.findall(chain["listed"]), lists, strict=True):
        query = _parse_shape(f"{shape[:begin]}{name} IN ({_MARKER.format(0)}){shape[end:]}", columns)
        found.append(_put_back(query, text, [replace(lifted, marker=_MARKER.format(0))]))
    return replace(found[0], where=Every(parts=tuple(one.where for one in found if one.where is not None)))


def _lift(text: str) -> tuple[str, list[_Lifted]]:
    lists: list[_Lifted] = []

    def lift(match: re.Match[str]) -> str:
        if match["skip"] is not None:
            return match[0]
        listed = match["strings"] or match["integers"]
        items = _ITEM.findall(listed)
        values = (
            tuple(item[1:-1].replace("''", "'") for item in items)
            if match["strings"]
            else tuple(int(item) for item in items)
        )
        lists.append(_Lifted(marker=_MARKER.format(len(lists)), text=", ".join(items), values=values))
        return f"IN ({lists[-1].marker})"

    return _LIST.sub(lift, text), lists


def _put_back(query: Query, text: str, lists: list[_Lifted]) -> Query:
    by_value: dict[tuple[object, ...], _Lifted] = {(lifted.marker[1:-1],): lifted for lifted in lists}

    def words(sql: str) -> str:
        for lifted in lists if "\x01" in sql else ():
            sql = sql.replace(lifted.marker, lifted.text)
        return sql

    def expression(part: Expression) -> Expression:
        return replace(part, sql=words(part.sql)) if "\x01" in part.sql else part

    def condition(part: Condition) -> Condition:
        match part:
            case Every(parts=parts):
                return Every(parts=tuple(condition(inner) for inner in parts))
            case Either(parts=parts):
                return Either(parts=tuple(condition(inner) for inner in parts))
            case Negation(part=inner):
                return Negation(part=condition(inner))
            case Membership(column=column, values=values):
                lifted = by_value.get(values)
                own = lifted.values if lifted else values
                return Membership(column=column, values=own, expression=expression(part.expression))
            case Comparison():
                return part
            case Choice(branches=branches, default=default):
                chosen = tuple((condition(test), condition(result)) for test, result in branches)
                whole = expression(part.expression)
                return Choice(branches=chosen, default=condition(default), expression=whole)
            case TruthTest(part=inner, value=value):
                return TruthTest(part=condition(inner), value=value, expression=expression(part.expression))
            case _:
                return expression(part)

    def aggregate(part: Aggregate) -> Aggregate:
        return Aggregate(
            kind=part.kind,
            argument=None if part.argument is None else expression(part.argument),
            condition=None if part.condition is None else condition(part.condition),
        )

    return Query(
        text=text,
        where=None if query.where is None else condition(query.where),
        groups=tuple(
            GroupKey(name=words(key.name), expression=expression(key.expression)) for key in query.groups
        ),
        aggregates=tuple(aggregate(part) for part in query.aggregates),
        items=tuple(Item(name=words(item.name), formula=item.formula) for item in query.items),
        finish=words(query.finish),
        statistics=tuple(
            replace(
                part,
                argument=expression(part.argument),
                condition=None if part.condition is None else condition(part.condition),
            )
            for part in query.statistics
        ),
    )


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
        asked = node.parent.find(exp.From) if node.parent is not None else None
        if asked is not None and name and name.lower() == asked.this.name.lower():
            raise refuse(text, table, "a release is not joined with itself: its rows are not people", _HINT)
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
