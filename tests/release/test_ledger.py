"""The ledger: private from the start, exact about series, and shared safely."""

from __future__ import annotations

import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dalenius.errors import EngineError, InputError
from dalenius.release.folder import sha256
from dalenius.release.ledger import Entry, Ledger, Marks, open_ledger
from dalenius.release.ledger import _unpack as unpack
from dalenius.release.repetition import KnownTable, Memory, ledger_transaction
from dalenius.tables.sketch import Sketch

ENTRY = Entry(
    id="a",
    manifest_sha256="0" * 64,
    created="2026-01-01",
    path="/r",
    mechanism="alpha-beta",
    source_fingerprint="f",
    for_publication=True,
    series_id="s",
    series_index=1,
    series_of=2,
)


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    ledger = Ledger(path=tmp_path / "deep" / "ledger")
    key = ledger.key()
    assert len(key) == 32
    assert ledger.key() == key != Ledger(path=tmp_path / "other").key()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600
    ledger.path.chmod(0o644)
    ledger.key()
    assert stat.S_IMODE(ledger.path.stat().st_mode) == 0o600


def test_what_is_no_ledger_keeps_its_mode(tmp_path: Path) -> None:
    folder, table = tmp_path / "folder", tmp_path / "table.csv"
    folder.mkdir()
    table.write_text("age,disease\n30,Flu\n", encoding="utf-8")
    folder.chmod(0o755)
    table.chmod(0o644)
    with pytest.raises(EngineError, match="it is a folder"):
        Ledger(path=folder).key()
    with pytest.raises(EngineError, match="not a database"):
        Ledger(path=table).key()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o755
    assert stat.S_IMODE(table.stat().st_mode) == 0o644


def test_what_is_recorded_is_remembered_and_can_be_taken_back(tmp_path: Path) -> None:
    ledger = Ledger(path=tmp_path / "ledger")
    second = replace(ENTRY, id="b", series_index=2)
    alone = replace(ENTRY, id="c", series_id=None, series_index=None, series_of=None, for_publication=False)
    for entry in (second, ENTRY, alone, replace(alone, id="d", source_fingerprint="g")):
        ledger.record(entry)
    assert ledger.series("s") == (ENTRY, second)
    found, compared = ledger.about(Marks(source="f", values=None, sketch=None))
    assert [match.entry for match in found] == [second, ENTRY]
    assert {match.how for match in found} == {"records"}
    assert compared == {second.id, ENTRY.id}
    ledger.take_back(second)
    assert ledger.series("s") == (ENTRY,)
    assert ledger.series("t") == ()


def test_what_was_compared_is_not_compared_again_and_what_came_meanwhile_is(tmp_path: Path) -> None:
    ledger, marks = Ledger(path=tmp_path / "ledger"), Marks(source="f", values=None, sketch=None)
    alone = replace(ENTRY, series_id=None, series_index=None, series_of=None)
    ledger.record(alone)
    _, compared = ledger.about(marks)
    ledger.record(replace(alone, id="second"), marks, compared)
    with pytest.raises(InputError, match="another run has published this table meanwhile"):
        ledger.record(replace(alone, id="third"), marks, compared)
    assert [one.id for one in ledger.releases()] == [alone.id, "second"]


def test_what_an_earlier_version_recorded_is_compared_with_its_own_fingerprint(tmp_path: Path) -> None:
    ledger = Ledger(path=tmp_path / "ledger")
    alone = replace(ENTRY, series_id=None, series_index=None, series_of=None)
    sketch = Sketch(n_rows=200_000, combinations=()).pack(ledger.key())
    ledger.record(replace(alone, id="new", source_fingerprint="cells:1"))
    ledger.record(replace(alone, id="draft", source_fingerprint="old", for_publication=False))
    assert not ledger.expects_earlier(200_000)
    ledger.record(replace(alone, id="known size", source_fingerprint="old", sketch=sketch))
    assert [ledger.expects_earlier(n) for n in (200_000, 200_001)] == [True, False]
    marks = Marks(source="cells:2", values=None, sketch=None, earlier="old")
    found, compared = ledger.about(marks)
    assert [match.entry.id for match in found] == ["known size"]
    assert ledger.about(replace(marks, earlier=None))[0] == ()
    ledger.record(replace(alone, id="any size", source_fingerprint="old"))
    assert ledger.expects_earlier(200_001), "without a sketch nobody knows how many rows it had"
    with pytest.raises(InputError, match="another run has published this table meanwhile"):
        ledger.record(replace(alone, id="third", source_fingerprint="cells:2"), marks, compared)


def test_an_earlier_version_does_not_open_a_ledger_whose_fingerprints_it_would_not_know(
    tmp_path: Path,
) -> None:
    ledger = Ledger(path=tmp_path / "ledger")
    ledger.record(ENTRY)
    with closing(sqlite3.connect(ledger.path)) as database, database:
        database.execute("UPDATE ledger SET version = 4")
    ledger.record(replace(ENTRY, id="b", series_index=2))
    with closing(sqlite3.connect(ledger.path)) as database:
        assert database.execute("SELECT version FROM ledger").fetchone() == (5,)


def test_one_place_of_a_series_is_given_once(tmp_path: Path) -> None:
    ledger = Ledger(path=tmp_path / "ledger")

    def publish(number: int) -> bool:
        try:
            ledger.record(replace(ENTRY, id=str(number)))
        except InputError as error:
            assert "release 1 of this series is in the ledger already" in str(error)  # noqa: PT017
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(publish, range(8))) == 1
    assert len(ledger.series("s")) == 1


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DALENIUS_LEDGER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert open_ledger(None).path == tmp_path / "dalenius" / "ledger"
    monkeypatch.setenv("DALENIUS_LEDGER", str(tmp_path / "mine"))
    assert open_ledger(None).path == tmp_path / "mine"
    assert open_ledger(tmp_path / "policy").path == tmp_path / "policy"


@pytest.mark.parametrize(
    ("version", "missing"),
    [
        (1, ("values_fingerprint", "record_fingerprint", "sketch")),
        (2, ("record_fingerprint", "sketch")),
        (3, ("sketch",)),
    ],
)
def test_a_ledger_of_an_older_version_is_brought_up_to_date(
    tmp_path: Path, version: int, missing: tuple[str, ...]
) -> None:
    ledger = Ledger(path=tmp_path / "ledger")
    ledger.record(ENTRY)
    with closing(sqlite3.connect(ledger.path)) as database, database:
        for name in missing:
            database.execute(f"ALTER TABLE releases DROP COLUMN {name}")
        database.execute("DROP TABLE forgotten")
        database.execute("UPDATE ledger SET version = ?", (version,))
    second = replace(
        ENTRY, id="b", series_index=2, values_fingerprint="v", record_fingerprint="r", sketch=b"s"
    )
    ledger.record(second)
    assert ledger.series("s") == (ENTRY, second)


def test_a_file_that_is_no_ledger_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("not a database, and longer than a header would be" * 10)
    with pytest.raises(EngineError, match="cannot be used") as caught:
        Ledger(path=tmp_path / "ledger").key()
    assert "[ledger] path" in (caught.value.hint or "")


def test_an_entry_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    ledger = Ledger(path=tmp_path / "ledger")
    for name in ("abc", "abd", "xyz"):
        ledger.record(replace(ENTRY, id=name, series_id=None, series_index=None, series_of=None))
    assert ledger.find("x").id == "xyz"
    assert ledger.find("abd").id == "abd"
    for start, message in (("ab", "2 releases have"), ("q", "no release has"), ("", "no release has")):
        with pytest.raises(InputError, match=message):
            ledger.find(start)


@pytest.mark.parametrize("stopped", ["before", "after", "other"])
def test_a_run_that_is_stopped_is_taken_back_unless_its_release_is_there(
    tmp_path: Path, stopped: str
) -> None:
    """Stopped before the release has its name, just after, or where an older one has it."""
    folder = tmp_path / "r"
    folder.mkdir()
    manifest = folder / "manifest.json"
    manifest.write_text("mine")
    entry = replace(
        ENTRY, path=str(folder), manifest_sha256=sha256(manifest), series_id=None, series_index=None
    )
    ledger = Ledger(path=tmp_path / "ledger")
    marks = Marks(source="s", values=None, sketch=None)
    known = KnownTable(memories=(Memory(ledger=ledger, marks=marks, packed=None, matches=()),), records=None)
    if stopped == "before":
        manifest.unlink()
    if stopped == "other":
        manifest.write_text("another's")

    def run() -> None:
        with ledger_transaction() as remember:
            remember(known, [entry])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert [one.id for one in ledger.releases()] == ([entry.id] if stopped == "after" else [])


def test_a_sketch_of_another_ledger_is_a_damaged_one() -> None:
    """Under another key it is any bytes: whatever they say, it is a damaged ledger and no bug."""
    packed, n_damaged = Sketch(n_rows=5, combinations=()).pack(bytes(32)) + bytes(100), 0
    for i in range(1, 200):
        try:
            unpack(packed, bytes([i]) * 32)
        except sqlite3.DatabaseError:
            n_damaged += 1
    assert n_damaged > 190
