"""Publishing on Spark against Spark's own read, repartition and write of the same table, on two cores.

    python -m bench.spark_speed 1e6 1e7 [--only perturb] [--folder DIR] [--json FILE] [--stages]

Every job is a process of its own; a copy of the table comes before the mechanisms, so that ratios are of one
run. The copy shuffles every row once, as Spark's `repartition` does it, into as many files as a release has,
compressed by the same method; its order within a file is the shuffle's own, where that of a release must be
random. `perturb-frame` publishes what Spark reads, the others what their tasks read themselves. `--json`
appends a line a job, from which `bench.cluster_cost` fits the cost model; `--stages` prints where the time
goes. A table of 100 million rows takes 0.6 GB, which stay in the folder, and a run 4 GB more, which do not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.spark_events import Watch, print_stages

SOURCE = Path(__file__).parent.parent / "src"
FILE_ROWS = 1_000_000
QUASI = {"age": 100, "sex": 2, "zip": 1_000, "education": 16, "job": 200, "country": 60, "hours": 80}
N_VALUES = 50
DOMAINS = {**{name: f"0..{size - 1}" for name, size in QUASI.items()}, "disease": f"0..{N_VALUES - 1}"}
COPY = "copy"
MECHANISMS: dict[str, dict[str, Any]] = {
    "bucketize": {"promise": {"kind": "l-diversity", "l": 5}},
    "suppress": {"promise": {"kind": "l-diversity", "l": 15}, "suppress": {"method": "safe"}},
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
FRAME = "perturb-frame"
PASSES = {COPY: (0, 1), **dict.fromkeys(MECHANISMS, (1, 2)), "alpha-beta": (1, 5), FRAME: (0, 3)}
"""How often a job reads the sensitive column alone, and all columns."""
COLUMNS = (
    "seconds",
    "ratio",
    "rows",
    "CPU s",
    "read",
    "shuffled",
    "written",
    "driver MB",
    "JVM MB",
    "tasks MB",
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", nargs="*", type=float, default=[1e7])
    parser.add_argument("--only", nargs="*", choices=[*MECHANISMS, FRAME], default=[*MECHANISMS, FRAME])
    parser.add_argument(
        "--folder", type=Path, help="where the tables go, to be used again; else they are removed"
    )
    parser.add_argument("--json", type=Path, help="a file to which every job's measurements are added")
    parser.add_argument("--stages", action="store_true", help="print each job's stages")
    parser.add_argument("--job", nargs=3, metavar=("NAME", "TABLE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        warnings.simplefilter("ignore")
        name, table, folder = options.job
        print(json.dumps(job(name, Path(table), Path(folder))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for n_rows in map(int, options.rows):
            measure(n_rows, options, Path(folder))


def measure(n_rows: int, options: argparse.Namespace, folder: Path) -> None:
    table = (options.folder or folder) / f"table-{n_rows}"
    generate(n_rows, table)
    sizes = column_bytes(table)
    described = f"{n_rows:,} rows, 8 columns, {N_VALUES} sensitive values"
    print(f"\n{described}; {sum(sizes) / n_rows:.1f} bytes a row, {sizes[-1] / n_rows:.1f} of them sensitive")
    print(_line("job", *COLUMNS))
    copied = None
    for name in (COPY, *options.only):
        alone, whole = PASSES[name]
        read = {"source_bytes": sum(sizes), "read": alone * sizes[-1] + whole * sum(sizes)}
        found = {"job": name, "source_rows": n_rows, **run_job(name, table, folder), **read}
        copied = copied or found["seconds"]
        found["ratio"] = found["seconds"] / copied
        print(_line(name, *shown(found)), flush=True)
        if options.stages:
            print_stages(found["stages"])
        if options.json:
            with options.json.open("a") as lines:
                lines.write(json.dumps(found) + "\n")
    print("CPU s: driver, JVM and Python tasks; shuffled, written: bytes per row of the source, and read: by")
    print("the passes over its columns, of which the page cache serves all but the first")


def column_bytes(table: Path) -> list[int]:
    """What each column takes in the files, the sensitive one last."""
    footers = [pq.read_metadata(path) for path in table.iterdir()]
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    return [sum(g.column(i).total_compressed_size for g in groups) for i in range(len(QUASI) + 1)]


def shown(found: dict[str, Any]) -> list[str]:
    cpu = sum(found["cpu"].values())
    timed = [f"{found['seconds']:.1f}", f"{found['ratio']:.2f}", f"{found['rows']:,}", f"{cpu:.1f}"]
    per_row = [f"{found[what] / found['source_rows']:.1f}" for what in ("read", "shuffled", "written")]
    return [*timed, *per_row, *(f"{found['peak_mb'][part]:,}" for part in ("driver", "jvm", "tasks"))]


def _line(name: str, *cells: str) -> str:
    return f"{name:<14}" + "".join(f"{cell:>12}" for cell in cells)


def generate(n_rows: int, folder: Path) -> None:
    """Values with a decreasing frequency, and quasi-identifiers that do not depend on them."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    random = np.random.Generator(np.random.PCG64(1))
    weights = 1 / (np.arange(N_VALUES) + 5)
    for i, start in enumerate(range(0, n_rows, FILE_ROWS)):
        size = min(FILE_ROWS, n_rows - start)
        columns = {name: random.integers(values, size=size) for name, values in QUASI.items()}
        columns["disease"] = random.choice(N_VALUES, size, p=weights / weights.sum())
        pq.write_table(pa.table(columns), unfinished / f"{i:04d}.parquet")
    unfinished.rename(folder)


def run_job(name: str, table: Path, folder: Path) -> dict[str, Any]:
    """In a process of its own, so that peaks of memory are its own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "PYSPARK_PYTHON": sys.executable}
    with tempfile.TemporaryDirectory(dir=folder) as own:
        command = [sys.executable, "-m", "bench.spark_speed", "--job", name, str(table), own]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr[-3_000:])
    found: dict[str, Any] = json.loads(ran.stdout.strip().splitlines()[-1])
    return found


def job(name: str, table: Path, folder: Path) -> dict[str, Any]:
    session = start(folder)
    warm_up(session, folder / "warm")
    output = folder / "output"
    watch = Watch(session, folder / "events")
    rows = copy(session, table, output) if name == COPY else publish(session, name, table, output)
    found = watch.stop()
    written = sum(path.stat().st_size for path in output.rglob("*.parquet"))
    session.stop()
    return {"rows": rows, "written": written, **found, **watch.logged()}


def start(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    (folder / "events").mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        "spark.local.dir": str(folder),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def warm_up(session: Any, folder: Path) -> None:
    """Workers start and load their libraries; the JVM compiles."""
    generate(20_000, folder / "table")
    publish(session, "perturb", folder / "table", folder / "release")
    copy(session, folder / "table", folder / "copy")


def copy(session: Any, table: Path, target: Path) -> int:
    """What anybody pays whose output order says nothing: read, shuffle all rows, write."""
    from dalenius.engines.spark.engine import GROUP_ROWS

    frame = session.read.parquet(str(table))
    n_rows = frame.count()
    session.read.parquet(str(table)).repartition(max(1, -(-n_rows // GROUP_ROWS))).write.option(
        "compression", "zstd"
    ).parquet(str(target))
    return int(n_rows)


def publish(session: Any, name: str, table: Path, release: Path) -> int:
    import dalenius
    from dalenius.engines.registry import engine_named
    from dalenius.publishing import write_release
    from dalenius.release.ledger import ENVIRONMENT

    os.environ[ENVIRONMENT] = str(release.with_name("ledger"))  # the same table is published again and again
    roles = {"quasi": list(QUASI), "sensitive": ["disease"]}
    policy = dalenius.Policy.from_dict(
        {
            "source": session.read.parquet(str(table)) if name == FRAME else str(table),
            "release": str(release),
            "columns": roles,
            **MECHANISMS[name.removesuffix("-frame")],
        }
    )
    return write_release(policy, engine=engine_named("spark")).n_published


if __name__ == "__main__":
    main()
