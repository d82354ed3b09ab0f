"""What is published without a seed, from rows that were held: whole rows of one person each, in random order.

Runs with a seed leave the ledger alone and read the table again; these hold what they read for it. Tables
have the types and numbers of values at which a column takes another way, limits are lowered so
that all, some or none of the columns are held, and what was published is compared with the source.
"""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.engines import parquet
from dalenius.engines.local import source as local_source
from dalenius.engines.local import writing
from dalenius.policy import Policy
from dalenius.sql import connect, identifiers
from dalenius.tables import reading
from dalenius.tables.sketching import held

N = 900
"""Rows."""
ALL = 2**28
NEVER_HELD = ["number", "moment", "price", "yes", "raw"]
"""Their types are read again, and the whole table with them."""
BUCKETS = {"kind": "f-privacy", "default": 0.5}
SECTIONS: dict[str, dict[str, Any]] = {
    "bucketize": {"promise": BUCKETS},
    "regions": {"promise": BUCKETS, "mechanism": {"kind": "bucketize", "regions": 60}},
    "fakes": {"promise": BUCKETS, "mechanism": {"kind": "bucketize", "fakes": 1}},
    "recoded": {
        "promise": BUCKETS,
        "recode": {"i16": {"round": 5}, "t65": {"rare": 12}, "day": {"date": "year"}, "i8": {"top": 9}},
    },
    "dates": {"promise": BUCKETS, "series": {"kind": "dates"}},
    "perturb": {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": 0.6},
        "mechanism": {"kind": "perturb"},
    },
}


def people() -> pa.Table:
    """People with a number each, and columns of every type that is published."""
    rng = np.random.default_rng()
    ends, floats = np.iinfo(np.int64), rng.choice([0.0, -0.0, np.nan, np.inf, 0.1, 2.5], N)
    whole = {
        "i8": rng.permutation(np.arange(N) % 256).astype(np.int8),
        "i16": rng.permutation(np.arange(N) % 257 * 255 - 32_768).astype(np.int16),
        "i32": rng.permutation(np.arange(N) % 256 + 2**31 - 256).astype(np.int32),
        "i64": rng.permutation(ends.max - np.arange(N) % 300),
        "far": rng.choice([ends.min, -1, 0, ends.max], N),
        "u64": rng.integers(2**64 - 5_000, 2**64 - 1, N, dtype=np.uint64),
        "near": rng.integers(-7, 4_080, N),
    }
    texts = {f"t{n}": [f"é{i % n}" for i in rng.permutation(N)] for n in (1, 64, 65, 256, N)}
    columns = {
        "who": pa.array(rng.permutation(N) * 1_000_003),
        **{name: pa.array(cells, mask=rng.random(N) < 0.1) for name, cells in (whole | texts).items()},
        "number": pa.array(floats),
        "day": pa.array(rng.integers(-400, 400, N).astype(np.int32), mask=rng.random(N) < 0.1).cast(
            pa.date32()
        ),
        "moment": pa.array(rng.integers(0, 9, N) * 10**9).cast(pa.timestamp("us", "Europe/Berlin")),
        "price": pa.array([Decimal(int(cents)).scaleb(-2) for cents in rng.integers(-99, 99, N)]),
        "yes": pa.array(rng.random(N) < 0.3, mask=rng.random(N) < 0.1),
        "raw": pa.array([bytes([i, 0]) for i in rng.integers(0, 4, N)]),
        "listed": pa.array([f"l{i}" for i in rng.integers(0, 9, N)]).dictionary_encode(),
        "disease": pa.array([[None, *"abcdefg"][i] for i in rng.integers(0, 8, N)]),
        "id": pa.array([f"p{i}" for i in range(N)]),
    }
    return pa.table(columns)


def put(table: pa.Table, kind: str, folder: Path) -> Any:
    """The table as a source."""
    if kind == "frame":
        return pa.concat_tables([table.slice(start, 70) for start in range(0, N, 70)])
    if kind == "file":
        pq.write_table(table, folder / "t.parquet", row_group_size=250)
        return "t.parquet"
    if kind == "folder":
        (folder / "t").mkdir()
        for start in range(0, N, 400):
            pq.write_table(table.slice(start, 400), folder / "t" / f"{start}.parquet")
        return "t"
    with duckdb.connect(str(folder / "t.duckdb")) as database:
        database.register("given", table)
        database.execute("CREATE TABLE t AS FROM given; CREATE VIEW v AS FROM t ORDER BY random()")
    return {"path": "t.duckdb", "table": "v"}


def differing(connection: duckdb.DuckDBPyConnection, one: str, other: str) -> int:
    """How many rows of two queries have no partner in the other."""
    pairs = ((one, other), (other, one))
    return sum(len(connection.execute(f"({a}) EXCEPT ALL ({b})").fetchall()) for a, b in pairs)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Batches, row groups and piles so small that a table has several."""
    for module in (reading, held, local_source):
        monkeypatch.setattr(module, "BATCH_ROWS", 128)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 250)
    monkeypatch.setattr(writing, "_FEWER_ROWS", 200)
    monkeypatch.setattr(writing, "_MOST_HELD", 20_000)
    return monkeypatch


@pytest.mark.parametrize(
    ("sections", "kind", "most"),
    [
        ("bucketize", "view", ALL),
        ("bucketize", "folder", 30_000),
        ("bucketize", "frame", 0),
        ("regions", "file", ALL),
        ("fakes", "view", ALL),
        ("recoded", "view", ALL),
        ("dates", "view", ALL),
        ("dates", "frame", 30_000),
        ("perturb", "view", ALL),
        ("perturb", "folder", 0),
    ],
)
def test_rows_are_whole_and_nobody_is_missing(
    sections: str, kind: str, most: int, tmp_path: Path, small: pytest.MonkeyPatch
) -> None:
    small.setattr(held, "_MOST_HELD", most)
    table = people()
    if most == ALL:
        table = table.drop_columns(NEVER_HELD)
    quasi = [name for name in table.column_names if name not in ("disease", "id")]
    policy = Policy.from_dict(
        {
            "source": put(table, kind, tmp_path),
            "release": "r",
            "columns": {"unit": "id", "quasi": quasi, "sensitive": ["disease"]},
            **SECTIONS[sections],
        },
        folder=tmp_path,
    )
    dalenius.publish(policy, yes=True)
    folder = tmp_path / "r" / "date-1" if sections == "dates" else tmp_path / "r"
    assert dalenius.verify(tmp_path / "r").ok
    with connect() as connection:
        recoded = {name: recode.expression(name) for name, recode in policy.recode}
        listed = ", ".join(f"{recoded.get(name, name)} AS {name}" for name in [*quasi, "disease"])
        plain = pa.array(table["listed"].to_pylist())
        connection.register("given", table.set_column(table.column_names.index("listed"), "listed", plain))
        source = connection.sql(f"SELECT {listed} FROM given").to_arrow_table()
        connection.register("source", source)
        compare(connection, source, folder, quasi, n_fakes=int(sections == "fakes"))


def compare(
    connection: duckdb.DuckDBPyConnection, source: pa.Table, folder: Path, quasi: list[str], n_fakes: int
) -> None:
    """The release beside the source: everybody's row once, types, order, and the values of every bucket."""
    path = next(path for path in folder.glob("*.parquet") if path.stem in ("qit", "data"))
    published = connection.sql(f"SELECT * FROM read_parquet('{path}')").to_arrow_table()
    connection.register("published", published)
    columns = identifiers(quasi)
    assert differing(connection, f"SELECT {columns} FROM source", f"SELECT {columns} FROM published") == 0
    assert published.select(quasi).schema.types == source.select(quasi).schema.types
    # for rows in random order this exceeds 5 once in a million times
    place = {person: n for n, person in enumerate(source["who"].to_pylist())}
    order = [place[person] for person in published["who"].to_pylist()]
    assert abs(np.corrcoef(order, range(N))[0, 1]) * N**0.5 < 5
    if path.stem == "data":
        return
    own = "SELECT bucket, disease, count(*) AS n FROM published JOIN source USING (who) GROUP BY ALL"
    st = f"read_parquet('{folder}/st.parquet')"
    listed = f'SELECT bucket, disease, sum("count")::BIGINT AS n FROM {st} GROUP BY ALL'
    if not n_fakes:
        assert differing(connection, own, listed) == 0
    missing = f"FROM ({own}) AS o ANTI JOIN ({listed}) AS l ON o.bucket = l.bucket AND o.n <= l.n"
    assert not connection.execute(f"{missing} AND o.disease IS NOT DISTINCT FROM l.disease").fetchall()
