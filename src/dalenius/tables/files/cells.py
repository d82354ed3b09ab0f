"""Cells as Python has them, as columns of one type each: from workbooks, statistics packages and SQLite."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from dalenius.errors import InputError, SourceError
from dalenius.sql import refuse_unusable_names
from dalenius.tables.files.dialect import looks_like_data, refuse_record
from dalenius.tables.files.options import SourceOptions

INSTALL = "pip install 'dalenius[files]'"
_MOST_WHOLE = 2**53
"""Doubles beyond are not all whole numbers."""


def needs_extra(what: str, error: ImportError) -> InputError:
    """What reads a format is not installed."""
    del error
    return InputError(f"{what} needs the extra `files`", hint=INSTALL)


def to_arrow(where: str, cells: Sequence[Any]) -> pa.Array:
    """A column in the one type that holds all of its cells; of several types, their texts.

    >>> to_arrow("x", [1.0, 2.0, None]).to_pylist(), to_arrow("x", [1.0, "NA"]).to_pylist()
    ([1, 2, None], ['1', 'NA'])
    """
    kinds = {type(cell) for cell in cells} - {type(None)}
    if datetime.timedelta in kinds:
        raise SourceError(
            f"{where} holds durations, which cannot be published",
            hint="make it a number of days or seconds before",
        )
    if kinds and kinds <= {int, float}:
        return _numbers(cells)
    if kinds == {datetime.date, datetime.datetime}:
        return pa.array([_as_datetime(cell) for cell in cells], pa.timestamp("us"))
    if len(kinds) > 1:
        return pa.array([None if cell is None else _as_text(cell) for cell in cells], pa.string())
    known = {
        str: pa.string(),
        bool: pa.bool_(),
        bytes: pa.binary(),
        datetime.date: pa.date32(),
        datetime.datetime: pa.timestamp("us"),
        datetime.time: pa.time64("us"),
    }
    return pa.array(cells, known.get(next(iter(kinds), str), pa.string()))


def _numbers(cells: Sequence[Any]) -> pa.Array:
    """Whole numbers where all are, as packages without that type mean them."""
    present = [cell for cell in cells if cell is not None]
    if all(isinstance(cell, int) and -(2**63) <= cell < 2**63 for cell in present):
        return pa.array(cells, pa.int64())
    if all(math.isfinite(cell) and cell == int(cell) and abs(cell) <= _MOST_WHOLE for cell in present):
        return pa.array([None if cell is None else int(cell) for cell in cells], pa.int64())
    if any(isinstance(cell, int) and abs(cell) > _MOST_WHOLE for cell in present):
        return pa.array([None if cell is None else _as_text(cell) for cell in cells], pa.string())
    return pa.array(cells, pa.float64())


def _as_datetime(cell: Any) -> datetime.datetime | None:
    if cell is None or isinstance(cell, datetime.datetime):
        return cell
    return datetime.datetime.combine(cell, datetime.time())


def _as_text(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float) and cell.is_integer() and abs(cell) <= _MOST_WHOLE:
        return str(int(cell))
    return str(cell)


def without_missing(cells: Sequence[Any], missing: Sequence[str] | None) -> Sequence[Any]:
    """None for cells that say so."""
    if not missing:
        return cells
    return [None if cell is None or _as_text(cell).strip() in missing else cell for cell in cells]


def table_of_rows(name: str, rows: list[list[Any]], options: SourceOptions) -> pa.Table:
    """A table from rows of cells, the first of which may name the columns; empty cells are NULL."""
    filled = [
        row for row in ([None if cell == "" else cell for cell in row] for row in rows) if any_cell(row)
    ]
    if not filled:
        raise SourceError(f"{name} is empty", hint="the first row names the columns")
    width = max(len(row) for row in filled)
    columns = list(zip(*(row + [None] * (width - len(row)) for row in filled), strict=True))
    columns = [column for column in columns if any_cell(column)]
    if options.header is not False:
        names = ["" if column[0] is None else _as_text(column[0]) for column in columns]
        if options.header is None:
            _refuse_record(name, names, columns)
        columns = [column[1:] for column in columns]
    else:
        names = [f"column_{place}" for place in range(1, len(columns) + 1)]
    refuse_unusable_names(f"{name}, first row", names)
    arrays = [
        to_arrow(f"{name}: column {title!r}", without_missing(cells, options.missing))
        for title, cells in zip(names, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=names)


def any_cell(cells: Sequence[Any]) -> bool:
    """Whether one is not empty."""
    return any(cell is not None for cell in cells)


def _refuse_record(name: str, names: list[str], columns: list[tuple[Any, ...]]) -> None:
    below = [[cell for cell in column[1:2049] if cell is not None] for column in columns]
    kinds = [
        place
        for place in range(len(names))
        if below[place]
        and (place in looks_like_data(names) or not isinstance(columns[place][0], str | None))
        and sum(not isinstance(cell, str) for cell in below[place]) > 0.5 * len(below[place])
    ]
    again = {place: len(set(cells)) for place, cells in enumerate(below) if columns[place][0] in cells}
    refuse_record(name, len(names), kinds, again)
