"""Sensitive values of every type that a source can have: they are published, checked and told apart."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dalenius

_NOON = datetime.datetime(2026, 1, 31, 12)
COLUMNS = {
    "float32": pa.array([0.1, 0.2, 0.3, 3.4e38], pa.float32()),
    "not a number, and both zeros": pa.array([float("nan"), 0.0, -0.0, 1.0]),
    "parts of a second": pa.array([_NOON, _NOON.replace(microsecond=500_000), _NOON.replace(second=1), None]),
    "time zone": pa.array([_NOON.replace(hour=hour) for hour in range(4)], pa.timestamp("us", tz="UTC")),
    "small decimals": pa.array([Decimal(number).scaleb(-9) for number in range(4)], pa.decimal128(18, 10)),
    "bytes": pa.array([b"a", b"\xff", b"", None]),
    "large whole numbers": pa.array([2**64 - 1 - number for number in range(4)], pa.uint64()),
    "truth": pa.array([True, False, True, None]),
}
WAYS: dict[str, dict[str, Any]] = {
    "bucketize": {"promise": {"kind": "f-privacy", "default": {"times": 1, "plus": "1/2"}}},
    "fakes": {"promise": {"kind": "l-diversity", "l": 2}, "mechanism": {"kind": "bucketize", "fakes": 1}},
    "perturb": {"promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "9/10"}},
    "alpha-beta": {
        "promise": {"kind": "d-gamma-privacy", "d": "1/1000", "gamma": "4/5"},
        "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
    },
}
NO_DOMAIN = {"bytes", "time zone"}
"""A view's domain is published as texts, which cannot describe these."""


def policy(column: str, way: str, release: Path) -> dalenius.Policy:
    cells = COLUMNS[column]
    table = pa.table({"age": list(range(80)), "secret": pa.concat_arrays([cells] * 20)})
    columns = {"quasi": ["age"], "sensitive": ["secret"]}
    return dalenius.Policy.from_dict(
        {"source": table, "release": str(release), "columns": columns, **WAYS[way]}
    )


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("column", COLUMNS)
def test_it_is_published_and_verified(column: str, way: str, tmp_path: Path) -> None:
    chosen = policy(column, way, tmp_path / "r")
    if way == "alpha-beta" and column in NO_DOMAIN:
        with pytest.raises(dalenius.PolicyError, match="which a published domain cannot describe"):
            dalenius.publish(chosen, seed=1)
        return
    release = dalenius.publish(chosen, seed=1)
    assert release.verify().ok
    counted = release.ask("SELECT secret, COUNT(*) FROM t GROUP BY secret")
    n_values = 3 if column in ("not a number, and both zeros", "truth") else 4
    assert len(counted.rows) == n_values


def test_a_cell_that_is_not_a_number_is_not_taken_for_a_foreign_one(tmp_path: Path) -> None:
    chosen = policy("not a number, and both zeros", "bucketize", tmp_path / "r")
    dalenius.publish(chosen, seed=1)
    assert dalenius.audit(tmp_path / "r", chosen, seed=1).ok
