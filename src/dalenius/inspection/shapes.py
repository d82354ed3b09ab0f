"""What the cells of a column look like: shares of a sample that have a shape, never a cell itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from dalenius.sql import identifier, literal, one_row
from dalenius.tables.source import Source, scanning

_WORD = r"[\p{Lu}\p{Lo}][\p{L}\p{M}'’.-]*"
_STREETS = (
    r"street|st\.|road|rd\.?|avenue|ave\.?|lane|drive|square|boulevard|blvd|stra(ß|ss)e|str\.|gasse|weg|platz"
    r"|allee|rue|chemin|calle|avenida|plaza|via|viale|piazza|rua|straat|laan|gatan|vej|ulica|ul\."
)
_PATTERNS = {
    "e_mail": r"^[^@\s]+@[^@\s]+\.[^@\s]{2,}$",
    "phone": r"^(\+|00|0|\()[0-9 ()/.-]{6,}$|^[0-9]{2,5}([ ./-][0-9]{2,5}){2,}$",
    "day": r"^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([ T].*)?$",
    "number": r"^[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}$|^\d{3}-\d{2}-\d{4}$"
    r"|^[A-Za-z]{0,4}[-/ ]?\d[\dA-Za-z./-]{4,}$",
    "name": rf"^{_WORD}(,? +{_WORD}){{1,4}}$|^\p{{Han}}{{2,4}}$|^\p{{Hangul}}{{2,4}}$",
    "street": rf"(?i)(^|[\s\p{{L}}])({_STREETS})(\s|,|$)",
    "house": r"^\d+[A-Za-z]?,? +\p{L}|\p{L}\.? +\d+ ?[A-Za-z]?(,|$)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Which share of a column's cells, of those that are not NULL nor empty, looks like what."""

    e_mail: float
    phone: float
    day: float
    number: float
    """A number of a record, a card, an account: digits, perhaps after letters."""
    name: float
    """Several words, each with a capital; in scripts without capitals any, or a few characters."""
    street: float
    house: float
    """A number before or after words."""
    words: float
    """How many a cell has on average."""
    length: float
    """In characters, on average."""


@contextmanager
def sampled(source: Source, columns: Iterable[str], n_rows: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a table `sample` of some rows: the columns' cells as texts, NULL where empty."""
    with scanning(source) as (connection, scan):
        texts = ", ".join(f"nullif(trim({name}::VARCHAR), '') AS {name}" for name in map(identifier, columns))
        connection.execute(
            f"CREATE TEMP TABLE sample AS SELECT {texts} FROM {scan} "
            f"USING SAMPLE reservoir({n_rows} ROWS) REPEATABLE (1)"
        )
        yield connection


def look_at_shapes(source: Source) -> dict[str, Shape]:
    """The shapes of every column, from a sample of its rows."""
    with sampled(source, source.column_names, 5_000) as connection:
        asked = ", ".join(_measures(name) for name in source.column_names)
        found = one_row(connection, f"SELECT {asked} FROM sample")
    return dict(zip(source.column_names, _shapes(found), strict=True))


def _measures(name: str) -> str:
    column = identifier(name)
    shares = [f"avg(regexp_matches({column}, {literal(p)})::INT)" for p in _PATTERNS.values()]
    words = f"avg(length({column}) - length(replace({column}, ' ', '')) + 1)"
    return ", ".join([*shares, words, f"avg(length({column}))"])


def _shapes(found: Sequence[float | None]) -> list[Shape]:
    numbers = [0.0 if number is None else float(number) for number in found]
    size = len(_PATTERNS) + 2
    rows = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    return [
        Shape(**dict(zip(_PATTERNS, shares, strict=True)), words=words, length=length)
        for *shares, words, length in rows
    ]
