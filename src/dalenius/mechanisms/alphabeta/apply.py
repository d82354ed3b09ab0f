"""Views of a table: algorithms 1 to 5 on codes, and their rows in batches.

The kernels work on sets of tuples; every view comes out in the order of its codes, which says nothing about
the table's own order. The rows of a release are made batch by batch, so that memory holds a batch and not the
table: they are packed words while the engine sorts them. What comes several times (a repeated row of the
source, a kept row that is inserted too, a tuple inserted twice) is then found beside itself and written once:
the file depends on the set of tuples alone.

Insertions take time that grows with their number, not with m. Each tuple of D is to be inserted independently
with probability β. Give every tuple an independent Poisson number of hits with mean λ = −ln(1−β): it is hit
at least once with probability β. The hits of all tuples together are Poisson(mλ) in number and uniform over
D, and may be drawn batch after batch, in any number of processes; the tuples that were hit are the
insertions. No m is too large, and no inserted tuple need be looked up. (Binomial(m, β) distinct tuples have
the same law, but numpy's binomial fails for large m: at m = 2^62 a mean of 1000 comes out as 998.3.) Each
batch's Poisson mean stays below 2^20, where numpy's sampler compares logarithms below 10^8 and so errs by
1e-8 at most, and λ is a float: both are well within the plan's `SAMPLING_MARGIN`.

In partitions tuples, real and inserted, travel packed to the group of their tuple. All copies of a tuple meet
in one group, which so can tell different ones apart, number them, toss their coins and take the union with
the insertions. Which group that is follows from the tuple alone, so what is published in which file says
nothing, and whoever reads the view sees that no tuple is in two files; nor does the number of groups say
anything, which the published noise decides and not the table's size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.arrays import Ints
from dalenius.errors import InputError
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.base import Batches
from dalenius.mechanisms.sharding import Census, Piece, Scattered, Shards
from dalenius.mechanisms.tuples.apply import RECORD, TupleGroups, TupleSet, as_batch, as_words
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, are_among, distinct_words, uniform_words
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.prefetch import map_parallel
from dalenius.randomness import Randomness, toss

_BATCH_HITS = 2**19


def first_view(
    domain: Domain,
    table: TupleCodes,
    law: ViewLaw,
    stream: np.random.Generator,
    noise: NoiseLaw | None = None,
) -> TupleCodes:
    """The αβ view: t in the table with α+β, any other t with β; with declared noise it is β(t).

    Insert every t of D with probability β and keep each t of the table with α/(1−β): their union has
    1 − (1−β)(1 − α/(1−β)) = α+β for the table's tuples, and no insertion is looked up in the table.
    """
    own = domain.pack(table)
    _refuse_duplicates(own)
    kept = keep_tuples(domain, own, law, noise, stream)
    inserted = draw_insertions(domain, noise, law.beta, stream)
    return domain.unpack(distinct_words(np.concatenate([kept, *inserted])))


def keep_tuples(
    domain: Domain, words: Ints, law: ViewLaw, noise: NoiseLaw | None, stream: np.random.Generator
) -> Ints:
    """The packed tuples of the table that stay, each with probability α/(1−β(t))."""
    if noise is None:
        return words[toss(law.alpha / (1 - law.beta), len(words), stream)]
    beta = float(law.beta) * noise.relative(domain.unpack(words))
    return words[stream.random(len(beta)) * (1 - beta) < float(law.alpha)]


def draw_insertions(
    domain: Domain, noise: NoiseLaw | None, beta: Fraction, stream: np.random.Generator, pieces: int = 1
) -> Iterator[Ints]:
    """Batches of packed tuples to insert, by the declared distributions if there are any."""
    if noise is None:
        return uniform_hits(domain, beta, stream, pieces)
    return shaped_hits(domain, noise, beta, stream, pieces)


def uniform_hits(
    domain: Domain, beta: Fraction, stream: np.random.Generator, pieces: int = 1
) -> Iterator[Ints]:
    """Batches of packed tuples; those that occur are each tuple of D with probability β, independently.

    A tuple may come several times, in one batch or in two. Of several pieces, each with a stream of its own,
    this is one; all of them together have the law (Poisson numbers add up).
    """
    for n_hits in _poisson_batches(domain.size * -math.log1p(-float(beta)) / pieces, stream):
        yield uniform_words(domain, n_hits, stream)


def shaped_hits(
    domain: Domain,
    noise: NoiseLaw,
    largest_beta: Fraction,
    stream: np.random.Generator,
    pieces: int = 1,
) -> Iterator[Ints]:
    """The same with β(t) = `largest_beta`·P(t)/max P.

    −ln(1−β(t)) is not proportional to P(t), but at most c·β(t), c its ratio to β(t) at the largest. Hits
    drawn at the rate c·β(t), each kept with probability −ln(1−β(t))/(c·β(t)), have the right rate.
    """
    top = float(largest_beta)
    steepest = -math.log1p(-top) / top
    for n_hits in _poisson_batches(steepest * float(largest_beta / noise.largest_share) / pieces, stream):
        codes = noise.draw(n_hits, stream)
        beta = top * noise.relative(codes)
        kept = stream.random(n_hits) * (steepest * beta) < -np.log1p(-beta)
        yield domain.pack(tuple(column[kept] for column in codes))


def _poisson_batches(mean: float, stream: np.random.Generator) -> Iterator[int]:
    n_batches = max(1, math.ceil(mean / _BATCH_HITS))
    for _ in range(n_batches):
        yield int(stream.poisson(mean / n_batches))


def next_view(
    domain: Domain,
    table: TupleCodes,
    earlier: Iterable[TupleCodes],
    law: ViewLaw,
    stream: np.random.Generator,
) -> TupleCodes:
    """The next of a series of views of one unchanged table, given the earlier ones (algorithm 4)."""
    views = list(earlier)
    if len(views) >= law.views:
        raise InputError(f"all {law.views} views that the promise was planned for are published")
    own = domain.pack(table)
    _refuse_duplicates(own)
    shown = distinct_words(np.concatenate([own[:0], *(domain.pack(view) for view in views)]))
    shown_noise = shown[~are_among(shown, own)]
    known = np.concatenate([own, shown])
    fresh_rate = law.fresh_rate(len(views) + 1)
    fresh = np.concatenate(list(uniform_hits(domain, fresh_rate, stream)))
    parts = [
        own[toss(law.retention, len(own), stream)],
        shown_noise[toss(law.seen_rate, len(shown_noise), stream)],
        fresh[~are_among(fresh, known)],
    ]
    return domain.unpack(distinct_words(np.concatenate(parts)))


def union(domain: Domain, parts: Iterable[TupleCodes]) -> TupleCodes:
    """The different tuples of all parts, in order; of one part: its distinct rows."""
    return domain.unpack(distinct_words(np.concatenate([domain.pack(part) for part in parts])))


def _refuse_duplicates(words: Ints) -> None:
    n_repeated = len(words) - len(distinct_words(words))
    if n_repeated:
        raise InputError(
            f"{n_repeated} rows repeat another row, and a view is a set of tuples",
            hint='duplicates = "distinct" counts different tuples under the full promise; "copies" counts '
            "rows, and the promise is for one copy: how often a tuple occurs then shows",
        )


def first_rows(
    batches: Batches, domain: Domain, law: ViewLaw, noise: NoiseLaw | None, randomness: Randomness
) -> Batches:
    """The first view, from the records' codes: the tuples that are kept, then the insertions."""
    tuples = TupleSet.of(domain)

    def keep(numbered: tuple[int, pa.RecordBatch]) -> pa.RecordBatch:
        number, batch = numbered
        stream = randomness.stream("alphabeta", "keep", number)
        return as_batch(keep_tuples(domain, tuples.members(as_words(batch)), law, noise, stream))

    yield from map_parallel(keep, enumerate(batches))
    stream = randomness.stream("alphabeta", "insert")
    yield from map(as_batch, draw_insertions(domain, noise, law.beta, stream))


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
    shown = [_encode_all(domain, tables) for tables in views]
    stream = randomness.stream("alphabeta", "view", len(earlier) + 1)
    yield as_batch(domain.pack(next_view(domain, table, shown, law, stream)))


def _encode_all(domain: Domain, tables: Sequence[pa.Table]) -> TupleCodes:
    """The codes of the rows of all pieces of a view, of which there may be none."""
    empty = tuple(np.zeros(0, dtype=np.int64) for _ in domain.columns)
    codes = [empty, *map(domain.encode, tables)]
    return tuple(np.concatenate(columns) for columns in zip(*codes, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewGroups:
    """The first view of a table: each group keeps its own tuples and adds the insertions that reach it."""

    domain: Domain
    law: ViewLaw
    noise: NoiseLaw | None
    tuples: TupleGroups
    n_inserters: int
    census: Census
    randomness: Randomness

    @classmethod
    def cut(
        cls,
        domain: Domain,
        law: ViewLaw,
        noise: NoiseLaw | None,
        noise_rows: float,
        census: Census,
        randomness: Randomness,
    ) -> ViewGroups:
        """In as many groups as the noise, which is public, needs."""
        n_groups = census.n_groups(int(noise_rows))
        return cls(
            domain=domain,
            law=law,
            noise=noise,
            tuples=TupleGroups.of(domain, n_groups),
            n_inserters=n_groups,
            census=census,
            randomness=randomness,
        )

    def shards(self) -> Shards:
        """As an engine carries it out."""
        shards = self.tuples.shards(self.census, self.scatter, self.gather)
        return replace(shards, n_inserters=self.n_inserters, insert=self.insert)

    def scatter(self, partition: int, batches: Iterator[pa.RecordBatch]) -> Scattered:  # noqa: ARG002
        """Every record goes to its tuple's group."""
        for batch in batches:
            words = self.tuples.domain.pack(self.tuples.domain.encode(batch))
            yield self.tuples.send(words, np.full(batch.num_rows, RECORD))

    def insert(self, source: int) -> Scattered:
        """A piece of the insertions."""
        stream, pieces = self.randomness.stream("insert", source), self.n_inserters
        hits = draw_insertions(self.domain, self.noise, self.law.beta, stream, pieces)
        yield from map(self._send_inserted, hits)

    def _send_inserted(self, words: Ints) -> tuple[Ints, pa.RecordBatch]:
        if not self.members.has_copies:
            return self.tuples.send(words, np.zeros(len(words), dtype=np.int64))
        *codes, copies = self.domain.unpack(words)
        return self.tuples.send(self.tuples.domain.pack(tuple(codes)), copies.astype(np.int64))

    def gather(self, group: int, rows: pa.Table) -> Piece:
        """The group's different tuples, each kept or not, and the insertions, in the domain's order."""
        words, copies = self.tuples.receive(rows)
        is_record = copies == RECORD
        records = words[is_record]
        table = self.members.members(records[np.lexsort(records.T[::-1])])
        stream = self.randomness.stream("keep", group)
        kept = keep_tuples(self.domain, table, self.law, self.noise, stream)
        inserted = self.members.with_copies(words[~is_record], copies[~is_record])
        view = self.domain.unpack(distinct_words(np.concatenate([kept, inserted])))
        return Piece(
            rows=pa.Table.from_batches([self.domain.decode(view)]),
            n_records=int(np.count_nonzero(is_record)),
        )

    @property
    def members(self) -> TupleSet:
        """What the view is made from."""
        return TupleSet.of(self.domain)
