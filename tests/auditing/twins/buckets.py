"""Twins of bucketized releases: dealt, numbered or written by another law."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dalenius.randomness import Randomness
from tests.auditing.releases import codes_of, deal, people, write_release
from tests.auditing.twins.making import Array, Made, Rng, publish, twin, write

N_BUCKETED, SIZE = 4_000, 5
Places = Callable[[pa.Table, Array, Rng], Array]
"""From a table and its values: the records, value by value, in the order in which they take their places."""
Numbers = Callable[[pa.Table, Array, Rng], Array]
"""From a table and everybody's bucket: the number of each bucket."""
Lines = Callable[[pa.Table, Array, Rng], Array]
"""From a table and its values: by what rows of a bucket are put in order."""


def _shuffled(table: pa.Table, value: Array, rng: Rng) -> Array:
    order = rng.permutation(len(value))
    return np.asarray(order[np.argsort(value[order], kind="stable")])


def _any_number(table: pa.Table, bucket: Array, rng: Rng) -> Array:
    return rng.permutation(int(bucket.max()) + 1)


def _any_line(table: pa.Table, value: Array, rng: Rng) -> Array:
    return rng.random(len(value))


def buckets(
    folder: Path,
    *,
    places: Places = _shuffled,
    numbers: Numbers = _any_number,
    lines: Lines = _any_line,
    n_rows: int = N_BUCKETED,
    seed: int = 1,
) -> Made:
    """Dealt round-robin, value after value, into buckets of one size."""
    table, rng = people(n_rows, seed=seed), np.random.default_rng(100 + seed)
    value = codes_of(table)
    n_buckets = len(value) // SIZE
    bucket = np.empty(len(value), dtype=np.int64)
    bucket[places(table, value, rng)] = np.arange(len(value)) % n_buckets
    bucket = numbers(table, bucket, rng)[bucket]
    tie = lines(table, value, rng)
    return write_release(folder, table, bucket, rng=rng, tie=tie).path, table


def _within(block: int) -> Places:
    """Shuffled inside stretches of a value's records only."""

    def places(table: pa.Table, value: Array, rng: Rng) -> Array:
        parts = []
        for x in range(int(value.max()) + 1):
            mine = np.flatnonzero(value == x)
            size = -(-len(mine) // 2) if block == 0 else block
            parts += [rng.permutation(mine[i : i + size]) for i in range(0, len(mine), size)]
        return np.concatenate(parts)

    return places


def places_by(key: Callable[[pa.Table, Array, Rng], Array], values: range = range(10)) -> Places:
    """The records of some values in the order of a key, all others shuffled."""

    def places(table: pa.Table, value: Array, rng: Rng) -> Array:
        by = np.where(np.isin(value, list(values)), key(table, value, rng), rng.random(len(value)))
        return np.lexsort((by, value))

    return places


def by_source(table: pa.Table, value: Array, rng: Rng) -> Array:
    return np.arange(len(value)) / len(value)


def by_age(table: pa.Table, value: Array, rng: Rng) -> Array:
    return np.asarray(table["age"].to_numpy() + rng.random(len(value)), dtype=np.float64)


def by_sex(table: pa.Table, value: Array, rng: Rng) -> Array:
    return np.asarray(np.array(table["sex"].to_pylist()) == "M", dtype=np.float64) + rng.random(len(value))


def _same_shuffle(table: pa.Table, value: Array, rng: Rng) -> Array:
    """One list of random numbers for all values, by rank in the source."""
    keys, rank = rng.random(len(value)), np.empty(len(value), dtype=np.int64)
    for x in range(int(value.max()) + 1):
        mine = np.flatnonzero(value == x)
        rank[mine] = np.arange(len(mine))
    return np.asarray(keys[rank])


def _couples(table: pa.Table, value: Array, rng: Rng) -> Array:
    """Every second record takes the place after the one before it."""
    key = rng.random(len(value))
    for x in range(int(value.max()) + 1):
        mine = np.flatnonzero(value == x)
        key[mine[1::2]] = key[mine[0::2]][: len(mine) // 2] + 1e-9
    return key


def _same_stream(folder: Path) -> Made:
    """The program itself, with the value left out of the name of the stream that deals its records.

    Only values of the same count then have the same shuffle.
    """
    disease = np.random.default_rng(2).permutation(np.repeat([f"d{x}" for x in range(10)], N_BUCKETED // 10))
    table = people(N_BUCKETED).drop_columns(["disease"]).append_column("disease", pa.array(disease))
    own = Randomness.stream

    def stream(self: Randomness, *name: str | int) -> Rng:
        return own(self, *(name[:2] if name[:2] == ("bucketize", "assign") else name))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Randomness, "stream", stream)
        return publish(folder, table, {"kind": "l-diversity", "l": SIZE}, {"kind": "bucketize"}), table


def _first_member(table: pa.Table, bucket: Array, rng: Rng) -> Array:
    first = np.full(int(bucket.max()) + 1, len(bucket))
    np.minimum.at(first, bucket, np.arange(len(bucket)))
    return np.argsort(np.argsort(first))


def _rarest_first(table: pa.Table, bucket: Array, rng: Rng) -> Array:
    rare = np.bincount(bucket, codes_of(table) == 9, int(bucket.max()) + 1)
    return np.argsort(np.argsort(-rare + rng.random(len(rare)) / 2))


def _rarest_even(table: pa.Table, bucket: Array, rng: Rng) -> Array:
    """Buckets with the rarest value have even numbers, as far as they go."""
    rare = np.bincount(bucket, codes_of(table) == 9, int(bucket.max()) + 1) > 0
    n = len(rare)
    even, odd = rng.permutation(np.arange(0, n, 2)), rng.permutation(np.arange(1, n, 2))
    free = rng.permutation(np.concatenate([even[rare.sum() :], odd]))
    numbers = np.empty(n, dtype=np.int64)
    numbers[rare], numbers[~rare] = even[: rare.sum()], free
    return numbers


def _rarest_together(table: pa.Table, bucket: Array, rng: Rng) -> Array:
    """Buckets with the rarest value come in pairs of neighbouring numbers."""
    rare = rng.permutation(np.flatnonzero(np.bincount(bucket, codes_of(table) == 9, int(bucket.max()) + 1)))
    n = int(bucket.max()) + 1
    rest = rng.permutation(np.setdiff1d(np.arange(n), rare))
    pairs = [list(rare[i : i + 2]) for i in range(0, len(rare), 2)]
    pairs += [list(rest[i : i + 2]) for i in range(0, len(rest), 2)]
    order = np.array([g for i in rng.permutation(len(pairs)) for g in pairs[i]])
    return np.argsort(order)


def _value_order(order: Callable[[Rng], Array], among: int = 10) -> Lines:
    """Rows of a bucket in a fixed order of their values; those of the other values anywhere."""

    def lines(table: pa.Table, value: Array, rng: Rng) -> Array:
        rank = np.argsort(order(rng))[value] / 10
        return np.where(value < among, rank, rng.random(len(value)))

    return lines


def _often_first(x: int, share: float) -> Lines:
    """The rows of one value come first in some of the buckets."""

    def lines(table: pa.Table, value: Array, rng: Rng) -> Array:
        return np.where((value == x) & (rng.random(len(value)) < share), -1.0, rng.random(len(value)))

    return lines


def _late_first(table: pa.Table, value: Array, rng: Rng) -> Array:
    """Rows of the second half of the source stand above those of the first."""
    n = len(value)
    return np.asarray((np.arange(n) < n // 2) + rng.random(n))


def _swapped_buckets(folder: Path) -> Made:
    """One bucket with a value twice."""
    table = people(N_BUCKETED)
    bucket, value = deal(table, SIZE, np.random.default_rng(7)), codes_of(table)
    mine = np.flatnonzero(bucket == 0)
    same = np.flatnonzero((bucket != 0) & (value == value[mine[0]]))[:1]
    bucket[mine[1]], bucket[same] = bucket[same][0], 0
    return write_release(folder, table, bucket, rng=np.random.default_rng(3)).path, table


Choice = Callable[[Array, Array, Rng], Array]
"""From the values that are absent from each bucket and all values' shares: one fake a bucket; −1: its own."""


def honest_fakes(folder: Path, *, n_rows: int = N_BUCKETED) -> Made:
    """The program's own."""
    table = people(n_rows)
    mechanism = {"kind": "bucketize", "fakes": 1}
    return publish(folder, table, {"kind": "l-diversity", "l": SIZE}, mechanism), table


def other_fakes(folder: Path, choose: Choice, *, n_rows: int = N_BUCKETED, seed: int = 9) -> Made:
    """The same with fakes by another law."""
    path, table = honest_fakes(folder, n_rows=n_rows)
    qit = pq.read_table(path / "qit.parquet")
    truth = np.empty(len(table), dtype=np.int64)
    truth[table["uid"].to_numpy()] = codes_of(table)
    bucket = qit["bucket"].to_numpy() - 1
    held = np.zeros((int(bucket.max()) + 1, 10), dtype=np.int64)
    np.add.at(held, (bucket, truth[qit["uid"].to_numpy()]), 1)
    shares = np.bincount(truth) / len(truth)
    st = pq.read_table(path / "st.parquet")
    own = -held
    np.add.at(own, (st["bucket"].to_numpy() - 1, codes_of(st)), st["count"].to_numpy())
    chosen = choose(held == 0, shares, np.random.default_rng(seed))
    held[np.arange(len(held)), np.where(chosen < 0, own.argmax(axis=1), chosen)] += 1
    where, what = np.nonzero(held)
    write(
        path,
        "st",
        pa.table({"bucket": where + 1, "disease": [f"d{x}" for x in what], "count": held[where, what]}),
    )
    return path, table


def commonest_absent(absent: Array, shares: Array, rng: Rng) -> Array:
    return np.asarray((absent * shares).argmax(axis=1))


def _any_absent(absent: Array, shares: Array, rng: Rng) -> Array:
    return np.asarray((absent * rng.random(absent.shape)).argmax(axis=1))


BUCKETS = [
    twin("dealt in the source's order", "dealing", buckets, places=places_by(by_source)),
    twin("shuffled within halves of the source", "law of dealing", buckets, places=_within(0)),
    twin("shuffled within stretches of 40 records", "law of dealing", buckets, places=_within(40)),
    twin("the same shuffle for all values", "law of dealing", buckets, places=places_by(_same_shuffle)),
    twin("the same stream for all values", "law of dealing", _same_stream),
    twin("the commonest value unshuffled", "law of dealing", buckets, places=places_by(by_source, range(1))),
    twin("the third value unshuffled", "law of dealing", buckets, places=places_by(by_source, range(2, 3))),
    twin("dealt by age", "law of dealing", buckets, places=places_by(by_age)),
    twin("women dealt first", "law of dealing", buckets, places=places_by(by_sex)),
    twin("couples dealt side by side", "law of dealing", buckets, places=places_by(_couples)),
    twin("numbered by the first member", "bucket numbers", buckets, numbers=_first_member),
    twin("buckets with the rarest value first", "law of numbers", buckets, numbers=_rarest_first),
    twin("buckets with the rarest value even", "law of numbers", buckets, numbers=_rarest_even),
    twin("buckets with the rarest value paired", "law of numbers", buckets, numbers=_rarest_together),
    twin("rows ascending by value", "law of places", buckets, lines=_value_order(lambda _: np.arange(10))),
    twin(
        "rows descending by value",
        "law of places",
        buckets,
        lines=_value_order(lambda _: np.arange(10)[::-1]),
    ),
    twin(
        "rows in a fixed order of values",
        "law of places",
        buckets,
        lines=_value_order(lambda rng: rng.permutation(10)),
    ),
    twin(
        "two values in a fixed order",
        "law of places",
        buckets,
        lines=_value_order(lambda _: np.arange(10), 2),
    ),
    twin("the rarest value often first", "law of places", buckets, lines=_often_first(9, 0.5)),
    twin("rows in the source's order", "source order", buckets, lines=by_source),
    twin("late rows first", "law of places", buckets, lines=_late_first),
    twin("a value twice in one bucket", "linking", _swapped_buckets),
    twin("the commonest absent value as fake", "law of fakes", other_fakes, commonest_absent),
    twin("any absent value as fake", "law of fakes", other_fakes, _any_absent),
]
