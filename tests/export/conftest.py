from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.release.folder import StoredRelease
from tests.export import server

SENSITIVE = ["dis'ease", "severity"]


def awkward(n: int = 400) -> pa.Table:
    """NULLs, quotes, line breaks, empty texts, unicode, and names that need quoting."""
    rng = np.random.default_rng(8)
    texts = [None, "", "NULL", "O'Hara", 'say "ah"', "a,b;c", "two\nlines", "日本 ☂ é", "{x}", "%s $1", "\\N"]
    disease = rng.choice(["Cold", "Flu", "Gout", "Zö'ster", ""], n, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    return pa.table(
        {
            "age": rng.integers(20, 70, n),
            "zip code": pa.array(rng.choice(np.array(texts, dtype=object), n), pa.string()),
            'the "Best" Größe %s {0}': pa.array(rng.normal(70, 9, n), mask=rng.random(n) < 0.2),
            "size": pa.array(rng.integers(0, 200, n), pa.uint8()),
            "gamma": pa.array(rng.random(n) < 0.5, pa.bool_()),
            "since": pa.array([datetime.date(2020, 1, 1 + int(i)) for i in rng.integers(0, 28, n)]),
            "fee": pa.array([Decimal(int(i)) / 4 for i in rng.integers(-9, 9, n)], pa.decimal128(9, 2)),
            "dis'ease": pa.array(disease, pa.string(), mask=disease == ""),
            "severity": pa.array(rng.integers(1, 3, n), pa.int32()),
        }
    )


SUBJECTS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "bucketize": ({"kind": "l-diversity", "l": 3}, {"kind": "bucketize"}),
    "fakes": ({"kind": "l-diversity", "l": 3}, {"kind": "bucketize", "fakes": 1}),
    "perturb": ({"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}, {"kind": "perturb"}),
}
"""Promise and mechanism of every release that the tests export."""


def publish(
    table: pa.Table, path: Path, promise: dict[str, object], mechanism: dict[str, object]
) -> StoredRelease:
    policy = {
        "source": table,
        "release": str(path),
        "columns": {"quasi": [c for c in table.column_names if c not in SENSITIVE], "sensitive": SENSITIVE},
        "promise": promise,
        "mechanism": mechanism,
    }
    return dalenius.publish(dalenius.Policy.from_dict(policy), seed=4, yes=True).stored


@pytest.fixture(scope="session")
def table() -> pa.Table:
    return awkward()


@pytest.fixture(scope="session")
def releases(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> dict[str, StoredRelease]:
    folder = tmp_path_factory.mktemp("releases")
    return {
        name: publish(table, folder / f"{name}.release", promise, mechanism)
        for name, (promise, mechanism) in SUBJECTS.items()
    }


@pytest.fixture(scope="session", params=list(SUBJECTS))
def release(request: pytest.FixtureRequest, releases: dict[str, StoredRelease]) -> StoredRelease:
    return releases[request.param]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The connection string of a server of our own."""
    pytest.importorskip("adbc_driver_postgresql", reason="the extra `postgres` is not installed")
    if reason := server.missing():
        pytest.skip(reason)
    with server.running_server() as uri:
        yield uri
