"""What is written: cell for cell what the release has, whole or not at all, over nothing."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import dalenius
from dalenius.errors import DaleniusError, EngineError, InputError, ReleaseCorrupt
from dalenius.export import export_release
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier
from tests.export.server import query


def published(release: StoredRelease, table: str) -> list[tuple[object, ...]]:
    return release.connect().execute(f"FROM {identifier(table)}").fetchall()


def own_tables(release: StoredRelease) -> list[str]:
    return [entry.name for entry in release.manifest.tables]


def test_duckdb_gets_every_cell(release: StoredRelease, tmp_path: Path) -> None:
    exported = export_release(release, tmp_path / "out.duckdb")
    connection = duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True)
    for table in own_tables(release):
        assert connection.execute(f"FROM {table}").fetchall() == published(release, table)
    assert dict(exported.tables) == {
        name: len(connection.execute(f"FROM {name}").fetchall()) for name, _ in exported.tables
    }
    assert [path.name for path in tmp_path.iterdir()] == ["out.duckdb"]


def test_postgresql_gets_every_cell(release: StoredRelease, postgres: str) -> None:
    exported = export_release(release, postgres)
    assert exported.view == f'"{release.path.stem}".weighted'
    for table in own_tables(release):
        found = query(postgres, f"SELECT * FROM {release.path.stem}.{table}")
        expected = published(release, table)
        assert [[_plain(cell) for cell in row] for row in found] == [
            [_plain(cell) for cell in row] for row in expected
        ]


def _plain(cell: object) -> object:
    """As the driver gives it back: numeric as text without trailing zeros."""
    if isinstance(cell, Decimal):
        return f"{cell.normalize():f}"
    return cell if cell is None or isinstance(cell, int | float | str) else str(cell)


def test_csv_gets_every_cell(release: StoredRelease, tmp_path: Path) -> None:
    """The files and the view's SQL make the same database again; an empty text is not a NULL."""
    export_release(release, tmp_path / "out")
    connection = duckdb.connect()
    for file in (tmp_path / "out").glob("*.csv"):
        connection.execute(
            f"CREATE TABLE {file.stem} AS FROM read_csv('{file}', header = true, all_varchar = true, "
            "delim = ',', quote = '\"', escape = '\"', nullstr = '', allow_quoted_nulls = false)"
        )
    names = {name for (name,) in connection.execute("SELECT table_name FROM dictionary").fetchall()}
    assert names == {path.stem for path in (tmp_path / "out").iterdir()} - {"dictionary", "about"}
    for table in own_tables(release):
        texts = release.connect().execute(f"SELECT COLUMNS(*)::VARCHAR FROM {table}").fetchall()
        assert connection.execute(f"FROM {table}").fetchall() == texts
    assert "CREATE VIEW" in (tmp_path / "out" / "weighted.sql").read_text()


@pytest.mark.parametrize("target", ["out.duckdb", "out"])
def test_the_dictionary_explains_every_column(release: StoredRelease, tmp_path: Path, target: str) -> None:
    export_release(release, tmp_path / target)
    if target == "out":
        rows = duckdb.connect().execute(f"FROM '{tmp_path / 'out' / 'dictionary.csv'}'").fetchall()
    else:
        with duckdb.connect(str(tmp_path / target)) as connection:
            rows = connection.execute("FROM dictionary").fetchall()
            columns = connection.execute(
                "SELECT table_name, column_name, data_type FROM information_schema.columns "
                "WHERE table_name NOT IN ('dictionary', 'about')"
            ).fetchall()
            assert sorted(row[:3] for row in rows) == sorted(columns)
            about = dict(connection.execute("FROM about").fetchall())
            assert "dalenius ask" in about["error bars"]
            assert "seed" in about["for publication"]
    assert all(meaning for *_, meaning in rows)


@pytest.mark.parametrize("target", ["taken.duckdb", "taken", "folder"])
def test_nothing_is_overwritten(release: StoredRelease, tmp_path: Path, target: str) -> None:
    (tmp_path / "taken.duckdb").write_text("mine")
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a file").write_text("mine")
    with pytest.raises(InputError, match=r"exists already|is not empty"):
        export_release(release, tmp_path / target)
    assert (tmp_path / "taken.duckdb").read_text() == (tmp_path / "taken").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 3


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\n=1", "＝1+1", "fine", "a=1", None, "", "'=1"]


@pytest.mark.parametrize("keep", [False, True])
def test_no_spreadsheet_runs_a_text(tmp_path: Path, keep: bool) -> None:
    n_people = 2 * len(FORMULAS)
    codes = pa.array([b"=1", b"\xff"] * len(FORMULAS))
    people = pa.table({"=id": [-n for n in range(n_people)], "code": codes, "note": FORMULAS * 2})
    policy = dalenius.Policy.from_dict(
        {
            "source": people,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["=id", "code"], "sensitive": ["note"]},
            "promise": {"kind": "l-diversity", "l": 2},
        }
    )
    dalenius.publish(policy, seed=1).export(tmp_path / "csv", keep_formulas=keep)
    with (tmp_path / "csv" / "st.csv").open(newline="", encoding="utf-8") as file:
        texts = {row["note"] for row in csv.DictReader(file)}
    with (tmp_path / "csv" / "qit.csv").open(newline="", encoding="utf-8") as file:
        heading, *rows = csv.reader(file)
    assert sorted(int(row[0]) for row in rows) == list(range(1 - n_people, 1))  # numbers stay
    assert {row[1] for row in rows} == {"=1" if keep else "'=1", r"\xFF"}
    risky = {text for text in FORMULAS if text and text[0] in "=+-@\t\n＝"}
    expected = {text or "" for text in FORMULAS} - (set() if keep else risky)
    assert texts == expected | (set() if keep else {f"'{text}" for text in risky})
    assert heading[0] == ("=id" if keep else "'=id")


def test_an_empty_folder_is_filled(release: StoredRelease, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    export_release(release, tmp_path / "out")
    assert (tmp_path / "out" / "about.csv").exists()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out.parquet", "unknown ending"),
        ("nowhere/out.duckdb", "does not exist"),
        ("mysql://ann:secret@db/x", "mysql://$"),
        ("postgresql://ann:se@cret@db/x", "not shown"),
        ("postgresql://ann:se/cret@db/x", "not shown"),
        ("postgresql://ann:secret/x", "not shown"),
        ("postgresql://ann@db/x#secret", "not shown"),
        ("postgresql://[secret/x", "not shown"),
    ],
)
def test_other_targets_are_refused(release: StoredRelease, target: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        export_release(release, target)
    assert "secret" not in str(caught.value.to_dict())


def test_a_schema_is_for_postgresql_only(release: StoredRelease, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--name"):
        export_release(release, tmp_path / "out.duckdb", name="x")


@pytest.mark.parametrize("target", ["out.duckdb", "out"])
def test_a_failure_leaves_nothing(
    release: StoredRelease, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(EngineError, match="No space left"):
        export_release(release, tmp_path / target)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_release_is_not_exported(release: StoredRelease, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in release.path.iterdir():
        (copy / file.name).write_bytes(file.read_bytes() + (b"" if file.suffix == ".json" else b"x"))
    with pytest.raises(ReleaseCorrupt, match="SHA-256 differs"):
        export_release(StoredRelease.open(copy), tmp_path / "out.duckdb")


class TestPostgres:
    """What a real server refuses, and what it never gets to see twice."""

    def test_existing_tables_are_kept(self, release: StoredRelease, postgres: str) -> None:
        schema = f"kept_{release.path.stem}"
        query(postgres, f"CREATE SCHEMA {schema}")
        query(postgres, f"CREATE VIEW {schema}.weighted AS SELECT 1 AS mine")
        with pytest.raises(InputError, match="has weighted already"):
            export_release(release, postgres, name=schema)
        assert query(postgres, f"SELECT mine FROM {schema}.weighted") == [(1,)]
        query(postgres, f"ALTER VIEW {schema}.weighted RENAME TO other")
        assert export_release(release, postgres, name=schema).view == f'"{schema}".weighted'

    def test_a_failure_leaves_no_schema(self, postgres: str, tmp_path: Path) -> None:
        """PostgreSQL cannot hold a zero character; it finds one in the second table only."""
        from tests.export.conftest import SUBJECTS, publish

        table = pa.table({"age": [1, 2, 3] * 4, "dis'ease": ["a\0", "b", "c"] * 4, "severity": [1] * 12})
        release = publish(table, tmp_path / "zero.release", *SUBJECTS["bucketize"])
        with pytest.raises(DaleniusError, match="0x00") as caught:
            export_release(release, postgres)
        assert caught.value.exit_code == 2
        assert query(postgres, "SELECT 1 FROM pg_namespace WHERE nspname = 'zero'") == []

    def test_long_names_are_refused(self, releases: dict[str, StoredRelease], postgres: str) -> None:
        with pytest.raises(InputError, match="has 64 bytes"):
            export_release(releases["perturb"], postgres, name="ü" * 32)

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("s3cret", "wr0ng", "password authentication failed"),
            ("/postgres", "/nowhere", "does not exist"),
            ("127.0.0.1:", "127.0.0.1:1", "invalid port|Connection refused|not shown"),
            ("/postgres", "/postgres?sslpassword=s3cret&nonsense=s3cret", "nonsense"),
        ],
    )
    def test_what_the_server_refuses(
        self, releases: dict[str, StoredRelease], postgres: str, old: str, new: str, message: str
    ) -> None:
        uri = new.join(postgres.rsplit(old, 1))
        with pytest.raises(InputError, match=message) as caught:
            export_release(releases["perturb"], uri)
        told = str(caught.value.to_dict()) + repr(caught.value.__cause__)
        assert not any(secret in told for secret in ("s3cret", "wr0ng", "wörd", "w%C3%B6rd"))

    def test_a_user_without_rights(self, releases: dict[str, StoredRelease], postgres: str) -> None:
        query(postgres, "CREATE ROLE guest LOGIN PASSWORD 'guest'")
        host = postgres.rpartition("@")[2]
        with pytest.raises(InputError, match="permission denied"):
            export_release(releases["perturb"], f"postgresql://guest:guest@{host}", name="guests")
