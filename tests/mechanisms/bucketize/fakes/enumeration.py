"""The laws of contents and fakes by enumeration, which the tests of fakes share."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product

import numpy as np

from dalenius.mechanisms.bucketize.fakes.law import FakeLaw

LAW = FakeLaw(
    size=3,
    n_fakes=2,
    real=np.array([4.0, 2.0, 1.0, 1.0, 0.5, 0.1]),
    fake=np.array([5.0, 2.0, 1.0, 0.7, 0.5, 0.05]),
)


def all_tables(columns: tuple[int, ...], rows: int, size: int) -> list[tuple[tuple[int, ...], ...]]:
    """Every way to give each bucket `size` distinct values so that value x is in columns[x] buckets."""
    subsets = list(combinations(range(len(columns)), size))
    tables = product(subsets, repeat=rows)
    return [
        t
        for t in tables
        if Counter(v for row in t for v in row) == {x: c for x, c in enumerate(columns) if c}
    ]


def brute_contents(w: np.ndarray, capacity: np.ndarray, size: int) -> dict[tuple[int, ...], float]:
    """The content law by enumeration."""
    law = {}
    for c in product(*(range(int(k) + 1) for k in capacity)):
        if sum(c) == size:
            law[c] = math.prod(x**k / math.factorial(k) for x, k in zip(w, c, strict=True))
    total = sum(law.values())
    return {c: p / total for c, p in law.items()}


def brute_joint(law: FakeLaw, capacity: np.ndarray) -> dict[tuple[tuple[int, ...], tuple[int, ...]], float]:
    """Pr[contents, fakes] by enumeration."""
    joint = {}
    for c, p in brute_contents(law.real, capacity, law.size).items():
        absent = [x for x, k in enumerate(c) if not k]
        sets = list(combinations(absent, law.n_fakes))
        weights = [math.prod(law.fake[x] for x in f) for f in sets]
        for f, weight in zip(sets, weights, strict=True):
            joint[c, f] = p * weight / sum(weights)
    return joint
