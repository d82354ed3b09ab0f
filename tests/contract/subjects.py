"""The mechanisms that must pass the contract suite. A new mechanism adds its subjects here."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import dalenius
from dalenius import Policy
from dalenius.engines.base import Engine
from dalenius.engines.registry import engine_named
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

    def publish(self, policy: Policy, seed: int | None = None, again: bool = False) -> dalenius.Release:
        return dalenius.publish(policy, seed=seed, again=again, engine=self.chosen_engine())

    def chosen_engine(self) -> Engine:
        engine = engine_named(self.engine)
        if self.engine == "local":
            return engine
        return replace(engine, group_rows=self.group_rows)  # type: ignore[type-var]


def _bucketize(method: str, promise: dict[str, Any], **more: Any) -> Subject:
    return Subject(
        name=f"bucketize {method} {promise['kind']}{' regions' if more else ''}",
        promise=promise,
        mechanism={"kind": "bucketize", "method": method, **more},
        record_table="qit",
        allows_certainty=promise["kind"] == "f-privacy",  # min(1, 2·1 + 0.05) = 1
    )


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


def _view(name: str, promise: dict[str, Any], mechanism: dict[str, Any], **more: Any) -> Subject:
    return Subject(
        name=f"alpha-beta {name}",
        promise={"kind": "d-gamma-privacy", "gamma": 0.3, **promise},
        mechanism={"kind": "alpha-beta", **mechanism},
        record_table="view",
        keeps_every_row=False,
        is_sorted=True,
        group_rows=1_500,  # the noise decides how many groups there are
        allows_certainty=True,  # a value that everybody has is not a tuple that somebody has
        **more,
    )


def _perturb(method: str) -> Subject:
    return Subject(
        name=f"perturb {method}",
        promise={"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"},
        mechanism={"kind": "perturb", "method": method},
        record_table="data",
        allows_certainty=False,
    )


def _suppressed(method: str) -> Subject:
    """30 % of the people have one value: too many for l = 4."""
    return Subject(
        name=f"suppress {method}, bucketize",
        promise={"kind": "l-diversity", "l": 4},
        mechanism={"kind": "bucketize"},
        suppress={"method": method},
        record_table="qit",
        keeps_every_row=False,
        allows_certainty=False,
    )


LINEAR = {"kind": "f-privacy", "default": {"times": 2, "plus": 0.05}}
DIVERSE = {"kind": "l-diversity", "l": 2}
SUBJECTS = [
    _bucketize("optimal", LINEAR),
    _bucketize("optimal", DIVERSE),
    _bucketize("two-size", LINEAR),
    _bucketize("multi-size", LINEAR),
    _bucketize("anatomy", DIVERSE),
    _bucketize("optimal", LINEAR, regions=True),
    _bucketize("two-size", DIVERSE, regions=60),
    _view("distinct, declared", {"d": 0.01}, {"duplicates": "distinct"}, declares_domains=True),
    _view("distinct, active", {"k": 0.25}, {"duplicates": "distinct", "domains": "active"}, fewest_rows=2),
    _view("copies", {"d": 0.01}, {"duplicates": "copies", "domains": "active"}),
    _view("frapp", {"d": 0.01}, {"method": "frapp", "domains": "active"}, fewest_rows=2),
    _suppressed("safe"),
    _suppressed("randomized"),
    _suppressed("exact"),
    _perturb("small-domain"),
    _perturb("least-variance"),
    _perturb("uniform"),
]


def _on_spark(*names: str) -> list[Subject]:
    return [
        replace(subject, name=f"{subject.name}, on Spark", engine="spark")
        for subject in SUBJECTS
        if subject.name in names
    ]


SPARK_SUBJECTS = _on_spark(
    "bucketize optimal f-privacy",
    "suppress safe, bucketize",
    "perturb small-domain",
    "alpha-beta distinct, declared",
)
ALSO_ON_SPARK = _on_spark("alpha-beta copies", "alpha-beta frapp")


def people(n_rows: int = 600) -> pa.Table:
    """A table sorted by its sensitive column: the worst case for anything that leaks order."""
    diseases = ["Angina", "Bronchitis", "Cold", "Diphtheria", "Eczema"]
    return pa.table(
        {
            "uid": list(range(n_rows)),
            "age": [20 + row * 7 % 60 for row in range(n_rows)],
            "disease": sorted(diseases[row % 5 if row % 3 else row % 2] for row in range(n_rows)),
        }
    )
