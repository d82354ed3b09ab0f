"""A sensitive column of many numbers: what it means is said, and bins are proposed that take every number."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.inspection.looking import inspect_source
from dalenius.tables.source import open_source


def table(n: int = 1_000) -> pa.Table:
    rng = np.random.default_rng(4)
    return pa.table(
        {"dept": rng.integers(0, 3, n), "salary": np.exp(10.6 + 0.4 * rng.normal(size=n)).round(2)}
    )


def test_bins_are_round_and_hold_everybody(tmp_path: Path) -> None:
    people = table()
    found = inspect_source(open_source(people), ["salary"]).numbers
    assert found is not None
    assert 6 <= len(found.bins.edges) <= 12
    assert all(edge % 1_000 == 0 for edge in found.bins.edges)
    counts = np.histogram(people["salary"].to_numpy(), [float(edge) for edge in found.bins.edges])[0]
    assert counts.sum() == len(people)
    assert counts.max() < 0.3 * len(people)
    release = dalenius.publish(
        dalenius.Policy.from_dict(
            {
                "source": people,
                "release": str(tmp_path / "r"),
                "columns": {"quasi": ["dept"], "sensitive": ["salary"]},
                "recode": {"salary": {"bins": [float(edge) for edge in found.bins.edges]}},
                "promise": {"kind": "l-diversity", "l": 3},
                "mechanism": {"kind": "bucketize"},
            }
        )
    )
    assert release.verify(strict=True).ok


@pytest.mark.parametrize("cells", [["a", "b"] * 500, list(range(20)) * 50])
def test_other_secrets_have_none(cells: list[object]) -> None:
    source = open_source(pa.table({"dept": [1] * len(cells), "x": cells}))
    assert inspect_source(source, ["x"]).numbers is None


def test_inspect_and_init_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pay.parquet"
    pq.write_table(table(), path)
    assert run(["inspect", str(path), "--sensitive", "salary"]) == 0
    assert "recode it into bins: salary = { bins = [" in capsys.readouterr().out
    assert run(["inspect", str(path), "--sensitive", "salary", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["numbers"]["column"] == "salary"
    policy = tmp_path / "pay.toml"
    assert run(["init", str(path), "--sensitive", "salary", "--out", str(policy)]) == 0
    assert "# salary = { bins = [" in policy.read_text(encoding="utf-8")
