"""Texts in a question that no published row has: probably misspelt, and a question about nobody."""

from __future__ import annotations

from collections.abc import Iterator

from dalenius.errors import did_you_mean
from dalenius.question.query import Membership, Query, atoms
from dalenius.release.folder import StoredRelease

Known = dict[str, frozenset[str]]
"""The texts of a release's columns, as far as they were looked up."""


def note_unknown(release: StoredRelease, query: Query, known: Known) -> tuple[str, ...]:
    """A note for each text that the question compares a column with and no published row has there."""
    conditions = [query.where, *(aggregate.condition for aggregate in query.aggregates)]
    compared = [atom for one in conditions for atom in atoms(one) if isinstance(atom, Membership)]
    return tuple(dict.fromkeys(note for atom in compared for note in _notes(release, atom, known)))


def _notes(release: StoredRelease, atom: Membership, known: Known) -> Iterator[str]:
    texts = [value for value in atom.values if isinstance(value, str)]
    column = next((one for one in release.manifest.columns if one.name == atom.column), None)
    if not texts or column is None or "string" not in column.type:
        return
    if atom.column not in known:
        known[atom.column] = _texts_of(release, atom.column)
    for text in texts:
        if text not in known[atom.column]:
            nearest = did_you_mean(text, known[atom.column])
            hint = f"; {nearest}" if nearest.startswith("did") else ""
            yield f"no such value: no published row has {atom.column} = {text!r}{hint}"


def _texts_of(release: StoredRelease, column: str) -> frozenset[str]:
    """What is published of a column, in any table of the release and of its series."""
    found: set[str] = set()
    for part in release.parts:
        for table in part.manifest.tables:
            if column in part.column_names(table.name):
                for batch in part.batches(table.name, [column]):
                    found.update(text for text in batch.column(0).unique().to_pylist() if text is not None)
    return frozenset(found)
