"""Runs of their own process: a cluster whose executor is killed, and a Spark Connect session."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import dalenius
from dalenius.engines.spark import writing as spark_writing
from dalenius.engines.spark.engine import SparkEngine
from tests.conftest import spark_settings
from tests.contract.subject import people
from tests.contract.subjects import ALSO_ON_SPARK, SPARK_SUBJECTS
from tests.engines.spark.flaky import killing
from tests.mechanisms.bucketize.subjects import SUBJECTS as BUCKETS


def hashes(release: dalenius.Release) -> list[str]:
    return [file["sha256"] for table in release.manifest["tables"] for file in table["files"]]


def kill_executor(folder: Path) -> dict[str, Any]:
    """The same seeded release with and without an executor that dies in the middle."""
    builder = SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.executor.memory", "1g")
    spark_settings(builder, folder).getOrCreate()
    subject, engine = BUCKETS[0], SparkEngine(group_rows=200)
    plain = dalenius.publish(subject.policy(people(), folder / "plain"), seed=5, engine=engine)
    setattr(spark_writing, "guard", killing(folder / "killed"))  # noqa: B010
    again = dalenius.publish(subject.policy(people(), folder / "again"), seed=5, engine=engine)
    return {
        "killed": (folder / "killed").exists(),
        "same": hashes(plain) == hashes(again),
        "ok": again.verify().ok,
    }


def connect(folder: Path) -> dict[str, Any]:
    """A policy of each mechanism with a Spark Connect session; one reads a data frame."""
    session = spark_settings(SparkSession.builder.remote("local[2]"), folder).getOrCreate()
    source = folder / "people.parquet"
    session.createDataFrame(people()).write.parquet(str(source))
    frame, ok = session.read.parquet(str(source)), {}
    of_each = {subject.name.split()[0]: subject for subject in [*ALSO_ON_SPARK, *SPARK_SUBJECTS]}
    for subject in of_each.values():
        with subject.joined():
            table = frame if subject is SPARK_SUBJECTS[0] else people()
            policy = subject.policy(table, folder / subject.name)
            ok[subject.name] = subject.publish(policy, again=True).verify(strict=True).ok
    return {"session": type(session).__module__, "ok": ok}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run = {"kill": kill_executor, "connect": connect}[sys.argv[1]]
    print("\n" + json.dumps(run(Path(sys.argv[2]))))
    sys.stdout.flush()
