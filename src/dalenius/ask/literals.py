"""Texts in a question that mean something else than one thinks.

One that no published row has is probably misspelt, and the question about nobody. Ranges are texts, and their
order is that of letters: '100-149' is before '20-29'.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from dalenius.errors import did_you_mean
from dalenius.question.query import Atom, Expression, Membership, Query, atoms
from dalenius.release.folder import StoredRelease

Known = dict[str, frozenset[str]]
"""The texts of a release's columns, as far as they were looked up."""


def note_unknown(release: StoredRelease, query: Query, known: Known) -> tuple[str, ...]:
    """A note for each text that the question compares a column with and no published row has there."""
    conditions = [query.where, *(aggregate.condition for aggregate in query.aggregates)]
    compared = [atom for one in conditions for atom in atoms(one)]
    return tuple(dict.fromkeys(note for atom in compared for note in _notes_of(release, atom, known)))


def _notes_of(release: StoredRelease, atom: Atom, known: Known) -> Iterator[str]:
    match atom:
        case Membership():
            yield from _notes(release, atom, known)
        case Expression(sql=sql) if "'" in sql:
            yield from _notes_on_order(release, atom, known)


def _notes(release: StoredRelease, atom: Membership, known: Known) -> Iterator[str]:
    texts = [value for value in atom.values if isinstance(value, str)]
    held = _known_texts(release, atom.column, known) if texts else None
    for text in texts:
        if held is not None and text not in held:
            nearest = did_you_mean(text, held)
            hint = f"; {nearest}" if nearest.startswith("did") else ""
            yield f"no such value: no published row has {atom.column} = {text!r}{hint}"


def _notes_on_order(release: StoredRelease, atom: Expression, known: Known) -> Iterator[str]:
    """Where a column of texts that begin with numbers is in another order than these."""
    for compared in sqlglot.parse_one(atom.sql, dialect="duckdb").find_all(*_ORDERED):
        sides = [part for part in compared.args.values() if isinstance(part, exp.Expression)]
        if not any(isinstance(part, exp.Literal) and part.is_string for part in sides):
            continue
        for column in [part.name for part in sides if isinstance(part, exp.Column)]:
            held = _known_texts(release, column, known)
            if held is not None and not _in_order_of_numbers(held):
                yield (
                    f"{column} holds texts, which <, > and BETWEEN compare letter by letter ('100' is before "
                    f"'20'): name those that are meant by {column} IN (…)"
                )


_ORDERED = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)


def _in_order_of_numbers(texts: frozenset[str]) -> bool:
    """Whether those that begin with a number are in its order, as days and postcodes are."""
    found = [re.match(r"-?\d+(\.\d+)?", text) for text in sorted(texts)]
    numbers = [float(one[0]) for one in found if one]
    return numbers == sorted(numbers)


def _known_texts(release: StoredRelease, name: str, known: Known) -> frozenset[str] | None:
    """What is published of a column of texts; None: it is none."""
    column = next((one for one in release.manifest.columns if one.name == name), None)
    if column is None or "string" not in column.type:
        return None
    if name not in known:
        known[name] = _texts_of(release, name)
    return known[name]


def _texts_of(release: StoredRelease, column: str) -> frozenset[str]:
    """What is published of a column, in any table of the release and of its series."""
    found: set[str] = set()
    for part in release.parts:
        for table in part.manifest.tables:
            if column in part.column_names(table.name):
                for batch in part.batches(table.name, [column]):
                    found.update(text for text in batch.column(0).unique().to_pylist() if text is not None)
    return frozenset(found)
