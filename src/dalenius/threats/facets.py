"""Ways to sort people, rows or tuples into cells: by a column, by two, by their place in the source.

A law says that something does not depend on who is concerned. It is tested cell by cell, for every facet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Codes, Ints
from dalenius.tables.codes import narrowest

_MOST_CELLS = 4_096
"""A column with more values is cut into ranges of them."""
_RANGES = 64
_FEW_CELLS = 24
_COARSE = 16
"""A column with more values than few is cut into so many ranges when it is looked at with another."""
_MOST_PAIRS = 120
"""Of columns; all pairs of 16 columns."""
_NO_PLACE = "place not known"
POSITIONS = (2, 16, 256)
"""Into how many stretches the source is cut."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facet:
    """Which cell each thing is in."""

    name: str
    codes: Codes
    n_cells: int
    label: Callable[[int], str]
    """What a cell is called."""

    def take(self, chosen: Any) -> Facet:
        """The same of some of the things."""
        return Facet(name=self.name, codes=self.codes[chosen], n_cells=self.n_cells, label=self.label)

    def cross(self, other: Facet) -> Facet:
        """The cells of both together.

        >>> one, two = (place_in_source(np.arange(4), 4, n) for n in (2, 4))
        >>> (both := one.cross(two)).codes.tolist(), both.label(7)
        ([0, 1, 7, 8], 'source 2 of 2, source 3 of 4')
        """
        width = other.n_cells
        return Facet(
            name=f"{self.name} × {other.name}",
            codes=self.codes.astype(np.int64) * width + other.codes,
            n_cells=self.n_cells * width,
            label=lambda cell: f"{self.label(cell // width)}, {other.label(cell % width)}",
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facets:
    """All facets of the same things."""

    singles: tuple[Facet, ...]
    coarse: tuple[Facet, ...]
    """Of few cells each, to be looked at in pairs."""

    @classmethod
    def of(cls, columns: Sequence[tuple[str, pa.Array, Codes]], position: Ints | None = None) -> Facets:
        """Of columns (name, the different cells, which of them each thing has) and places in the source.

        A place of −1 is not known; such things are a cell of their own.
        """
        singles = [by_column(*column, most=_most_cells(column[2]), ranges=_RANGES) for column in columns]
        coarse = [by_column(*column, most=_FEW_CELLS, ranges=_COARSE) for column in columns]
        n = 0 if position is None else int(position.max(initial=-1)) + 1
        if position is not None and n:
            singles += [place_in_source(position, n, cuts) for cuts in POSITIONS] + [every_other(position)]
            coarse.append(place_in_source(position, n, 4))
        several = [[facet for facet in facets if facet.n_cells > 1] for facets in (singles, coarse)]
        return cls(singles=tuple(several[0]), coarse=tuple(several[1]))

    def take(self, chosen: Any) -> Facets:
        """The same of some of the things."""
        return Facets(
            singles=tuple(facet.take(chosen) for facet in self.singles),
            coarse=tuple(facet.take(chosen) for facet in self.coarse),
        )

    def __iter__(self) -> Iterator[Facet]:
        """One by one, then in pairs, which are made when their turn comes."""
        yield from self.singles
        for one, two in islice(combinations(self.coarse, 2), _MOST_PAIRS):
            yield one.cross(two)


def _most_cells(codes: Codes) -> int:
    """A cell with a handful of things can show nothing."""
    return max(min(_MOST_CELLS, len(codes) // 8), _RANGES)


def by_column(name: str, cells: pa.Array, codes: Codes, *, most: int, ranges: int) -> Facet:
    """By a column's cells, or by ranges of them that hold about as many things each.

    >>> by_column("age", pa.array([30, 10, 20]), np.array([0, 1, 2, 2]), most=2, ranges=2).codes.tolist()
    [1, 0, 0, 0]
    """
    if len(cells) <= most:
        return Facet(
            name=name,
            codes=codes.astype(narrowest(len(cells)), copy=False),
            n_cells=len(cells),
            label=lambda cell: f"{name} = {_text(cells, cell)}",
        )
    order = _ascending(cells)
    counts = np.bincount(codes, minlength=len(cells))[order]
    before = np.cumsum(counts) - counts
    range_of = np.empty(len(cells), dtype=narrowest(ranges))
    range_of[order] = before * ranges // max(int(counts.sum()), 1)

    def label(cell: int) -> str:
        own = order[range_of[order] == cell]
        return f"{name} from {_text(cells, own[0])} to {_text(cells, own[-1])}" if len(own) else name

    return Facet(name=name, codes=range_of[codes], n_cells=ranges, label=label)


def by_domain(name: str, values: pa.Array, codes: Codes, *, is_alone: bool) -> Facet:
    """By the values of a domain, in its order; by equally long ranges of them if there are many."""
    most, ranges = (_MOST_CELLS, _RANGES) if is_alone else (_FEW_CELLS, _COARSE)
    n = len(values)
    if n <= most:
        return by_column(name, values, codes, most=most, ranges=ranges)

    def label(cell: int) -> str:
        first, last = -(-cell * n // ranges), -(-(cell + 1) * n // ranges) - 1
        return f"{name} from {_text(values, first)} to {_text(values, last)}"

    return Facet(name=name, codes=codes.astype(np.int64) * ranges // n, n_cells=ranges, label=label)


def place_in_source(position: Ints, n_source: int, cuts: int) -> Facet:
    """By the stretch of the source that a thing was in."""
    return Facet(
        name=f"source in {cuts}",
        codes=np.where(position < 0, cuts, position * cuts // max(n_source, 1)).astype(narrowest(cuts + 1)),
        n_cells=cuts + 1,
        label=lambda cell: f"source {cell + 1} of {cuts}" if cell < cuts else _NO_PLACE,
    )


def every_other(position: Ints) -> Facet:
    """By whether a thing's number in the source is even."""
    return Facet(
        name="every other",
        codes=np.where(position < 0, 2, position % 2).astype(np.uint8),
        n_cells=3,
        label=lambda cell: ("even places of the source", "odd places of the source", _NO_PLACE)[cell],
    )


def _ascending(cells: pa.Array) -> Ints:
    try:
        return np.asarray(pc.array_sort_indices(cells)).astype(np.int64)
    except pa.ArrowException:  # a type without an order: any will do
        return np.arange(len(cells))


def _text(cells: pa.Array, cell: int) -> str:
    value = cells[int(cell)].as_py()
    return "NULL" if value is None else str(value)
