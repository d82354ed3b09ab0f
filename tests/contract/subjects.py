"""The mechanisms that must pass the contract suite. A new mechanism adds its subjects here."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One way of publishing: a promise and a mechanism, applied to any table with these roles."""

    name: str
    promise: dict[str, Any]
    mechanism: dict[str, Any] = field(default_factory=dict)
    record_table: str
    """The table that holds one row per published record."""
    keeps_every_row: bool = True
    """Whether every source row is published, with its quasi-identifiers as they are."""

    allows_certainty: bool
    """Whether the promise can be kept when all records have one value."""

    def policy(self, table: Any, release: Path, **columns: Any) -> Policy:
        roles = columns or {"quasi": ["uid", "age"], "sensitive": ["disease"]}
        return Policy.from_dict(
            {
                "source": table,
                "release": str(release),
                "columns": roles,
                "promise": self.promise,
                "mechanism": self.mechanism,
            }
        )


def _bucketize(method: str, promise: dict[str, Any]) -> Subject:
    return Subject(
        name=f"bucketize {method} {promise['kind']}",
        promise=promise,
        mechanism={"kind": "bucketize", "method": method},
        record_table="qit",
        allows_certainty=promise["kind"] == "f-privacy",  # min(1, 2·1 + 0.05) = 1
    )


def _perturb(method: str) -> Subject:
    return Subject(
        name=f"perturb {method}",
        promise={"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"},
        mechanism={"kind": "perturb", "method": method},
        record_table="data",
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
    _perturb("small-domain"),
    _perturb("least-variance"),
    _perturb("uniform"),
]


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
