"""Carries shards out in this process, partition by partition, with the rows of a group in a bad order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from dalenius.engines.base import silent
from dalenius.engines.local import LocalEngine
from dalenius.mechanisms.registry import mechanism_of
from dalenius.mechanisms.sharding import Census, Piece, Shards
from dalenius.policy import Policy
from dalenius.randomness import Randomness


def run_shards(shards: Shards, partitions: Sequence[pa.Table], shuffle: int = 0) -> list[Piece]:
    """What the groups write."""
    received: list[list[pa.Table]] = [[] for _ in range(shards.n_groups)]
    scattered = []
    if shards.scatter is not None:
        for number, rows in enumerate(partitions):
            scattered.append(shards.scatter(number, iter(rows.to_batches(max_chunksize=7))))
    if shards.insert is not None:
        scattered.extend(shards.insert(number) for number in range(shards.n_inserters))
    for sent in scattered:
        for groups, batch in sent:
            assert batch.schema == shards.wire
            for group in np.unique(groups):
                received[group].append(pa.Table.from_batches([batch.filter(pa.array(groups == group))]))
    order = np.random.default_rng(shuffle)
    pieces = []
    for group, tables in enumerate(received):
        rows = pa.concat_tables(tables) if tables else shards.wire.empty_table()
        pieces.append(shards.gather(group, rows.take(order.permutation(len(rows)))))
    assert sum(piece.n_records for piece in pieces) == shards.n_records
    return pieces


def publish_shards(
    policy: Policy, cuts: Sequence[int], group_rows: int, seed: int, shuffle: int = 0
) -> dict[str, list[Piece]]:
    """The tables of a policy, its source cut into partitions."""
    randomness = Randomness.seeded(seed)
    with LocalEngine().open(policy, None, silent) as scan:
        plan = mechanism_of(policy).plan(policy, scan)
        table = pa.Table.from_batches(list(scan.batches()), scan.schema)
        histogram = scan.histogram(policy.columns.sensitive)
    edges = [0, *cuts, len(table)]
    partitions = [table.slice(a, b - a) for a, b in pairwise(edges)]
    counts = np.zeros((len(partitions), len(histogram)), dtype=np.int64)
    for number, rows in enumerate(partitions):
        cells = zip(*(rows[name].to_pylist() for name in policy.columns.sensitive), strict=True)
        for value in cells:
            counts[number, histogram.values.index(value)] += 1
    draft = mechanism_of(policy).draft(policy, plan, randomness)
    census = Census(counts=counts, group_rows=group_rows)
    tables = {}
    for published in draft.tables:
        assert published.shards is not None
        tables[published.name] = run_shards(published.shards(census), partitions, shuffle)
    return tables
