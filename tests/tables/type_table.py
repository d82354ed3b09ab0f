"""Every scalar type of Arrow and DuckDB, and what a source of it becomes.

`python -m tests.tables.type_table` writes the table of docs/types.md again.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.errors import PolicyError, SourceError
from dalenius.mechanisms.tuples import plan
from dalenius.sql import connect
from dalenius.tables.source import open_source

PAGE = Path(__file__).parents[2] / "docs" / "types.md"
START, END = "<!-- the types, written by tests -->\n", "<!-- end of the types -->"
NOON = datetime.datetime(2024, 1, 31, 12)
DAY, TIME = NOON.date(), datetime.time(1, 2, 3)


def _array(cells: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array([*cells, None], kind)


ARROW = {
    "bool": _array([True, False], pa.bool_()),
    "int8, int16, int32": _array([-(2**7), 2**7 - 1], pa.int8()),
    "int64": _array([-(2**63), 2**63 - 1, 2**53 + 1], pa.int64()),
    "uint8, uint16, uint32": _array([0, 2**8 - 1], pa.uint8()),
    "uint64": _array([0, 2**64 - 1, 2**53 + 1], pa.uint64()),
    "half float": _array([np.float16(0.5), np.float16(65504)], pa.float16()),
    "float": _array([0.1, 3.4e38, float("inf")], pa.float32()),
    "double": _array([0.1, 1e300, 5e-324], pa.float64()),
    "decimal32, decimal64, decimal128": _array([Decimal("-" + "9" * 35 + ".001")], pa.decimal128(38, 3)),
    "decimal256, up to 38 digits": _array([Decimal("1.10")], pa.decimal256(50, 2)),
    "decimal256, more digits": _array([Decimal("1" * 40 + ".10")], pa.decimal256(50, 2)),
    "string, large string, string view": _array(["a", "", "ä\n"], pa.large_string()),
    "dictionary": _array(["a", "b"], pa.string()).dictionary_encode(),
    "binary, large binary, binary view": _array([b"a", b"", b"\xff\x00"], pa.binary()),
    "fixed-size binary": _array([b"abc", b"\0\0\0"], pa.binary(3)),
    "date32": _array([DAY, datetime.date(1, 1, 1)], pa.date32()),
    "date64": _array([DAY], pa.date64()),
    "time32": _array([TIME], pa.time32("s")),
    "time64, microseconds": _array([TIME.replace(microsecond=1)], pa.time64("us")),
    "time64, whole microseconds": _array([TIME], pa.time64("ns")),
    "time64, nanoseconds": pa.array([1], pa.time64("ns")),
    "timestamp, seconds": _array([NOON], pa.timestamp("s")),
    "timestamp, milliseconds": _array([NOON], pa.timestamp("ms")),
    "timestamp, microseconds": _array([NOON.replace(microsecond=1)], pa.timestamp("us")),
    "timestamp, whole microseconds": _array([NOON], pa.timestamp("ns")),
    "timestamp, nanoseconds": pa.array([1], pa.timestamp("ns")),
    "timestamp with a zone": _array([NOON], pa.timestamp("us", "Europe/Berlin")),
    "duration": _array([datetime.timedelta(1)], pa.duration("us")),
    "interval": _array([(1, 2, 3)], pa.month_day_nano_interval()),
    "uuid": _array([bytes(range(16))], pa.uuid()),
    "null": pa.nulls(2),
    "list": pa.array([[1]]),
    "struct": pa.array([{"a": 1}]),
}
DUCKDB = {
    "TINYINT … BIGINT, UTINYINT … UBIGINT": "(-9223372036854775807)::BIGINT",
    "HUGEINT, up to 38 digits": "12345678901234567890123::HUGEINT",
    "HUGEINT, 39 digits": "170141183460469231731687303715884105727::HUGEINT",
    "UHUGEINT, up to 38 digits": "12345678901234567890123::UHUGEINT",
    "FLOAT, DOUBLE": "0.1::DOUBLE",
    "DECIMAL": "1.10::DECIMAL(38, 10)",
    "VARCHAR": "'a'",
    "ENUM": "'a'::ENUM('a', 'b')",
    "UUID": "'00010203-0405-0607-0809-0a0b0c0d0e0f'::UUID",
    "BLOB": "'\\xAA'::BLOB",
    "BIT": "'101'::BIT",
    "DATE": "DATE '2024-01-31'",
    "TIME": "TIME '01:02:03.000001'",
    "TIMETZ": "'01:02:03+02'::TIMETZ",
    "TIMESTAMP, TIMESTAMP_S, TIMESTAMP_MS": "TIMESTAMP '2024-01-31 12:00:00.000001'",
    "TIMESTAMP_NS, whole microseconds": "'2024-01-31 12:00:00.000001'::TIMESTAMP_NS",
    "TIMESTAMP_NS, nanoseconds": "'2024-01-31 12:00:00.000000001'::TIMESTAMP_NS",
    "TIMESTAMPTZ": "TIMESTAMPTZ '2024-01-31 12:00:00+01'",
    "INTERVAL": "INTERVAL 1 DAY",
    "LIST, STRUCT, MAP, UNION": "[1]",
    "JSON": "'{\"a\": 1}'::JSON",
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a source of a type becomes."""

    published: pa.DataType | None
    error: SourceError | None = None
    cells: tuple[Any, ...] = ()

    @property
    def has_domain(self) -> bool:
        """Whether mechanisms that publish whole rows can list its values."""
        try:
            plan._refuse_type("x", self.published)
        except PolicyError:
            return False
        return True


def look(source: Any) -> Outcome:
    try:
        with connect() as connection:
            found = connection.sql(f"SELECT x FROM {open_source(source).scan(connection)}").to_arrow_table()
    except SourceError as error:
        return Outcome(published=None, error=error)
    return Outcome(published=found.schema.field("x").type, cells=tuple(found["x"].to_pylist()))


def outcomes() -> Iterator[tuple[str, str, Outcome]]:
    for name, cells in ARROW.items():
        yield "Arrow", name, look(pa.table({"x": cells}))
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, sql) in enumerate(DUCKDB.items()):
            path = Path(folder) / f"{number}.duckdb"
            with duckdb.connect(str(path)) as database:
                database.execute(f"CREATE TABLE t AS SELECT {sql} AS x UNION ALL SELECT NULL")
            yield "DuckDB", name, look(path)


def page_table() -> str:
    lines = ["| of | type | published as | with alpha-beta and FRAPP |", "|---|---|---|---|"]
    for of, name, found in outcomes():
        if found.error is not None:
            lines.append(f"| {of} | {name} | refused: {found.error.hint} | |")
        else:
            lines.append(
                f"| {of} | {name} | {found.published} | {'yes' if found.has_domain else 'refused'} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    PAGE.write_text(before + START + page_table() + END + rest.partition(END)[2], encoding="utf-8")
