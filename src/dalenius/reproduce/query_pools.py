"""The papers' pools of count queries: conditions on quasi-identifiers, and what sensitive values to count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from dalenius.reproduce.census import Microdata

Rows = NDArray[np.int64]

MOST_COLUMNS = 7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """A count of records: A ∈ {…} for some quasi-identifiers, SA ∈ {…}."""

    quasi: dict[str, NDArray[np.int64]]
    sensitive: NDArray[np.bool_]
    """Which sensitive values are counted."""

    def rows(self, data: Microdata) -> Rows:
        """The records that satisfy the conditions on quasi-identifiers."""
        found: NDArray[np.bool_] | None = None
        for name, chosen in self.quasi.items():
            is_member = np.zeros(data.domains[name], dtype=bool)
            is_member[chosen] = True
            satisfies = is_member[data.quasi[name]]
            found = satisfies if found is None else found & satisfies
        return np.arange(data.n_rows) if found is None else np.flatnonzero(found)


def anatomy_pool(
    data: Microdata, n_queries: int, stream: np.random.Generator, selectivity: float = 0.01
) -> Iterator[Query]:
    """Anatomy's pool: an OR of b = ⌈|A|·s^(1/(qd+1))⌉ random values for qd columns (1 to 7) and for SA."""
    names, n_values = list(data.quasi), len(data.counts)
    for _ in range(n_queries):
        n_columns = int(stream.integers(1, min(MOST_COLUMNS, len(names)) + 1))
        share = selectivity ** (1 / (n_columns + 1))
        chosen = stream.choice(len(names), n_columns, replace=False)
        is_counted = np.zeros(n_values, dtype=bool)
        is_counted[_some(n_values, share, stream)] = True
        yield Query(
            quasi={names[i]: _some(data.domains[names[i]], share, stream) for i in chosen},
            sensitive=is_counted,
        )


def equality_pool(data: Microdata, n_conditions: int, stream: np.random.Generator) -> Iterator[Query]:
    """The perturbation paper's pool (10.9): A = a for 1 to 3 random columns, for each sensitive value."""
    names, every = list(data.quasi), np.ones(len(data.counts), dtype=bool)
    for _ in range(n_conditions):
        chosen = stream.choice(len(names), int(stream.integers(1, 4)), replace=False)
        equal = {names[i]: stream.integers(data.domains[names[i]], size=1) for i in chosen}
        yield Query(quasi=equal, sensitive=every)


def _some(n_values: int, share: float, stream: np.random.Generator) -> NDArray[np.int64]:
    return stream.choice(n_values, ceil(n_values * share), replace=False)
