"""The experiments' real data: prepared from the public files, and found again.

`adult.csv` has the rows of UCI Adult's `adult.data` without a missing value. Of UCI Census-Income's files,
`census-income.data` and `census-income.test`, `kdd_workers.csv.gz` has the people with an occupation and
`kdd_education.csv.gz` those of 17 years and more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from dalenius.errors import InputError

ADULT = "https://archive.ics.uci.edu/dataset/2/adult"
KDD = "https://archive.ics.uci.edu/dataset/117/census+income+kdd"
_ENVIRONMENT = "DALENIUS_DATA"
_ADULT_COLUMNS = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "salary",
]
_KDD_COLUMNS = {
    0: "age",
    1: "class_of_worker",
    2: "industry_code",
    3: "occupation_code",
    4: "education",
    7: "marital",
    10: "race",
    11: "hispanic_origin",
    12: "sex",
    34: "self_birth",
    35: "citizenship",
    41: "income",
}
_N_KDD_COLUMNS = 42
_UNKNOWN = "?"
_BETWEEN = "\x1f"
_NO_OCCUPATION = "0"
_GROWN_UP = 17
UNUSABLE = "cannot be used"
"""How it is said that a file is there and is another one."""
_folder: ContextVar[Path | None] = ContextVar("folder", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A file that experiments read, and how it is made and known to be the right one."""

    name: str
    raw: tuple[str, ...]
    """The public files; each may be compressed (`.gz`)."""
    described: str
    """Where these are described and to be had."""
    columns: tuple[str, ...]
    read: Callable[[Path], pa.Table]
    choose: Callable[[pa.Table], pa.ChunkedArray]
    n_rows: int
    values: tuple[tuple[str, int], ...]
    """How many different values some columns have."""
    rows_hash: str
    """The SHA-256 of its rows, whatever their order."""

    def make(self, folder: Path) -> Path:
        """Write it beside the public files, if it is what the experiments were run on."""
        table = pa.concat_tables(self.read(_find(folder, name, self.described)) for name in self.raw)
        chosen = table.filter(self.choose(table)).select(list(self.columns))
        self.refuse_other(chosen)
        path = folder / self.name
        unfinished = folder / f"unfinished-{self.name}"
        with pa.output_stream(str(unfinished), compression="detect") as sink:
            options = pyarrow.csv.WriteOptions(quoting_style="needed")
            pyarrow.csv.write_csv(chosen, sink, options)
        unfinished.replace(path)
        return path

    def refuse_other(self, table: pa.Table) -> None:
        """Other rows would give other figures than the papers' and ours."""
        found = [table.num_rows, *(pc.count_distinct(table.column(name)).as_py() for name, _ in self.values)]
        wanted = [self.n_rows, *(n for _, n in self.values)]
        if found != wanted:
            what = ["rows", *(f"values of {name}" for name, _ in self.values)]
            n, right, unit = next(
                (n, m, unit) for n, m, unit in zip(found, wanted, what, strict=True) if n != m
            )
            raise InputError(
                f"{' and '.join(self.raw)} give {n:,} {unit} for {self.name}, and {right:,} are expected",
                hint=f"the files as they are described at {self.described}, unchanged",
            )
        if hash_rows(table) != self.rows_hash:
            raise InputError(
                f"{self.name} has as many rows as expected, but not the same ones (by their SHA-256)",
                hint=f"the files as they are described at {self.described}, unchanged",
            )

    def check(self, folder: Path) -> None:
        """A file that is there already may have come from elsewhere."""
        table = _read_text(folder / self.name)
        if table.column_names != list(self.columns):
            raise InputError(
                f"{self.name} has other columns than expected",
                hint="remove it, and it is made from the public files",
            )
        self.refuse_other(table)


def hash_rows(table: pa.Table) -> str:
    """The SHA-256 of a table's rows as lines of text, sorted: files of other tools may have another order."""
    texts = [pc.cast(column, pa.string()) for column in table.columns]
    lines = pc.binary_join_element_wise(*texts, _BETWEEN).combine_chunks()
    ordered = lines.take(pc.sort_indices(lines))
    return sha256("\n".join(ordered.to_pylist()).encode()).hexdigest()


def _find(folder: Path, name: str, described: str) -> Path:
    for path in (folder / name, folder / f"{name}.gz"):
        if path.is_file():
            return path
    raise InputError(
        f"{folder} has no {name}", hint=f"get it from {described} and put it there, compressed (.gz) or not"
    )


def _read_text(path: Path, names: list[str] | None = None) -> pa.Table:
    """A file of which every cell is text; its first line has the names if none are given."""
    first = pyarrow.csv.open_csv(path).schema.names if names is None else names
    return pyarrow.csv.read_csv(
        path,
        read_options=pyarrow.csv.ReadOptions(column_names=names),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(first, pa.string()), strings_can_be_null=False
        ),
    )


def _read_raw(path: Path, names: list[str]) -> pa.Table:
    """A public file: no header, cells after a comma and a blank."""
    table = _read_text(path, names)
    return pa.table({name: pc.utf8_trim_whitespace(table.column(name)) for name in names})


def read_adult(path: Path) -> pa.Table:
    """`adult.data`."""
    return _read_raw(path, _ADULT_COLUMNS)


def read_kdd(path: Path) -> pa.Table:
    """`census-income.data` or `.test`; the income ends in a full stop there."""
    names = [_KDD_COLUMNS.get(i, f"column {i}") for i in range(_N_KDD_COLUMNS)]
    table = _read_raw(path, names).select(list(_KDD_COLUMNS.values()))
    income = pc.utf8_rtrim(table.column("income"), characters=".")
    return table.set_column(table.column_names.index("income"), "income", income)


def _is_complete(table: pa.Table) -> pa.ChunkedArray:
    complete = pc.not_equal(table.column(0), _UNKNOWN)
    for column in table.columns[1:]:
        complete = pc.and_(complete, pc.not_equal(column, _UNKNOWN))
    return complete


def _works(table: pa.Table) -> pa.ChunkedArray:
    return pc.not_equal(table.column("occupation_code"), _NO_OCCUPATION)


def _is_grown_up(table: pa.Table) -> pa.ChunkedArray:
    return pc.greater_equal(table.column("age").cast(pa.int64()), _GROWN_UP)


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


_of_kdd = partial(Prepared, raw=("census-income.data", "census-income.test"), described=KDD, read=read_kdd)
FILES = (
    Prepared(
        name="adult.csv",
        raw=("adult.data",),
        described=ADULT,
        columns=_names("age workclass education marital-status occupation race sex native-country salary"),
        read=read_adult,
        choose=_is_complete,
        n_rows=30_162,
        values=(("occupation", 14), ("education", 16), ("native-country", 41)),
        rows_hash="47476a2dfd446e4bf55c2e4a950697df56fc5c36ac92cdf67065e8212c9851ca",
    ),
    _of_kdd(
        name="kdd_workers.csv.gz",
        columns=_names(
            "age sex education marital race class_of_worker self_birth hispanic_origin citizenship "
            "industry_code occupation_code income"
        ),
        choose=_works,
        n_rows=148_318,
        values=(("occupation_code", 46), ("industry_code", 51), ("education", 16)),
        rows_hash="6d4b175bd143241e7304c39f0578ace2efdf2389f9b532c2bb4c5853bfa8b4f9",
    ),
    _of_kdd(
        name="kdd_education.csv.gz",
        columns=_names("age sex education marital race class_of_worker self_birth income"),
        choose=_is_grown_up,
        n_rows=219_751,
        values=(("education", 16), ("race", 5)),
        rows_hash="dea221e8fa078ba4efea81cca6388a628aed54d95d9b25b945c9765c3ae6b1c3",
    ),
)


def prepare(folder: Path) -> dict[str, str]:
    """Make the files that are not there yet; by name, what became of each."""
    if not folder.is_dir():
        raise InputError(f"{folder} is no folder", hint=describe())
    said = {}
    for file in FILES:
        is_there = (folder / file.name).is_file()
        try:
            file.check(folder) if is_there else file.make(folder)
        except InputError as error:
            failed = UNUSABLE if is_there else "cannot be made"
            said[file.name] = f"{failed}: {error.message}; {error.hint}"
        else:
            said[file.name] = f"{'is there' if is_there else 'made'}, {file.n_rows:,} rows"
    return said


def describe() -> str:
    """Which public files are needed, and where they are described."""
    return (
        f"put adult.data ({ADULT}) and census-income.data and census-income.test ({KDD}) into a folder, and "
        "run `dalenius reproduce --data FOLDER`"
    )


@contextmanager
def using(folder: Path | None) -> Iterator[None]:
    """Experiments inside the block read their data from there; None: from where DALENIUS_DATA says."""
    token = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(token)


def data_folder() -> Path:
    """The folder of the real microdata: the one given, the one that DALENIUS_DATA names, or `data` here."""
    return _folder.get() or Path(os.environ.get(_ENVIRONMENT, "data"))


def data_file(name: str) -> Path:
    """A file of the real microdata."""
    named = data_folder()
    if not named.is_dir():
        raise InputError(f"the experiment needs {name}, which is made from public files", hint=describe())
    path = named / name
    if not path.is_file():
        raise InputError(f"the experiment needs {name}, and {named} does not have it", hint=describe())
    return path
