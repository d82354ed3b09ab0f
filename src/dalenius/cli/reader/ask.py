"""`dalenius ask RELEASE "SELECT …"`: an answer with its error bars."""

from __future__ import annotations

from typing import Annotated

import pyarrow as pa
import typer

from dalenius.ask import ask
from dalenius.cli.output import JsonOption, ReleaseArgument, print_json, say, say_table
from dalenius.errors import InputError
from dalenius.question.answer import Answer
from dalenius.release.series import open_release
from dalenius.sql import connect
from dalenius.tables.histogram import label_cell
from dalenius.tables.source import open_source


def command(
    release: ReleaseArgument,
    sql: Annotated[str, typer.Argument(help='E.g. "SELECT COUNT(*) FROM t WHERE age > 60".')],
    as_json: JsonOption = False,
    confidence: Annotated[float, typer.Option(help="Of the intervals, between 0 and 1.")] = 0.95,
    table: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: an auxiliary table for sub-selects.")
    ] = None,
    estimator: Annotated[str | None, typer.Option(help="Instead of the mechanism's default.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print the formula and what was read.")] = False,
    consistent: Annotated[
        bool, typer.Option("--consistent", help="Non-negative numbers that add up, instead of unbiased ones.")
    ] = False,
) -> int:
    """Answer a question from a release alone: estimate, standard error, interval."""
    answer = ask(
        open_release(release),
        sql,
        confidence=confidence,
        estimator=estimator,
        tables=dict(_read_table(spec) for spec in table or []),
        consistent=consistent,
    )
    if as_json:
        print_json({**answer.to_dict(), **({"explain": answer.explain} if explain else {})})
    else:
        say_answer(answer)
        if explain:
            say(answer.explain)
    return 0


def say_answer(answer: Answer) -> None:
    """The answer as a table, one line per group and aggregate."""
    groups = [name for name, _ in answer.rows[0].group] if answer.rows else []
    per_cent = f"{answer.confidence * 100:g} %"
    rows = [
        [
            *(label_cell(cell) for _, cell in row.group),
            row.column,
            _number(row.estimate),
            _number(row.std_error),
            f"{_number(row.low)} … {_number(row.high)}",
        ]
        for row in answer.rows
    ]
    say_table([*groups, "aggregate", "estimate", "std error", f"{per_cent} interval"], rows)
    for note in answer.notes:
        say(f"note: {note}")
    if answer.assumption:
        say(f"assumes: {answer.assumption}")


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.4g}"


def _read_table(spec: str) -> tuple[str, pa.Table]:
    name, _, file = spec.partition("=")
    if not name or not file:
        raise InputError(f"--table {spec!r} must be NAME=FILE", hint="e.g. --table regions=regions.csv")
    with connect() as connection:
        return name, connection.sql(f"SELECT * FROM {open_source(file).scan(connection)}").to_arrow_table()
