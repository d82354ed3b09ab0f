"""What commands print: tables and progress for people, one JSON object for machines."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from dalenius.cli.declared import Argument, Option
from dalenius.cli.ending import is_unread, print_no_more
from dalenius.errors import PromiseNotMet
from dalenius.plain import escape_controls

if TYPE_CHECKING:  # rich and the engines are loaded where they are used: `--json` and `--help` need neither
    from dalenius.engines.base import Progress as ShowProgress

_PLAIN_WIDTH = 80
"""How wide a table may be, in characters, to be written as it is where it is not shown on a terminal."""

SourceOption = Annotated[
    str | None, Option("--source", help="Instead of the policy's own source, e.g. today's batch.")
]
ReleaseArgument = Annotated[Path, Argument(help="The release folder.")]
PolicyArgument = Annotated[Path, Argument(help="The policy file.")]
JsonOption = Annotated[bool, Option("--json", help="Print one JSON object, for machines.")]


def print_json(payload: dict[str, Any]) -> None:
    """The one object on standard output; what is not a finite number is a text there."""
    try:
        text = json.dumps(payload, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        payload = _finite(payload)
        text = json.dumps(payload, indent=2, ensure_ascii=False, default=str, allow_nan=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # another encoding than UTF-8, or half a character
        text = json.dumps(payload, indent=2, default=str, allow_nan=False)
    print(text)


def tell(found: dict[str, Any], say_it: Callable[[], None], *, as_json: bool, is_kept: bool = True) -> int:
    """What was found, for machines or for people; the exit code, which says whether a promise is not met."""
    if as_json:
        print_json(found)
    else:
        say_it()
    return 0 if is_kept else PromiseNotMet.exit_code


def say(text: str = "") -> None:
    """A line for people."""
    print(_for_people(text))


def _for_people(text: str) -> str:
    """A text in which nothing moves the cursor or turns a line around."""
    return "\n".join(map(escape_controls, text.split("\n")))


def say_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for people; columns after the first are right-aligned if they hold numbers."""
    headings, *rows = [[*map(escape_controls, line)] for line in (headings, *rows)]
    is_right = [i > 0 and all(_looks_numeric(row[i]) for row in rows) for i in range(len(headings))]
    lines = [headings, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(headings))]
    if not sys.stdout.isatty() and _is_simple(lines) and sum(widths) + 2 * len(widths) <= _PLAIN_WIDTH:
        for line in lines:  # rich, which folds and colours, takes longer to load than most commands to run
            placed = zip(line, widths, is_right, strict=True)
            print("  ".join(cell.rjust(wide) if right else cell.ljust(wide) for cell, wide, right in placed))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if is_right[i] else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, markup=False).print(table)


def say_error(error: dict[str, dict[str, str | None]], *, as_json: bool) -> None:
    """An error: JSON on standard output, or message and hint on standard error."""
    if as_json and _is_printed(error):
        return
    details = error["error"]
    print(f"error: {_for_people(details['message'] or '')}", file=sys.stderr)
    if details["hint"]:
        print(f"hint:  {_for_people(details['hint'])}", file=sys.stderr)


def _is_printed(error: dict[str, dict[str, str | None]]) -> bool:
    """Print it as JSON, if anybody reads that."""
    try:
        print_json(error)
        sys.stdout.flush()
    except BrokenPipeError:
        if not is_unread():
            raise
        print_no_more()
        return False
    return True


@contextmanager
def progress_bar(unit: str = "rows") -> Iterator[ShowProgress]:
    """A progress bar on standard error, on a terminal only; what is counted there is the unit."""
    from dalenius.engines.base import silent

    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

    rows_done = TextColumn("{task.completed:,}{task.fields[unit]}")
    columns = (TextColumn("{task.description}"), BarColumn(), rows_done, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total, unit="" if step == "attacks" else f" {unit}")
            bar.update(tasks[step], completed=done, total=total)

        yield show


def _is_simple(lines: Sequence[Sequence[str]]) -> bool:
    """Whether every character of a table is one place wide, and no cell has several lines."""
    characters = {character for line in lines for cell in line for character in cell}
    return all(c in "…–≤≥×" or (c.isascii() and c.isprintable()) for c in characters)


def _finite(payload: Any) -> Any:
    if isinstance(payload, dict):
        return {key: _finite(part) for key, part in payload.items()}
    if isinstance(payload, list | tuple):
        return [_finite(part) for part in payload]
    return str(payload) if isinstance(payload, float) and not math.isfinite(payload) else payload


def _looks_numeric(cell: str) -> bool:
    return cell.translate(str.maketrans("", "", ",.%-–… ")).isdigit()
