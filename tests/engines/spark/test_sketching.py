"""A ledger knows people whichever engine published them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import PromiseNotMet
from tests.people import KEY, people
from tests.release.test_people import policy, replaced
from tests.tables.sketching.test_pieces import content

pytest.importorskip("pyspark")

from dalenius.engines.spark.engine import SparkEngine

N = 400


def _sketches(source: Any, tmp_path: Path) -> list[Any]:
    found = []
    for engine in (LocalEngine(), SparkEngine()):
        with engine.open(policy(tmp_path / "r", source), None, silent) as scan:
            made = scan.sketch(KEY)
            assert made is not None
            found.append(content(made))
    return found


def test_both_engines_make_the_same_sketch(spark: Any, tmp_path: Path) -> None:
    table = people(N, 1)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=90)
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    for source in (table, str(tmp_path / "t.parquet"), str(tmp_path / "t.csv")):
        local, cluster = _sketches(source, tmp_path)
        assert local == cluster


def test_people_published_by_one_engine_are_known_to_the_other(spark: Any, tmp_path: Path) -> None:
    table = people(N, 1)
    edited = replaced(table.slice(1), "age", table.slice(1)["age"].cast("string"))
    other = people(N, 77)
    for first, second, who in (("local", "spark", table), ("spark", "local", other)):
        dalenius.publish(policy(tmp_path / f"{first} one", who), engine=first)
        again = edited if who is table else pa.concat_tables([other, people(1, 99)])
        with pytest.raises(PromiseNotMet, match="published before"):
            dalenius.publish(policy(tmp_path / "two", again), engine=second)
    assert not (tmp_path / "two").exists()
