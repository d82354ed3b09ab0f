"""How a text file is written: what separates its fields, whether it has a header, and what its texts mean.

Every field is text first. A column becomes a number or a date only if every one of its texts is the canonical
spelling of one, so `01234` stays a postal code, and a number with more digits than a DOUBLE holds stays text.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from itertools import islice

from dalenius.errors import SourceError
from dalenius.sql import identifier, literal
from dalenius.tables.files.options import SourceOptions

DELIMITERS = (",", ";", "\t", "|")
TAB_SUFFIXES = (".tsv", ".tab")
NUMBER_LIKE = r"[-+]?[0-9][0-9.,' ]*%?"
DAY_LIKE = r"[0-9]{1,4}[-./][0-9]{1,2}[-./][0-9]{1,4}([ T].*)?"
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n')
"""Some spreadsheets write it before the header."""
_EXACT_DIGITS = 15
"""Of a decimal number, that a DOUBLE keeps whatever they are."""
_MOST_DIGITS = 17
"""That a DOUBLE is ever written with."""
_VARIED = 3
"""Different texts of a column, from which on its name is none of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How the fields of a text file are told apart, and what they mean."""

    encoding: str = "utf-8"
    delimiter: str = ","
    quote: str = '"'
    header: bool = True
    skip: int = 0
    """Characters before the header: a line that says what separates fields, and empty lines."""
    first_line: int = 1
    """The number of the line after these."""
    decimal: str = "."
    thousands: str | None = None
    missing: tuple[str, ...] = ()
    dates: str | None = None

    def text(self, column: str) -> str:
        """SQL for a column's text, NULL where it says that the value is missing."""
        name = identifier(column)
        if not self.missing:
            return name
        codes = ", ".join(map(literal, self.missing))
        return f"CASE WHEN trim({name}) IN ({codes}) THEN NULL ELSE {name} END"

    def kinds(self) -> tuple[Kind, ...]:
        """The types that a column of texts may turn into, the narrowest first."""
        return (self._whole(), self._number(), *self._days())

    def _digits(self) -> str:
        if self.thousands is None:
            return r"-?(0|[1-9]\d*)"
        return rf"-?(0|[1-9]\d*|[1-9]\d{{0,2}}({re.escape(self.thousands)}\d{{3}})+)"

    def _plain(self) -> str:
        """SQL for a number as SQL writes it."""
        plain = "{0}" if self.thousands is None else f"replace({{0}}, {literal(self.thousands)}, '')"
        return plain if self.decimal == "." else f"replace({plain}, {literal(self.decimal)}, '.')"

    def _whole(self) -> Kind:
        if self.thousands is None:
            return Kind(type="BIGINT", test="try_cast({0} AS BIGINT)::VARCHAR = {0}", value="{0}::BIGINT")
        plain = self._plain()
        pattern = literal(_escape(self._digits()))
        return Kind(
            type="BIGINT",
            test=f"regexp_full_match({{0}}, {pattern}) AND try_cast({plain} AS BIGINT) IS NOT NULL",
            value=f"{plain}::BIGINT",
        )

    def _number(self) -> Kind:
        plain = self._plain()
        pattern = literal(_escape(rf"{self._digits()}({re.escape(self.decimal)}\d+)?([eE][-+]?\d+)?"))
        number = f"try_cast({plain} AS DOUBLE)"
        digits = f"length(regexp_replace(ltrim({plain}, '-0.'), '[eE].*$|[^0-9]', '', 'g'))"
        powers = f"({digits} <= {_MOST_DIGITS} AND {plain} ILIKE '%e%')"
        exact = f"({digits} <= {_EXACT_DIGITS} OR {number}::VARCHAR = {plain} OR {powers})"
        return Kind(
            type="DOUBLE",
            test=f"regexp_full_match({{0}}, {pattern}) AND isfinite({number}) AND {exact}",
            value=f"{plain}::DOUBLE",
        )

    def _days(self) -> tuple[Kind, ...]:
        iso = (
            Kind(type="DATE", test="try_cast({0} AS DATE)::VARCHAR = {0}", value="{0}::DATE"),
            Kind(
                type="TIMESTAMP",
                test="try_cast({0} AS TIMESTAMP)::VARCHAR = replace({0}, 'T', ' ')",
                value="{0}::TIMESTAMP",
            ),
        )
        if self.dates is None:
            return iso
        form = literal(_escape(self.dates))
        day = f"try_strptime({{0}}, {form})"
        bare = "regexp_replace({0}, '\\b0+([0-9])', '\\1', 'g')"
        kind = "TIMESTAMP" if "%H" in self.dates or "%I" in self.dates else "DATE"
        written = Kind(
            type=kind,
            test=f"year({day}) >= 1000 AND {bare.format(f'strftime({day}, {form})')} = {bare}",
            value=f"{day}::{kind}",
        )
        return (written, *iso)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type that texts may turn into; `{0}` stands for the text."""

    type: str
    test: str
    """SQL: whether a text is one."""
    value: str
    """SQL: which one."""


TEXT = Kind(type="VARCHAR", test="true", value="{0}")


def _escape(pattern: str) -> str:
    """For `str.format`."""
    return pattern.replace("{", "{{").replace("}", "}}")


def read_first_line(
    text: str, name: str, suffix: str, encoding: str, options: SourceOptions
) -> tuple[Dialect, list[str]]:
    """How a text that begins so is written, and the fields of its first line."""
    separator = _SEPARATOR_LINE.match(text)
    skip, header = separator.end() if separator else 0, options.header is not False
    while header and text[skip : skip + 1] in ("\r", "\n"):  # DuckDB would take one for the header
        skip += 1
    body = text[skip:]
    if not body.strip():
        raise SourceError(f"{name} is empty", hint="the first line names the columns")
    line = body.lstrip("\r\n").splitlines()[0]
    usual = "\t" if suffix in TAB_SUFFIXES else max(DELIMITERS, key=_unquote(line).count)
    dialect = Dialect(
        encoding=encoding,
        delimiter=options.delimiter or (separator[1] if separator else usual),
        quote='"' if options.quote is None else options.quote,
        header=header,
        skip=skip,
        first_line=1 + len(text[:skip].splitlines()),
        decimal=options.decimal or ".",
        thousands=options.thousands,
        missing=options.missing or (),
        dates=options.dates,
    )
    lines = islice(body.splitlines(keepends=True), 1000)  # a quoted name may hold line breaks
    try:
        if dialect.quote:
            reader = csv.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote, strict=True)
        else:
            reader = csv.reader(lines, delimiter=dialect.delimiter, quoting=csv.QUOTE_NONE)
        fields = next(row for row in reader if row)
    except csv.Error as error:
        raise SourceError(
            f"{name}, line {dialect.first_line}: the header cannot be read: {error}",
            hint='a quote inside a quoted field is written twice: ""',
        ) from None
    return dialect, fields


def _unquote(line: str) -> str:
    return re.sub(r'"[^"]*"', "", line)


def looks_like_data(fields: list[str]) -> list[int]:
    """Which fields of a first line are numbers or days, and so hardly names."""
    pattern = re.compile(f"{NUMBER_LIKE}|{DAY_LIKE}")
    return [place for place, field in enumerate(fields) if pattern.fullmatch(field.strip())]


def refuse_record(name: str, n_fields: int, kinds: list[int], again: dict[int, int]) -> None:
    """A first line that is somebody's record would become the published names of columns.

    Args:
        name: the file.
        n_fields: of the first line.
        kinds: fields that are like the numbers or days below.
        again: fields that are found again below, each with how many different texts are there. A column
            that is ticked with its own name has no others; among others a name is somebody's cell.
    """
    reasons = []
    if kinds:
        reasons.append(f"{_places(kinds)} like the numbers or days below")
    is_sure = kinds or 2 * len(again) >= n_fields
    repeated = [place for place, n_texts in again.items() if is_sure or n_texts >= _VARIED]
    if repeated:
        reasons.append(f"{_places(repeated)} found again below")
    if reasons:
        raise SourceError(
            f"{name}: line 1 looks like a record, not like the names of columns: {', and '.join(reasons)}",
            hint="if it is a record: --no-header, or header = false in the policy's source (columns are then "
            "column_1, column_2, …); if it holds names: --header, or header = true",
        )


def _places(places: list[int]) -> str:
    listed = ", ".join(str(place + 1) for place in places)
    return f"field {listed} is" if len(places) == 1 else f"fields {listed} are"
