"""`dalenius ask RELEASE "SELECT …"`: an answer with its error bars."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import pyarrow as pa
from sqlglot import exp

from dalenius.ask import Options, ask
from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, ReleaseArgument, print_json, say, say_error, say_table
from dalenius.errors import InputError, QueryError
from dalenius.question.answer import Answer, Estimated, Group, Independence, short
from dalenius.question.database import Limits
from dalenius.question.limits import GRACE, LOOK_EVERY, resident
from dalenius.release.series import open_release
from dalenius.tables.histogram import label_cell

if TYPE_CHECKING:
    from dalenius.ask.course import Course


def command(
    release: ReleaseArgument,
    sql: Annotated[str, Argument(help='E.g. "SELECT COUNT(*) FROM t WHERE age > 60".')],
    as_json: JsonOption = False,
    confidence: Annotated[float, Option(help="Of the intervals, between 0 and 1.")] = 0.95,
    table: Annotated[
        list[str] | None,
        Option("--table", "--with", help="NAME=FILE: a table of yours, to JOIN or for sub-selects."),
    ] = None,
    estimator: Annotated[str | None, Option(help="Instead of the mechanism's default.")] = None,
    explain: Annotated[bool, Option("--explain", help="Print the formula and what was read.")] = False,
    consistent: Annotated[
        bool, Option("--consistent", help="Non-negative numbers that add up, instead of unbiased ones.")
    ] = False,
    differences: Annotated[
        bool,
        Option("--differences", help="Compare the groups: differences, and ranks."),
    ] = False,
    independence: Annotated[
        bool,
        Option("--independence", help="Test whether the two columns grouped by are independent."),
    ] = False,
    then: Annotated[
        list[Path] | None,
        Option(help="RELEASE: ask a later release the same, and say what changed; several in order."),
    ] = None,
    each: Annotated[
        bool,
        Option("--each", help="Of a series: one answer per date or batch, and what changed."),
    ] = False,
    seconds: Annotated[float, Option(min=0.001, help="Time for the question.")] = 60.0,
    memory: Annotated[int, Option(min=1, help="Megabytes for the question.")] = 2048,
) -> int:
    """Answer a question from a release alone: estimate, standard error, interval."""
    _load_dialect()
    limits = Limits(seconds=seconds, memory=f"{memory}MB")
    options: Options = {
        "confidence": confidence,
        "estimator": estimator,
        "tables": dict(_read_table(spec) for spec in table or []),
        "consistent": consistent,
        "differences": differences,
        "independence": independence,
        "limits": limits,
    }
    if each and then:
        raise InputError("--each is about one series, --then about releases", hint="give one of them")
    with ended_at(limits, memory, as_json=as_json):
        if each or then:
            from dalenius.ask.course import ask_course, ask_each

            course = (
                ask_course([open_release(path) for path in (release, *then)], sql, **options)
                if then
                else ask_each(open_release(release), sql, **options)
            )
        else:
            answer = ask(open_release(release), sql, **options)
    if then or each:
        _show_course(course, as_json=as_json, explain=explain)
    elif as_json:
        print_json(_as_dict(answer, explain=explain))
    else:
        say_answer(answer)
        if explain:
            say(answer.explain)
    return 0


def _load_dialect() -> None:
    """Load what writes DuckDB's SQL without the templates of functions that no question has.

    sqlglot parses twenty of them when it is loaded, which takes longer than most questions. One that is
    wanted all the same is parsed then.
    """
    parse = exp.maybe_parse

    class ParsedLater:
        def __init__(self, *texts: Any, **options: Any) -> None:
            self._parse = partial(parse, *texts, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._parse(), name)

    names = vars(exp)
    names["maybe_parse"] = ParsedLater
    try:
        import_module("sqlglot.dialects.duckdb")
    finally:
        names["maybe_parse"] = parse


def _as_dict(answer: Answer, *, explain: bool) -> dict[str, Any]:
    return {**answer.to_dict(), **({"explain": answer.explain} if explain else {})}


def _show_course(course: Course, *, as_json: bool, explain: bool) -> None:
    """The answer of each release, then the changes from one to the next."""
    if as_json:
        found = course.to_dict()
        answers = [_as_dict(moment.answer, explain=explain) for moment in course.moments]
        moments = [{**own, **answer} for own, answer in zip(found["moments"], answers, strict=True)]
        print_json({**found, "moments": moments})
        return
    for moment in course.moments:
        say(f"{moment.release} ({moment.created})")
        say_answer(moment.answer)
        if explain:
            say(moment.answer.explain)
        say("")
    rows = [
        [f"{one.earlier} to {one.later}", _label(one.group), *_estimate_cells(one)] for one in course.changes
    ]
    per_cent = f"{course.moments[0].answer.confidence * 100:g} % interval"
    say_table(["change", "group", "aggregate", "estimate", "std error", per_cent], rows)


@contextmanager
def ended_at(limits: Limits, megabytes: int, *, as_json: bool) -> Iterator[None]:
    """End the process where a question neither stops in its time nor stays within its memory.

    Whatever it is doing then: some steps are one call into a library, which nothing else can interrupt.
    """
    done = threading.Event()
    largest = resident() + megabytes * 2**20

    def watch() -> None:
        end = time.monotonic() + limits.seconds * (1 + GRACE)
        while not done.wait(LOOK_EVERY):
            if resident() > largest:
                _end(f"the question needs more than {megabytes} MB", "raise --memory", as_json=as_json)
            if time.monotonic() > end:
                _end(
                    f"the question took longer than {limits.seconds:g} seconds",
                    "raise --seconds, or ask for less at once",
                    as_json=as_json,
                )

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield
    finally:
        done.set()
        watching.join()


def _end(message: str, hint: str, *, as_json: bool) -> NoReturn:
    say_error(QueryError(message, hint=hint).to_dict(), as_json=as_json)
    sys.stdout.flush()
    os._exit(QueryError.exit_code)


def say_answer(answer: Answer) -> None:
    """The answer as a table, one line per group and aggregate."""
    groups = [name for name, _ in answer.rows[0].group] if answer.rows else []
    per_cent = f"{answer.confidence * 100:g} %"
    rows = [[*(label_cell(cell) for _, cell in row.group), *_estimate_cells(row)] for row in answer.rows]
    say_table([*groups, "aggregate", "estimate", "std error", f"{per_cent} interval"], rows)
    for note in answer.notes:
        say(f"note: {note}")
    say(answer.sentence)
    if answer.differences:
        _say_differences(answer, per_cent)
    if answer.independence is not None:
        _say_independence(answer.independence)


def _say_independence(found: Independence) -> None:
    one, two = found.columns
    say("")
    say(
        f"independence of {one} and {two}: chi-squared {found.statistic:,.1f} with {found.freedom:,.1f} "
        f"degrees of freedom, p {_chance(found.p_value)}; association (Cramer's V) {found.cramers_v:.3f}"
    )
    say(
        f"noise makes Pearson's statistic of the estimates, {found.pearson:,.1f}, {found.larger:,.1f} times "
        "larger by chance, which is taken into account"
    )
    if found.n_left_out:
        say(f"{found.n_left_out} values that too few people have were left out")


_LEAST_CHANCE = 1e-4


def _chance(p_value: float) -> str:
    """As people read it: nothing has the probability 0."""
    return f"< {_LEAST_CHANCE:.4f}" if p_value < _LEAST_CHANCE else f"= {p_value:.3g}"


def _say_differences(answer: Answer, per_cent: str) -> None:
    """Pairs of groups, and the ranks that each group may have."""
    say("")
    rows = [
        [f"{_label(one.first)} − {_label(one.second)}", *_estimate_cells(one)] for one in answer.differences
    ]
    say_table(["difference", "aggregate", "estimate", "std error", f"{per_cent} interval"], rows)
    say("")
    ranks = [
        [_label(one.group), one.column, f"{one.low}" if one.low == one.high else f"{one.low} to {one.high}"]
        for one in answer.ranks
    ]
    say_table(["group", "aggregate", "rank"], ranks)


def _label(group: Group) -> str:
    return ", ".join(label_cell(cell) for _, cell in group)


def _estimate_cells(one: Estimated) -> list[str]:
    """The aggregate, and its estimate with its error."""
    interval = f"{short(one.low)} … {short(one.high)}"
    return [one.column, short(one.estimate), short(one.std_error), interval]


def _read_table(spec: str) -> tuple[str, pa.Table]:
    name, _, file = spec.partition("=")
    if not name or not file:
        raise InputError(f"--table {spec!r} must be NAME=FILE", hint="e.g. --table regions=regions.csv")
    if "://" not in file and not Path(file).exists():
        raise InputError(
            f"--table {name}: there is no file {file}", hint="paths are relative to the folder you are in"
        )
    from dalenius.tables.source import open_source, scanning

    with scanning(open_source(file)) as (connection, scan):
        return name, connection.sql(f"SELECT * FROM {scan}").to_arrow_table()
