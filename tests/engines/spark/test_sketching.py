"""A ledger knows people whichever engine published them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import PromiseNotMet
from tests.people import KEY, people
from tests.release.test_people import EDITS, policy, replaced
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


SEEN_BY_SPARK = (
    "columns renamed",
    "numbers as texts",
    "half of the people",
    "two sensitive values",
    "two columns dropped",
)
"""One of each kind; tests/tables/sketching/test_pieces.py has all of them, in pieces as Spark makes them."""


def test_edits_of_a_table_do_not_hide_its_people_from_spark(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published by Spark once; edited tables are refused by Spark, and one by the local engine."""
    monkeypatch.chdir(tmp_path)
    table = people(N, 1)
    dalenius.publish(policy(tmp_path / "one", table), engine="spark", yes=True)
    for name in (*SEEN_BY_SPARK, "one person more"):
        edited, changes = EDITS[name](table)
        engine = "local" if name == "one person more" else "spark"
        with pytest.raises(PromiseNotMet, match="published before"):
            dalenius.publish(policy(tmp_path / "two", edited, **changes), engine=engine, yes=True)
        assert not (tmp_path / "two").exists(), name


def test_people_published_by_the_local_engine_are_known_to_spark(spark: Any, tmp_path: Path) -> None:
    table = people(N, 1)
    edited = replaced(table.slice(1), "age", table.slice(1)["age"].cast("string"))
    dalenius.publish(policy(tmp_path / "one", table))
    with pytest.raises(PromiseNotMet, match="published before"):
        dalenius.publish(policy(tmp_path / "two", edited), engine="spark")
    assert not (tmp_path / "two").exists()
