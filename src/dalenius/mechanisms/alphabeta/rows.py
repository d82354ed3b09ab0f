"""The rows of a view in batches, so that memory holds a batch and not the table.

What comes several times (a kept row that is inserted too, a tuple inserted twice) is written once by the
engine, which also sorts: the file depends on the set of tuples alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.mechanisms.alphabeta.apply import frapp_view, kept_rows, kept_shaped, next_view
from dalenius.mechanisms.alphabeta.domain import Codes, Domain
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.noise import NoiseLaw
from dalenius.mechanisms.alphabeta.sampling import shaped_hits, uniform_hits
from dalenius.mechanisms.base import Batches
from dalenius.randomness import Randomness

_BATCH_ROWS = 2**17


def first_rows(
    batches: Batches, domain: Domain, law: ViewLaw, noise: NoiseLaw | None, randomness: Randomness
) -> Batches:
    """The first view: the rows that are kept, then the insertions."""
    keep, insert = randomness.stream("alphabeta", "keep"), randomness.stream("alphabeta", "insert")
    for batch in batches:
        codes = domain.encode(batch)
        kept = kept_rows(codes, law, keep) if noise is None else kept_shaped(codes, law, noise, keep)
        yield domain.decode(kept)
    hits = uniform_hits(domain, law.beta, insert) if noise is None else shaped_hits(noise, law.beta, insert)
    for codes in hits:
        yield domain.decode(codes)


def later_rows(
    batches: Batches,
    domain: Domain,
    earlier: Sequence[Sequence[Path]],
    law: ViewLaw,
    randomness: Randomness,
) -> Batches:
    """The next view of a series, in view of the ones before it (algorithm 4)."""
    table = _joined(domain, (domain.encode(batch) for batch in batches))
    shown = [_joined(domain, (domain.encode(pq.read_table(file)) for file in files)) for files in earlier]
    stream = randomness.stream("alphabeta", "view", len(earlier) + 1)
    view = next_view(domain, table, shown, law, stream)
    yield from _decoded(domain, view)


def frapp_rows(batches: Batches, domain: Domain, gamma_f: Fraction, randomness: Randomness) -> Batches:
    """Every row, kept or replaced."""
    stream = randomness.stream("alphabeta", "frapp")
    for batch in batches:
        yield domain.decode(frapp_view(domain, domain.encode(batch), gamma_f, stream))


def _joined(domain: Domain, parts: Iterator[Codes]) -> Codes:
    empty = tuple(np.zeros(0, dtype=np.int64) for _ in domain.columns)
    listed = [empty, *parts]
    return tuple(np.concatenate(columns) for columns in zip(*listed, strict=True))


def _decoded(domain: Domain, codes: Codes) -> Iterator[pa.RecordBatch]:
    for start in range(0, max(len(codes[0]), 1), _BATCH_ROWS):
        yield domain.decode(tuple(column[start : start + _BATCH_ROWS] for column in codes))
