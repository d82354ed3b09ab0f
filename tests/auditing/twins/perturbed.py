"""Twins of perturbed releases: kept, replaced, dealt to parts or written by another law."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.mechanisms.perturb.published import read as read_parts
from tests.auditing.releases import people
from tests.auditing.twins.buckets import by_sex
from tests.auditing.twins.making import Array, Made, Rng, has, manifest_of, publish, twin, write
from tests.auditing.twins.withheld import SKEWED, skewed

N_PERTURBED = 6_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Perturbing:
    """What the coins are tossed for, in the source's order."""

    table: pa.Table
    truth: Array
    part: Array
    keep: Array
    """The probability that a record's coin keeps its value."""
    domains: tuple[Array, ...]
    rng: Rng

    def is_kept(self, factor: Any = 1.0) -> Array:
        """Coins, perhaps with another probability."""
        return np.asarray(self.rng.random(len(self.truth)) < self.keep * factor)

    def drawn(self) -> Array:
        """A value of the part's domain for every record."""
        result = np.empty(len(self.truth), dtype=np.int64)
        for part, domain in enumerate(self.domains):
            mine = self.part == part
            result[mine] = self.rng.choice(domain, int(mine.sum()))
        return result

    def values(self, kept: Array | None = None, drawn: Array | None = None) -> Array:
        """What is published."""
        kept = self.is_kept() if kept is None else kept
        return np.where(kept, self.truth, self.drawn() if drawn is None else drawn)

    def has(self, column: str, cell: str) -> Array:
        """Whose cell it is."""
        return has(self.table, column, cell)


Values = Callable[[Perturbing], Array]


def _honest_values(coins: Perturbing) -> Array:
    return coins.values()


def perturbed(
    folder: Path,
    values: Values = _honest_values,
    *,
    method: str = "uniform",
    parts: Callable[[Perturbing], Array] | None = None,
    order: Callable[[Perturbing], Array] | None = None,
    seed: int = 2,
    n_rows: int | None = None,
) -> Made:
    """The manifest of a real release, with other coins."""
    table = people(n_rows or N_PERTURBED) if method == "uniform" else skewed(n_rows or sum(SKEWED))
    promise = {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}
    path = publish(folder, table, promise, {"kind": "perturb", "method": method})
    data, stated = pq.read_table(path / "data.parquet"), read_parts(manifest_of(path))
    number = {str(text[0]): code for code, text in enumerate(stated.texts)}
    truth = np.array([number[cell] for cell in table["disease"].to_pylist()])
    place = np.empty(len(table), dtype=np.int64)
    place[table["uid"].to_numpy()] = np.arange(len(table))
    part = np.empty(len(table), dtype=np.int64)
    part[place[data["uid"].to_numpy()]] = data["part"].to_numpy() - 1
    keep = np.array([float(channel.retention) for channel in stated.channels])
    domains = tuple(np.array(channel.codes) for channel in stated.channels)
    coins = Perturbing(
        table=table, truth=truth, part=part, keep=keep[part], domains=domains, rng=np.random.default_rng(seed)
    )
    if parts is not None:
        part = parts(coins)
        coins = Perturbing(
            table=table, truth=truth, part=part, keep=keep[part], domains=domains, rng=coins.rng
        )
    texts = np.array([str(text[0]) for text in stated.texts])
    published = texts[values(coins)]
    columns = {"uid": table["uid"], "age": table["age"], "sex": table["sex"]}
    made = pa.table({**columns, "disease": published, "part": part + 1})
    by = coins.rng.random(len(table)) if order is None else order(coins)
    write(path, "data", made.take(np.argsort(by, kind="stable")))
    return path, table


def _women_twice(coins: Perturbing) -> Array:
    """Women are kept twice as often as men, the total as stated."""
    women = coins.has("sex", "F")
    factor = 1 / (1 + women.mean())
    return coins.values(coins.is_kept(np.where(women, 2 * factor, factor)))


def _next_value(coins: Perturbing) -> Array:
    return coins.values(drawn=(coins.truth + 1) % 10)


def _never_rarest(coins: Perturbing) -> Array:
    rarest = int(np.bincount(coins.truth).argmin())
    drawn = coins.drawn()
    return coins.values(
        drawn=np.where(drawn == rarest, coins.rng.integers(9, size=len(drawn)) + (rarest == 0), drawn)
    )


def _kept_more(share: float) -> Values:
    return lambda coins: coins.values(coins.is_kept() | (coins.rng.random(len(coins.truth)) < share))


def _one_value_kept(coins: Perturbing) -> Array:
    """The rarest value is always kept, the others a little less."""
    rare = coins.truth == np.bincount(coins.truth).argmin()
    return coins.values(coins.is_kept(np.where(rare, 10.0, 1 - 0.04 / 0.96)))


def _early_kept(coins: Perturbing) -> Array:
    early = np.arange(len(coins.truth)) < len(coins.truth) / 2
    return coins.values(coins.is_kept(np.where(early, 1.3, 0.7)))


def _twins_alike(coins: Perturbing) -> Array:
    """One coin for every two neighbours in the source."""
    coin = np.repeat(coins.rng.random(len(coins.truth) // 2 + 1), 2)[: len(coins.truth)]
    return coins.values(coin < coins.keep)


def _old_by_first(coins: Perturbing) -> Array:
    """The old are replaced by the first values of the list only, the young by the others."""
    old, half = coins.table["age"].to_numpy() > 50, coins.rng.integers(5, size=len(coins.truth))
    return coins.values(drawn=np.where(old, half, half + 5))


def _old_women_kept(coins: Perturbing) -> Array:
    odd = coins.has("sex", "F") == (coins.table["age"].to_numpy() > 50)
    return coins.values(coins.is_kept(np.where(odd, 1.3, 1 - 0.3 * odd.mean() / (1 - odd.mean()))))


def _by_hospital(coins: Perturbing) -> Array:
    """Each stretch of a hundred numbers has a rate of its own: too little to be seen in any one of them."""
    rate = coins.rng.uniform(0.3, 1.7, 61)
    return coins.values(coins.is_kept(rate[coins.table["uid"].to_numpy() // 100]))


def deal_parts(key: Callable[[Perturbing], Array]) -> Callable[[Perturbing], Array]:
    """As many of each value in each part, but dealt in the order of a key."""

    def parts(coins: Perturbing) -> Array:
        by = key(coins)
        order = np.lexsort((by, coins.truth))
        dealt = np.lexsort((coins.part, coins.truth))
        part = np.empty(len(coins.part), dtype=np.int64)
        part[order] = coins.part[dealt]
        return part

    return parts


PERTURBATION = [
    twin("always the next value", "law of values", perturbed, _next_value),
    twin("women kept twice as often", "law of values", perturbed, _women_twice),
    twin("nothing becomes the rarest", "law of values", perturbed, _never_rarest),
    twin("5 % more kept", "retention", perturbed, _kept_more(0.06)),
    twin("a quarter less kept", "law of values", perturbed, lambda c: c.values(c.is_kept(0.75))),
    twin("the rarest always kept", "law of values", perturbed, _one_value_kept),
    twin("early records kept more", "law of values", perturbed, _early_kept),
    twin("one coin for two neighbours", "law of values", perturbed, _twins_alike),
    twin("the old replaced by some values only", "law of values", perturbed, _old_by_first),
    twin("old women and young men kept more", "law of values", perturbed, _old_women_kept),
    twin("a rate for every hundred numbers", "law of values", perturbed, _by_hospital),
    twin(
        "parts dealt by sex",
        "law of parts",
        perturbed,
        method="small-domain",
        parts=deal_parts(lambda c: by_sex(c.table, c.truth, c.rng)),
    ),
    twin(
        "parts dealt in the source's order",
        "law of parts",
        perturbed,
        method="small-domain",
        parts=deal_parts(lambda c: np.arange(len(c.truth))),
    ),
    twin(
        "parts dealt by age",
        "law of parts",
        perturbed,
        method="small-domain",
        parts=deal_parts(lambda c: c.table["age"].to_numpy()),
    ),
    twin(
        "perturbed rows in the source's order",
        "source order",
        perturbed,
        order=lambda c: np.arange(len(c.truth)),
    ),
    twin(
        "perturbed rows by true value",
        "law of order",
        perturbed,
        order=lambda c: c.truth + c.rng.random(len(c.truth)),
    ),
    twin(
        "perturbed rows in blocks of the source",
        "law of order",
        perturbed,
        order=lambda c: c.rng.random(len(c.truth) // 8 + 1)[np.arange(len(c.truth)) // 8],
    ),
]
