"""Twins of views: kept, inserted, replaced or written by another law."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tests.auditing.twins.making import Array, Made, Rng, has, manifest_of, publish, twin, write

N_TUPLES = 10_000
ILL = ("cold", "flu", "hiv", "none")


@lru_cache(maxsize=2)
def _tuples(n: int) -> pa.Table:
    rng = np.random.default_rng(8)
    return pa.table(
        {
            "uid": rng.permutation(n),
            "age": np.clip(np.rint(rng.normal(25, 8, n)), 0, 49).astype(np.int64),
            "sex": rng.choice(["F", "M"], n),
            "ill": rng.choice(ILL, n, p=[0.6, 0.25, 0.05, 0.1]),
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewing:
    """The table's tuples as codes (uid, age, sex, ill), and the law."""

    own: Array
    keep: float
    """α + β of a view, γ_f of FRAPP."""
    beta: float
    """Of a view; 0 for FRAPP."""
    rng: Rng

    @property
    def sizes(self) -> tuple[int, ...]:
        """Of the columns' domains."""
        return len(self.own), 50, 2, 4

    @property
    def size(self) -> int:
        """Of the domain."""
        return math.prod(self.sizes)

    def is_kept(self, factor: Any = 1.0) -> Array:
        """Coins, perhaps with another probability."""
        return np.asarray(self.rng.random(len(self.own)) < self.keep * factor)

    def noise(self, factor: float = 1.0) -> Array:
        """Tuples outside the table."""
        n = self.rng.binomial(self.size, self.beta * factor)
        return self.uniform(n)

    def uniform(self, n: int) -> Array:
        """So many tuples of the domain, at random."""
        return np.stack([self.rng.integers(size, size=n) for size in self.sizes], axis=1)


View = Callable[[Viewing], tuple[Array, Array]]
"""From the tuples: which are kept, and the others (those of the table among them are left out)."""


def viewed(
    folder: Path,
    view: View,
    *,
    method: str = "alpha-beta",
    retention: str | None = None,
    n_tuples: int = N_TUPLES,
    order: bool = True,
    seed: int = 4,
) -> Made:
    """The manifest of a real release, with another view; rows in the domain's order, or the table's first.

    Without a `retention` as much is kept as the promise allows, as a policy that says nothing gets it.
    """
    table = _tuples(n_tuples)
    promise = {"kind": "d-gamma-privacy", "k": 2, "gamma": 0.2}
    domains = {"uid": f"0..{n_tuples - 1}", "age": "0..49", "sex": ["F", "M"], "ill": list(ILL)}
    mechanism = {"kind": "alpha-beta", "method": method, **({"retention": retention} if retention else {})}
    path = publish(folder, table, promise, mechanism, sensitive="ill", domains=domains)
    given = manifest_of(path).parameters
    own = np.stack(
        [
            table["uid"].to_numpy(),
            table["age"].to_numpy(),
            has(table, "sex", "M").astype(np.int64),
            np.array([ILL.index(cell) for cell in table["ill"].to_pylist()]),
        ],
        axis=1,
    )
    alpha, beta = (_rate(given.get(key, "0")) for key in ("alpha", "beta"))
    keep = _rate(given["gamma_f"]) if method == "frapp" else alpha + beta
    case = Viewing(own=own, keep=keep, beta=beta, rng=np.random.default_rng(seed))
    kept, others = view(case)
    words, own_words = (np.ravel_multi_index(tuple(t.T), case.sizes) for t in (others, own))
    if method == "frapp":
        shown = np.concatenate([own_words[kept], words])
    else:
        shown = np.concatenate([own_words[kept], np.setdiff1d(np.unique(words), own_words)])
    shown = np.sort(shown) if order else shown
    codes = np.stack(np.unravel_index(shown, case.sizes), axis=1)
    rows = pa.table(
        {
            "uid": codes[:, 0],
            "age": codes[:, 1],
            "sex": np.array(["F", "M"])[codes[:, 2]],
            "ill": np.array(ILL)[codes[:, 3]],
        }
    )
    write(path, "view", rows)
    return path, table


def honest_view(case: Viewing) -> tuple[Array, Array]:
    return case.is_kept(), case.noise()


def _changed_noise(change: Callable[[Viewing, Array], Array]) -> View:
    return lambda case: (case.is_kept(), change(case, case.noise()))


def _changed_keeping(factor: Callable[[Viewing], Any]) -> View:
    return lambda case: (case.is_kept(factor(case)), case.noise())


def _without_hiv(case: Viewing, noise: Array) -> Array:
    noise[noise[:, 3] == 2, 3] = case.rng.choice([0, 1, 3], int((noise[:, 3] == 2).sum()))
    return noise


def _half_column(case: Viewing, noise: Array) -> Array:
    noise[:, 1] = case.rng.integers(25, size=len(noise))
    return noise


def _like_the_table(case: Viewing, noise: Array) -> Array:
    """Each column by its own histogram in the table."""
    for column in range(4):
        noise[:, column] = case.rng.choice(case.own[:, column], len(noise))
    return noise


def _near_the_table(case: Viewing, noise: Array) -> Array:
    """Every twentieth noise tuple is one of the table but for the age."""
    near = np.flatnonzero(case.rng.random(len(noise)) < 0.05)
    ages = noise[near, 1]
    noise[near] = case.own[case.rng.integers(len(case.own), size=len(near))]
    noise[near, 1] = ages
    return noise


def _no_pairs(case: Viewing, noise: Array) -> Array:
    """Women get no noise with flu, men none with a cold: every column by itself is as it should be."""
    flu, cold = noise[:, 3] == 1, noise[:, 3] == 0
    noise[flu, 2], noise[cold, 2] = 1, 0
    return noise


def _half_always(case: Viewing) -> tuple[Array, Array]:
    """Ages of even number are always kept, the others so much less that the total is right."""
    even = case.own[:, 1] % 2 == 0
    rest = (case.keep - even.mean()) / (1 - even.mean())
    return case.rng.random(len(even)) < np.where(even, 1.0, max(rest, 0.0)), case.noise()


def replaced(kept: Array, case: Viewing, others: Array | None = None) -> tuple[Array, Array]:
    n = int((~kept).sum())
    return kept, case.uniform(n) if others is None else others[:n]


def honest_frapp(case: Viewing) -> tuple[Array, Array]:
    return replaced(case.is_kept(), case)


def _rate(text: Any) -> float:
    return float(Fraction(text))


def _one_column_replaced(case: Viewing) -> tuple[Array, Array]:
    """Replaced records keep all but their illness and age."""
    kept = case.is_kept()
    others = case.own[~kept].copy()
    others[:, 1], others[:, 3] = (
        case.rng.integers(50, size=len(others)),
        case.rng.integers(4, size=len(others)),
    )
    return kept, others


VIEWS = [
    twin("no noise for one value", "law of noise", viewed, _changed_noise(_without_hiv)),
    twin("noise in half of a column", "law of noise", viewed, _changed_noise(_half_column)),
    twin("half of the values always kept", "law of keeping", viewed, _half_always),
    twin(
        "half of the values always kept where half of all are",
        "law of keeping",
        viewed,
        _half_always,
        retention="1/2",
    ),
    twin("half of beta", "law of noise", viewed, lambda c: (c.is_kept(), c.noise(0.5))),
    twin("a tenth more noise", "law of noise", viewed, lambda c: (c.is_kept(), c.noise(1.1))),
    twin("a fifth more kept", "law of keeping", viewed, _changed_keeping(lambda _: 1.2)),
    twin(
        "early tuples kept more",
        "law of keeping",
        viewed,
        _changed_keeping(lambda _: np.where(np.arange(N_TUPLES) < N_TUPLES / 2, 1.2, 0.8)),
    ),
    twin(
        "women's tuples kept more",
        "law of keeping",
        viewed,
        _changed_keeping(lambda c: np.where(c.own[:, 2] == 0, 1.2, 0.8)),
    ),
    twin(
        "tuples of women with flu and men with a cold kept more",
        "law of keeping",
        viewed,
        _changed_keeping(lambda c: np.where((c.own[:, 2] == 0) == (c.own[:, 3] == 1), 1.25, 0.75)),
    ),
    twin("noise by the table's histograms", "law of noise", viewed, _changed_noise(_like_the_table)),
    twin("noise near the table", "law of noise", viewed, _changed_noise(_near_the_table)),
    twin("no noise for some pairs of values", "law of noise", viewed, _changed_noise(_no_pairs)),
    twin("the table's tuples first", "law of order", viewed, honest_view, order=False),
    twin(
        "FRAPP keeps twice as much",
        "law of keeping",
        viewed,
        lambda c: replaced(c.is_kept(2.0), c),
        method="frapp",
    ),
    twin(
        "FRAPP keeps women only",
        "law of keeping",
        viewed,
        lambda c: replaced(c.is_kept(np.where(c.own[:, 2] == 0, 2.0, 0.0)), c),
        method="frapp",
    ),
    twin(
        "FRAPP keeps early records more",
        "law of keeping",
        viewed,
        lambda c: replaced(c.is_kept(np.where(np.arange(N_TUPLES) < N_TUPLES / 2, 1.9, 0.1)), c),
        method="frapp",
    ),
    twin("FRAPP replaces two columns only", "law of noise", viewed, _one_column_replaced, method="frapp"),
    twin(
        "FRAPP replaces by young people only",
        "law of noise",
        viewed,
        lambda c: replaced(c.is_kept(), c, _half_column(c, c.uniform(N_TUPLES))),
        method="frapp",
    ),
]
