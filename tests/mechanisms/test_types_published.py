"""Cells of every type come out of publishing, asking and exporting as they went in, with every mechanism."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dalenius
from dalenius.export import export_release
from tests.tables.type_table import ARROW, look

N_ROWS = 60
READ = {name: look(pa.table({"x": cells})) for name, cells in ARROW.items()}
TYPES = [name for name, found in READ.items() if found.error is None and name != "null"]
LISTED = [name for name in TYPES if READ[name].has_domain]
KEPT: dict[str, dict[str, Any]] = {
    "bucketize": {"promise": {"kind": "l-diversity", "l": 2}},
    "suppress": {"promise": {"kind": "l-diversity", "l": 2}, "suppress": {"method": "safe"}},
    "perturb": {"promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "9/10"}},
}
ROWS = {"promise": {"kind": "d-gamma-privacy", "d": "1/1000", "gamma": "4/5"}}
DRAWN = {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"}


def table(names: list[str]) -> pa.Table:
    columns = {
        f"c{i}": ARROW[name].take(pa.array([(row + i) % len(ARROW[name]) for row in range(N_ROWS)]))
        for i, name in enumerate(names)
    }
    return pa.table({**columns, "secret": [2**62 + row % 5 for row in range(N_ROWS)]})


def expected(names: list[str]) -> dict[str, list[Any]]:
    """The cells as a source of them is read: a UUID is its text, for example."""
    return {
        f"c{i}": [READ[name].cells[(row + i) % len(ARROW[name])] for row in range(N_ROWS)]
        for i, name in enumerate(names)
    }


def publish(folder: Path, names: list[str], **sections: Any) -> dalenius.Release:
    quasi = [f"c{i}" for i in range(len(names))]
    columns = {"quasi": quasi, "sensitive": ["secret"]}
    data = {"source": table(names), "release": str(folder / "r"), "columns": columns, **sections}
    release = dalenius.publish(dalenius.Policy.from_dict(data), seed=1)
    assert release.verify().ok
    return release


def exported(release: dalenius.Release, folder: Path, columns: list[str]) -> dict[str, list[Any]]:
    """The record table of a DuckDB export."""
    export_release(release.stored, folder / "x.duckdb")
    with duckdb.connect(str(folder / "x.duckdb")) as database:
        database.execute("SET TimeZone = 'UTC'")
        tables = [name for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
        (records,) = [name for name in tables if name in ("qit", "data", "view")]
        listed = ", ".join(columns)
        found: dict[str, list[Any]] = (
            database.sql(f"SELECT {listed} FROM {records}").to_arrow_table().to_pydict()
        )
    return found


@pytest.mark.parametrize("way", KEPT)
def test_quasi_cells_are_the_sources(way: str, tmp_path: Path) -> None:
    release = publish(tmp_path, TYPES, **KEPT[way])
    known, names = expected(TYPES), [f"c{i}" for i in range(len(TYPES))]
    found = exported(release, tmp_path, names)
    for name in names:
        assert Counter(map(repr, found[name])) == Counter(map(repr, known[name])), TYPES[names.index(name)]
    groups = release.ask("SELECT c2, COUNT(*) FROM t GROUP BY c2")
    assert {dict(row.group)["c2"] for row in groups.rows} == set(known["c2"])
    (total,) = release.ask("SELECT SUM(secret) FROM t").rows
    assert total.estimate == pytest.approx(sum(table([])["secret"].to_pylist()), rel=0.1)


@pytest.mark.parametrize("method", ["alpha-beta", "frapp"])
@pytest.mark.parametrize("start", range(0, len(LISTED), 6))
def test_cells_of_drawn_rows_are_of_the_domain(method: str, start: int, tmp_path: Path) -> None:
    names = LISTED[start : start + 6]
    release = publish(tmp_path, names, **ROWS, mechanism={**DRAWN, "method": method})
    known, columns = expected(names), [f"c{i}" for i in range(len(names))]
    found = exported(release, tmp_path, columns)
    for name in columns:
        assert set(map(repr, found[name])) <= set(map(repr, known[name])), names[columns.index(name)]
    (total,) = release.ask("SELECT SUM(secret) FROM t").rows
    assert total.estimate is not None
