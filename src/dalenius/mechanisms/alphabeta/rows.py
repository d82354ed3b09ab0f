"""The rows of a view in batches, so that memory holds a batch and not the table.

Rows are packed words while the engine sorts them. What comes several times (a repeated row of the source, a
kept row that is inserted too, a tuple inserted twice) is then found beside itself and written once: the file
depends on the set of tuples alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.mechanisms.alphabeta.apply import frapp_view, next_view
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.base import Batches
from dalenius.mechanisms.tuples.domain import Codes, Domain, are_new
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.sampling import shaped_hits, uniform_hits
from dalenius.mechanisms.tuples.tuple_set import TupleSet, as_batch, as_words
from dalenius.prefetch import map_parallel
from dalenius.randomness import Randomness


def first_rows(
    batches: Batches, domain: Domain, law: ViewLaw, noise: NoiseLaw | None, randomness: Randomness
) -> Batches:
    """The first view, from the records' codes: the tuples that are kept, then the insertions."""
    tuples = TupleSet.of(domain)

    def kept(numbered: tuple[int, pa.RecordBatch]) -> pa.RecordBatch:
        number, batch = numbered
        stream = randomness.stream("alphabeta", "keep", number)
        return as_batch(tuples.kept(tuples.members(as_words(batch)), law, noise, stream))

    yield from map_parallel(kept, enumerate(batches))
    insert = randomness.stream("alphabeta", "insert")
    yield from map(
        as_batch,
        uniform_hits(domain, law.beta, insert)
        if noise is None
        else shaped_hits(domain, noise, law.beta, insert),
    )


def later_rows(
    batches: Batches,
    domain: Domain,
    earlier: Sequence[Sequence[Path]],
    law: ViewLaw,
    randomness: Randomness,
) -> Batches:
    """The next view of a series, in view of the ones before it (algorithm 4)."""
    tuples = TupleSet.of(domain)
    table = domain.unpack(np.concatenate([tuples.members(as_words(batch)) for batch in batches]))
    views = [[pq.ParquetFile(file).read() for file in files] for files in earlier]
    shown = [_joined(domain, map(domain.encode, tables)) for tables in views]
    stream = randomness.stream("alphabeta", "view", len(earlier) + 1)
    yield as_batch(domain.pack(next_view(domain, table, shown, law, stream)))


def frapp_rows(tables: Iterator[Codes], domain: Domain, gamma_f: Fraction, randomness: Randomness) -> Batches:
    """Every row, kept or replaced."""
    stream = randomness.stream("alphabeta", "frapp")
    for table in tables:
        yield as_batch(domain.pack(frapp_view(domain, table, gamma_f, stream)))


def different(batches: Batches, domain: Domain) -> Iterator[Codes]:
    """The different tuples of the records' codes."""
    return (domain.unpack(TupleSet.of(domain).members(as_words(batch))) for batch in batches)


def decoded(rows: Batches, domain: Domain) -> Batches:
    """The tuples of sorted words, copies and all."""
    none = as_batch(
        np.zeros((0, domain.n_words), dtype=np.int64)
    )  # a view may be empty, and still has columns
    yield from map_parallel(lambda batch: domain.decode(domain.unpack(as_words(batch))), chain([none], rows))


def decoded_once(rows: Batches, domain: Domain) -> Batches:
    """The tuples of sorted words, each once."""
    return decoded(_without_repeats(rows), domain)


def _without_repeats(rows: Batches) -> Batches:
    last = None
    for batch in rows:
        words = as_words(batch)
        is_new = are_new(words)
        if last is not None and len(words):
            is_new[0] = (words[0] != last).any()
        last = words[-1] if len(words) else last
        yield batch.filter(pa.array(is_new))


def _joined(domain: Domain, parts: Iterator[Codes]) -> Codes:
    empty = tuple(np.zeros(0, dtype=np.int64) for _ in domain.columns)
    listed = [empty, *parts]
    return tuple(np.concatenate(columns) for columns in zip(*listed, strict=True))
