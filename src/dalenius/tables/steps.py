"""What one step of recoding does to a cell, as SQL: coarser numbers, days, texts and codes.

A step gets SQL for a cell and gives SQL for the coarser one; `outside` is the condition of a cell for which
it has no place, and `values` lists all that can come out, where that is known.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from dalenius.errors import PolicyError
from dalenius.sql import literal

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
DATE_PARTS = {
    "year": "year({0})",
    "quarter": "year({0}) || '-Q' || quarter({0})",
    "month": "strftime({0}, '%Y-%m')",
    "week": "strftime({0}, '%G-W%V')",
    "weekday": "isodow({0})",
}
OTHER = "other"
_MOST_POWERS = 63


class Step:
    """What every step offers; most cover every cell, and give texts."""

    __slots__ = ()
    needs: tuple[str, ...] = ()
    """With what the names of types begin that it can recode; empty: all."""

    def expression(self, cell: str) -> str:
        """SQL for the coarser cell."""
        raise NotImplementedError

    def outside(self, cell: str) -> str:  # noqa: ARG002
        """SQL: whether the cell has no place; NULL always has one."""
        return "false"

    def values(self) -> tuple[str, ...] | None:
        """All texts that can come out, where they are known."""
        return None

    def gives(self, kind: str) -> str:  # noqa: ARG002
        """The type of what comes out, given that of what comes in."""
        return "VARCHAR"


class NumberStep(Step):
    """A step that recodes numbers only."""

    __slots__ = ()
    needs = NUMERIC_TYPES


class DateStep(Step):
    """A step that recodes days and timestamps only."""

    __slots__ = ()
    needs = DATE_TYPES


@dataclass(frozen=True, slots=True, kw_only=True)
class Bins(NumberStep):
    """Half-open intervals between the edges; the last one is closed."""

    edges: tuple[Fraction, ...]

    @classmethod
    def near(cls, unit: Fraction, numbers: Sequence[float]) -> Bins:
        """Bins whose edges are multiples of a unit near these numbers, the first and the last beyond them.

        >>> [str(edge) for edge in Bins.near(Fraction(5), [17, 33, 34, 51, 91]).edges]
        ['15', '35', '50', '95']
        """
        first, last = math.floor(numbers[0] / unit) * unit, (math.floor(numbers[-1] / unit) + 1) * unit
        inner = {round(number / unit) * unit for number in numbers[1:-1]}
        return cls(edges=(first, *sorted(edge for edge in inner if first < edge < last), last))

    def expression(self, cell: str) -> str:
        """The label of the interval; NULL for what is outside all of them, which is refused before."""
        cases = []
        for (low, high), label in zip(pairwise(self.edges), self.values(), strict=True):
            below = "<=" if high == self.edges[-1] else "<"
            cases.append(
                f"WHEN {cell} >= {number(low)} AND {cell} {below} {number(high)} THEN {literal(label)}"
            )
        return f"CASE {' '.join(cases)} END"

    def values(self) -> tuple[str, ...]:
        """Every label that a bin can give."""
        last = len(self.edges) - 2
        return tuple(
            _interval_label(low, high, closed=i == last) for i, (low, high) in enumerate(pairwise(self.edges))
        )

    def outside(self, cell: str) -> str:
        """The condition of a value that no bin holds."""
        return f"{cell} < {number(self.edges[0])} OR {cell} > {number(self.edges[-1])}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPoints(NumberStep):
    """Intervals between cuts, open at both ends, so that no label tells the least or the largest value."""

    cuts: tuple[Fraction, ...]

    def expression(self, cell: str) -> str:
        """The label of the interval."""
        cases = [
            f"WHEN {cell} < {number(cut)} THEN {literal(label)}"
            for cut, label in zip(self.cuts, self.values(), strict=False)
        ]
        cases.append(f"WHEN {cell} IS NOT NULL THEN {literal(self.values()[-1])}")
        return f"CASE {' '.join(cases)} END"

    def values(self) -> tuple[str, ...]:
        """Every label, ascending."""
        if not self.cuts:
            return ("any",)
        inner = (_interval_label(low, high, closed=False) for low, high in pairwise(self.cuts))
        return (f"below {_show_number(self.cuts[0])}", *inner, f"{_show_number(self.cuts[-1])} or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCode(NumberStep):
    """Top- or bottom-coding: values beyond the limit become the limit."""

    limit: Fraction
    beyond: str
    """`>` for top-coding, `<` for bottom-coding."""

    def expression(self, cell: str) -> str:
        """The value or the limit."""
        return (
            f"CASE WHEN {cell} {self.beyond} {number(self.limit)} THEN {number(self.limit)} ELSE {cell} END"
        )

    def gives(self, kind: str) -> str:
        """A number."""
        return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Round(NumberStep):
    """To the nearest multiple of a step; halves go up."""

    step: Fraction

    def expression(self, cell: str) -> str:
        """The nearest multiple, whole when the step is."""
        nearest = f"floor({cell} / {number(self.step)} + 0.5) * {number(self.step)}"
        return f"({nearest})::BIGINT" if self.step.denominator == 1 else f"({nearest})"

    def gives(self, kind: str) -> str:  # noqa: ARG002
        """A number."""
        return "BIGINT" if self.step.denominator == 1 else "DOUBLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Powers(NumberStep):
    """To the largest power of a base that is not above, 0 for what is below 1; negative numbers alike."""

    base: int

    def expression(self, cell: str) -> str:
        """Compared with the powers themselves: a logarithm would be off at some of them."""
        powers = [power for n in range(_MOST_POWERS) if (power := self.base**n) < 2**_MOST_POWERS]
        cases = " ".join(
            f"WHEN {cell} >= {power} OR {cell} <= -{power} THEN {power}" for power in reversed(powers)
        )
        return f"(CASE WHEN {cell} IS NULL THEN NULL {cases} ELSE 0 END * if({cell} < 0, -1, 1))::BIGINT"

    def gives(self, kind: str) -> str:  # noqa: ARG002
        """A whole number."""
        return "BIGINT"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapFile(Step):
    """Values replaced by those of a file; every value must be in it."""

    pairs: tuple[tuple[str, str], ...]

    @classmethod
    def read(cls, path: Path) -> MapFile:
        """Read `from,to` lines under a header."""
        rows = _read_rows(path, "mapping file", ",")[1:]
        for line, row in enumerate(rows, start=2):
            if len(row) != 2:
                raise PolicyError(f"{path}, line {line}: expected 2 fields (from, to), found {len(row)}")
        return cls(pairs=_once(path, [(row[0], row[1]) for row in rows]))

    @classmethod
    def read_hierarchy(cls, path: Path, level: int) -> MapFile:
        """Read lines `value;level 1;level 2;…` without a header, as ARX writes them; commas do as well."""
        rows = _read_rows(path, "hierarchy", ";")
        if rows and len(rows[0]) == 1:
            rows = _read_rows(path, "hierarchy", ",")
        for line, row in enumerate(rows, start=1):
            if len(row) <= level:
                raise PolicyError(
                    f"{path}, line {line}: the hierarchy has levels 0 to {len(row) - 1}, not {level}",
                    hint="level 0 is the value itself",
                )
        return cls(pairs=_once(path, [(row[0], row[level]) for row in rows]))

    def expression(self, cell: str) -> str:
        """The mapped text."""
        keys = ", ".join(literal(key) for key, _ in self.pairs)
        values = ", ".join(literal(value) for _, value in self.pairs)
        return f"map_extract_value(map([{keys}], [{values}]), {cell}::VARCHAR)"

    def values(self) -> tuple[str, ...]:
        """Every text that the file maps to, once."""
        return tuple(dict.fromkeys(value for _, value in self.pairs))

    def outside(self, cell: str) -> str:
        """The condition of a value that the file does not map."""
        listed = ", ".join(literal(key) for key, _ in self.pairs)
        return f"{cell}::VARCHAR NOT IN ({listed})" if self.pairs else "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Common(Step):
    """Values that are not rare, as texts; all others become `other`."""

    kept: tuple[str, ...]

    def expression(self, cell: str) -> str:
        """The text, or `other`; NULL stays NULL."""
        listed = ", ".join(map(literal, self.kept))
        is_kept = f"{cell}::VARCHAR IN ({listed})" if self.kept else "false"
        return f"CASE WHEN {cell} IS NULL THEN NULL WHEN {is_kept} THEN {cell}::VARCHAR ELSE '{OTHER}' END"

    def values(self) -> tuple[str, ...]:
        """Those that are kept, and `other`."""
        return tuple(dict.fromkeys((*self.kept, OTHER)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefix(Step):
    """The first characters of a text, or of a number as it is written; what is shorter stays as it is."""

    length: int

    def expression(self, cell: str) -> str:
        """The first characters."""
        return f"left({cell}::VARCHAR, {self.length})"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatePart(DateStep):
    """The year of a day, or another part of it."""

    part: str

    def expression(self, cell: str) -> str:
        """Years and weekdays are numbers, the others texts."""
        return f"({DATE_PARTS[self.part].format(cell)})"

    def gives(self, kind: str) -> str:  # noqa: ARG002
        """Years can be made coarser as numbers."""
        return "BIGINT" if self.part in ("year", "weekday") else "VARCHAR"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgeAt(DateStep):
    """Whole years from a day, of birth, to another."""

    day: str
    """As ISO writes it."""

    def expression(self, cell: str) -> str:
        """Birthdays that have been."""
        return f"date_sub('year', {cell}::DATE, DATE {literal(self.day)})"

    def outside(self, cell: str) -> str:
        """Who is born later has no age."""
        return f"{cell}::DATE > DATE {literal(self.day)}"

    def gives(self, kind: str) -> str:  # noqa: ARG002
        """A whole number."""
        return "BIGINT"


def number(value: Fraction) -> str:
    """An SQL literal, exact where a finite decimal is."""
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _show_number(value: Fraction) -> str:
    return f"{value}" if value.denominator == 1 else f"{float(value):g}"


def _interval_label(low: Fraction, high: Fraction, *, closed: bool) -> str:
    if low.denominator == high.denominator == 1:
        top = int(high) if closed else int(high) - 1
        return f"{int(low)}" if top == low else f"{int(low)}-{top}"
    return f"[{float(low):g}, {float(high):g}{']' if closed else ')'}"


def _read_rows(path: Path, what: str, delimiter: str) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [row for row in csv.reader(file, delimiter=delimiter) if row]
    except OSError as error:
        raise PolicyError(f"{what} {path} cannot be read: {error.strerror}") from error
    except (ValueError, csv.Error) as error:  # bytes that are no text, or a zero in the file's name
        raise PolicyError(f"{what} {path} cannot be read: it is not CSV in UTF-8") from error


def _once(path: Path, pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    seen: set[str] = set()
    for value, _ in pairs:
        if value in seen:
            raise PolicyError(f"{path}: {value!r} is mapped twice")
        seen.add(value)
    return tuple(pairs)
