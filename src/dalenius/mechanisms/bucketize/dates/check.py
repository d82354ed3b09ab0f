"""Do the tables of several dates belong together? A bucket lists the same values whenever it is listed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import duckdb
import pyarrow as pa

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.bucketize import published
from dalenius.release.folder import StoredRelease
from dalenius.sql import connect, count, identifiers


def check_dates(parts: Sequence[StoredRelease]) -> Iterator[Check]:
    """That nobody was bucketized twice cannot be seen; that no bucket has changed can."""
    n_changed = n_old = n_padded = 0
    columns = ("bucket", *parts[-1].columns("sensitive"), "count")
    seen: pa.Table | None = None
    last = 0
    for part in parts:
        listed = part.read("st", columns)
        with connect() as connection:
            connection.register("listed", listed)
            connection.register("people", part.read("qit", ("bucket",)))
            n_padded += _count_padded(connection, last)
            if seen is not None:
                connection.register("seen", seen)
                n_changed += _count_changed(connection, columns)
                n_old += count(
                    connection,
                    f"SELECT count(DISTINCT bucket) FROM listed ANTI JOIN seen USING (bucket) "
                    f"WHERE bucket <= {last}",
                )
                fresh = "SELECT * FROM listed ANTI JOIN seen USING (bucket)"
                seen = connection.sql(f"SELECT * FROM seen UNION ALL ({fresh})").to_arrow_table()
            else:
                seen = listed
        dates = published.read(part.manifest).dates
        last = max(last, 0 if dates is None else dates.last_bucket)
    yield Check(
        name="kept buckets",
        ok=n_changed == n_old == n_padded == 0,
        detail=f"{n_changed} entries differ from an earlier date, {n_old} buckets have old numbers, and "
        f"{n_padded} new ones list values of nobody"
        if n_changed or n_old or n_padded
        else "every bucket lists the same values at every date",
    )


def _count_padded(connection: duckdb.DuckDBPyConnection, last: int) -> int:
    """New buckets that list more values than they have people: nobody has left what has just come."""
    values = f'SELECT bucket, sum("count") AS n FROM listed WHERE bucket > {last} GROUP BY bucket'
    people = f"SELECT bucket, count(*) AS n FROM people WHERE bucket > {last} GROUP BY bucket"
    return count(connection, f"SELECT count(*) FROM ({values}) ANTI JOIN ({people}) USING (bucket, n)")


def _count_changed(connection: duckdb.DuckDBPyConnection, columns: tuple[str, ...]) -> int:
    """Entries of buckets that were listed before which are not the same as then."""
    names = identifiers(columns)
    now = f"SELECT {names} FROM listed SEMI JOIN seen USING (bucket)"
    then = f"SELECT {names} FROM seen SEMI JOIN listed USING (bucket)"
    both = f"(({now}) EXCEPT ALL ({then})) UNION ALL (({then}) EXCEPT ALL ({now}))"
    return count(connection, f"SELECT count(*) FROM ({both})")
