"""A small survey, and policies that publish views of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius import Policy

DOMAINS = {"age": "20..39", "sex": ["F", "M"], "zip": "1..30", "ill": ["cold", "flu", "hiv", "NULL"]}


def survey(n_rows: int = 300, seed: int = 1) -> pa.Table:
    """Rows that hardly ever repeat; illness goes with age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 40, n_rows)
    ill = np.where(age > 30, rng.choice(["flu", "hiv"], n_rows), rng.choice(["cold", "flu"], n_rows))
    return pa.table(
        {
            "age": age,
            "sex": rng.choice(["F", "M"], n_rows),
            "zip": rng.integers(1, 31, n_rows),
            "ill": pa.array([None if a == 25 else i for a, i in zip(age, ill, strict=True)]),
        }
    )


def policy(release: Path | str, table: Any = None, **changes: Any) -> Policy:
    """A policy for the survey; keys of `changes` are sections, or entries of [mechanism]."""
    sections: dict[str, Any] = {
        key: changes.pop(key) for key in ("promise", "domains", "columns", "recode") if key in changes
    }
    if changes.pop("active", False):
        changes["domains"] = "active"
    data: dict[str, Any] = {
        "source": survey() if table is None else table,
        "release": str(release),
        "columns": {"quasi": ["age", "sex", "zip"], "sensitive": ["ill"]},
        "domains": DOMAINS,
        "promise": {"kind": "d-gamma-privacy", "d": 0.02, "gamma": 0.3},
        "mechanism": {"kind": "alpha-beta", "duplicates": "distinct", **changes},
        "ledger": {"path": str(Path(release).parent / "ledger")},
        **sections,
    }
    return Policy.from_dict(data)
