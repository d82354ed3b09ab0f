"""A sketch of pieces is the sketch of the whole, however a table is cut."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pytest

from dalenius.tables.sketch import Sketch, find_overlap
from dalenius.tables.sketching.kept import SketchedColumn, choose_combinations
from dalenius.tables.sketching.pieces import (
    Pieces,
    count_values,
    describe_columns,
    find_numbers,
    merge_sums,
    merge_values,
    sum_cells,
    without_numberings,
)
from tests.people import KEY, people, sketch
from tests.release.test_people import EDITS, Edit

N = 400


def in_pieces(table: pa.Table, ends: list[int]) -> Sketch:
    """As a cluster makes it."""
    cuts = zip([0, *ends], [*ends, len(table)], strict=True)
    parts = [
        table.slice(first, last - first).to_batches(max_chunksize=1 + len(table) // 3) for first, last in cuts
    ]

    def merged(pieces: Iterable[Pieces]) -> pa.Table:
        return pa.Table.from_batches([batch for piece in pieces for batch in piece])

    described = describe_columns(table.schema)
    counted = merged(count_values(part, described) for part in parts)
    columns, limits = merge_values(counted, described, len(table))
    unique = [i for i, column in enumerate(columns) if column.is_unique]
    asked = [columns[i] for i in unique]
    several = [column for column in columns if column.n_different > 1 and not column.is_unique]
    if unique:
        looked = merged(find_numbers(_only(part, asked), asked, limits[unique]) for part in parts)
        several += without_numberings(looked, asked, len(table))
    kept, chosen = choose_combinations([column for column in columns if column in several])
    sums = merged(sum_cells(part, kept, chosen, KEY) for part in parts)
    return merge_sums(sums, len(kept), chosen, len(table))


def _only(part: list[pa.RecordBatch], columns: list[SketchedColumn]) -> list[pa.RecordBatch]:
    return [batch.select([column.name for column in columns]) for batch in part]


def content(found: Sketch) -> list[tuple[object, ...]]:
    return sorted((c.width, c.whole, c.complete, *c.sums, *c.counts) for c in found.combinations)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_pieces_make_the_sketch_of_the_whole_of_every_edited_table(edit: Edit) -> None:
    """So that a cluster notices every edit that one machine does, and each what the other published."""
    table = people(N, 1)
    edited, _ = edit(table)
    ours = in_pieces(edited, [90])
    assert content(ours) == content(sketch(edited))
    assert find_overlap(ours, sketch(table)) is not None
    assert find_overlap(ours, sketch(people(N, 77))) is None


def test_columns_of_every_kind_and_numberings_are_known_in_pieces() -> None:
    rng = np.random.default_rng(3)
    n = 6_000  # more values than are kept to count them
    day = datetime.date(2000, 1, 1)
    table = pa.table(
        {
            "number": np.arange(n),
            "record": [f"R-{i:06d}" for i in rng.permutation(n)],
            "card": rng.choice(10**9, n, replace=False),
            "weight": np.round(rng.normal(70, 9, n), 1),
            "born": [day + datetime.timedelta(days=int(i)) for i in rng.integers(0, 9_000, n)],
            "ill": pa.array([None if x < 0.1 else bool(x < 0.5) for x in rng.random(n)]),
            "place": pa.array([None if i == 3 else f" Town {i} " for i in rng.integers(0, 50, n)]),
            "same": ["x"] * n,
        }
    )
    ours, whole = in_pieces(table, [1, 2_500, 2_500]), sketch(table)
    assert content(ours) == content(whole)
    widest = max(c.width for c in ours.combinations)
    assert widest == 5  # neither the numberings nor what is the same for all
