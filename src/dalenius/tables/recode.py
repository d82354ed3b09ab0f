"""Coarser values before everything else: the recoded table is the table.

::

    age    = { bins = [0, 18, 30, 45, 65, 120] }     0–17, 18–29, …; the last bin holds its upper end
    income = { top = 150000 }                        larger ones become 150000
    weight = { round = 5 }                           to the nearest multiple
    zip    = { map = "districts.csv" }               two columns: from, to
    code   = { prefix = 3 }                          its first characters
    born   = { date = "year" }                       also quarter, month, week, weekday
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from dalenius.errors import PolicyError, did_you_mean
from dalenius.exact import parse_fraction, parse_integer
from dalenius.sql import identifier, literal

NUMERIC_TYPES = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)


DATE_TYPES = ("DATE", "TIMESTAMP")
_DATE_PARTS = {
    "year": "year({0})",
    "quarter": "year({0}) || '-Q' || quarter({0})",
    "month": "strftime({0}, '%Y-%m')",
    "week": "strftime({0}, '%G-W%V')",
    "weekday": "isodow({0})",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins:
    """Half-open intervals between the edges; the last one is closed."""

    edges: tuple[Fraction, ...]
    needs = NUMERIC_TYPES

    @classmethod
    def near(cls, unit: Fraction, numbers: Sequence[float]) -> Bins:
        """Bins whose edges are multiples of a unit near these numbers, the first and the last beyond them.

        >>> [str(edge) for edge in Bins.near(Fraction(5), [17, 33, 34, 51, 91]).edges]
        ['15', '35', '50', '95']
        """
        first, last = math.floor(numbers[0] / unit) * unit, (math.floor(numbers[-1] / unit) + 1) * unit
        inner = {round(number / unit) * unit for number in numbers[1:-1]}
        return cls(edges=(first, *sorted(edge for edge in inner if first < edge < last), last))

    def expression(self, column: str) -> str:
        """The label of the interval; NULL for what is outside all of them, which is refused before."""
        name, cases = identifier(column), []
        for (low, high), label in zip(pairwise(self.edges), self.values(), strict=True):
            below = "<=" if high == self.edges[-1] else "<"
            cases.append(
                f"WHEN {name} >= {_number(low)} AND {name} {below} {_number(high)} THEN {literal(label)}"
            )
        return f"CASE {' '.join(cases)} END"

    def values(self) -> tuple[str, ...]:
        """Every label that a bin can give."""
        last = len(self.edges) - 2
        return tuple(
            _interval_label(low, high, closed=i == last) for i, (low, high) in enumerate(pairwise(self.edges))
        )

    def outside(self, column: str) -> str:
        """The condition of a value that no bin holds."""
        name = identifier(column)
        return f"{name} < {_number(self.edges[0])} OR {name} > {_number(self.edges[-1])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Top:
    """Top-coding: values above the limit become the limit."""

    limit: Fraction
    needs = NUMERIC_TYPES

    def expression(self, column: str) -> str:
        """The smaller of value and limit."""
        name = identifier(column)
        return f"CASE WHEN {name} > {_number(self.limit)} THEN {_number(self.limit)} ELSE {name} END"

    def outside(self, column: str) -> str:  # noqa: ARG002  (every value has a place)
        """No value is left out."""
        return "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """To the nearest multiple of a step; halves go up."""

    step: Fraction
    needs = NUMERIC_TYPES

    def expression(self, column: str) -> str:
        """The nearest multiple, whole when the step is."""
        nearest = f"floor({identifier(column)} / {_number(self.step)} + 0.5) * {_number(self.step)}"
        return f"({nearest})::BIGINT" if self.step.denominator == 1 else nearest

    def outside(self, column: str) -> str:  # noqa: ARG002
        """No value is left out."""
        return "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFile:
    """Values replaced by those of a two-column file; every value must be in it."""

    pairs: tuple[tuple[str, str], ...]
    needs = ()

    @classmethod
    def read(cls, path: Path) -> MapFile:
        """Read `from,to` lines under a header."""
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                rows = list(csv.reader(file))[1:]
        except OSError as error:
            raise PolicyError(f"mapping file {path} cannot be read: {error.strerror}") from error
        for line, row in enumerate(rows, start=2):
            if len(row) != 2:
                raise PolicyError(f"{path}, line {line}: expected 2 fields (from, to), found {len(row)}")
        sources = [row[0] for row in rows]
        if len(set(sources)) < len(sources):
            twice = next(value for value in sources if sources.count(value) > 1)
            raise PolicyError(f"{path}: {twice!r} is mapped twice")
        return cls(pairs=tuple((row[0], row[1]) for row in rows))

    def expression(self, column: str) -> str:
        """The mapped text."""
        keys = ", ".join(literal(key) for key, _ in self.pairs)
        values = ", ".join(literal(value) for _, value in self.pairs)
        return f"map_extract_value(map([{keys}], [{values}]), {identifier(column)}::VARCHAR)"

    def values(self) -> tuple[str, ...]:
        """Every text that the file maps to, once."""
        return tuple(dict.fromkeys(value for _, value in self.pairs))

    def outside(self, column: str) -> str:
        """The condition of a value that the file does not map."""
        listed = ", ".join(literal(key) for key, _ in self.pairs)
        return f"{identifier(column)}::VARCHAR NOT IN ({listed})" if self.pairs else "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix:
    """The first characters of a text, or of a number as it is written; what is shorter stays as it is."""

    length: int
    needs = ()

    def expression(self, column: str) -> str:
        """The first characters."""
        return f"left({identifier(column)}::VARCHAR, {self.length})"

    def outside(self, column: str) -> str:  # noqa: ARG002
        """No value is left out."""
        return "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatePart:
    """The year of a day, or another part of it."""

    part: str
    needs = DATE_TYPES

    def expression(self, column: str) -> str:
        """Years and weekdays are numbers, the others texts."""
        return f"({_DATE_PARTS[self.part].format(identifier(column))})"

    def outside(self, column: str) -> str:  # noqa: ARG002
        """No value is left out."""
        return "false"


Recode = Bins | Top | Round | MapFile | Prefix | DatePart
_KINDS = ("bins", "top", "round", "map", "prefix", "date")


def parse_recode(column: str, spec: Any, folder: Path) -> Recode:
    """One entry of the policy's `[recode]` section."""
    where = f"[recode] {column}"
    if not isinstance(spec, Mapping) or len(spec) != 1:
        raise PolicyError(
            f"{where} must have exactly one of {', '.join(_KINDS)}",
            hint="e.g. age = { bins = [0, 18, 65, 120] }",
        )
    ((kind, value),) = spec.items()
    if kind == "bins":
        return Bins(edges=_edges(where, value))
    if kind == "top":
        return Top(limit=parse_fraction(value, where))
    if kind == "round":
        step = parse_fraction(value, where)
        if step <= 0:
            raise PolicyError(f"{where}: round ({step}) must be positive")
        return Round(step=step)
    if kind == "map":
        if not isinstance(value, str):
            raise PolicyError(f"{where}: map must be the name of a file")
        return MapFile.read(folder / value)
    if kind == "prefix":
        return Prefix(length=parse_integer(value, where, at_least=1))
    if kind == "date":
        if value not in _DATE_PARTS:
            raise PolicyError(f"{where}: date {value!r} is unknown; {did_you_mean(str(value), _DATE_PARTS)}")
        return DatePart(part=value)
    raise PolicyError(f"{where}: unknown recoding {kind!r}; {did_you_mean(kind, _KINDS)}")


def _edges(where: str, value: Any) -> tuple[Fraction, ...]:
    if not isinstance(value, list) or len(value) < 2:
        raise PolicyError(f"{where}: bins must be a list of at least two edges")
    edges = tuple(parse_fraction(edge, where) for edge in value)
    if any(low >= high for low, high in pairwise(edges)):
        raise PolicyError(f"{where}: bins must rise from edge to edge")
    return edges


def _number(value: Fraction) -> str:
    """An SQL literal, exact where a finite decimal is."""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _interval_label(low: Fraction, high: Fraction, *, closed: bool) -> str:
    if low.denominator == high.denominator == 1:
        top = int(high) if closed else int(high) - 1
        return f"{int(low)}" if top == low else f"{int(low)}-{top}"
    return f"[{float(low):g}, {float(high):g}{']' if closed else ')'}"
