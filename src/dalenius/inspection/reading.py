"""How a table was read, and what of it may have been read wrongly: codes for missing values, commas, days.

Of cells only the shape is shown: a digit is 9, a letter A or a. No message quotes a cell; the codes for
missing values that are named are those of a list that everybody knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import duckdb

from dalenius.inspection.shapes import sample_cells
from dalenius.mechanisms.feasible import ColumnFacts, TableFacts
from dalenius.sql import literal, one_row
from dalenius.tables.files.csv import CsvSource
from dalenius.tables.source import Source

_SAMPLE_ROWS = 20_000
_TEXT_CODES = (
    "NA",
    "N/A",
    "n/a",
    "NaN",
    "nan",
    "NULL",
    "null",
    "None",
    "none",
    "?",
    ".",
    "-",
    "--",
    "#N/A",
    "missing",
)
_NUMBER_CODES = ("-9", "-99", "-999", "-9999", "-1", "99", "999", "9999")
_MOST = 0.9
_FEWEST = 5
"""A shape of fewer cells is not shown."""
_LONGEST_SHAPE = 24
_DAYS = {
    r"\d{1,2}\.\d{1,2}\.\d{4}": "%d.%m.%Y",
    r"\d{1,2}/\d{1,2}/\d{4}": "%d/%m/%Y or %m/%d/%Y",
    r"\d{1,2}-\d{1,2}-\d{4}": "%d-%m-%Y or %m-%d-%Y",
    r"\d{4}/\d{1,2}/\d{1,2}": "%Y/%m/%d",
    r"\d{8}": "%Y%m%d",
}
_COMMA = r"-?\d+,\d+|-?\d{1,3}(\.\d{3})+(,\d+)?"
_THOUSANDS = r"-?\d{1,3}(,\d{3})+(\.\d+)?"
_NUMBER = r"-?\d+(\.\d+)?([eE][-+]?\d+)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a publisher should know of how the table was read."""

    how: Mapping[str, str]
    """Encoding, delimiter and so on of a text file."""
    shapes: tuple[str, ...]
    """Of each column, how most of its cells look."""
    notes: tuple[str, ...]
    """What may need a change, and the option that makes it."""


def how_read(source: Source) -> dict[str, str]:
    """How a text file was read, by what it was told or found; nothing of other kinds."""
    if not isinstance(source, CsvSource):
        return {}
    dialect = source.dialect
    return {
        "encoding": dialect.encoding,
        "delimiter": repr(dialect.delimiter),
        "decimal": repr(dialect.decimal),
        "header": "yes" if dialect.header else "no",
        **({"missing": " ".join(dialect.missing)} if dialect.missing else {}),
        **({"dates": dialect.dates} if dialect.dates else {}),
    }


def look_closer(source: Source, facts: TableFacts) -> Look:
    """Look at a sample of every column's cells."""
    with sample_cells(source, (column.name for column in facts.columns), _SAMPLE_ROWS) as connection:
        commonest, measured = _shapes(connection), _measures(connection)
        shapes = tuple(commonest.get(place, "–") for place in range(len(facts.columns)))
        notes = tuple(
            note
            for place, column in enumerate(facts.columns)
            if place in measured
            for note in _notes(connection, column, place, measured[place])
        )
    return Look(how=how_read(source), shapes=shapes, notes=(*notes, *_note_totals(facts)))


def _note_totals(facts: TableFacts) -> Iterator[str]:
    """One row, or two, without a cell in most columns, as a line of sums or a remark below a table has."""
    empty = [column.n_null for column in facts.columns]
    for n in (1, 2):
        if empty.count(n) * 2 <= len(empty) or facts.n_rows <= n:
            continue
        rows = "1 row has" if n == 1 else f"{n} rows have"
        yield (
            f"{rows} no cell in most columns: if that is a line of totals or a remark, take it out of the "
            "file, or it is published as a person"
        )


_MARKS = {r"[\p{Ll}\p{Lo}\p{Lm}\p{M}]": "a", r"[\p{Lu}\p{Lt}]": "A", r"\p{N}": "9", "[^ -~]": "?"}
"""In this order: what a mark of a shape stands for."""


def _shapes(connection: duckdb.DuckDBPyConnection) -> dict[int, str]:
    """Of each place the commonest shape, if it is that of at least five cells and not all of it marks."""
    shape = "cell"
    for pattern, mark in _MARKS.items():
        shape = f"regexp_replace({shape}, {literal(pattern)}, '{mark}', 'g')"
    found = connection.execute(
        f"SELECT place, {shape} AS shape FROM cells GROUP BY place, shape HAVING sum(n) >= {_FEWEST} "
        "QUALIFY row_number() OVER (PARTITION BY place ORDER BY sum(n) DESC, shape) = 1"
    ).fetchall()
    return {place: _shorten(text) for place, text in found}


def _shorten(text: str) -> str:
    if not any(mark.isalnum() for mark in text):
        return "marks"
    return text if len(text) <= _LONGEST_SHAPE else f"{text[: _LONGEST_SHAPE - 1]}…"


_CODES = (*_TEXT_CODES, *_NUMBER_CODES)
_FORMS = (_NUMBER, _COMMA, _THOUSANDS, *_DAYS)


def _measures(connection: duckdb.DuckDBPyConnection) -> dict[int, list[float]]:
    """Of each place the shares of the cells with each form, codes apart, and how often each code is there."""
    codes = ", ".join(map(literal, _CODES))
    shares = ", ".join(
        f"coalesce(sum(n * regexp_full_match(cell, {literal(form)})::INT) FILTER (cell NOT IN ({codes})) "
        f"/ sum(n) FILTER (cell NOT IN ({codes})), 0)"
        for form in _FORMS
    )
    counted = ", ".join(f"coalesce(sum(n) FILTER (cell = {literal(code)}), 0)" for code in _CODES)
    found = connection.execute(f"SELECT place, {shares}, {counted} FROM cells GROUP BY place").fetchall()
    return {place: numbers for place, *numbers in found}


def _notes(
    connection: duckdb.DuckDBPyConnection, column: ColumnFacts, place: int, found: list[float]
) -> Iterator[str]:
    is_text = column.type == "varchar"
    number, comma, thousands, *days = found[: len(_FORMS)]
    counts = dict(zip(_CODES, found[len(_FORMS) :], strict=True))
    if is_text:
        if comma >= _MOST:
            yield f"{column.name!r} looks like numbers with a decimal comma: --decimal , (and --thousands .)"
        elif thousands >= _MOST and number < _MOST:
            yield f"{column.name!r} looks like numbers with commas between thousands: --thousands ,"
        for share, form in zip(days, _DAYS.values(), strict=True):
            if share >= _MOST and form != "%Y%m%d":
                yield f"{column.name!r} looks like days: --dates '{form}'"
    missing = [code for code in _TEXT_CODES if counts[code] and is_text]
    if missing:
        yield _missing(column.name, missing)
    yield from _codes(connection, column, place, counts)


def _codes(
    connection: duckdb.DuckDBPyConnection, column: ColumnFacts, place: int, counts: Mapping[str, float]
) -> Iterator[str]:
    """Numbers that stand apart from all others may be codes."""
    present = [code for code in _NUMBER_CODES if counts[code]]
    if not present or not column.type.endswith(("int", "integer", "double", "float")):
        return
    listed = ", ".join(present)
    number = "try_cast(cell AS DOUBLE)"
    low, high = one_row(
        connection,
        f"SELECT min({number}), max({number}) FROM cells WHERE place = {place} "
        f"AND {number} NOT IN ({listed})",
    )
    if low is None:
        return
    apart = [code for code in present if float(code) < 0 <= low or float(code) > 2 * high > 0]
    if apart:
        yield _missing(column.name, apart)


def _missing(column: str, codes: list[str]) -> str:
    given = " ".join(f"--missing={code}" if code.startswith("-") else f"--missing '{code}'" for code in codes)
    return f"{column!r} has {' and '.join(map(repr, codes))}: if that means missing, {given}"
