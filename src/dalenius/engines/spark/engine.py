"""Many machines: Spark reads, shuffles and runs the same kernels on Arrow batches, partition by partition.

Two passes. The first counts the sensitive values of every partition; only these counts reach the driver,
which plans as it would for one machine. In the second every partition deals its records by its share of the
plan's quotas, which it works out itself from the counts and a derived key, and groups write the pieces.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from dalenius.engines.base import Progress
from dalenius.engines.preparing import (
    count_outside,
    refuse_empty,
    refuse_outside,
    refuse_types,
    refuse_units,
)
from dalenius.engines.spark.errors import guard, spark_errors
from dalenius.engines.spark.scan import SparkScan, add_up, dates_refused, open_partitions
from dalenius.engines.spark.source import RELATION, SparkSource, find_source, spark_schema, wire_schema
from dalenius.engines.spark.tasks import SUMS, AggregateTask, PrepareTask
from dalenius.errors import EngineError
from dalenius.policy import Policy
from dalenius.sql import connect
from dalenius.tables.frames import SparkFrameSource

GROUP_ROWS = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkEngine:
    """Publishes on a Spark cluster, or with Spark on this machine."""

    group_rows: int = GROUP_ROWS
    """About how many rows a task sorts and writes to one file."""
    name = "spark"

    @contextmanager
    def open(self, policy: Policy, spill: Path | None, progress: Progress) -> Iterator[SparkScan]:
        """Open the source, recode it, count it, and refuse what no promise could cover."""
        if policy.series == "dates":
            raise dates_refused()
        session = _find_session(policy)
        progress("counting", 0, None)
        with spark_errors():
            source = find_source(policy.source, session)
        _check_recodes(policy, source)
        _check_units(policy, source)
        partitions = open_partitions(policy, source, self.group_rows)
        n_rows = partitions.census.n_rows
        refuse_empty(policy, n_rows)
        progress("counting", n_rows, n_rows)
        yield SparkScan(policy=policy, source=source, partitions=partitions, spill=spill, progress=progress)


def _find_session(policy: Policy) -> Any:
    """The data frame's session, the active one, or one as Spark's own settings say."""
    if isinstance(policy.source, SparkFrameSource):
        return policy.source.frame.sparkSession
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # else tasks run the first python3 of the path
    try:
        builder = SparkSession.builder.appName("dalenius")
        return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    except Exception as error:
        raise EngineError(
            f"Spark does not start ({type(error).__name__})",
            hint="it needs Java 17 or later; `dalenius doctor` says what is missing",
        ) from error


def _check_recodes(policy: Policy, source: SparkSource) -> None:
    weight = policy.columns.weight
    columns = list(dict.fromkeys([*(name for name, _ in policy.recode), *filter(None, [weight])]))
    if not columns:
        return
    preparation, relation = source.unprepared(columns), source.relation(columns)
    with connect() as connection:
        connection.register(RELATION, preparation.source.empty_table())
        described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    refuse_types(policy, {name: kind for name, kind, *_ in described})
    if not policy.recode:
        return
    task = AggregateTask(preparation=preparation, sql=count_outside(policy.recode, relation))
    with spark_errors():
        found = source.read(columns).mapInArrow(guard(task.run), SUMS).toArrow()
    refuse_outside(policy.recode, add_up(found))


def _check_units(policy: Policy, source: SparkSource) -> None:
    unit = policy.columns.unit
    if unit is None:
        return
    preparation = source.preparation(policy, (unit,))
    schema = spark_schema(wire_schema(preparation.schema))
    with spark_errors():
        units = source.read((unit,)).mapInArrow(guard(PrepareTask(preparation=preparation).run), schema)
        unknown = units.filter("c0 IS NULL").count()
        repeated = units.groupBy("c0").count().filter("count > 1").count()
    refuse_units(unit, unknown, repeated)
