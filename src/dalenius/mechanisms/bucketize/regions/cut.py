"""When a region is cut in two, and where.

*Where* is decided by quasi-identifiers alone: the cut after which two people of one region most often agree
in the column that is cut, compared with two people of the whole table.

*Whether* may not depend on what the halves would hold. If a region stayed whole because a half broke a
threshold, that would tell everybody that it does (a minimality attack: docs/regions.md). A cut is made only
if it is **sure**: however the region's sensitive values are dealt to the two halves, both can be published.
That is a function of the region's own counts, which the release shows anyway, and so a region that is not
cut tells nothing that its buckets do not.

Regions: people with similar quasi-identifiers, whose buckets are made apart from the others'.

Grown from counts, one scan of the table a level: a level's regions are counted by cell and by sensitive
value, and each is cut once or left as it is (`region_rule`).

Regions are cut from cells: a few groups of values of each quasi-identifier, in a fixed order.

Numbers are cut into ranges that hold about as many people each; NULL comes before every number. The values of
other columns are cells of their own, the commonest first. Cells depend on quasi-identifiers alone, all of
which a release publishes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Floats, Ints
from dalenius.errors import InternalError
from dalenius.mechanisms.base import Scan
from dalenius.mechanisms.bucketize.plan.problem import capacity_table
from dalenius.tables.codes import Encoder, find_codes
from dalenius.tables.histogram import write_cells

_RANGES = 16
"""Of a column of numbers, as long as a region is cut."""


def _plain(number: float) -> int | float:
    return int(number) if float(number).is_integer() else float(number)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NumberCells:
    """Ranges of numbers: the first is NULL, the next end at the given values, the last has no end."""

    column: str
    ends: Floats
    has_null: bool

    @property
    def n_cells(self) -> int:
        """NULL, and one more range than ends."""
        return len(self.ends) + 2

    def encode(self, cells: pa.Array) -> Ints:
        """The cell of each row."""
        numbers = pc.cast(cells, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        found = np.searchsorted(self.ends, numbers, side="left") + 1
        found[cells.is_null().to_numpy(zero_copy_only=False)] = 0
        return np.asarray(found, dtype=np.int64)

    def ordered(self, counts: Ints) -> NumberCells:
        """Fewer ranges, with about as many people each."""
        if len(self.ends) < _RANGES:
            return self
        ranges = counts[1:]
        share = np.cumsum(ranges)[:-1] * _RANGES / max(int(ranges.sum()), 1)
        last = np.flatnonzero(np.diff(np.floor(share), append=_RANGES) > 0)
        return NumberCells(column=self.column, ends=self.ends[last], has_null=self.has_null)

    def condition(self, first: int, last: int) -> dict[str, Any]:
        """What the rows of cells `first` to `last` have in common; empty: nothing."""
        if first == 0 and last == self.n_cells - 1:
            return {}
        if last == 0:
            return {"column": self.column, "in": [None]}
        above = {"above": _plain(self.ends[first - 2])} if first > 1 else {}
        at_most = {"at_most": _plain(self.ends[last - 1])} if last < self.n_cells - 1 else {}
        return {"column": self.column, **above, **at_most, "null": self.has_null and first == 0}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TextCells:
    """One cell a value, in a given order."""

    column: str
    values: pa.Array
    """The different values, NULL among them."""
    cell_of: Ints
    """The cell of each value."""

    @property
    def n_cells(self) -> int:
        """As many as values."""
        return len(self.values)

    def encode(self, cells: pa.Array) -> Ints:
        """The cell of each row."""
        found = find_codes(cells, self.values)
        if found.null_count:
            raise InternalError("the table changed between two passes over it: a quasi-identifier is new")
        return np.asarray(self.cell_of[found.to_numpy(zero_copy_only=False)])

    def ordered(self, counts: Ints) -> TextCells:
        """The commonest value first, equals in the order of values."""
        cell_of = np.empty(len(counts), dtype=np.int64)
        cell_of[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        return TextCells(column=self.column, values=self.values, cell_of=cell_of)

    def condition(self, first: int, last: int) -> dict[str, Any]:
        """What the rows of cells `first` to `last` have in common; empty: nothing."""
        if first == 0 and last == self.n_cells - 1:
            return {}
        order = np.argsort(self.cell_of)[first : last + 1]
        cells = self.values.take(pa.array(np.sort(order))).to_pylist()
        return {"column": self.column, "in": list(write_cells(cells))}


Cells = NumberCells | TextCells
MOST_VALUES = 256
"""A column of texts with more different values is not cut; numbers are first grouped into as many ranges."""


def first_cells(column: str, values: pa.Array) -> Cells | None:
    """Cells before anything is counted, from the different values in ascending order, NULL last.

    None: the column has too many texts to be cut.
    """
    kind = values.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = pc.cast(values.drop_null(), pa.float64(), safe=False).to_numpy()
        different = np.unique(numbers[~np.isnan(numbers)])
        every = max(1, -(-len(different) // MOST_VALUES))
        ends = different[every - 1 : -1 : every]
        return NumberCells(column=column, ends=ends, has_null=values.null_count > 0)
    if len(values) > MOST_VALUES:
        return None
    return TextCells(column=column, values=values, cell_of=np.arange(len(values)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """The cells of all columns, numbered one column after the other."""

    columns: tuple[Cells, ...]

    @property
    def offsets(self) -> Ints:
        """The number of the first cell of each column, and how many cells there are in all."""
        return np.cumsum([0, *(cells.n_cells for cells in self.columns)])

    def encode(self, batch: pa.RecordBatch) -> Ints:
        """Columns × rows: the cell of each row in each column."""
        found = [cells.encode(batch.column(cells.column)) for cells in self.columns]
        return np.stack(found) if found else np.zeros((0, batch.num_rows), dtype=np.int64)

    def ordered(self, counts: Ints) -> Grid:
        """Cells made from how many people the present ones hold."""
        own = (counts[start:end] for start, end in pairwise(self.offsets))
        return Grid(columns=tuple(c.ordered(n) for c, n in zip(self.columns, own, strict=True)))

    def conditions(self, first: Sequence[int], last: Sequence[int]) -> list[dict[str, Any]]:
        """What the rows between two corners of the grid have in common."""
        stated = [c.condition(*ends) for c, *ends in zip(self.columns, first, last, strict=True)]
        return [condition for condition in stated if condition]


_LARGEST_SIZE = 64
"""Every search considers all sizes up to this one, and so finds the setting that makes a cut sure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Rows of the column's cells up to `last` on one side, the others on the other."""

    column: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutRule:
    """What decides about cuts: the thresholds, and public facts about the table."""

    thresholds: tuple[Fraction, ...]
    max_bucket: int
    least_rows: int
    """No region is smaller."""
    offsets: Ints
    """Where the cells of each column begin."""
    spread: Floats
    """Of each column: how often two people of the table differ in it."""

    def choose(self, cells: Ints, values: Ints) -> Cut | None:
        """The best sure cut of a region that holds so many people of each cell and of each value."""
        rows = int(values.sum())
        gains, column, last, left = self.candidates(cells, rows)
        for i in np.argsort(-gains, kind="stable"):
            if all(self.is_sure(values, side) for side in (int(left[i]), rows - int(left[i]))):
                return Cut(column=int(column[i]), last=int(last[i]))
        return None

    def is_sure(self, values: Ints, rows: int) -> bool:
        """Whether any `rows` people of a region with these values can be published.

        b buckets of s or s+1 people, s = ⌊rows/b⌋, dealt round-robin, hold at most ⌈o_i/b⌉ of value i,
        and o_i is at most what the region has: ⌊f′_i·s⌋·b ≥ o_i for every i is enough.
        """
        most = np.minimum(values, rows)
        sizes = np.arange(min(self.max_bucket, _LARGEST_SIZE, rows), 0, -1)
        n_buckets = -(-rows // sizes)
        room = capacity_table(self.thresholds, rows // n_buckets) * n_buckets
        return bool((most[:, None] <= room).all(axis=0).any())

    def candidates(self, cells: Ints, rows: int) -> tuple[Floats, Ints, Ints, Ints]:
        """Gain, column, last cell and rows of the first side of every cut into large enough halves."""
        found = [self._cuts(column, cells, rows) for column in range(len(self.spread))]
        if not found:
            empty = np.zeros(0, dtype=np.int64)
            return np.zeros(0), empty, empty, empty
        gains, columns, lasts, lefts = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return gains, columns, lasts, lefts

    def _cuts(self, column: int, cells: Ints, rows: int) -> tuple[Floats, Ints, Ints, Ints]:
        own = cells[self.offsets[column] : self.offsets[column + 1]].astype(np.float64)
        left, agreeing = np.cumsum(own)[:-1], np.cumsum(own**2)
        last = np.flatnonzero((own[:-1] > 0) & (np.minimum(left, rows - left) >= self.least_rows))
        n, pairs = left[last], agreeing[:-1][last]
        after = pairs / np.maximum(n, 1) + (agreeing[-1] - pairs) / np.maximum(rows - n, 1)
        gain = (after - agreeing[-1] / rows) / rows / max(float(self.spread[column]), 1e-12)
        return gain, np.full(len(last), column), last, n.astype(np.int64)


def spreads(cells: Ints, offsets: Ints) -> Floats:
    """How often two people differ in each column, of people who are so many in each cell."""
    parts = (cells[start:end].astype(np.float64) for start, end in pairwise(offsets))
    return np.array([1 - float((own**2).sum()) / max(float(own.sum()), 1.0) ** 2 for own in parts])


_MOST_REGIONS = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionTree:
    """Cuts, and the region that each row falls into."""

    grid: Grid
    cuts: tuple[tuple[int, Cut, int, int], ...] = ()
    """Node, where it is cut, and its two halves; a node comes after the cut that made it."""
    leaves: tuple[int, ...] = (0,)
    """The nodes that are regions, in the order of their numbers 0, 1, …"""

    @property
    def n_regions(self) -> int:
        """How many regions there are."""
        return len(self.leaves)

    def nodes(self, cells: Ints, n_rows: int) -> Ints:
        """The node of each row, from its cells (columns × rows)."""
        # column, last cell, halves of each node; a region is its own half
        steps = np.tile(np.arange(2 * self.n_regions - 1), (4, 1))
        steps[:2] = 0
        for parent, cut, left, right in self.cuts:
            steps[:, parent] = cut.column, cut.last, left, right
        node, rows = np.zeros(n_rows, dtype=np.int64), np.arange(n_rows)
        while len(self.cuts):
            column, last, left, right = steps[:, node]
            below = np.where(cells[column, rows] <= last, left, right)
            if np.array_equal(below, node):
                break
            node = below
        return node

    def regions(self, batch: pa.RecordBatch) -> Ints:
        """The region of each row."""
        number = np.zeros(2 * self.n_regions - 1, dtype=np.int64)
        number[list(self.leaves)] = np.arange(self.n_regions)
        return np.asarray(number[self.nodes(self.grid.encode(batch), batch.num_rows)])

    def conditions(self) -> list[list[dict[str, Any]]]:
        """What the rows of each region have in common."""
        n_nodes, columns = 2 * self.n_regions - 1, self.grid.columns
        first = np.zeros((n_nodes, len(columns)), dtype=np.int64)
        last = np.tile([cells.n_cells - 1 for cells in columns], (n_nodes, 1)).reshape(first.shape)
        for parent, cut, left, right in self.cuts:
            first[[left, right]], last[[left, right]] = first[parent], last[parent]
            last[left, cut.column], first[right, cut.column] = cut.last, cut.last + 1
        return [self.grid.conditions(first[leaf].tolist(), last[leaf].tolist()) for leaf in self.leaves]


def least_rows(n_rows: int, max_bucket: int) -> int:
    """How many people a region has at least, unless the policy says: a few buckets, and not too many regions.

    >>> least_rows(30_162, 50), least_rows(1_000_000, 50)
    (200, 5000)
    """
    return max(4 * max_bucket, -(-n_rows // _MOST_REGIONS))


def grow(
    scan: Scan,
    encoder: Encoder,
    thresholds: tuple[Fraction, ...],
    quasi: tuple[str, ...],
    *,
    max_bucket: int,
    least: int,
) -> tuple[RegionTree, Ints]:
    """The regions of a table, and how often each sensitive value occurs in each (regions × values)."""
    found = [first_cells(name, scan.active_values(name)) for name in quasi]
    grid = Grid(columns=tuple(cells for cells in found if cells is not None))
    cells, _ = _count(scan, RegionTree(grid=grid), encoder, (0,))
    tree = RegionTree(grid=grid.ordered(cells[0]))
    cells, values = _count(scan, tree, encoder, (0,))
    rule = CutRule(
        thresholds=thresholds,
        max_bucket=max_bucket,
        least_rows=least,
        offsets=tree.grid.offsets,
        spread=spreads(cells[0], tree.grid.offsets),
    )
    settled: dict[int, Ints] = {}
    fresh: tuple[int, ...] = (0,)
    while fresh:
        cuts = [rule.choose(*counts) for counts in zip(cells, values, strict=True)]
        settled |= {node: own for node, own, cut in zip(fresh, values, cuts, strict=True) if cut is None}
        tree, fresh = _cut(tree, [(n, c) for n, c in zip(fresh, cuts, strict=True) if c is not None])
        cells, values = _count(scan, tree, encoder, fresh)
    return tree, np.stack([settled[leaf] for leaf in tree.leaves])


def _cut(tree: RegionTree, wanted: list[tuple[int, Cut]]) -> tuple[RegionTree, tuple[int, ...]]:
    """The tree with these nodes cut, and the nodes that are new."""
    n_nodes = 2 * tree.n_regions - 1
    made = [(node, cut, n_nodes + 2 * i, n_nodes + 2 * i + 1) for i, (node, cut) in enumerate(wanted)]
    halves = {node: (left, right) for node, _, left, right in made}
    leaves = tuple(new for leaf in tree.leaves for new in halves.get(leaf, (leaf,)))
    grown = RegionTree(grid=tree.grid, cuts=(*tree.cuts, *made), leaves=leaves)
    return grown, tuple(node for pair in halves.values() for node in pair)


def _count(scan: Scan, tree: RegionTree, encoder: Encoder, nodes: tuple[int, ...]) -> tuple[Ints, Ints]:
    """People by node and cell, and by node and sensitive value, in one scan."""
    n_cells, n_values = int(tree.grid.offsets[-1]), encoder.n_values
    if not nodes:
        return np.zeros((0, n_cells), dtype=np.int64), np.zeros((0, n_values), dtype=np.int64)
    tallied = scan.tally(_counting(tree, encoder, nodes))
    counts = np.zeros(len(nodes) * (n_cells + n_values), dtype=np.int64)
    counts[tallied.column("key").to_numpy()] = tallied.column("n").to_numpy()
    both = counts.reshape(len(nodes), n_cells + n_values)
    return both[:, :n_cells], both[:, n_cells:]


def _counting(
    tree: RegionTree, encoder: Encoder, nodes: tuple[int, ...]
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Counts a batch: the key of a count is (place of the node, cell or value), as one number."""
    place = np.full(2 * tree.n_regions - 1, -1, dtype=np.int64)
    place[list(nodes)] = np.arange(len(nodes))
    offsets = tree.grid.offsets
    width = int(offsets[-1]) + encoder.n_values

    def count(batch: pa.RecordBatch) -> pa.RecordBatch:
        cells = tree.grid.encode(batch)
        own = place[tree.nodes(cells, batch.num_rows)]
        kept = own >= 0
        columns = np.concatenate([cells + offsets[:-1, None], (encoder.encode(batch) + offsets[-1])[None, :]])
        keys = (own * width + columns)[:, kept]
        counts = np.bincount(keys.ravel(), minlength=len(nodes) * width)
        seen = np.flatnonzero(counts)
        return pa.RecordBatch.from_pydict({"key": seen, "n": counts[seen]})

    return count


__all__ = ["RegionTree", "grow", "least_rows"]
