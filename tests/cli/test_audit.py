"""`dalenius audit` as people and programs call it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from dalenius.cli.main import run
from tests.auditing.releases import deal, people, write_release


def test_the_command_prints_a_table_and_exits_3_on_a_broken_bound(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = people(400)
    pq.write_table(table, tmp_path / "people.parquet")
    for name, bucket in (("good", deal(table, 5, np.random.default_rng(1))), ("leak", np.arange(400))):
        write_release(tmp_path, table, bucket, rng=np.random.default_rng(2), name=name)
        arguments = [
            "audit",
            str(tmp_path / name),
            "--original",
            str(tmp_path / "people.parquet"),
            "--seed",
            "1",
        ]
        assert run(arguments) == (0 if name == "good" else 3)
        printed = capsys.readouterr().out
        assert ("BROKEN by linking" in printed) == (name == "leak")
        run([*arguments, "--json"])
        found = json.loads(capsys.readouterr().out)
        assert found["private"] is True
        assert {"name", "success", "low", "high", "baseline", "control", "bound", "holds"} <= set(
            found["attacks"][0]
        )
