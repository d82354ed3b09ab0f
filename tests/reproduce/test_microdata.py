"""Public files become the experiments' files, and other files are refused."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from dalenius.cli.main import run
from dalenius.errors import InputError
from dalenius.reproduce import microdata
from dalenius.reproduce.microdata import FILES, Prepared, data_file, hash_rows, prepare, using

ADULT_ROWS = [
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, "
    "40, United-States, <=50K",
    "50, ?, 83311, Bachelors, 13, Married-civ-spouse, ?, Husband, White, Male, 0, 0, 13, United-States, >50K",
]


def kdd_row(age: int, occupation: int, income: str) -> str:
    cells = [f"c{i}" for i in range(42)]
    cells[0], cells[3], cells[34], cells[41] = str(age), str(occupation), "?", f"{income}."
    return ", ".join(cells)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "adult.data").write_text("\n".join(ADULT_ROWS) + "\n\n")
    (tmp_path / "census-income.data").write_text(kdd_row(58, 34, "- 50000") + "\n" + kdd_row(9, 0, "50000+"))
    with gzip.open(tmp_path / "census-income.test.gz", "wt") as file:
        file.write(kdd_row(16, 7, "50000+") + "\n")
    return tmp_path


def test_the_right_rows_and_columns_are_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers, one of them 16 years old; of the other file the row without a missing value."""
    sizes = {"adult.csv": 1, "kdd_workers.csv.gz": 2, "kdd_education.csv.gz": 1}
    monkeypatch.setattr(microdata, "FILES", small_files(folder, sizes))
    assert all(text.startswith("made") for text in prepare(folder).values())
    with using(folder):
        adult = pyarrow.csv.read_csv(data_file("adult.csv"))
        workers = pyarrow.csv.read_csv(data_file("kdd_workers.csv.gz"))
        grown_up = pyarrow.csv.read_csv(data_file("kdd_education.csv.gz"))
    assert adult.to_pylist()[0]["marital-status"] == "Never-married"
    assert adult.num_columns == 9
    assert workers.column("occupation_code").to_pylist() == [34, 7]
    assert workers.column("income").to_pylist() == ["- 50000", "50000+"]
    assert workers.column("education").to_pylist() == ["c4", "c4"]
    assert grown_up.column("age").to_pylist() == [58]
    assert prepare(folder)["kdd_workers.csv.gz"] == "is there, 2 rows"


def small_files(folder: Path, sizes: dict[str, int]) -> tuple[Prepared, ...]:
    """The files as they are made of the folder's few rows."""
    found = []
    for file in FILES:
        raw = pa.concat_tables(file.read(microdata._find(folder, name, "")) for name in file.raw)
        rows = raw.filter(file.choose(raw)).select(list(file.columns))
        found.append(replace(file, n_rows=sizes[file.name], values=(), rows_hash=hash_rows(rows)))
    return tuple(found)


def test_a_file_that_is_there_with_other_rows_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many rows, one other cell: no experiment is compared with the papers on them."""
    sizes = {"adult.csv": 1, "kdd_workers.csv.gz": 2, "kdd_education.csv.gz": 1}
    monkeypatch.setattr(microdata, "FILES", small_files(folder, sizes))
    prepare(folder)
    text = (folder / "adult.csv").read_text()
    (folder / "adult.csv").write_text(text.replace("Adm-clerical", "Sales"))
    assert run(["reproduce", "--data", str(folder)]) == 1
    assert "cannot be used" in capsys.readouterr().out
    assert run(["reproduce", "bucketization-table2", "--data", str(folder)]) != 0
    assert "remove adult.csv" in capsys.readouterr().err
    (folder / "adult.csv").write_text(text.replace("salary", "pay"))
    assert "other columns" in prepare(folder)["adult.csv"]
    (folder / "adult.csv").unlink()
    (folder / "adult.data").write_text(ADULT_ROWS[0].replace("Adm-clerical", "Sales") + "\n")
    assert "not the same ones" in prepare(folder)["adult.csv"]
    assert not (folder / "adult.csv").exists()


def test_other_files_are_refused_with_what_is_expected(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["reproduce", "--data", str(folder)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "30,162 are expected" in said
    assert not list(folder.glob("*.csv*"))
    (folder / "adult.data").unlink()
    assert "has no adult.data" in prepare(folder)["adult.csv"]
    with pytest.raises(InputError, match="is no folder"):
        prepare(folder / "nowhere")


def test_no_message_names_a_folder_that_nobody_gave(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DALENIUS_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"needs adult\.csv, which is made from public files") as raised:
        data_file("adult.csv")
    assert "archive.ics.uci.edu" in str(raised.value.hint)


def test_the_real_files_are_what_is_expected(real_data: Path) -> None:
    for file in FILES:
        table = pyarrow.csv.read_csv(real_data / file.name)
        file.check(real_data)
        with pytest.raises(InputError, match="expected"):
            file.refuse_other(table.slice(1))
    assert isinstance(table, pa.Table)
