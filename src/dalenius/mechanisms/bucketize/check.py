"""Does a bucketized release keep its thresholds? From the published tables alone, in exact integers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.bucketize.region_check import check_regions
from dalenius.mechanisms.suppress.check import check_suppression
from dalenius.sql import count, identifier

_BUCKET_SIZES = """
    SELECT count(*) FROM (SELECT bucket, count(*) AS people FROM qit GROUP BY bucket) AS q
    FULL JOIN (SELECT bucket, sum("count") AS places FROM st GROUP BY bucket) AS s USING (bucket)
    WHERE people + {fakes} IS DISTINCT FROM places
"""


def check_buckets(connection: duckdb.DuckDBPyConnection, manifest: dict[str, Any]) -> Iterator[Check]:
    """Sizes, well-formed counts, the fakes' domain, and the thresholds."""
    fakes = manifest["parameters"].get("fakes", {})
    n_fakes = int(fakes.get("per_bucket", 0))
    uneven = count(connection, _BUCKET_SIZES.format(fakes=n_fakes))
    more = f", and {n_fakes} more" if n_fakes else ""
    yield Check(
        name="bucket sizes",
        ok=uneven == 0,
        detail=f"{uneven} buckets do not have as many sensitive values as people{more}"
        if uneven
        else f"every bucket has as many sensitive values as people{more}",
    )
    sensitive = [column["name"] for column in manifest["columns"] if column["role"] == "sensitive"]
    listed = ", ".join(identifier(name) for name in sensitive)
    malformed = count(
        connection,
        f"SELECT count(*) FROM (SELECT bucket FROM st GROUP BY bucket, {listed} "
        'HAVING count(*) > 1 OR min("count") < 1)',
    )
    yield Check(
        name="sensitive table",
        ok=malformed == 0,
        detail=f"{malformed} entries are repeated or not positive"
        if malformed
        else "every value is counted once a bucket",
    )
    if n_fakes:
        yield _check_domain(connection, fakes["values"], sensitive)
    if "regions" in manifest["parameters"]:
        yield check_regions(connection, manifest["parameters"]["regions"])
    yield _check_numbers(connection, manifest["rows"])
    yield check_suppression(connection, manifest, tuple(sensitive))
    yield _check_thresholds(connection, manifest["promise"], sensitive, n_fakes)


def _check_domain(
    connection: duckdb.DuckDBPyConnection, values: list[list[str | None]], sensitive: list[str]
) -> Check:
    """A fake from outside the domain would be known for one at once."""
    domain = pa.table(
        {f"v{i}": pa.array([value[i] for value in values], pa.string()) for i in range(len(sensitive))}
    )
    connection.register("domain", domain)
    outside = count(connection, f"SELECT count(*) FROM st ANTI JOIN domain ON {_same_cells(sensitive)}")
    detail = f"{outside} entries are outside the domain" if outside else "every value is one of the domain's"
    return Check(name="fakes", ok=outside == 0, detail=detail)


def _same_cells(sensitive: list[str]) -> str:
    return " AND ".join(
        f"CAST({identifier(name)} AS VARCHAR) IS NOT DISTINCT FROM v{i}" for i, name in enumerate(sensitive)
    )


def _check_numbers(connection: duckdb.DuckDBPyConnection, rows: dict[str, Any]) -> Check:
    n_people = count(connection, "SELECT count(*) FROM qit")
    return Check(
        name="records",
        ok=n_people == rows["published"],
        detail=f"{n_people} records are published, and the manifest says {rows['published']}",
    )


def _check_thresholds(
    connection: duckdb.DuckDBPyConnection, promise: dict[str, Any], sensitive: list[str], n_fakes: int
) -> Check:
    # of the bucket's people: an attacker may know which values are fakes
    shares = f'SELECT *, sum("count") OVER (PARTITION BY bucket) - {n_fakes} AS size FROM st'
    if promise["kind"] == "l-diversity":
        broken = count(
            connection,
            f'SELECT count(*) FROM ({shares}) WHERE "count"::HUGEINT * {int(promise["l"])} > size',
        )
    else:
        connection.register("thresholds", _threshold_table(promise["thresholds"], len(sensitive)))
        # a value without a threshold counts as broken: nothing was promised that could hold
        broken = count(
            connection,
            f"""SELECT count(*) FROM ({shares}) AS s LEFT JOIN thresholds ON {_same_cells(sensitive)}
                WHERE numerator IS NULL
                   OR "count"::HUGEINT * denominator::HUGEINT > size::HUGEINT * numerator::HUGEINT""",
        )
    detail = (
        f"{broken} entries of the sensitive table are above their threshold"
        if broken
        else ("every value is within its threshold in every bucket")
    )
    return Check(name="promise", ok=broken == 0, detail=detail)


def _threshold_table(thresholds: list[dict[str, Any]], n_columns: int) -> pa.Table:
    at_most = [Fraction(entry["at_most"]) for entry in thresholds]
    columns = {
        f"v{i}": pa.array([entry["value"][i] for entry in thresholds], pa.string()) for i in range(n_columns)
    }
    # as text: exact integers of any length reach SQL whole
    columns["numerator"] = pa.array([str(f.numerator) for f in at_most], pa.string())
    columns["denominator"] = pa.array([str(f.denominator) for f in at_most], pa.string())
    return pa.table(columns)
