"""Are the people of every bucket of the region that the manifest says? From the published rows alone."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from dalenius.mechanisms.base import Check
from dalenius.sql import count, identifier, literal


def check_regions(connection: duckdb.DuckDBPyConnection, regions: list[dict[str, Any]]) -> Check:
    """Every bucket is of one region, and its rows satisfy the region's conditions."""
    numbers = [region["buckets"] for region in regions]
    connection.register(
        "regions",
        pa.table(
            {
                "region": list(range(len(regions))),
                "first": [first for first, _ in numbers],
                "last": [last for _, last in numbers],
            }
        ),
    )
    cases = " ".join(f"WHEN {k} THEN {_holds(region['where'])}" for k, region in enumerate(regions))
    strangers = count(
        connection,
        f"""SELECT count(*) FROM qit LEFT JOIN regions ON bucket BETWEEN "first" AND "last"
            WHERE region IS NULL OR NOT (CASE region {cases} END)""",
    )
    sizes = connection.execute(
        """SELECT region, count(*) FROM qit JOIN regions ON bucket BETWEEN "first" AND "last"
           GROUP BY region ORDER BY region"""
    ).fetchall()
    wrong = [row for row in sizes if row[1] != regions[row[0]]["rows"]]
    ok = strangers == 0 and not wrong and len(sizes) == len(regions)
    return Check(
        name="regions",
        ok=ok,
        detail=f"every record is in a bucket of its region ({len(regions)} regions)"
        if ok
        else f"{strangers} records are in a bucket of another region, or the regions' sizes differ",
    )


def _holds(conditions: list[dict[str, Any]]) -> str:
    return " AND ".join(map(_sql, conditions)) or "true"


def _sql(condition: dict[str, Any]) -> str:
    name = identifier(condition["column"])
    if "in" in condition:
        listed = ", ".join(literal(cell) for cell in condition["in"] if cell is not None)
        parts = [f"coalesce({name}::VARCHAR IN ({listed}), false)"] if listed else []
        return f"({' OR '.join([*parts, *([f'{name} IS NULL'] if None in condition['in'] else [])])})"
    number = f"{name}::DOUBLE"
    bounds = [f"{number} > {float(condition['above'])!r}"] if "above" in condition else []
    bounds += [f"{number} <= {float(condition['at_most'])!r}"] if "at_most" in condition else []
    inside = " AND ".join([*bounds, f"{name} IS NOT NULL"])
    return f"(({inside}) OR {name} IS NULL)" if condition["null"] else f"({inside})"
