"""Small tables in buckets, written out person by person, and dense linear algebra beside the estimators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
from hypothesis import strategies as st

from dalenius.arrays import Floats
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets
from dalenius.mechanisms.bucketize.estimate.matching import Places


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class People:
    """Each person's bucket and value, from 0."""

    bucket: np.ndarray
    value: np.ndarray

    @property
    def contents(self) -> np.ndarray:
        """Buckets × values, dense."""
        held = np.zeros((self.bucket.max() + 1, self.value.max() + 1))
        np.add.at(held, (self.bucket, self.value), 1)
        return held

    def release(self) -> Buckets:
        """What is published of them."""
        bucket, value = np.nonzero(self.contents)
        return Buckets.of(self.bucket, bucket, value, self.contents[bucket, value].astype(np.int64))

    def score(self, rows: np.ndarray, values: Floats | None) -> np.ndarray:
        """A score as a number a person."""
        dense = np.zeros(len(self.bucket))
        dense[rows] = 1.0 if values is None else values
        return dense


@st.composite
def people(draw: st.DrawFn, n_values: int = 3) -> People:
    """Two to five buckets of one to four people; every value occurs."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5).filter(lambda s: sum(s) >= n_values))
    n = sum(sizes)
    value = draw(st.lists(st.integers(0, n_values - 1), min_size=n, max_size=n))
    value[:n_values] = range(n_values)
    order = draw(st.permutations(range(n)))
    return People(bucket=np.repeat(np.arange(len(sizes)), sizes)[order], value=np.array(value))


def all_assignments(people: People) -> Iterator[People]:
    """Every way to give each value's records the places that the value has."""
    homes = [
        sorted(set(permutations(people.bucket[people.value == z].tolist())))
        for z in range(people.value.max() + 1)
    ]
    for chosen in product(*homes):
        bucket = people.bucket.copy()
        for z, own in enumerate(chosen):
            bucket[people.value == z] = own
        yield People(bucket=bucket, value=people.value)


def scale_dense(
    places: Places, logs: np.ndarray, factors: np.ndarray, rounds: int, close: float
) -> np.ndarray:
    """Rows × values: how likely each is, from log p of rows × values; 0 for values that the bucket lacks."""
    found = np.zeros_like(logs)
    for block in places.blocks:
        if not block.shape[1]:
            continue
        for piece in block.pieces():
            row, value = np.broadcast_arrays(
                piece.by_person(places.rows)[:, None], piece.by_slot(places.value)
            )
            held = piece.by_slot(places.held)
            found[row, value] = piece.scale(logs[row, value], held, factors, rounds, close)[0]
    return found
