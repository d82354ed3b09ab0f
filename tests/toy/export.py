"""The weights of a release of roulette: every record with every value of the wheel."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dalenius.mechanisms.base import AS_IT_IS, Place, Weighting, listed_columns, stage
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifier
from tests.toy.published import read


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """([x=y] − s/m)/(1−s) towards x if y is published."""
    public, sensitive = read(release.manifest), release.columns("sensitive")
    spin, n_values = float(public.wheel.spin), public.wheel.n_values
    stage(connection, "spin", pa.table({"share": [spin], "n_values": [n_values]}))
    same = " AND ".join(f"d.{name} IS NOT DISTINCT FROM w.{name}" for name in map(identifier, sensitive))
    listed = listed_columns(columns, {"d": release.columns("quasi"), "w": sensitive})
    return Weighting(
        helpers=(("spin", "how often the wheel was spun"),),
        columns=(
            ("spin", "share", "the share of the records that the wheel was spun for"),
            ("spin", "n_values", "how many values the wheel has"),
        ),
        published=(
            ("data", "quasi", AS_IT_IS),
            ("data", "sensitive", "published at random: not a person's own value"),
            ("wheel", "sensitive", "a value on the wheel"),
        ),
        view=f"SELECT {listed}, "
        f"(CASE WHEN {same} THEN 1.0 ELSE 0.0 END - s.share / s.n_values) / (1 - s.share) AS weight\n"
        f"FROM {place('data')} AS d CROSS JOIN {place('wheel')} AS w CROSS JOIN {place('spin')} AS s",
        weight="what the published record counts towards the row's sensitive value; those of a record add up "
        "to 1",
        note="SUM(weight) is the unbiased estimate that `dalenius ask` gives.",
    )
