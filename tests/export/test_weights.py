"""SUM(weight) over the exported view is what `ask` answers, in every database."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from dalenius.ask import ask
from dalenius.export import export_release
from dalenius.release.folder import StoredRelease
from tests.export.server import query_all

ESTIMATORS = {"bucketize": "anatomy", "perturb": None}
# The same text in Dalenius, DuckDB and PostgreSQL.
CONDITIONS = [
    "TRUE",
    "FALSE",
    "age > 45",
    "\"dis'ease\" = 'Flu'",
    '"dis\'ease" IS NULL',
    "age < 40 AND \"dis'ease\" = 'Zö''ster'",
    "severity = 2 AND NOT gamma",
    "severity * 20 > age",
    '"zip code" IS NULL OR "dis\'ease" <> \'Cold\' AND severity = 1',
    "\"zip code\" = 'O''Hara' AND \"dis'ease\" IN ('Gout', 'Flu')",
    '"the ""Best"" Größe %s {0}" > 70 AND size > 100',
    "since >= DATE '2020-01-15' AND fee < 0 AND severity = 1",
]


def asked(release: StoredRelease, aggregate: str, condition: str) -> float:
    sql = f"SELECT {aggregate} FROM t WHERE {condition}"
    (row,) = ask(release, sql, estimator=ESTIMATORS[release.mechanism]).rows
    return 0.0 if row.estimate is None else row.estimate  # a SUM over nobody is NULL


@pytest.fixture(scope="module")
def file(release: StoredRelease, tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    target = tmp_path_factory.mktemp("exported") / "out.duckdb"
    export_release(release, target)
    return duckdb.connect(str(target), read_only=True)


@pytest.mark.parametrize("condition", CONDITIONS)
def test_sums_of_weights_in_duckdb(
    release: StoredRelease, file: duckdb.DuckDBPyConnection, condition: str
) -> None:
    found = file.execute(
        f"SELECT coalesce(sum(weight), 0), coalesce(sum(weight * age), 0) FROM weighted WHERE {condition}"
    ).fetchone()
    expected = (asked(release, "COUNT(*)", condition), asked(release, "SUM(age)", condition))
    assert found == pytest.approx(expected, abs=1e-7)


def test_sums_of_weights_in_postgresql(release: StoredRelease, postgres: str) -> None:
    view = export_release(release, postgres, name=f'the "{release.path.stem}" Weights').view
    assert view == f'"the ""{release.path.stem}"" Weights".weighted'
    sums = query_all(
        postgres,
        [f"SELECT coalesce(sum(weight), 0) FROM {view} WHERE {condition}" for condition in CONDITIONS],
    )
    for condition, found in zip(CONDITIONS, sums, strict=True):
        assert found[0] == pytest.approx(asked(release, "COUNT(*)", condition), abs=1e-7), condition


def test_groups(release: StoredRelease, file: duckdb.DuckDBPyConnection) -> None:
    sql = 'SELECT "dis\'ease", gamma, COUNT(*) FROM t GROUP BY "dis\'ease", gamma'
    answer = ask(release, sql, estimator=ESTIMATORS[release.mechanism])
    expected = {tuple(value for _, value in row.group): row.estimate for row in answer.rows}
    rows = file.execute('SELECT "dis\'ease", gamma, sum(weight) FROM weighted GROUP BY ALL').fetchall()
    assert {row[:2]: row[2] for row in rows} == pytest.approx(expected, abs=1e-7)


def test_every_record_counts_one(release: StoredRelease, file: duckdb.DuckDBPyConnection) -> None:
    """So that a sum of weights without a condition is the number of records, exactly."""
    ages = file.execute("SELECT age, sum(weight) FROM weighted GROUP BY age").fetchall()
    table = "qit" if release.mechanism == "bucketize" else "data"
    counted = file.execute(f"SELECT age, count(*) FROM {table} GROUP BY age").fetchall()
    assert dict(ages) == pytest.approx(dict(counted))


def test_the_view_does_not_depend_on_the_files_name(release: StoredRelease, tmp_path: Path) -> None:
    export_release(release, tmp_path / "out.duckdb")
    (tmp_path / "out.duckdb").rename(tmp_path / "moved.duckdb")
    connection = duckdb.connect()
    connection.execute(f"ATTACH '{tmp_path / 'moved.duckdb'}' AS other (READ_ONLY)")
    (total,) = connection.execute("SELECT sum(weight) FROM other.weighted").fetchall()
    assert total[0] == pytest.approx(release.manifest.rows.published)
