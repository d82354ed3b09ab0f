"""The columns of a result: group keys, aggregates and arithmetic of them; HAVING, ORDER BY, LIMIT.

And boolean expressions, as AND, OR and NOT of atoms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from dalenius.question.moments import MOMENTS, is_statistic, moment, statistic
from dalenius.question.names import NO_WINDOW, Scope, describe, is_allowed, refuse
from dalenius.question.query import (
    Aggregate,
    AggregateRef,
    Arithmetic,
    Choice,
    Comparison,
    Condition,
    Either,
    Every,
    Expression,
    Formula,
    Membership,
    Negation,
    Number,
    Operator,
    Order,
    Statistic,
    StatisticRef,
    TruthTest,
)

_INT64 = 2**63


def condition(scope: Scope, node: exp.Expr) -> Condition:
    """A boolean expression, taken apart down to what DuckDB evaluates on the columns' values."""
    match node:
        case exp.Paren():
            return condition(scope, node.this)
        case exp.And():
            return Every(parts=tuple(condition(scope, part) for part in node.flatten()))
        case exp.Or():
            return Either(parts=tuple(condition(scope, part) for part in node.flatten()))
        case exp.Not():
            return Negation(part=condition(scope, node.this))
    expression = scope.expression(node)
    match node:
        case exp.In() | exp.EQ() if scope.is_published(node.this) and (listed := _literals(node)) is not None:
            return Membership(column=expression.columns[0], values=listed, expression=expression)
        case exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.NEQ():
            return _comparison(scope, node, expression)
        case exp.Between() if not node.args.get("symmetric"):
            return _between(scope, node, expression)
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            part = condition(scope, node.this)
            return TruthTest(part=part, value=bool(node.expression.this), expression=expression)
        case exp.If():
            return _choice(scope, [node], node.args.get("false"), expression)
        case exp.Case() if node.this is None:
            return _choice(scope, node.args["ifs"], node.args.get("default"), expression)
        case _:
            return expression


def _choice(scope: Scope, ifs: list[exp.If], default: exp.Expr | None, expression: Expression) -> Choice:
    return Choice(
        branches=tuple((condition(scope, one.this), condition(scope, one.args["true"])) for one in ifs),
        default=condition(scope, default or exp.null()),
        expression=expression,
    )


_ORDERS: dict[type[exp.Expr], Order] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NEQ: "<>",
}


def _comparison(scope: Scope, node: exp.Expr, expression: Expression) -> Comparison | Expression:
    """Of a column with a whole number; anything else as it is."""
    number = _whole_number(node.expression)
    if number is None or not scope.is_published(node.this):
        return expression
    column, order = expression.columns[0], _ORDERS[type(node)]
    return Comparison(column=column, order=order, value=number, expression=expression)


def _between(scope: Scope, node: exp.Between, expression: Expression) -> Condition:
    """Two comparisons, where both ends are whole numbers."""
    ends = (exp.GTE, node.args["low"]), (exp.LTE, node.args["high"])
    if not scope.is_published(node.this) or any(_whole_number(end) is None for _, end in ends):
        return expression
    parts = [kind(this=node.this.copy(), expression=end.copy()) for kind, end in ends]
    return Every(parts=tuple(_comparison(scope, part, scope.expression(part)) for part in parts))


def _whole_number(node: exp.Expr) -> int | None:
    """Of a literal, with or without a sign."""
    sign, literal = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    is_whole = isinstance(literal, exp.Literal) and not literal.is_string and _is_int64(str(literal.this))
    return sign * int(literal.this) if is_whole else None


def _literals(node: exp.Expr) -> tuple[str, ...] | tuple[int, ...] | None:
    """The literals of `column IN (…)` or `column = …`, if they are all strings or all integers."""
    if not isinstance(node.this, exp.Column):
        return None
    listed = [node.expression] if isinstance(node, exp.EQ) else node.expressions
    if not listed or not all(isinstance(item, exp.Literal) for item in listed):
        return None
    if all(item.is_string for item in listed):
        return tuple(str(item.this) for item in listed)
    if all(not item.is_string and _is_int64(str(item.this)) for item in listed):
        return tuple(int(item.this) for item in listed)
    return None


def _is_int64(text: str) -> bool:
    """Whether a literal is a whole number that a column can hold; Python reads no more than 4,300 digits."""
    return text.isascii() and text.isdigit() and len(text) <= len(str(_INT64)) and int(text) < _INT64


_KINDS: dict[type[exp.Expr], Literal["count", "sum", "avg"]] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
}
_OPERATORS: dict[type[exp.Expr], Operator] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}


@dataclass(slots=True, kw_only=True)
class ResultColumns:
    """Collects what a question selects, while it is parsed."""

    scope: Scope
    groups: list[tuple[str, exp.Expr]] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    estimated: list[exp.Expr] = field(default_factory=list)
    """What is selected and estimated."""
    statistics: list[Statistic] = field(default_factory=list)

    def add_groups(self, select: exp.Select) -> None:
        """The keys of GROUP BY: expressions, aliases or positions of selected columns, or ALL."""
        clause = select.args.get("group")
        if clause is None:
            return
        extra = [key for key, value in clause.args.items() if value and key not in {"expressions", "all"}]
        if extra or any(isinstance(n, exp.Rollup | exp.Cube | exp.GroupingSets) for n in clause.expressions):
            raise refuse(self.scope.text, select, "ROLLUP, CUBE and GROUPING SETS are not possible")
        named = _aliases(select)
        if clause.args.get("all"):
            keys = [item for item in select.expressions if not self._has_aggregate(item)]
        else:
            keys = [self._key(node, select, named) for node in clause.expressions]
        for node in (item.this if isinstance(item, exp.Alias) else item for item in keys):
            self.groups.append((_name_of(node, select), node))

    def _key(self, node: exp.Expr, select: exp.Select, named: dict[str, exp.Expr]) -> exp.Expr:
        if isinstance(node, exp.Literal) and not node.is_string:
            return self._find_selected(select, node)
        if isinstance(node, exp.Column) and not node.table and node.name.lower() not in self.scope.columns:
            return named.get(node.name.lower(), node)
        return node

    def _find_selected(self, select: exp.Select, position: exp.Literal) -> exp.Expr:
        number = int(position.this) if str(position.this).isdigit() else 0
        if not 1 <= number <= len(select.expressions):
            raise refuse(self.scope.text, position, f"there is no selected column number {position.this}")
        item: exp.Expr = select.expressions[number - 1]
        return item.this if isinstance(item, exp.Alias) else item

    def items(self, select: exp.Select) -> Iterator[tuple[str, Formula]]:
        """The estimated columns that are selected; every other one must be a group key."""
        window = next((part for item in select.expressions for part in item.find_all(exp.Window)), None)
        if window is not None:  # before a column beside it is blamed, which no GROUP BY would help
            raise self._no_aggregate(window)
        for item in select.expressions:
            node = item.this if isinstance(item, exp.Alias) else item
            if self._has_aggregate(node):
                self.estimated.append(node)
                name = item.alias if isinstance(item, exp.Alias) else _spell(node)
                yield name, self._select_formula(node)
            elif self._group_index(node) is None:
                self._refuse_bare(node)
        if not self.estimated:
            raise refuse(self.scope.text, select, "the question selects no COUNT, SUM or AVG")

    def _refuse_bare(self, node: exp.Expr) -> None:
        if isinstance(node, exp.Star):
            raise refuse(self.scope.text, node, "rows cannot be listed, only counted and summed")
        for part in node.walk():
            if isinstance(part, exp.AggFunc | exp.Window):
                raise self._no_aggregate(part)
        self.scope.expression(node)
        what = f"{_spell(node)} must be in GROUP BY, or inside COUNT, SUM or AVG"
        raise refuse(self.scope.text, node, what)

    def _no_aggregate(self, node: exp.Expr) -> Exception:
        hint = (
            "possible aggregates: COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM, AVG, MEDIAN, QUANTILE_CONT, "
            "QUANTILE_DISC, MIN, MAX, VAR_SAMP, VAR_POP, STDDEV, CORR, COVAR_POP, each also with FILTER "
            "(WHERE …)"
        )
        if isinstance(node, exp.Window):
            hint = NO_WINDOW
        return refuse(self.scope.text, node, f"{describe(node)} cannot be estimated from a release", hint)

    def _has_aggregate(self, node: exp.Expr) -> bool:
        return any(_is_aggregate(part) for part in node.walk())

    def _group_index(self, node: exp.Expr) -> int | None:
        matches = (i for i, (_, key) in enumerate(self.groups) if key == node)
        return next(matches, None)

    def _formula(self, node: exp.Expr) -> Formula:
        match node:
            case exp.Paren():
                return self._formula(node.this)
            case exp.Cast() if isinstance(node.this, exp.AggFunc | exp.Filter) and _is_number_type(node.to):
                return self._formula(node.this)
            case exp.Neg():
                return Arithmetic(operator="-", left=Number(value=0.0), right=self._formula(node.this))
            case exp.Literal() if not node.is_string:
                return Number(value=float(node.this))
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                left, right = self._formula(node.this), self._formula(node.expression)
                return Arithmetic(operator=_OPERATORS[type(node)], left=left, right=right)
            case _:
                return self._call(node)

    def _call(self, node: exp.Expr) -> Formula:
        """An aggregate by itself: a sum, what is made of sums, or an order statistic."""
        call, condition = self._filter(node)
        if type(call) in MOMENTS:
            return moment(self.scope, call, condition, self._add)
        return AggregateRef(index=self._aggregate(node))

    def _select_formula(self, node: exp.Expr) -> Formula:
        """What is selected: order statistics only as they are."""
        bare = node
        while isinstance(bare, exp.Paren) or (isinstance(bare, exp.Cast) and _is_number_type(bare.to)):
            bare = bare.this
        call, condition = self._filter(bare)
        if not is_statistic(call):
            return self._formula(node)
        self.statistics.append(statistic(self.scope, call, condition))
        return StatisticRef(index=len(self.statistics) - 1)

    def _filter(self, node: exp.Expr) -> tuple[exp.Expr, Condition | None]:
        if isinstance(node, exp.Filter):
            return node.this, condition(self.scope, node.expression.this)
        return node, None

    def _add(self, found: Aggregate) -> int:
        if found not in self.aggregates:
            self.aggregates.append(found)
        return self.aggregates.index(found)

    def _aggregate(self, node: exp.Expr) -> int:
        call, found_condition = self._filter(node)
        if is_statistic(call) or type(call) in MOMENTS:
            raise refuse(
                self.scope.text, call, f"{_spell(call)} can be selected, but not be a part of a formula or "
                "of HAVING and ORDER BY unless it is selected too",
                f"ask for the parts in one question, as in SELECT {_spell(call)}, … FROM t: each has an "
                "interval, and the formula is then yours to take",
            )  # fmt: skip
        if type(call) not in _KINDS:
            if isinstance(call, exp.AggFunc | exp.Window):
                raise self._no_aggregate(call)
            raise refuse(
                self.scope.text, call, f"{describe(call)} is not possible around or beside an aggregate",
                "aggregates can be combined with + - * / and numbers",
            )  # fmt: skip
        kind, argument = _KINDS[type(call)], self._argument(call)
        return self._add(Aggregate(kind=kind, argument=argument, condition=found_condition))

    def _argument(self, call: exp.Expr) -> Expression | None:
        inner = call.this
        if isinstance(inner, exp.Distinct):
            raise refuse(self.scope.text, call, "DISTINCT is possible in COUNT(DISTINCT …) only")
        if isinstance(inner, exp.Star) or inner is None:
            if not isinstance(call, exp.Count) or (inner is not None and any(inner.args.values())):
                raise refuse(self.scope.text, call, f"{_spell(call)} is not possible")
            return None
        if call.expressions:
            raise refuse(self.scope.text, call, "an aggregate takes one argument")
        if isinstance(inner, exp.Literal) and isinstance(call, exp.Count):
            return None  # COUNT(1)
        return self.scope.expression(inner)

    def finish(self, select: exp.Select) -> str:
        """HAVING, ORDER BY and LIMIT, over the result's columns."""
        parts = []
        aliases = _aliases(select)
        if having := select.args.get("having"):
            parts.append("WHERE " + self._over_results(having.this, aliases))
        if order := select.args.get("order"):
            keys = [self._order_by(key, select, aliases) for key in order.expressions]
            parts.append("ORDER BY " + ", ".join(keys))
        for key in ("limit", "offset"):
            if clause := select.args.get(key):
                number = clause.expression
                if not (isinstance(number, exp.Literal) and str(number.this).isdigit()):
                    raise refuse(self.scope.text, clause, f"{key.upper()} must be a whole number")
                parts.append(f"{key.upper()} {number.this}")
        return " ".join(parts)

    def _order_by(self, key: exp.Expr, select: exp.Select, aliases: dict[str, exp.Expr]) -> str:
        node = key.this
        if isinstance(node, exp.Literal) and not node.is_string:
            node = self._find_selected(select, node)
        copy = key.copy()
        copy.set("this", exp.Placeholder(this="key"))
        return copy.sql(dialect="duckdb").replace("$key", self._over_results(node, aliases))

    def _over_results(self, node: exp.Expr, aliases: dict[str, exp.Expr]) -> str:
        return self._replace(node.copy(), aliases).sql(dialect="duckdb", comments=False)

    def _replace(self, node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
        """Selected estimates become `i0`, …, other aggregates `a0`, …, and group keys `g0`, …."""
        if node in self.estimated:
            return exp.column(f"i{self.estimated.index(node)}")
        if (index := self._group_index(node)) is not None:
            return exp.column(f"g{index}")
        if _is_aggregate(node) or isinstance(node, exp.Filter):
            return exp.column(f"a{self._aggregate(node)}")
        if isinstance(node, exp.Column):
            if not node.table and node.name.lower() in aliases:
                return exp.paren(self._replace(aliases[node.name.lower()].copy(), {}))
            if node.name.lower() not in self.scope.columns:
                raise self.scope.unknown(node)
            raise refuse(self.scope.text, node, f"column {node.name!r} must be in GROUP BY to be used here")
        if not is_allowed(node):
            raise self.scope.forbidden(node)
        for child in list(node.iter_expressions()):
            changed = self._replace(child, aliases)
            if changed is not child:
                child.replace(changed)
        return node


def _is_aggregate(node: exp.Expr) -> bool:
    return type(node) in _KINDS or type(node) in MOMENTS or is_statistic(node)


def _aliases(select: exp.Select) -> dict[str, exp.Expr]:
    return {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}


def _is_number_type(kind: exp.DataType) -> bool:
    return kind.this in exp.DataType.NUMERIC_TYPES


def _name_of(node: exp.Expr, select: exp.Select) -> str:
    for item in select.expressions:
        if isinstance(item, exp.Alias) and item.this == node:
            return item.alias
    return node.name if isinstance(node, exp.Column) else _spell(node)


def _spell(node: exp.Expr) -> str:
    return node.sql(dialect="duckdb", comments=False)
