"""A table of a PostgreSQL server as a policy's source."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pytest

import dalenius
from dalenius.errors import SourceError
from dalenius.tables.frames import FrameSource
from dalenius.tables.source import open_source
from tests.export.conftest import SENSITIVE


@pytest.fixture(scope="module")
def filled(postgres: str, table: pa.Table) -> str:
    """The server, with the awkward table in it, and one whose types Arrow does not have."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute('CREATE SCHEMA "in put"')
        cursor.adbc_ingest("people", table, db_schema_name="in put", mode="create")
        cursor.execute(
            "CREATE TABLE odd AS SELECT 1.5::numeric AS fee, 'x'::varchar(3) AS code, NULL::uuid AS id, "
            "'2020-01-02 03:04:05'::timestamp AS seen, '{\"a\": 1}'::json AS note"
        )
        connection.commit()
    return postgres


def test_publishes_what_the_frame_publishes(filled: str, table: pa.Table, tmp_path: Path) -> None:
    source = open_source(f"{filled}?table=in%20put.people")
    assert isinstance(source, FrameSource)
    assert source.table.schema.field("fee").type.scale == 2
    found = source.table.cast(_as_read(table).schema)
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, _as_read(table).to_pylist()))
    policy = {
        "source": f"{filled}?table=in%20put.people",
        "release": "r",
        "columns": {"quasi": [c for c in table.column_names if c not in SENSITIVE], "sensitive": SENSITIVE},
        "promise": {"kind": "l-diversity", "l": 3},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy, folder=tmp_path), seed=1, yes=True)
    assert release.verify().ok
    (row,) = release.ask("SELECT COUNT(*) FROM t").rows
    assert row.estimate == table.num_rows


def _as_read(table: pa.Table) -> pa.Table:
    """PostgreSQL has no unsigned bytes; its exact numbers stay exact."""
    kinds = {"size": pa.int16()}
    fields = [field.with_type(kinds.get(field.name, field.type)) for field in table.schema]
    return table.cast(pa.schema(fields))


def test_types_that_arrow_does_not_have(filled: str) -> None:
    source = open_source(f"{filled}?table=odd")
    assert isinstance(source, FrameSource)
    (row,) = source.table.to_pylist()
    assert (row["fee"], row["code"], row["id"], row["note"]) == (1.5, "x", None, '{"a": 1}')


@pytest.mark.parametrize(
    ("options", "said"),
    [("?table=nobody", "nobody"), ("", "names no table"), ("?table=a&table=b", "several")],
)
def test_what_is_wrong_is_said_without_the_password(filled: str, options: str, said: str) -> None:
    password = urlsplit(filled).password
    assert password is not None
    with pytest.raises(SourceError) as caught:
        open_source(filled + options)
    text = f"{caught.value} {caught.value.hint}"
    assert said in text
    assert password not in text
    assert unquote(password) not in text
