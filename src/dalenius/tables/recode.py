"""Coarser values before everything else: the recoded table is the table.

::

    age    = { bins = [0, 18, 30, 45, 65, 120] }     0–17, 18–29, …; the last bin holds its upper end
    age    = { quantiles = 5 }                       five intervals with about equally many people each
    income = { top = 150000 }                        larger ones become 150000; also bottom
    weight = { round = 5 }                           to the nearest multiple
    debt   = { powers = 10 }                         1, 10, 100, …: the largest that is not above
    zip    = { map = "districts.csv" }               two columns: from, to
    zip    = { hierarchy = "zip.csv", level = 2 }    a hierarchy as ARX writes it
    code   = { prefix = 3 }                          its first characters
    town   = { rare = 20 }                           towns of fewer people become "other"
    born   = { date = "year" }                       also quarter, month, week, weekday
    born   = [{ age_at = "2026-01-01" }, { bins = [0, 18, 65, 120] }]       several steps
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb

from dalenius.errors import PolicyError, did_you_mean
from dalenius.exact import parse_fraction, parse_integer
from dalenius.sql import identifier, one_row
from dalenius.tables.steps import (
    DATE_PARTS,
    DATE_TYPES,
    NUMERIC_TYPES,
    AgeAt,
    Bins,
    Common,
    CutPoints,
    DatePart,
    EndCode,
    MapFile,
    Powers,
    Prefix,
    Round,
    Step,
)

Look = Callable[[], tuple[duckdb.DuckDBPyConnection, str]]
"""A connection and what to select from on it, for recodings that depend on the table."""
FROM_TABLE = ("quantiles", "rare")
"""What is chosen from the table's own values."""
_KINDS = (
    *("bins", "quantiles", "top", "bottom", "round", "powers"),
    *("map", "hierarchy", "prefix", "rare", "date", "age_at"),
)
_MOST_STEPS = 4
"""Each repeats the SQL of the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recode:
    """The steps from a source's cell to a published one."""

    steps: tuple[Step, ...]

    def expression(self, cell: str) -> str:
        """SQL for the recoded cell, given SQL for the source's."""
        for step in self.steps:
            cell = step.expression(cell)
        return cell

    def outside(self, cell: str) -> str:
        """SQL: whether a step has no place for what it gets."""
        conditions = []
        for step in self.steps:
            conditions.append(f"coalesce({step.outside(cell)}, false)")
            cell = step.expression(cell)
        return f"({' OR '.join(conditions)})"

    def values(self) -> tuple[str, ...] | None:
        """All texts that can come out, where they are known."""
        return self.steps[-1].values()

    def refuse_type(self, column: str, kind: str) -> None:
        """Numbers are recoded by bins and rounding, days by their parts; texts are not."""
        for step in self.steps:
            if step.needs and not kind.startswith(step.needs):
                wanted = "numeric" if step.needs == NUMERIC_TYPES else "a date"
                raise PolicyError(
                    f"[recode] {column}: the column is not {wanted} ({kind.lower()})",
                    hint=_WAYS_OUT[step.needs],
                )
            kind = step.gives(kind)


_WAYS_OUT = {
    NUMERIC_TYPES: 'for texts: map = "file.csv", or prefix = 3; for days: date = "year"',
    DATE_TYPES: 'for texts: map = "file.csv", or prefix = 3; how days are written in a text file: '
    'source = { path = …, dates = "%d.%m.%Y" }',
}


def parse_recode(column: str, spec: Any, folder: Path, look: Look | None = None) -> Recode:
    """One entry of the policy's `[recode]` section: a step, or a list of them.

    Args:
        column: Its column.
        spec: What the policy says.
        folder: Where its files are.
        look: Opens the table for a recoding that depends on it; None: such a recoding is refused.
    """
    specs = spec if isinstance(spec, list) else [spec]
    if not 1 <= len(specs) <= _MOST_STEPS:
        raise PolicyError(
            f"[recode] {column} has {len(specs)} steps; 1 to {_MOST_STEPS} are possible",
            hint="e.g. { bins = [0, 18, 65, 120] }",
        )
    steps: list[Step] = []
    for one in specs:
        steps.append(_parse_step(column, one, folder, Recode(steps=tuple(steps)), look))
    return Recode(steps=tuple(steps))


def depends_on_table(spec: Any) -> bool:
    """Whether a recoding is chosen from the table's own values."""
    steps = spec if isinstance(spec, list) else [spec]
    return any(isinstance(step, Mapping) and set(step) & set(FROM_TABLE) for step in steps)


def _parse_step(column: str, spec: Any, folder: Path, before: Recode, look: Look | None) -> Step:
    where = f"[recode] {column}"
    keys = set(spec) - {"level"} if isinstance(spec, Mapping) else set()
    if len(keys) != 1 or ("level" in spec and "hierarchy" not in spec):
        raise PolicyError(
            f"{where} must have exactly one of {', '.join(_KINDS)}; several steps are a list",
            hint="e.g. age = { bins = [0, 18, 65, 120] }",
        )
    (kind,) = keys
    value = spec[kind]
    if kind in FROM_TABLE:
        if look is None:
            raise PolicyError(f"{where}: {kind} needs the table")
        at_least = parse_integer(value, f"{where}: {kind}", at_least=2)
        return _choose(column, kind, at_least, before, look)
    if kind not in _PARSERS:
        raise PolicyError(f"{where}: unknown recoding {kind!r}; {did_you_mean(kind, _KINDS)}")
    return _PARSERS[kind](where, value, spec, folder)


def _choose(column: str, kind: str, wanted: int, before: Recode, look: Look) -> Step:
    """Bins of about equally many people, or the values of at least so many, from the table itself."""
    connection, relation = look()
    cell = before.expression(identifier(column))
    if kind == "rare":
        found = connection.execute(
            f"SELECT ({cell})::VARCHAR FROM {relation} WHERE ({cell}) IS NOT NULL "
            f"GROUP BY 1 HAVING count(*) >= {wanted} ORDER BY 1"  # a name could be that of a column
        ).fetchall()
        return Common(kept=tuple(text for (text,) in found))
    (given,) = one_row(connection, f"SELECT any_value(typeof({cell})) FROM {relation}")
    if given is not None and not given.startswith(NUMERIC_TYPES):
        raise PolicyError(f"[recode] {column}: the column is not numeric ({given.lower()})")
    shares = ", ".join(f"{i}/{wanted}" for i in range(1, wanted))
    (cuts,) = one_row(connection, f"SELECT quantile_disc({cell}, [{shares}]) FROM {relation}")
    (least,) = one_row(connection, f"SELECT min({cell}) FROM {relation}")
    return CutPoints(cuts=tuple(sorted({Fraction(cut) for cut in cuts or () if cut > least})))


def _parse_round(where: str, value: Any, *_: Any) -> Round:
    step = parse_fraction(value, where)
    if step <= 0:
        raise PolicyError(f"{where}: round ({step}) must be positive")
    return Round(step=step)


def _parse_map(where: str, value: Any, _: Any, folder: Path) -> MapFile:
    if not isinstance(value, str):
        raise PolicyError(f"{where}: map must be the name of a file")
    return MapFile.read(folder / value)


def _parse_hierarchy(where: str, value: Any, spec: Mapping[str, Any], folder: Path) -> MapFile:
    if not isinstance(value, str):
        raise PolicyError(f"{where}: hierarchy must be the name of a file")
    if "level" not in spec:
        raise PolicyError(f"{where}: hierarchy needs a level", hint=f'{{ hierarchy = "{value}", level = 1 }}')
    return MapFile.read_hierarchy(folder / value, parse_integer(spec["level"], f"{where}: level", at_least=0))


def _parse_date(where: str, value: Any, *_: Any) -> DatePart:
    if not isinstance(value, str) or value not in DATE_PARTS:
        raise PolicyError(f"{where}: date {value!r} is unknown; {did_you_mean(str(value), DATE_PARTS)}")
    return DatePart(part=value)


def _parse_age(where: str, value: Any, *_: Any) -> AgeAt:
    try:
        day = value if isinstance(value, datetime.date) else datetime.date.fromisoformat(str(value))
    except ValueError as error:
        raise PolicyError(f"{where}: age_at {value!r} is not a day", hint='age_at = "2026-01-01"') from error
    return AgeAt(day=day.isoformat()[:10])


def _parse_bins(where: str, value: Any, *_: Any) -> Bins:
    if not isinstance(value, list) or len(value) < 2:
        raise PolicyError(f"{where}: bins must be a list of at least two edges")
    edges = tuple(parse_fraction(edge, where) for edge in value)
    if any(low >= high for low, high in pairwise(edges)):
        raise PolicyError(f"{where}: bins must rise from edge to edge")
    return Bins(edges=edges)


_PARSERS: dict[str, Callable[..., Step]] = {
    "bins": _parse_bins,
    "top": lambda where, value, *_: EndCode(limit=parse_fraction(value, where), beyond=">"),
    "bottom": lambda where, value, *_: EndCode(limit=parse_fraction(value, where), beyond="<"),
    "round": _parse_round,
    "powers": lambda where, value, *_: Powers(base=parse_integer(value, f"{where}: powers", at_least=2)),
    "map": _parse_map,
    "hierarchy": _parse_hierarchy,
    "prefix": lambda where, value, *_: Prefix(length=parse_integer(value, where, at_least=1)),
    "date": _parse_date,
    "age_at": _parse_age,
}
