"""Anatomy's workload: counts over random values of 1 to 7 quasi columns and of the sensitive column.

Each column is restricted to b = ⌈|A|·s^(1/(qd+1))⌉ random values of its domain, s = the expected selectivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from dalenius.policy import Policy
from dalenius.publishing import write_release
from dalenius.release.reader import StoredRelease
from dalenius.sql import identifier, literal


@dataclass(frozen=True, slots=True, kw_only=True)
class CountQuestion:
    """Chosen codes of some quasi columns, and of the sensitive one."""

    quasi: tuple[tuple[str, tuple[int, ...]], ...]
    sensitive: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Microdata:
    """A table with its columns as codes."""

    table: pa.Table
    sensitive: str
    codes: dict[str, np.ndarray]
    values: dict[str, list[object]]

    @classmethod
    def of(cls, table: pa.Table, sensitive: str) -> Microdata:
        """Encode a table."""
        encoded = {c: table.column(c).combine_chunks().dictionary_encode() for c in table.column_names}
        return cls(
            table=table,
            sensitive=sensitive,
            codes={c: e.indices.to_numpy() for c, e in encoded.items()},
            values={c: e.dictionary.to_pylist() for c, e in encoded.items()},
        )

    @property
    def quasi(self) -> list[str]:
        """The other columns."""
        return [c for c in self.table.column_names if c != self.sensitive]

    def questions(self, n: int, rng: np.random.Generator, selectivity: float = 0.01) -> list[CountQuestion]:
        """A random workload."""
        return [self._question(rng, selectivity) for _ in range(n)]

    def _question(self, rng: np.random.Generator, selectivity: float) -> CountQuestion:
        qd = int(rng.integers(1, min(7, len(self.quasi)) + 1))
        columns = sorted(rng.choice(self.quasi, qd, replace=False).tolist(), key=self.quasi.index)
        share = selectivity ** (1 / (qd + 1))

        def some(column: str) -> tuple[int, ...]:
            size = len(self.values[column])
            return tuple(sorted(rng.choice(size, ceil(size * share), replace=False).tolist()))

        return CountQuestion(
            quasi=tuple((column, some(column)) for column in columns), sensitive=some(self.sensitive)
        )

    def sql(self, question: CountQuestion, table: str = "t") -> str:
        """The question as SQL."""
        parts = [
            f"{identifier(column)} IN ({', '.join(_literal(self.values[column][code]) for code in chosen)})"
            for column, chosen in (*question.quasi, (self.sensitive, question.sensitive))
        ]
        return f"SELECT COUNT(*) FROM {table} WHERE {' AND '.join(parts)}"

    def rows(self, question: CountQuestion) -> np.ndarray:
        """The rows that satisfy the conditions on quasi columns."""
        found = np.ones(self.table.num_rows, dtype=bool)
        for column, chosen in question.quasi:
            member = np.zeros(len(self.values[column]), dtype=bool)
            member[list(chosen)] = True
            found &= member[self.codes[column]]
        return np.flatnonzero(found)


def _literal(value: object) -> str:
    return literal(value) if isinstance(value, str) else str(value)


def load(data: Path, name: str) -> Microdata:
    """Adult with occupation, or KDD workers with occupation_code."""
    if name == "adult":
        return Microdata.of(csv.read_csv(data / "adult.csv"), "occupation")
    return Microdata.of(csv.read_csv(data / "kdd_workers.csv.gz"), "occupation_code")


def publish(
    microdata: Microdata, theta: int, folder: Path, seed: int, *, regions: bool = False
) -> StoredRelease:
    """A bucketized release with thresholds θ·f + 0.02 and the least loss."""
    policy = Policy.from_dict(
        {
            "source": microdata.table,
            "release": str(folder / f"theta{theta}-{seed}.release"),
            "columns": {"quasi": microdata.quasi, "sensitive": [microdata.sensitive]},
            "promise": {"kind": "f-privacy", "default": {"times": theta, "plus": "0.02"}},
            "mechanism": {"kind": "bucketize", "method": "optimal", "max_bucket": 50, "regions": regions},
        }
    )
    return write_release(policy, seed=seed).release


def enlarge(microdata: Microdata, n: int, rng: np.random.Generator) -> Microdata:
    """`n` rows drawn from the table."""
    rows = pa.array(rng.integers(microdata.table.num_rows, size=n))
    return Microdata.of(microdata.table.take(rows).combine_chunks(), microdata.sensitive)


__all__ = ["CountQuestion", "Microdata", "enlarge", "load", "publish"]
