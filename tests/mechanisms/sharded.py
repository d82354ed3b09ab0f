"""Carries shards out in this process, partition by partition; blocks reach their group in a bad order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.engines.spark.shuffle import from_blocks, to_blocks
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.mechanisms.stages import mechanism_of
from dalenius.policy import Policy
from dalenius.randomness import Randomness


def run_shards(shards: Shards, partitions: Sequence[pa.Table], shuffle: int = 0) -> list[Piece]:
    """What the groups write."""
    scattered = []
    if shards.scatter is not None:
        for number, rows in enumerate(partitions):
            scattered.append(shards.scatter(number, iter(rows.to_batches(max_chunksize=7))))
    if shards.insert is not None:
        scattered.extend(shards.insert(number) for number in range(shards.n_inserters))
    blocks = [
        batch.slice(at, 1)
        for source, sent in enumerate(scattered)
        for batch in to_blocks(_checked(sent, shards.wire), source, most_rows=20)
        for at in range(batch.num_rows)
    ]
    arrived = [blocks[at] for at in np.random.default_rng(shuffle).permutation(len(blocks))]
    pieces = []
    for group in range(shards.n_groups):
        own = (block for block in arrived if block.column(0)[0].as_py() == group)
        pieces.append(shards.gather(group, from_blocks(own, group, shards.wire)))
    assert sum(piece.n_records for piece in pieces) == shards.n_records
    return pieces


def _checked(sent: Scattered, wire: pa.Schema) -> Scattered:
    for groups, batch in sent:
        assert batch.schema == wire
        yield groups, batch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CutTable:
    """A policy's table, planned, and cut into partitions."""

    policy: Policy
    plan: Any
    partitions: tuple[pa.Table, ...]
    census: Census

    @classmethod
    def of(cls, policy: Policy, cuts: Sequence[int], group_rows: int) -> CutTable:
        with LocalEngine().open(policy, None, silent) as scan:
            plan = mechanism_of(policy).plan(policy, scan)
            table = scan.source.table()
            values = scan.histogram(policy.columns.sensitive).values if policy.columns.sensitive else ((),)
        edges = [0, *cuts, len(table)]
        partitions = tuple(table.slice(a, b - a) for a, b in pairwise(edges))
        counts = np.zeros((len(partitions), len(values)), dtype=np.int64)
        for number, rows in enumerate(partitions):
            for row in rows.select(policy.columns.sensitive).to_pylist() or [{}] * len(rows):
                counts[number, values.index(tuple(row.values()))] += 1
        census = Census(counts=counts, group_rows=group_rows)
        return cls(policy=policy, plan=plan, partitions=partitions, census=census)

    def publish(self, seed: int, shuffle: int = 0, only: str | None = None) -> dict[str, list[Piece]]:
        """The pieces of every table, or of one: what is drawn for a table does not depend on the others."""
        draft = mechanism_of(self.policy).draft(self.policy, self.plan, Randomness.seeded(seed))
        tables = {}
        for table in draft.tables:
            if only not in {None, table.name}:
                continue
            assert table.shards is not None
            tables[table.name] = run_shards(table.shards(self.census), self.partitions, shuffle)
        return tables
