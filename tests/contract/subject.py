"""What the contract suite publishes: it collects the SUBJECTS of every mechanism's tests."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import dalenius
from dalenius import Policy
from dalenius.arrays import Ints
from dalenius.engines.base import Engine
from dalenius.engines.registry import engine_named
from dalenius.mechanisms.registry import register
from dalenius.sql import connect, identifier
from dalenius.tables.source import open_source


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One way of publishing: a promise and a mechanism, applied to any table with these roles."""

    name: str
    promise: dict[str, Any]
    mechanism: dict[str, Any] = field(default_factory=dict)
    suppress: dict[str, Any] | None = None
    record_table: str
    """The table that holds one row per published record."""
    keeps_every_row: bool = True
    """Whether every source row is published, with its quasi-identifiers as they are."""

    is_sorted: bool = False
    """Whether rows are in the order of their cells, which then says nothing about the source's order."""

    allows_certainty: bool
    """Whether the promise can be kept when all records have one value."""
    fewest_rows: int = 1
    """With fewer rows nothing can be published."""
    declares_domains: bool = False
    package: str | None = None
    """Where the rooms of a mechanism are that is not built in."""
    spark: Literal["contract", "connect"] | None = None
    """Whether it also runs on Spark: in the whole suite, or only with Spark Connect."""
    engine: str = "local"
    group_rows: int = 400
    """On Spark: so few that a small table has several groups, and so many that it has few."""

    def policy(self, table: Any, release: Path, **columns: Any) -> Policy:
        roles = columns or {"quasi": ["uid", "age"], "sensitive": ["disease"]}
        published = [*roles["quasi"], *roles["sensitive"]]
        domains = {"domains": declared(table, published)} if self.declares_domains else {}
        return Policy.from_dict(
            {
                **domains,
                "source": table,
                "release": str(release),
                "columns": roles,
                "promise": self.promise,
                "mechanism": self.mechanism,
                **({} if self.suppress is None else {"suppress": self.suppress}),
            }
        )

    def joined(self) -> AbstractContextManager[None]:
        """While it lasts, the mechanism is known."""
        return nullcontext() if self.package is None else register(self.mechanism["kind"], self.package)

    def publish(
        self, policy: Policy, seed: int | None = None, again: bool = False, yes: bool = False
    ) -> dalenius.Release:
        return dalenius.publish(policy, seed=seed, again=again, yes=yes, engine=self.chosen_engine())

    def chosen_engine(self) -> Engine:
        engine = engine_named(self.engine)
        if self.engine == "local":
            return engine
        return replace(engine, group_rows=self.group_rows)  # type: ignore[type-var]


def declared(table: Any, columns: list[str]) -> dict[str, list[str]]:
    """Each column's values as a publisher would list them."""
    with connect() as connection:
        source = open_source(table).scan(connection)
        return {
            name: [
                "NULL" if cell is None else cell
                for (cell,) in connection.execute(
                    f"SELECT DISTINCT {identifier(name)}::VARCHAR AS v FROM {source} ORDER BY v"
                ).fetchall()
            ]
            for name in columns
        }


def _numbers(n_rows: int) -> Ints:
    return np.random.default_rng(1).permutation(n_rows)


def source_rows(uid: Ints, n_rows: int) -> Ints:
    """Where people with these numbers are in the table of so many."""
    return np.asarray(np.argsort(_numbers(n_rows))[uid])


def people(n_rows: int = 600) -> pa.Table:
    """A table sorted by its sensitive column: the worst case for anything that leaks order.

    Numbers in that order would tell the disease, and be refused; these do not.
    """
    diseases = ["Angina", "Bronchitis", "Cold", "Diphtheria", "Eczema"]
    return pa.table(
        {
            "uid": _numbers(n_rows),
            "age": [20 + row * 7 % 60 for row in range(n_rows)],
            "disease": sorted(diseases[row % 5 if row % 3 else row % 2] for row in range(n_rows)),
        }
    )
