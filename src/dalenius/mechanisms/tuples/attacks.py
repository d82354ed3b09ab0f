"""What attacks on published tuples share: the original's tuples and those of views, in common codes.

The laws of published tuples say which tuples of the table a view shows, which others, and in which order.
Every tuple of the table is a coin, and so is every other tuple of the domain. The others are never listed:
the tuples of the domain with given cells in one or two columns are counted by multiplying the columns' sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import pyarrow as pa

from dalenius.arrays import Bools, Floats, Ints, rank_within
from dalenius.errors import InputError
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import (
    Domain,
    TupleCodes,
    are_among,
    are_new,
    count_descents,
    distinct_words,
)
from dalenius.release.folder import StoredRelease
from dalenius.threats.counts import Counts, judge_laws, sum_by
from dalenius.threats.facets import Facet, Facets, by_domain, place_in_source
from dalenius.threats.laws import Draws, alike_neighbours
from dalenius.threats.original import RECODED, CommonCodes, cast_cells
from dalenius.threats.result import AttackResult, Threat


def number_copies(table: pa.Table) -> pa.Table:
    """With a column that numbers equal rows from 1.

    >>> number_copies(pa.table({"a": [7, 8, 7]}))["copy"].to_pylist()
    [1, 1, 2]
    """
    (code,) = CommonCodes.of(table.column_names, (table,)).of_rows(table.column_names)
    return table.append_column(COPY, pa.array(rank_within(code) + 1))


_KEEPING = Threat(
    knows="the law that the manifest states, and a tuple's cells or its place in the source",
    wants="tuples that were kept by another law, so that seeing them says more",
    covered=True,
)
_NOISE = Threat(
    knows="the law that the manifest states, and a tuple's cells",
    wants="tuples that noise hardly ever makes, so that seeing them says more",
    covered=True,
)
_MOST_NEIGHBOURS = 8_000_000
"""With more tuples their neighbours in the domain are not looked for."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedTuples:
    """The different tuples of the original, and the rows of a view, as codes of the domain."""

    domain: Domain
    own_words: Ints
    """The different tuples of the original, packed, in ascending order."""
    n_records: Ints
    """How many records each of them stands for."""
    position: Ints
    """Where in the source it comes first."""
    row_words: Ints
    """The rows of the view, packed, in their order."""
    n_outside: int
    """Rows of the view that are not tuples of the domain."""

    @classmethod
    def of(cls, domain: Domain, original: pa.Table, view: StoredRelease) -> ComparedTuples:
        """Find the original's tuples and the view's rows in the domain."""
        own, position = find_original(domain, original)
        if not len(own):
            raise InputError("no row of the original is in the domain of the release", hint=RECODED)
        first, counts = _group(own)
        rows, n_outside = find_rows(domain, view)
        return cls(
            domain=domain,
            own_words=own[first],
            n_records=counts,
            position=position[first],
            row_words=rows,
            n_outside=n_outside,
        )

    @cached_property
    def own(self) -> TupleCodes:
        """The different tuples of the original, column by column."""
        return self.domain.unpack(self.own_words)

    def rows_of(self, chosen: Bools) -> TupleCodes:
        """Some rows of the view, column by column."""
        return self.domain.unpack(self.row_words[chosen])

    @cached_property
    def is_shown(self) -> Bools:
        """Whether each tuple of the table is in the view."""
        return are_among(self.own_words, self.row_words)

    @cached_property
    def is_own(self) -> Bools:
        """Whether each row of the view is in the table."""
        return are_among(self.row_words, self.own_words)

    @property
    def outside(self) -> tuple[str, ...]:
        """What no draw makes."""
        n = self.n_outside
        return (f"{n} rows of the view are no tuples of the domain",) if n else ()

    def own_facets(self) -> Facets:
        """Of the table's tuples, by their cells and their places in the source."""
        columns = [
            (column.name, column.values, codes)
            for column, codes in zip(self.domain.columns, self.own, strict=True)
        ]
        return Facets.of(columns, self.position)

    def domain_facets(self) -> Iterator[DomainFacet]:
        """Of any tuples, by one column, and by two."""
        n_columns = len(self.domain.columns)
        for j in range(n_columns):
            yield DomainFacet(domain=self.domain, columns=(j,))
        for pair in combinations(range(n_columns), 2):
            yield DomainFacet(domain=self.domain, columns=pair)

    def nearby(self, chosen: Bools, other: Ints) -> Iterator[tuple[str, int, int]]:
        """Column by column: how many tuples outside the table differ from one of it in this column only.

        Args:
            chosen: which rows of the view are looked at.
            other: packed tuples outside the table that are not.

        Yields:
            The column's name, how many such tuples the domain has, and how many of the chosen rows are such.
        """
        rows, others = self.rows_of(chosen), self.domain.unpack(other)
        if len(self.own_words) + len(rows[0]) > _MOST_NEIGHBOURS:
            return
        for j, column in enumerate(self.domain.columns):
            lines = self.domain.pack(_without(self.own, j))
            n_lines = len(distinct_words(lines))
            near, near_others = (
                int(are_among(self.domain.pack(_without(tuples, j)), lines).sum())
                for tuples in (rows, others)
            )
            yield column.name, n_lines * len(column.values) - len(lines) - near_others, near


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DomainFacet:
    """The cells of one or two columns, of all tuples of the domain."""

    domain: Domain
    columns: tuple[int, ...]

    def of(self, tuples: TupleCodes) -> Facet:
        """Of some tuples."""
        facets = [
            by_domain(column.name, column.values, tuples[j], is_alone=len(self.columns) == 1)
            for j in self.columns
            for column in (self.domain.columns[j],)
        ]
        return facets[0] if len(facets) == 1 else facets[0].cross(facets[1])

    def share(self, shares: Sequence[Floats]) -> Floats:
        """Of each cell, where each column has these shares of its values."""
        result = np.ones(1)
        for j in self.columns:
            column = self.domain.columns[j]
            every = np.arange(len(column.values))
            facet = by_domain(column.name, column.values, every, is_alone=len(self.columns) == 1)
            result = np.outer(result, sum_by(facet.codes, shares[j], facet.n_cells)).ravel()
        return result


_ORDER = Threat(knows="the order of the view's rows", wants="which of them are of the table", covered=True)
_PLACES = 16


def attack_order(tuples: ComparedTuples, n_files: int) -> AttackResult:
    """Rows in the domain's order say nothing; in any other order they must be as if at random."""
    n_rows = len(tuples.row_words)
    is_canonical = count_descents(tuples.row_words) < n_files

    def groups() -> Iterator[Counts]:
        one = np.zeros(n_rows, dtype=np.int64)
        draws = Draws(
            what="row",
            stratum=one,
            outcome=tuples.is_own.astype(np.int64),
            outcomes=("of noise", "of the table"),
            stratum_label=lambda _: "all",
        )
        yield from draws.by(place_in_source(np.arange(n_rows), n_rows, _PLACES))
        yield alike_neighbours("next row", one, draws.outcome)

    return judge_laws(
        "law of order",
        _ORDER,
        () if is_canonical else groups(),
        n_things=n_rows,
        n_failed=0,
        advice="rows must be in the order of the domain, or at random",
    )


def judge_tuples(
    tuples: ComparedTuples,
    n_files: int,
    *,
    keeping: Iterable[Counts],
    noise: Iterable[Counts],
    n_noise: int,
    advice: str,
) -> Iterator[AttackResult]:
    """The laws of what is kept, of noise, and of the rows' order."""
    n_own = len(tuples.position)
    yield judge_laws("law of keeping", _KEEPING, keeping, n_things=n_own, n_failed=0, advice=advice)
    yield judge_laws(
        "law of noise", _NOISE, noise, n_things=n_noise, n_failed=0, advice=advice, certain=tuples.outside
    )
    yield attack_order(tuples, n_files)


_ROWS_AT_ONCE = 2**18


def find_original(domain: Domain, original: pa.Table) -> tuple[Ints, Ints]:
    """The rows of the original that are in the domain, packed, and their places in the source."""
    names = [name for name in domain.names if name != COPY]
    kinds = {column.name: column.values.type for column in domain.columns}
    cast = pa.table({name: cast_cells(original, name, kinds[name]) for name in names})
    if COPY in domain.names:
        cast = number_copies(cast)
    words, inside = _find(domain, cast.to_batches(max_chunksize=_ROWS_AT_ONCE))
    return words, np.flatnonzero(inside)


def find_rows(domain: Domain, view: StoredRelease) -> tuple[Ints, int]:
    """The rows of a view that are in the domain, packed; and how many are not."""
    words, inside = _find(domain, view.batches("view", list(domain.names)))
    return words, int((~inside).sum())


def _find(domain: Domain, batches: Iterable[pa.RecordBatch]) -> tuple[Ints, Bools]:
    """A few rows at a time: packed tuples, and which rows are in the domain at all."""
    found = [_find_batch(domain, batch) for batch in batches]
    nothing = np.zeros((0, domain.n_words), dtype=np.int64)
    words = np.concatenate([nothing, *(words for words, _ in found)])
    return words, np.concatenate([np.zeros(0, dtype=np.bool_), *(inside for _, inside in found)])


def _find_batch(domain: Domain, batch: pa.RecordBatch) -> tuple[Ints, Bools]:
    inside, codes = np.ones(batch.num_rows, dtype=np.bool_), []
    for column in domain.columns:
        found = column.find(batch.column(column.name))
        if found.null_count:
            inside &= np.asarray(found.is_valid())
            found = found.fill_null(0)
        codes.append(found.to_numpy(zero_copy_only=False))
    return domain.pack(tuple(codes))[inside], inside


def _group(words: Ints) -> tuple[Ints, Ints]:
    """Of the different packed tuples, in ascending order: where each comes first, and how often it comes."""
    order = np.lexsort(words.T[::-1])  # stable: of equal ones the first comes first
    first = np.flatnonzero(are_new(words[order]))
    return order[first], np.diff(first, append=len(words))


def _without(tuples: TupleCodes, column: int) -> TupleCodes:
    """The tuples with the first value of a column in place of their own."""
    return tuple(np.zeros_like(codes) if j == column else codes for j, codes in enumerate(tuples))
