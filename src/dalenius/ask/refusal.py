"""Refusing a question, with the place in its text and what is possible instead."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dalenius.errors import QueryError

POSSIBLE = (
    "possible: SELECT COUNT(*), SUM(x), AVG(x), arithmetic of these, and group columns FROM one table "
    "[WHERE …] [GROUP BY …] [HAVING …] [ORDER BY …] [LIMIT …]"
)


def refuse(text: str, node: exp.Expr | None, what: str, hint: str = POSSIBLE) -> QueryError:
    """The error for a part of the text.

    >>> print(refuse("SELECT 1", None, "no table is asked"))
    no table is asked
    """
    start = _start(node)
    where = "" if start is None else f"{place(text, start)}: "
    return QueryError(where + what, hint=hint)


def place(text: str, start: int) -> str:
    """Line and column of an offset, from 1.

    >>> place("SELECT" + chr(10) + "  x", 9)
    'line 2, column 3'
    """
    before = text[:start]
    return f"line {before.count(chr(10)) + 1}, column {start - (before.rfind(chr(10)) + 1) + 1}"


def _start(node: exp.Expr | None) -> int | None:
    """The offset of the first token under a node that has one."""
    if node is None:
        return None
    starts: list[Any] = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    return min(starts, default=None)
