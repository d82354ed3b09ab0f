"""The rows of a view in batches, so that memory holds a batch and not the table.

Rows are packed words while the engine sorts them. What comes several times (a repeated row of the source, a
kept row that is inserted too, a tuple inserted twice) is then found beside itself and written once: the file
depends on the set of tuples alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dalenius.ahead import mapped
from dalenius.mechanisms.alphabeta.apply import frapp_view, next_view
from dalenius.mechanisms.alphabeta.coins import TupleCoins
from dalenius.mechanisms.alphabeta.domain import Codes, Domain, IntArray, distinct_words
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.noise import NoiseLaw
from dalenius.mechanisms.alphabeta.sampling import shaped_hits, uniform_hits
from dalenius.mechanisms.base import Batches
from dalenius.randomness import Randomness


def first_rows(
    batches: Batches, domain: Domain, law: ViewLaw, noise: NoiseLaw | None, randomness: Randomness
) -> Batches:
    """The first view: the rows that are kept, then the insertions."""
    coins = TupleCoins(key=randomness.derived_key("alphabeta", "keep"))

    def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
        codes = domain.encode(batch)
        words = domain.pack(codes)
        return _as_batch(words[_are_kept(codes, words, law, noise, coins)])

    yield from mapped(kept, batches)
    insert = randomness.stream("alphabeta", "insert")
    hits = uniform_hits(domain, law.beta, insert) if noise is None else shaped_hits(noise, law.beta, insert)
    yield from mapped(lambda codes: _as_batch(domain.pack(codes)), hits)


def _are_kept(
    codes: Codes, words: IntArray, law: ViewLaw, noise: NoiseLaw | None, coins: TupleCoins
) -> NDArray[np.bool_]:
    """Whether each row stays, with probability α/(1−β(t))."""
    if noise is None:
        return coins.toss(law.alpha / (1 - law.beta), words)
    beta = float(law.beta) * noise.relative(codes)
    return np.asarray(coins.uniforms(words) * (1 - beta) < float(law.alpha))


def later_rows(
    batches: Batches,
    domain: Domain,
    earlier: Sequence[Sequence[Path]],
    law: ViewLaw,
    randomness: Randomness,
) -> Batches:
    """The next view of a series, in view of the ones before it (algorithm 4)."""
    table = domain.unpack(distinct_words(domain.pack(_joined(domain, map(domain.encode, batches)))))
    views = [[pq.ParquetFile(file).read() for file in files] for files in earlier]
    shown = [_joined(domain, map(domain.encode, tables)) for tables in views]
    stream = randomness.stream("alphabeta", "view", len(earlier) + 1)
    yield _as_batch(domain.pack(next_view(domain, table, shown, law, stream)))


def frapp_rows(batches: Batches, domain: Domain, gamma_f: Fraction, randomness: Randomness) -> Batches:
    """Every row, kept or replaced."""
    stream = randomness.stream("alphabeta", "frapp")
    for batch in batches:
        yield _as_batch(domain.pack(frapp_view(domain, domain.encode(batch), gamma_f, stream)))


def word_names(domain: Domain) -> tuple[str, ...]:
    """What the packed words are called while the rows are sorted."""
    return tuple(f"word{index}" for index in range(domain.n_words))


def decoded(rows: Batches, domain: Domain) -> Batches:
    """The tuples of sorted words, copies and all."""
    yield domain.decode(_joined(domain, iter(())))  # a view may be empty, and still has columns
    yield from mapped(lambda batch: domain.decode(domain.unpack(_words(batch))), rows)


def decoded_once(rows: Batches, domain: Domain) -> Batches:
    """The tuples of sorted words, each once."""
    return decoded(_without_repeats(rows), domain)


def _without_repeats(rows: Batches) -> Batches:
    last = None
    for batch in rows:
        words = _words(batch)
        is_new = np.ones(len(words), dtype=np.bool_)
        is_new[1:] = (words[1:] != words[:-1]).any(axis=1)
        if last is not None and len(words):
            is_new[0] = (words[0] != last).any()
        last = words[-1] if len(words) else last
        yield batch.filter(pa.array(is_new))


def _joined(domain: Domain, parts: Iterator[Codes]) -> Codes:
    empty = tuple(np.zeros(0, dtype=np.int64) for _ in domain.columns)
    listed = [empty, *parts]
    return tuple(np.concatenate(columns) for columns in zip(*listed, strict=True))


def _as_batch(words: IntArray) -> pa.RecordBatch:
    columns = [np.ascontiguousarray(column) for column in words.T]
    return pa.RecordBatch.from_arrays(
        [pa.array(column) for column in columns], names=[f"word{index}" for index in range(len(columns))]
    )


def _words(batch: pa.RecordBatch) -> IntArray:
    return np.stack([column.to_numpy(zero_copy_only=False) for column in batch.columns], axis=1)
