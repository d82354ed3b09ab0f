"""The local engine: batches of a fixed size, recoding, units, and errors in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy
from dalenius.engines import preparing
from dalenius.engines.base import silent
from dalenius.engines.local import scan as scan_module
from dalenius.engines.local import source as local
from dalenius.engines.local import writing
from dalenius.engines.local.engine import LocalEngine
from dalenius.engines.local.errors import engine_errors
from dalenius.errors import EngineError, InternalError, PolicyError, SourceError
from dalenius.mechanisms.base import Coding, PublishedTable
from dalenius.sql import connect
from dalenius.tables.sketch import BY_CELLS
from dalenius.tables.sketching import whole
from dalenius.tables.sketching.whole import sum_counted

TABLE = pa.table({"id": [1, 2, 3], "age": [17, 18, 90], "town": ["A", None, "B"], "disease": ["x", "y", "x"]})


def policy(table: Any = TABLE, **sections: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": table,
            "columns": {"unit": "id", "quasi": ["age", "town"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": "0.99"},
            **sections,
        }
    )


def rows_of(chosen: Policy) -> list[dict[str, Any]]:
    with LocalEngine().open(chosen, None, silent) as scan:
        rows: list[dict[str, Any]] = pa.Table.from_batches(list(scan.source.batches())).to_pylist()
    return rows


def test_batches_hold_published_columns_in_source_order() -> None:
    assert rows_of(policy()) == TABLE.drop_columns(["id"]).to_pylist()


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_batches_have_a_fixed_size_whatever_the_source_has(
    monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(local, "BATCH_ROWS", size)
    ragged = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1)])
    with LocalEngine().open(policy(ragged), None, silent) as scan:
        lengths = [batch.num_rows for batch in scan.source.batches()]
    assert lengths == [size] * (3 // size) + ([3 % size] if 3 % size else [])


def test_recoding_comes_before_counting() -> None:
    with LocalEngine().open(policy(recode={"age": {"bins": [0, 18, 120]}}), None, silent) as scan:
        assert scan.histogram(("age",)).values == (("0-17",), ("18-120",))
        assert scan.schema.field("age").type == pa.string()


@pytest.mark.parametrize(
    ("recode", "message"),
    [
        ({"age": {"bins": [0, 18, 60]}}, "1 rows have a value that the recoding does not cover"),
        ({"town": {"round": 5}}, "not numeric"),
    ],
)
def test_a_recoding_that_does_not_fit_is_refused(recode: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        rows_of(policy(recode=recode))


def test_a_mapping_that_misses_a_value_says_how_many_rows_but_not_which(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("from,to\nx,X\n")
    data = {
        "source": TABLE,
        "columns": {"unit": "id", "quasi": ["age", "town"], "sensitive": ["disease"]},
        "promise": {"kind": "f-privacy", "default": "0.99"},
        "recode": {"disease": {"map": "m.csv"}},
    }
    with pytest.raises(PolicyError, match="1 rows have a value") as caught:
        rows_of(Policy.from_dict(data, folder=tmp_path))
    assert "'y'" not in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "message"),
    [([1, 1, 2], "1 person has more than one row"), ([1, None, 2], "1 row has no 'id'")],
)
def test_units_are_one_row_each(ids: list[int | None], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        rows_of(policy(TABLE.set_column(0, "id", pa.array(ids))))


def test_progress_reaches_the_end() -> None:
    seen: list[tuple[str, int, int | None]] = []
    with LocalEngine().open(policy(), None, lambda *step: seen.append(step)) as scan:
        list(scan.source.batches())
    assert seen[-1] == ("reading", 3, 3)


def test_machine_errors_are_said_in_plain_words() -> None:
    with pytest.raises(EngineError, match="the disk is full"), engine_errors():
        raise OSError(28, "No space left on device")
    with pytest.raises(EngineError, match="Permission denied"), engine_errors():
        raise PermissionError(13, "Permission denied")


def test_a_table_that_changes_between_two_passes_is_an_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = local.LocalSource._watch

    def shrinking(source: local.LocalSource, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in honest(source, batches):
            yield batch.slice(1)

    monkeypatch.setattr(local.LocalSource, "_watch", shrinking)
    with pytest.raises(InternalError, match="a value has fewer records"):
        dalenius.publish(policy(release=str(tmp_path / "r")))
    assert list(tmp_path.iterdir()) == []


def test_database_errors_never_quote_a_cell() -> None:
    with pytest.raises(EngineError) as caught, engine_errors(), connect() as connection:
        connection.execute("SELECT 'HIV'::INT").fetchall()
    assert "HIV" not in str(caught.value)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tally_adds_up_what_the_batches_count(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(local, "BATCH_ROWS", size)

    def count(batch: pa.RecordBatch) -> pa.RecordBatch:
        ages = batch.column("age").value_counts()
        return pa.RecordBatch.from_arrays([ages.field(0), ages.field(1)], names=["key", "n"])

    doubled = pa.concat_tables([TABLE, TABLE.set_column(0, "id", pa.array([4, 5, 6]))])
    with LocalEngine().open(policy(doubled), None, silent) as scan:
        assert scan.tally(count).to_pylist() == [{"key": age, "n": 2} for age in (17, 18, 90)]


def in_two_numbers(batch: pa.RecordBatch) -> pa.RecordBatch:
    ages = batch.column("age").to_numpy()
    return pa.RecordBatch.from_pydict({"tens": ages // 10, "ones": ages % 10})


@pytest.mark.parametrize("file_rows", [2, 10**6], ids=["files", "memory"])
def test_codes_are_sorted_once_and_copies_stay_together(
    file_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FILE_ROWS", file_rows)
    monkeypatch.setattr(local, "BATCH_ROWS", 7)
    ages = [(i * i) % 41 for i in range(100)]
    table = pa.table({"age": ages, "town": ["A"] * 100, "id": range(100), "disease": ["x"] * 100})
    coding = Coding(encode=in_two_numbers, names=("tens", "ones"), bits=3)
    seen: list[list[tuple[int, ...]]] = []

    def rows(scan: Callable[[], Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        for batch in scan():
            seen.append(list(zip(*batch.to_pydict().values(), strict=True)))
            yield batch

    with LocalEngine().open(policy(table), None, silent) as scan:
        assert scan.n_different(coding) == len(set(ages))
    steps: list[str] = []
    with LocalEngine().open(policy(table), tmp_path, lambda step, *_: steps.append(step)) as scan:
        assert scan.n_different(coding) == len(set(ages))
        read_once = len(steps)
        scan.write([PublishedTable(name="t", columns=("ones",), rows=rows, reads=coding)], tmp_path)
    assert len(steps) == read_once
    assert [pair for batch in seen for pair in batch] == sorted((age // 10, age % 10) for age in ages)
    batches_of = Counter(pair for batch in seen for pair in set(batch))
    assert set(batches_of.values()) == {1}
    assert (len([batch for batch in seen if batch]) > 1) == (file_rows == 2)


@pytest.mark.parametrize("finishes", [True, False])
def test_row_groups_do_not_follow_the_batches_they_come_in(finishes: bool, tmp_path: Path) -> None:
    sizes = [100_000, 70_001, 90_000, 3, 50_000]

    def uneven(_: Any = None) -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_pydict({"a": [0] * size}) for size in sizes)

    table = PublishedTable(name="t", columns=("a",), rows=uneven, finish=uneven if finishes else None)
    with LocalEngine().open(policy(), tmp_path, silent) as scan:
        scan.write([table], tmp_path)
    (path,) = tmp_path.rglob("*.parquet")
    found = pq.read_metadata(path)
    groups = [found.row_group(i).num_rows for i in range(found.num_row_groups)]
    assert groups == [122_880, 122_880, sum(sizes) - 2 * 122_880]


def fingerprint(table: pa.Table, key: bytes = b"k") -> str:
    with LocalEngine().open(policy(table), None, silent) as scan:
        return scan.fingerprint(key)


@pytest.mark.parametrize("few_rows", [100, 0], ids=["by records", "by the counts of every column"])
def test_a_fingerprint_is_of_the_cells_and_not_of_their_order(
    few_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparing, "_FEW_ROWS", few_rows)
    one = fingerprint(TABLE)
    assert fingerprint(TABLE.take([2, 0, 1])) == one
    assert fingerprint(TABLE, b"another key") != one
    towns = pa.array(["A", None, "A"]), pa.array(["A", "B", "B"]), pa.array(["A", "", "B"])
    others = [TABLE.set_column(2, "town", town) for town in towns]
    others += [TABLE.slice(0, 2), pa.concat_tables([TABLE, TABLE.set_column(0, "id", pa.array([4, 5, 6]))])]
    # the same cells in other columns
    others.append(TABLE.set_column(2, "town", TABLE["disease"]).set_column(3, "disease", TABLE["town"]))
    assert len({one, *map(fingerprint, others)}) == len(others) + 1


def test_who_goes_with_whom_is_seen_in_small_tables_and_in_whole_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    linked = TABLE.set_column(3, "disease", pa.array(["x", "x", "y"]))
    assert fingerprint(linked) != fingerprint(TABLE)
    by_records = fingerprint(TABLE)
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    assert fingerprint(linked) == fingerprint(TABLE)
    found = []
    for table in (TABLE, TABLE.take([2, 0, 1]), linked):
        with LocalEngine().open(policy(table), None, silent) as scan:
            found.append(scan.record_fingerprint(b"k"))
    assert found[0] == found[1] == by_records != found[2]


@pytest.mark.parametrize("recode", [{}, {"age": {"bins": [0, 18, 200]}}], ids=["as they are", "recoded"])
def test_a_fingerprint_of_codes_is_that_of_cells(
    recode: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger keeps fingerprints: what the sketch has counted gives the same ones as counting in SQL."""
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    chosen, numbered = odd_policy(recode), {"town", "name", "note", "far", "day", "disease"}
    found = []
    for how in ("digested together", "counted", "in SQL"):
        with LocalEngine().open(chosen, None, silent) as scan:
            counted = sum_counted(
                scan.source.held(scan.source.connection), scan.source.as_they_are, b"other key"
            )
            assert counted.keys() == numbered | ({"age"} - set(recode))
            monkeypatch.setattr(whole, "MANY_TEXTS", 1 if how == "digested together" else 2**15)
            if how == "in SQL":
                monkeypatch.setattr(scan_module, "sum_counted", lambda *_: {})
            found.append(scan.fingerprint(b"k"))
    assert len(set(found)) == 1
    assert found[0].startswith(BY_CELLS)


def test_fingerprint_and_sketch_digest_each_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
    hashed: list[str] = []

    def hash_all(connection: Any, values: pa.Array, *rest: Any) -> Any:
        hashed.extend(map(str, values.drop_null().to_pylist()))
        return hash_them(connection, values, *rest)

    hash_them = whole._hash_all
    monkeypatch.setattr(whole, "_hash_all", hash_all)
    names, notes = [f"name {i}" for i in range(99)] * 2, [f"note {7919 * i**2}" for i in range(198)]
    table = pa.table({"name": names, "note": notes, "s": ["x", "y"] * 99})
    chosen = policy(table, columns={"quasi": ["name"], "sensitive": ["s"], "dropped": ["note"]})
    with LocalEngine().open(chosen, None, silent) as scan:
        scan.fingerprint(b"k")
        assert sorted(hashed) == sorted({*names, "x", "y"})
        scan.sketch(b"k")
        assert sorted(hashed) == sorted({*names, *notes, "x", "y"})
        scan.sketch(b"another key")
    assert len(hashed) == 2 * (99 + 198 + 2)


@pytest.mark.parametrize(
    ("recode", "known"),
    [
        ({}, "369816bb62275677ed9f4d4c3f1f7fcfbcf58a3636e5fe649c6a79bd878de4c6"),
        (
            {"age": {"bins": [0, 18, 200]}},
            "043195e74fdac0e3cdf8f581f3a53ece183892f1893ae84df493b3c8d5fbca06",
        ),
    ],
    ids=["as they are", "recoded"],
)
def test_what_an_earlier_version_recorded_is_known(
    recode: dict[str, Any], known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fingerprints that the version before this one gave to a table that is known by counts."""
    with LocalEngine().open(odd_policy(recode), None, silent) as scan:
        assert scan.earlier_fingerprint(b"k") == scan.fingerprint(b"k"), "of few rows it is what it was"
        monkeypatch.setattr(preparing, "_FEW_ROWS", 0)
        assert scan.earlier_fingerprint(b"k") == known


def odd_policy(recode: dict[str, Any]) -> Policy:
    """Of a table with columns of many types, held and not, with NULL."""
    ages = pa.array([17, None, 90] * 40, pa.int16())
    days = pa.array([19_000, 19_001, None] * 40, pa.int32()).cast(pa.date32())
    cells = {"age": ages, "day": days, "x": [0.5, None, 2.0] * 40, "town": ["A", None, "B, C"] * 40}
    names = [None if i == 7 else f"name {i % 90}" for i in range(120)]
    far = [10**6 * (i % 80) if i % 9 else None for i in range(120)]
    notes = [f"{'long ' * 12}{i}" for i in range(120)]
    table = pa.table({**cells, "name": names, "note": notes, "far": far, "disease": ["x", "y", "x"] * 40})
    columns = {"quasi": [name for name in table.column_names if name != "disease"], "sensitive": ["disease"]}
    return policy(table, columns=columns, recode=recode)


def held_table(n_rows: int = 3_000) -> pa.Table:
    """Columns that are read as codes and others, with and without NULL."""
    return pa.table(
        {
            "id": range(n_rows),
            "age": pa.array([None if i % 11 == 0 else i % 300 for i in range(n_rows)], pa.int64()),
            "town": [None if i % 7 == 0 else f"town {i % 13}" for i in range(n_rows)],
            "name": [None if i % 17 == 0 else f"name {i % 999}" for i in range(n_rows)],
            "far": pa.array([None if i % 19 == 0 else 10**6 * i for i in range(n_rows)], pa.int64()),
            "disease": [f"disease {i % 5}" for i in range(n_rows)],
        }
    )


HELD = {"unit": "id", "quasi": ["age", "town", "name", "far"], "sensitive": ["disease"]}


@pytest.mark.parametrize("recode", [{}, {"age": {"bins": [0, 100, 400]}}], ids=["as they are", "recoded"])
def test_rows_that_are_held_are_those_of_the_source(
    recode: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read for the ledger is published without reading it again, unless it is recoded."""
    monkeypatch.setattr(local, "BATCH_ROWS", 1_024)
    table = held_table()
    if recode:
        table = table.set_column(1, "age", table["age"].fill_null(1))
    with LocalEngine().open(policy(table, columns=HELD, recode=recode), None, silent) as scan:
        before = [batch.to_pylist() for batch in scan.source.batches()]
        scan.source.held(scan.source.connection)
        with monkeypatch.context() as patch:
            if not recode:
                patch.setattr(type(scan.source), "_read_batches", lambda *_: pytest.fail("it is read again"))
            after = [batch.to_pylist() for batch in scan.source.batches()]
    assert len(before) == 3
    assert before == after


@pytest.mark.parametrize("is_done", [True, False], ids=["all asked for", "marks under way"])
def test_rows_that_are_held_are_let_go_of_when_the_ledgers_have_their_marks(
    is_done: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "BATCH_ROWS", 1_024)
    names = ("age", "town", "name", "far", "disease")
    with LocalEngine().open(policy(held_table(), columns=HELD), tmp_path, silent) as scan:
        before = [batch.to_pylist() for batch in scan.source.batches()]
        scan.source.held(scan.source.connection)
        scan._sketched[b"k"] = Future()
        if is_done:
            scan._sketched[b"k"].set_result(None)
        table = PublishedTable(name="t", columns=names, rows=lambda read: read())
        scan.write([table], tmp_path)
        assert len(scan.source._held) == (not is_done)
        assert [batch.to_pylist() for batch in scan.source.batches()] == before
        assert scan.sample(names, 2_000).num_rows > 1_000
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == [row for batch in before for row in batch]


def test_a_sample_of_rows_that_are_held_is_of_whole_records() -> None:
    table = held_table(50_000)
    names = ("age", "town", "name", "far", "disease")
    known = Counter(map(tuple, (row.values() for row in table.select(names).to_pylist())))
    with LocalEngine().open(policy(table, columns=HELD), None, silent) as scan:
        scan.source.held(scan.source.connection)
        part = scan.sample(names, 5_000)
        assert scan.sample(names, 50_000).num_rows == 50_000
    assert 4_500 < part.num_rows <= 5_000
    assert Counter(map(tuple, (row.values() for row in part.to_pylist()))) <= known


@pytest.mark.parametrize("as_file", [True, False], ids=["file", "frame"])
def test_an_expected_fingerprint_is_the_same(as_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    with LocalEngine().open(policy(str(path) if as_file else TABLE), tmp_path, silent) as scan:
        scan.expect_fingerprint(b"k")
        assert scan.histogram(("disease",)).counts == (2, 1)
        assert scan.fingerprint(b"k") == fingerprint(TABLE)
        assert scan.fingerprint(b"l") == fingerprint(TABLE, b"l"), "another key was not expected"
        assert pa.Table.from_batches(list(scan.source.batches())).to_pylist() == rows_of(policy())


def test_intervals_are_refused() -> None:
    lasting = TABLE.set_column(2, "town", pa.nulls(3, pa.month_day_nano_interval()))
    with (
        pytest.raises(SourceError, match="'town' holds intervals"),
        LocalEngine().open(policy(lasting), None, silent),
    ):
        pass


def test_a_folder_named_like_a_partition_changes_no_cell(tmp_path: Path) -> None:
    """What is spilled beside the release is read back as it was written."""
    folder = tmp_path / "age=1" / "disease=Flu"
    folder.mkdir(parents=True)
    table = pa.table({"age": list(range(60)), "disease": ["Flu", "Cold", "Gout"] * 20})
    pyarrow.csv.write_csv(table, folder / "t.csv")
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    chosen = policy(str(folder / "t.csv"), release=str(folder / "out"), columns=columns)
    release = dalenius.publish(chosen, seed=1)
    assert sorted(pq.ParquetFile(release.path / "qit.parquet").read()["age"].to_pylist()) == list(range(60))
