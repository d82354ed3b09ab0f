"""What the cells of a column look like: shares of a sample that have a shape, never a cell itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from dalenius.sql import identifier, literal
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
def sample_cells(source: Source, columns: Iterable[str], n_rows: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection with a table `cells` of some rows: of the column of each `place` the different cells.

    Cells are texts, and `n` is how often each is there; NULL and the empty text are left out. All columns are
    in one table, so that a pattern is compiled once: that takes longer than to look at the cells, which are
    few more often than not.
    """
    names = [identifier(column) for column in columns]
    texts = ", ".join(f"nullif(trim({name}::VARCHAR), '') AS {name}" for name in names)
    counted = " UNION ALL ".join(
        f"SELECT {place}, {name}, count(*) FROM sample WHERE {name} IS NOT NULL GROUP BY {name}"
        for place, name in enumerate(names)
    )
    with scanning(source) as (connection, scan):
        connection.execute(
            f"CREATE TEMP TABLE sample AS SELECT {texts} FROM {scan} "
            f"USING SAMPLE reservoir({n_rows} ROWS) REPEATABLE (1)"
        )
        connection.execute("CREATE TEMP TABLE cells (place INTEGER, cell VARCHAR, n BIGINT)")
        connection.execute(f"INSERT INTO cells {counted}")
        yield connection


def look_at_shapes(source: Source) -> dict[str, Shape]:
    """The shapes of every column, from a sample of its rows."""
    matched = [f"regexp_matches(cell, {literal(pattern)})::INT" for pattern in _PATTERNS.values()]
    measured = [*matched, "length(cell) - length(replace(cell, ' ', '')) + 1", "length(cell)"]
    asked = ", ".join(f"sum(n * ({one})) / sum(n)" for one in measured)
    with sample_cells(source, source.column_names, 5_000) as connection:
        rows = connection.execute(f"SELECT place, {asked} FROM cells GROUP BY place").fetchall()
    nothing = (0.0,) * len(measured)
    found = {place: numbers for place, *numbers in rows}
    return {name: _shape(found.get(place, nothing)) for place, name in enumerate(source.column_names)}


def _shape(numbers: Sequence[float]) -> Shape:
    *shares, words, length = numbers
    return Shape(**dict(zip(_PATTERNS, shares, strict=True)), words=words, length=length)
