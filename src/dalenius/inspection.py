"""A first look at a table: its columns, the sensitive histogram, which promises are feasible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from dalenius.errors import InputError, did_you_mean
from dalenius.mechanisms import registry
from dalenius.mechanisms.config import config_of
from dalenius.mechanisms.feasible import ColumnFacts, Finding, TableFacts
from dalenius.plain import plain
from dalenius.sql import connect, identifier, one_row
from dalenius.tables.histogram import Histogram, count_values, label
from dalenius.tables.source import Source

_SENSITIVE_WORDS = (
    "disease",
    "diagnos",
    "condition",
    "illness",
    "salary",
    "income",
    "occupation",
    "religion",
)
_MOST_VALUES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a publisher sees of a table before writing a policy. Private: it holds counts."""

    source: str
    facts: TableFacts
    findings: Mapping[str, Finding]
    """What each mechanism could promise, and what each stage before one would cost, by their names."""

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
            "columns": plain(self.facts.columns),
            "domain_size": self.facts.domain_size,
            "sensitive": None if histogram is None else _histogram_dict(histogram),
            "feasible": feasible,
            **stages,
        }


def inspect_source(source: Source, sensitive: tuple[str, ...] | None = None) -> Inspection:
    """Count the columns' values, and ask every mechanism; a sensitive column that is not given is guessed."""
    facts = look_at(source, sensitive)
    rooms: dict[str, ModuleType | None] = {}
    for kind in registry.kinds():
        rooms[kind] = registry.find_room(kind, None, "feasible")
        rooms |= {stage: registry.stage_room(stage, "feasible") for stage in config_of(kind).stages}
    findings = {name: room.find(facts) for name, room in rooms.items() if room is not None}
    return Inspection(source=source.name, facts=facts, findings=findings)


def suggest_sections(facts: TableFacts) -> str:
    """The promise and the mechanism of a first policy, from the first mechanism that suggests some."""
    rooms = (registry.find_room(kind, None, "feasible") for kind in registry.kinds())
    text: str = next(room.suggest(facts) for room in rooms if room and hasattr(room, "suggest"))
    return text


def look_at(source: Source, sensitive: tuple[str, ...] | None = None) -> TableFacts:
    """How many values every column has, and how often the sensitive ones occur."""
    with connect() as connection:
        scan = source.scan(connection)
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
        chosen = _known(sensitive, columns, source) if sensitive else guess_sensitive(columns, n_rows)
        histogram = count_values(connection, scan, chosen) if chosen and n_rows else None
    return TableFacts(n_rows=n_rows, columns=columns, histogram=histogram)


def guess_sensitive(columns: tuple[ColumnFacts, ...], n_rows: int) -> tuple[str, ...]:
    """The column that a person would most likely call sensitive: by name, else the last with few values."""
    named = [c for c in columns if any(word in c.name.lower() for word in _SENSITIVE_WORDS)]
    few_values = [c for c in columns if 1 < c.n_distinct <= min(_MOST_VALUES, max(2, n_rows // 2))]
    return tuple(column.name for column in (named[:1] or few_values[-1:]))


def _known(names: tuple[str, ...], columns: tuple[ColumnFacts, ...], source: Source) -> tuple[str, ...]:
    known = [column.name for column in columns]
    for name in names:
        if name not in known:
            raise InputError(f"{source.name} has no column {name!r}; {did_you_mean(name, known)}")
    return names


def _histogram_dict(histogram: Histogram) -> dict[str, Any]:
    by_count = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    return {
        "columns": list(histogram.columns),
        "values": [
            {
                "value": label(histogram.values[code]),
                "count": histogram.counts[code],
                "frequency": float(histogram.frequency(code)),
            }
            for code in by_count
        ],
    }
