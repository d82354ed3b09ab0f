"""A first look at a table: its columns, the sensitive histogram, which promises are feasible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb

from dalenius.engines.preparing import count_outside, refuse_outside, selection
from dalenius.errors import InputError, did_you_mean
from dalenius.inspection.numbers import NumberSecret
from dalenius.inspection.reading import Look, look_closer
from dalenius.inspection.roles import Guess, guess_role
from dalenius.inspection.shapes import look_at_shapes
from dalenius.mechanisms import registry
from dalenius.mechanisms.config import config_of
from dalenius.mechanisms.feasible import ColumnFacts, Finding, TableFacts
from dalenius.plain import plain
from dalenius.sql import identifier, one_row
from dalenius.tables.histogram import Histogram, count_values, label
from dalenius.tables.recode import parse_recode
from dalenius.tables.source import Source, scanning
from dalenius.tables.uniqueness import Uniqueness, study_uniqueness


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a publisher sees of a table before writing a policy. Private: it holds counts."""

    source: str
    facts: TableFacts
    guesses: tuple[Guess, ...]
    """What each column may be."""
    is_guessed: bool
    """Whether the sensitive column was not given but goes by its name."""
    look: Look
    """How the table was read, the shapes of its cells, and what may need a change."""
    findings: Mapping[str, Finding]
    """What each mechanism could promise, and what each stage before one would cost, by their names."""
    uniqueness: Uniqueness | None = None
    """How many people are alone with some columns; None: none were given."""

    @property
    def numbers(self) -> NumberSecret | None:
        """What to know of a sensitive column of many numbers."""
        return NumberSecret.of(self.facts)

    def to_dict(self) -> dict[str, Any]:
        """As `inspect --json` prints it."""
        feasible: dict[str, Any] = {}
        stages: dict[str, Any] = {}
        for name, finding in self.findings.items():
            (stages if name in registry.stages() else feasible).update(finding.data)
        histogram = self.facts.histogram
        return {
            "private": True,
            "source": self.source,
            "rows": self.facts.n_rows,
            "read_as": dict(self.look.how),
            "notes": list(self.look.notes),
            "columns": [
                {**plain(column), "shape": shape, "guess": guess.role, "evidence": guess.evidence}
                for column, guess, shape in zip(
                    self.facts.columns, self.guesses, self.look.shapes, strict=True
                )
            ],
            "domain_size": self.facts.domain_size,
            "sensitive": None
            if histogram is None
            else {**_histogram_dict(histogram), "guessed": self.is_guessed},
            "numbers": None if self.numbers is None else self.numbers.to_dict(),
            "feasible": feasible,
            **stages,
            "uniqueness": None if self.uniqueness is None else self.uniqueness.to_dict(),
        }


def inspect_source(source: Source, sensitive: Sequence[str] = (), quasi: Sequence[str] = ()) -> Inspection:
    """Count the columns' values, and ask every mechanism.

    Args:
        source: The table.
        sensitive: The sensitive columns; without any, the first one whose name says so, if one does.
        quasi: What an attacker may know of a person: how many people are alone with it.
    """
    sensitive = find_columns(source, sensitive)
    facts = look_at(source, sensitive)
    guesses = guess_roles(source, facts)
    named = tuple(guess.column for guess in guesses if guess.role == "sensitive")
    if not sensitive and named:
        facts = with_histogram(source, facts, named[:1])
    rooms: dict[str, ModuleType | None] = {}
    for kind in registry.kinds():
        rooms[kind] = registry.find_room(kind, None, "feasible")
        rooms |= {stage: registry.stage_room(stage, "feasible") for stage in config_of(kind).stages}
    return Inspection(
        source=source.name,
        facts=facts,
        guesses=guesses,
        is_guessed=not sensitive,
        look=look_closer(source, facts),
        findings={name: room.find(facts) for name, room in rooms.items() if room is not None},
        uniqueness=study_people(source, find_columns(source, quasi)) if quasi and facts.n_rows else None,
    )


def study_people(
    source: Source, quasi: Sequence[str], recode: Mapping[str, Any] | None = None, folder: Path | None = None
) -> Uniqueness:
    """How many people are alone with some columns, which may be coarser.

    Args:
        source: The table.
        quasi: What an attacker may know of a person.
        recode: How columns are made coarser, as a policy's section `[recode]` has it.
        folder: Where the files are that it names; None: here.
    """
    columns = tuple(dict.fromkeys(quasi))
    with scanning(source) as (connection, scan):
        relation = _recode(connection, scan, columns, recode, folder)
        return study_uniqueness(connection, relation, columns, fixed=list(recode or ()))


def _recode(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    columns: Sequence[str],
    recode: Mapping[str, Any] | None,
    folder: Path | None,
) -> str:
    """SQL to select from: these columns as a policy's `[recode]` makes them."""
    recodes = tuple(
        (name, parse_recode(name, spec, folder or Path(), lambda: (connection, relation)))
        for name, spec in (recode or {}).items()
        if name in columns
    )
    if recodes:
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
        types = {name: kind for name, kind, *_ in described}
        for name, steps in recodes:
            steps.refuse_type(name, types[name])
        refuse_outside(recodes, one_row(connection, count_outside(recodes, relation)))
    return f"({selection(recodes, relation, columns)})"


def guess_roles(source: Source, facts: TableFacts) -> tuple[Guess, ...]:
    """What each column may be, in their order."""
    shapes = look_at_shapes(source)
    return tuple(guess_role(column, shapes[column.name], facts.n_rows) for column in facts.columns)


def suggest_sections(facts: TableFacts) -> str:
    """The promise and the mechanism of a first policy, from the first mechanism that suggests some."""
    rooms = (registry.find_room(kind, None, "feasible") for kind in registry.kinds())
    text: str = next(room.suggest(facts) for room in rooms if room and hasattr(room, "suggest"))
    return text


def look_at(source: Source, sensitive: tuple[str, ...] = ()) -> TableFacts:
    """How many values every column has, and how often the sensitive ones occur."""
    with scanning(source) as (connection, scan):
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        counted = one_row(
            connection,
            "SELECT count(*), "
            + ", ".join(
                f"count(DISTINCT {identifier(name)}) + max(({identifier(name)} IS NULL)::INT), "
                f"count(*) - count({identifier(name)})"
                for name, *_ in described
            )
            + f" FROM {scan}",
        )
    n_rows, *numbers = (number or 0 for number in counted)
    columns = tuple(
        ColumnFacts(name=name, type=kind.lower(), n_distinct=numbers[2 * i], n_null=numbers[2 * i + 1])
        for i, (name, kind, *_) in enumerate(described)
    )
    facts = TableFacts(n_rows=n_rows, columns=columns, histogram=None)
    return with_histogram(source, facts, sensitive)


def with_histogram(
    source: Source,
    facts: TableFacts,
    sensitive: tuple[str, ...],
    recode: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> TableFacts:
    """The same table, with how often these values occur, as a policy's `[recode]` makes them."""
    if not sensitive or not facts.n_rows:
        return facts
    with scanning(source) as (connection, scan):
        relation = _recode(connection, scan, sensitive, recode, folder)
        histogram = count_values(connection, relation, sensitive)
    return replace(facts, histogram=histogram)


def find_columns(source: Source, given: Iterable[str]) -> tuple[str, ...]:
    """The columns that are meant, one by one or several separated by commas.

    >>> import pyarrow as pa
    >>> from dalenius.tables.source import open_source
    >>> find_columns(open_source(pa.table({"age": [1], "a,b": [2]})), ["a,b", "age"])
    ('a,b', 'age')
    """
    known = source.column_names
    names = [part for text in given for part in ([text] if text in known else text.split(","))]
    found = tuple(name if name in known else name.strip() for name in names)
    for name in found:
        if name not in known:
            raise InputError(f"{source.name} has no column {name!r}; {did_you_mean(name, known)}")
    return found


def _histogram_dict(histogram: Histogram) -> dict[str, Any]:
    by_count = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    frequencies = histogram.frequencies
    return {
        "columns": list(histogram.columns),
        "values": [
            {
                "value": label(histogram.values[code]),
                "count": histogram.counts[code],
                "frequency": float(frequencies[code]),
            }
            for code in by_count
        ],
    }
