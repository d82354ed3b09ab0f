"""A secret that is a number: what a promise per value means for it, and bins that make it about ranges."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.mechanisms.feasible import TableFacts
from dalenius.tables.histogram import Histogram
from dalenius.tables.steps import Bins


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberSecret:
    """A sensitive column of many different numbers."""

    column: str
    n_values: int
    n_rows: int
    bins: Bins

    @classmethod
    def of(cls, facts: TableFacts) -> NumberSecret | None:
        """None: the sensitive column is no number, or has few different ones."""
        histogram = facts.histogram
        if histogram is None or len(histogram.columns) > 1:
            return None
        if len(histogram) <= 30:  # so few numbers are taken as names of things: grades, codes
            return None
        cells = [(value, count) for (value,), count in _entries(histogram) if value is not None]
        if not cells or any(isinstance(value, bool | str) or not _is_number(value) for value, _ in cells):
            return None
        bins = Bins.near(*_ends(sorted((float(value), count) for value, count in cells)))
        return cls(column=histogram.columns[0], n_values=len(histogram), n_rows=histogram.n_rows, bins=bins)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What it means, and what would do."""
        return (
            f"{self.column} has {self.n_values:,} different numbers among {self.n_rows:,} rows: a promise "
            "about each value leaves open how closely a person's number can be inferred",
            f"if ranges are the secret, recode it into bins: {self.recode}   (edges are published; choose "
            "round ones). Sums and averages of the number itself are answered without bins",
        )

    @property
    def recode(self) -> str:
        """A line of a policy's `[recode]`."""
        edges = ", ".join(_write_edge(edge) for edge in self.bins.edges)
        return f"{self.column} = {{ bins = [{edges}] }}"

    def to_dict(self) -> dict[str, Any]:
        """As `inspect --json` prints it."""
        return {
            "column": self.column,
            "values": self.n_values,
            "bins": [float(edge) for edge in self.bins.edges],
        }


def _entries(histogram: Histogram) -> list[tuple[tuple[Any, ...], int]]:
    return list(zip(histogram.values, histogram.counts, strict=True))


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except (TypeError, ValueError, OverflowError):
        return False


_N_BINS = 10


def _ends(cells: list[tuple[float, int]]) -> tuple[Fraction, list[float]]:
    """A round unit, and numbers that cut the people into about as many each."""
    n_people, seen, cuts = sum(count for _, count in cells), 0, [cells[0][0]]
    for number, count in cells:
        seen += count
        if seen * _N_BINS >= len(cuts) * n_people and len(cuts) < _N_BINS:
            cuts.append(number)
    spread = max(cells[len(cells) * 9 // 10][0] - cells[len(cells) // 10][0], 1e-9)
    unit = Fraction(10) ** math.floor(math.log10(spread / _N_BINS))
    return (5 * unit if spread / _N_BINS > 5 * unit else unit), [*cuts, cells[-1][0]]


def _write_edge(edge: Fraction) -> str:
    return str(edge) if edge.denominator == 1 else f"{float(edge):g}"
