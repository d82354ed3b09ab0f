"""Publishing on Spark against Spark's own read, repartition and write of the same table.

python bench/spark_speed.py [ROWS ...]    default 10 million; every job in a process of its own

Prints, per mechanism: seconds, the ratio to the copy, bytes read, shuffled and written per row (from Spark's
event log), and the peak memory of the driver's Python process and of the JVM.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SOURCE = Path(__file__).parent.parent / "src"
FILE_ROWS = 1_000_000
QUASI = {"age": 100, "sex": 2, "zip": 1_000, "education": 16, "job": 200, "country": 60, "hours": 80}
N_VALUES = 50
DOMAINS = {**{name: f"0..{size - 1}" for name, size in QUASI.items()}, "disease": f"0..{N_VALUES - 1}"}
COPY = "copy"
MECHANISMS: dict[str, dict[str, Any]] = {
    "bucketize": {"promise": {"kind": "l-diversity", "l": 5}},
    "suppress": {"promise": {"kind": "l-diversity", "l": 12}, "suppress": {"method": "safe"}},
    "perturb": {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"},
        "mechanism": {"kind": "perturb", "method": "small-domain"},
    },
    "alpha-beta": {
        "promise": {"kind": "d-gamma-privacy", "k": 1, "gamma": "1/2"},
        "mechanism": {"kind": "alpha-beta", "duplicates": "distinct"},
        "domains": DOMAINS,
    },
}


def main() -> None:
    if len(sys.argv) == 5 and sys.argv[1] == "job":
        warnings.simplefilter("ignore")
        print(json.dumps(job(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
        return
    for n_rows in [int(float(text)) for text in sys.argv[1:]] or [10_000_000]:
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as folder:
            measure(n_rows, Path(folder))


def measure(n_rows: int, folder: Path) -> None:
    generate(n_rows, folder / "table")
    size = sum(path.stat().st_size for path in (folder / "table").iterdir())
    print(f"\n{n_rows:,} rows, 8 columns, {N_VALUES} sensitive values; {size / n_rows:.1f} bytes a row")
    print(_line("job", "seconds", "ratio", "rows", "read", "shuffled", "written", "driver MB", "JVM MB"))
    copied = None
    for name in (COPY, *MECHANISMS):
        found = run_job(name, folder)
        copied = copied or found["seconds"]
        per_row = [f"{found[what] / n_rows:.1f}" for what in ("read", "shuffled", "written")]
        timed = [f"{found['seconds']:.1f}", f"{found['seconds'] / copied:.2f}", f"{found['rows']:,}"]
        print(_line(name, *timed, *per_row, str(found["driver_mb"]), str(found["jvm_mb"])), flush=True)
    print("read, shuffled, written: bytes per row of the source")


def _line(name: str, *cells: str) -> str:
    return f"{name:<11}" + "".join(f"{cell:>12}" for cell in cells)


def generate(n_rows: int, folder: Path) -> None:
    """Values with a decreasing frequency, and quasi-identifiers that do not depend on them."""
    folder.mkdir()
    random = np.random.Generator(np.random.PCG64(1))
    weights = 1 / (np.arange(N_VALUES) + 5)
    for i, start in enumerate(range(0, n_rows, FILE_ROWS)):
        size = min(FILE_ROWS, n_rows - start)
        columns = {name: random.integers(values, size=size) for name, values in QUASI.items()}
        columns["disease"] = random.choice(N_VALUES, size, p=weights / weights.sum())
        pq.write_table(pa.table(columns), folder / f"{i:04d}.parquet")


def run_job(name: str, folder: Path) -> dict[str, Any]:
    """In a process of its own, so that peaks of memory are its own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, __file__, "job", name, str(folder / "table"), str(folder)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr[-3_000:])
    found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return found


def job(name: str, table: Path, folder: Path) -> dict[str, Any]:
    session = start(folder / f"events-{name}")
    warm_up(session, folder / f"warm-{name}")
    started = time.monotonic()
    rows = copy(session, table, folder / "copy") if name == COPY else publish(name, table, folder / name)
    seconds = time.monotonic() - started
    jvm = session.sparkContext._gateway.proc.pid  # noqa: SLF001
    memory = {"driver_mb": peak_mb("self"), "jvm_mb": peak_mb(str(jvm))}
    output = folder / name
    written = sum(path.stat().st_size for path in output.rglob("*.parquet"))
    session.stop()
    shutil.rmtree(output)
    return {
        "seconds": seconds,
        "rows": rows,
        "written": written,
        **memory,
        **traffic(folder / f"events-{name}"),
    }


def start(events: Path) -> Any:
    from pyspark.sql import SparkSession

    events.mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(events.parent),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def warm_up(session: Any, folder: Path) -> None:
    """Workers start and load their libraries; the JVM compiles."""
    folder.mkdir()
    generate(20_000, folder / "table")
    publish("perturb", folder / "table", folder / "release")
    copy(session, folder / "table", folder / "copy")


def copy(session: Any, table: Path, target: Path) -> int:
    """What anybody pays whose output order says nothing: read, shuffle all rows at random, write."""
    from dalenius.engines.spark import GROUP_ROWS

    frame = session.read.parquet(str(table))
    n_rows = frame.count()
    session.read.parquet(str(table)).repartition(max(1, -(-n_rows // GROUP_ROWS))).write.option(
        "compression", "zstd"
    ).parquet(str(target))
    return int(n_rows)


def publish(name: str, table: Path, release: Path) -> int:
    import dalenius
    from dalenius.publishing import write_release

    roles = {"quasi": list(QUASI), "sensitive": ["disease"]}
    policy = dalenius.Policy.from_dict(
        {"source": str(table), "release": str(release), "columns": roles, **MECHANISMS[name]}
    )
    from dalenius.engines.choosing import engine_named

    return write_release(policy, engine=engine_named("spark")).n_published


def traffic(events: Path) -> dict[str, int]:
    """Bytes that tasks have read and shuffled; those of the warm-up are small."""
    read = shuffled = 0
    for path in events.rglob("*"):
        if path.is_file() and path.name.startswith(("events_", "local-")):
            with path.open() as lines:
                for line in lines:
                    if '"SparkListenerTaskEnd"' in line:
                        metrics = json.loads(line).get("Task Metrics") or {}
                        read += metrics.get("Input Metrics", {}).get("Bytes Read", 0)
                        shuffled += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return {"read": read, "shuffled": shuffled}


def peak_mb(process: str) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    return 0


if __name__ == "__main__":
    main()
