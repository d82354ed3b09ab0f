"""The weights of perturbed releases: the inverse of the channel, record by record."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dalenius.mechanisms.base import AS_IT_IS, Place, Weighting, listed_columns, stage
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.published import PublishedParts
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """Every record with every value of its part: ((m−1+γ)[x=y] − 1)/(γ−1) towards x if y is published."""
    sensitive = release.columns("sensitive")
    _stage_parts(published.read(release.manifest), connection)
    same = " AND ".join(
        f"d.{identifier(name)} IS NOT DISTINCT FROM v.{identifier(name)}" for name in sensitive
    )
    listed = listed_columns(columns, {"d": release.columns("quasi"), "v": sensitive})
    return Weighting(
        helpers=(
            ("parts", "the parts, and what a record of each counts"),
            ("part_values", "the sensitive values that each part has"),
        ),
        columns=(
            ("data", "part", "the number of the record's part; numbers are random"),
            ("parts", "part", "the number of a part; numbers are random"),
            (
                "parts",
                "gamma",
                "how much likelier a value is published from itself than from another one of the part",
            ),
            ("parts", "weight_same", "what a record counts towards the value that it is published with"),
            ("parts", "weight_other", "what a record counts towards each other value of its part"),
            ("part_values", "part", "the number of a part that has the value"),
        ),
        published=(
            ("data", "quasi", AS_IT_IS),
            ("data", "sensitive", "published at random: not a person's own value"),
            ("part_values", "sensitive", "a value that the part has"),
        ),
        view=f"SELECT {listed}, CASE WHEN {same} THEN p.weight_same ELSE p.weight_other END "
        f"AS weight\nFROM {place('data')} AS d\n"
        f"JOIN {place('parts')} AS p ON p.part = d.part\n"
        f"JOIN {place('part_values')} AS v ON v.part = d.part",
        weight="what the published record counts towards the row's sensitive value; the weights of a record "
        "add up to 1, and most are negative",
        note="SUM(weight) is the unbiased estimate that `dalenius ask` gives. A small count can come out "
        "negative.",
    )


def _stage_parts(parts: PublishedParts, connection: duckdb.DuckDBPyConnection) -> None:
    numbered = list(enumerate(parts.channels, start=1))
    weights = pa.table(
        {
            "part": pa.array([number for number, _ in numbered], pa.int32()),
            "gamma": [float(channel.gamma) for _, channel in numbered],
            "weight_same": [
                float((channel.n_values - 2 + channel.gamma) / (channel.gamma - 1)) for _, channel in numbered
            ],
            "weight_other": [float(-1 / (channel.gamma - 1)) for _, channel in numbered],
        }
    )
    codes = pa.array([code for channel in parts.channels for code in channel.codes], pa.int64())
    of_part = pa.array([number for number, channel in numbered for _ in channel.codes], pa.int32())
    stage(connection, "parts", weights)
    stage(connection, "part_values", parts.values(connection).take(codes).add_column(0, "part", of_part))
