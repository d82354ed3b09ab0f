"""How often people with several rows are known by identifiers that repeat, and others are taken for them.

    python -m bench.belonging_rates     (DALENIUS_DATA names the folder of the data)

Every column in turn as the identifier; names that two sexes do not share; houses of three people, who share
a postcode and a town; and people with one to three rows, with a column that changes from row to row.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.release.belonging import find_belonging
from dalenius.reproduce.microdata import data_file
from dalenius.sql import literal

FILES = ("adult.csv", "kdd_education.csv.gz", "kdd_workers.csv.gz")
_TRIES = 60
_PEOPLE = 5_000


def read(path: Path, n_rows: int) -> pa.Table:
    """A random choice of people, the same each time."""
    query = f"SELECT * FROM {literal(str(path))} USING SAMPLE reservoir({n_rows} ROWS) REPEATABLE (1)"
    with duckdb.connect() as connection:
        return connection.sql(query).to_arrow_table()


def any_column(table: pa.Table) -> Iterator[tuple[bool, bool]]:
    """Each column as the identifier, beside each as the secret."""
    for identifier, secret in permutations(table.column_names, 2):
        quasi = [name for name in table.column_names if name not in (identifier, secret)]
        found = find_belonging(table, [identifier], quasi, [secret])
        yield found.is_person, found.sharing is not None


def made_up(table: pa.Table, rng: np.random.Generator) -> Iterator[dict[str, bool]]:
    """What is taken for people with several rows, with some of the columns published."""
    *names, secret = table.column_names
    sex = table["sex"].to_pylist()
    for number in range(_TRIES):
        few = list(rng.choice(names, rng.integers(1, 5), replace=False))
        quasi = list(rng.choice(names, min(int(rng.integers(2, 6)), len(names)), replace=False))
        n_names = (20, 200)[number % 2]
        name = [f"{one}{rng.integers(n_names)} {rng.integers(n_names)}" for one in sex]
        house = np.repeat(np.arange(300), 3)
        zips = rng.integers(40, size=300)[house]
        place = {"zip": zips, "town": zips // 5}
        living = table.take(pa.array(rng.choice(len(table), len(house), replace=False)))
        row = np.repeat(rng.choice(len(table), 400, replace=False), rng.integers(1, 4, 400))
        several = with_columns(table.take(pa.array(row)), ward=rng.integers(5, size=len(row)))
        cases = {
            "namesakes": (with_columns(table, id=name), few),
            "households": (with_columns(living, id=house, **place), [*quasi, *place]),
            "people with several rows": (with_columns(several, id=row), [*quasi, "ward"]),
        }
        yield {
            what: find_belonging(one, ["id"], columns, [secret]).is_person
            for what, (one, columns) in cases.items()
        }


def with_columns(table: pa.Table, **columns: np.ndarray | list[str]) -> pa.Table:
    """With more columns at the end."""
    for name, cells in columns.items():
        table = table.append_column(name, pa.array(cells))
    return table


def main() -> None:
    """Count."""
    rng = np.random.default_rng(5)
    for name in FILES:
        path = data_file(name)
        found = np.array([*any_column(read(path, 20_000))])
        print(
            f"{name}: {len(found)} columns as identifiers, of people {found[:, 0].sum()}, "
            f"told of as sharing {found[:, 1].sum()}"
        )
        tried = [*made_up(read(path, _PEOPLE), rng)]
        for what in tried[0]:
            print(f"  {what}, taken for people with several: {sum(one[what] for one in tried)} of {_TRIES}")


if __name__ == "__main__":
    main()
