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
from dalenius.reproduce.microdata import FILES, data_file, prepare, using

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
    files = tuple(replace(file, n_rows=sizes[file.name], values=()) for file in FILES)
    monkeypatch.setattr(microdata, "FILES", files)
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
    assert set(prepare(folder).values()) == {"is there"}


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
        assert table.column_names == list(file.columns)
        file.refuse_other(table)
        with pytest.raises(InputError, match="expected"):
            file.refuse_other(table.slice(1))
    assert isinstance(table, pa.Table)
