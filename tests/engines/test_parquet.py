"""What the layout of a written file tells: its rows, and nothing of rows that are not in it."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.engines import pages, parquet
from dalenius.engines.parquet import write_parquet

VALUES = pa.array(["zeta", "withheld", "alpha", None, "zeta"])


def coded(codes: list[int | None]) -> pa.RecordBatch:
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.uint8()), VALUES)
    return pa.RecordBatch.from_pydict({"v": column, "key": range(len(codes))})


@pytest.mark.parametrize("codes", [[0, 2, 0, 4], [None, 2, 3, 0], [3, 3], [None], [2], []], ids=str)
def test_cells_are_written_and_only_they(codes: list[int | None], tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    batch = coded(codes)
    assert write_parquet(path, iter([batch]), ["v"]) == len(codes)
    table = pq.read_table(path)
    assert table.schema == pa.schema({"v": pa.string()})
    assert table.to_pydict() == {"v": [None if c is None else VALUES[c].as_py() for c in codes]}
    assert duckdb.execute(f"FROM '{path}'").fetchall() == [(cell,) for cell in table["v"].to_pylist()]
    assert b"withheld" not in path.read_bytes()


def test_a_dictionary_in_another_order_is_the_same_file(tmp_path: Path) -> None:
    """The order in which a source has its values is not to be seen."""
    one, other = tmp_path / "1.parquet", tmp_path / "2.parquet"
    cells = ["b", "a", "b", "c"]
    for path, order in ((one, ["a", "b", "c", "d"]), (other, ["d", "c", "b", "a"])):
        column = pa.DictionaryArray.from_arrays(pa.array([order.index(c) for c in cells]), pa.array(order))
        write_parquet(path, iter([pa.RecordBatch.from_pydict({"v": column})]), ["v"])
    assert one.read_bytes() == other.read_bytes()


def test_row_groups_list_their_own_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 3)
    path = tmp_path / "t.parquet"
    assert write_parquet(path, iter([coded([0]), coded([0, 0, 2, 2, 2]), coded([0])]), ["v", "key"]) == 7
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [3, 3, 1]
    file = pq.ParquetFile(path, read_dictionary=["v"])
    listed = [file.read_row_group(i)["v"].chunk(0).dictionary.to_pylist() for i in range(len(groups))]
    assert listed == [["zeta"], ["alpha"], ["zeta"]]
    assert [group.column(0).statistics for group in groups] == [None] * 3  # of numbers only
    assert [group.column(1).statistics.max for group in groups] == [1, 4, 0]
    assert pq.read_table(path)["v"].to_pylist() == ["zeta"] * 3 + ["alpha"] * 3 + ["zeta"]


def listed_and_published(folder: Path) -> tuple[set[str], set[str]]:
    """The towns that the file's dictionaries list, and those that its rows have."""
    towns = pq.read_table(folder / "qit.parquet", read_dictionary=["town"])["town"]
    listed = {town for chunk in towns.chunks for town in chunk.dictionary.to_pylist()}
    return listed, set(towns.to_pylist())


@pytest.mark.parametrize("keeps_whole_dictionary", [False, True], ids=["as published", "a broken writer"])
def test_a_town_of_withheld_records_only_is_not_listed(
    keeps_whole_dictionary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compression hides texts from a search in the bytes: the dictionaries themselves are read."""
    if keeps_whole_dictionary:
        monkeypatch.setattr(parquet, "_own_dictionary", lambda column: column)
        monkeypatch.setattr(pages, "_keep_used", lambda codes, values: (codes, values))
    diseases = ["flu"] * 40 + ["cold", "gout", "mumps"] * 5
    table = pa.table({"town": [f"town {i}" for i in range(len(diseases))], "disease": diseases})
    policy = {
        "source": table,
        "release": str(tmp_path / "r"),
        "columns": {"quasi": ["town"], "sensitive": ["disease"]},
        "promise": {"kind": "l-diversity", "l": 3},
        "suppress": {"method": "safe"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1)
    listed, published = listed_and_published(release.path)
    assert len(published) < len(diseases)
    assert (listed == published) != keeps_whole_dictionary


@pytest.mark.parametrize("n_published", [1, 60, 64, 65, 300])
def test_whether_texts_are_listed_is_told_by_the_published_rows_alone(
    n_published: int, tmp_path: Path
) -> None:
    """A source of few different texts comes coded, one of many as texts: the same rows are the same file."""
    cells = [f"text {i % n_published}" for i in range(5_000)]
    plain, coded_file = tmp_path / "plain.parquet", tmp_path / "coded.parquet"
    texts = pa.array(cells)
    write_parquet(plain, iter([pa.RecordBatch.from_pydict({"v": texts})]), ["v"])
    write_parquet(coded_file, iter([pa.RecordBatch.from_pydict({"v": texts.dictionary_encode()})]), ["v"])
    assert plain.read_bytes() == coded_file.read_bytes()
    assert pq.read_table(plain)["v"].to_pylist() == cells


@pytest.mark.parametrize("n_source", [64, 65])
def test_a_release_does_not_show_how_many_texts_its_source_had(n_source: int, tmp_path: Path) -> None:
    """With suppression a value may be withheld wholly; the encoding of the others says nothing of it."""
    shown = [f"value {i:02}" for i in range(60)]
    rows = [value for value in shown for _ in range(4)] + [f"rare {i}" for i in range(n_source - 60)]
    batches = pa.table({"v": rows[:240]}).to_batches()
    write_parquet(tmp_path / "t.parquet", iter(batches), ["v"])
    column = pq.read_metadata(tmp_path / "t.parquet").row_group(0).column(0)
    assert column.has_dictionary_page
    assert column.statistics is None


@pytest.mark.parametrize(("n_different", "is_listed"), [(3_000, True), (4_900, False)])
def test_texts_that_hardly_repeat_are_not_listed(n_different: int, is_listed: bool, tmp_path: Path) -> None:
    cells = [f"text {i % n_different}" for i in range(5_000)]
    write_parquet(tmp_path / "t.parquet", iter(pa.table({"v": cells}).to_batches()), ["v"])
    assert pq.read_metadata(tmp_path / "t.parquet").row_group(0).column(0).has_dictionary_page == is_listed
    assert pq.read_table(tmp_path / "t.parquet")["v"].to_pylist() == cells


def test_the_first_rows_tell_whether_texts_hardly_repeat(tmp_path: Path) -> None:
    cells = [f"text {i}" for i in range(2**14)] + ["again"] * 2**14
    write_parquet(tmp_path / "t.parquet", iter(pa.table({"v": cells}).to_batches()), ["v"])
    assert not pq.read_metadata(tmp_path / "t.parquet").row_group(0).column(0).has_dictionary_page


@pytest.mark.parametrize(("n_different", "ascends"), [(64, True), (65, False)])
def test_only_few_texts_are_listed_in_ascending_order(
    n_different: int, ascends: bool, tmp_path: Path
) -> None:
    """The lists of more are Arrow's own, of the published rows in their order."""
    cells = [f"text {i:02}" for i in reversed(range(n_different))] * 2
    write_parquet(tmp_path / "t.parquet", iter(pa.table({"v": cells}).to_batches()), ["v"])
    column = pq.read_table(tmp_path / "t.parquet", read_dictionary=["v"])["v"]
    listed = column.chunk(0).dictionary.to_pylist()
    assert listed == (sorted(cells[:n_different]) if ascends else cells[:n_different])


def test_a_row_group_has_as_many_rows_as_a_thread_of_duckdb_reads(tmp_path: Path) -> None:
    write_parquet(tmp_path / "t.parquet", iter(pa.table({"v": range(122_881)}).to_batches()), ["v"])
    metadata = pq.read_metadata(tmp_path / "t.parquet")
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [122_880, 1]
