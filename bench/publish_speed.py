"""How long publishing takes and how much memory, beside DuckDB copying the same table in random order.

    python -m bench.publish_speed [--rows 1000000 10000000] [--mechanisms bucketize perturb]

Generates tables of 8 columns, one of them sensitive with 50 values. Every line is a process of its own, so
that its peak memory is its own; libraries are imported before the clock starts. The floor is what anyone
has to pay whose output order must say nothing: `COPY (SELECT * FROM t ORDER BY random()) TO …`. Each ratio
is per row written, to the copy of the same round. Short jobs are noisy, so that there are several rounds of
all jobs; the printed numbers are medians, and the least and the greatest ratio. Needs about 15 GB of disk
for 100 million rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import duckdb

import dalenius

_COLUMNS = """
    17 + floor(74 * random() * random())::INTEGER AS age,
    CASE WHEN random() < 0.52 THEN 'female' ELSE 'male' END AS sex,
    10000 + floor(1000 * random())::INTEGER AS zip,
    'education ' || floor(16 * random())::INTEGER AS education,
    ['single', 'married', 'divorced', 'widowed', 'separated'][1 + floor(5 * random())::INTEGER] AS marital,
    1 + floor(99 * random())::INTEGER AS hours,
    'region ' || floor(50 * random())::INTEGER AS region,
    'disease ' || floor(50 * random() * sqrt(random()))::INTEGER AS disease
"""
_QUASI = ["age", "sex", "zip", "education", "marital", "hours", "region"]
_MEASURED = ("seconds", "peak_mib", "written")
_PROMISES: dict[str, dict[str, Any]] = {
    "bucketize": {
        "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": "0.02"}},
        "mechanism": {"kind": "bucketize"},
    },
    "suppress": {
        "promise": {"kind": "l-diversity", "l": 28},
        "mechanism": {"kind": "bucketize", "max_bucket": 60},
        "suppress": {"method": "safe"},
    },
    "perturb": {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/4"},
        "mechanism": {"kind": "perturb"},
    },
    "alpha-beta": {
        "promise": {"kind": "d-gamma-privacy", "k": 2, "gamma": "1/2"},
        "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
    },
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--mechanisms", nargs="+", default=list(_PROMISES), choices=list(_PROMISES))
    parser.add_argument("--folder", type=Path, help="where the tables go; needs room for several copies")
    parser.add_argument("--measure", nargs=2, metavar=("JOB", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure[0], Path(options.measure[1]))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(
            f"{'rows':>13} {'job':<12} {'written':>13} {'seconds':>9} {'peak MiB':>9} {'ratio per row':>14}"
            "  least  most"
        )
        for n_rows in options.rows:
            _compare(n_rows, options.mechanisms, Path(folder) / f"rows{n_rows}")


def _compare(n_rows: int, mechanisms: list[str], folder: Path) -> None:
    folder.mkdir()
    table = folder / "table.parquet"
    duckdb.execute(
        f"COPY (SELECT {_COLUMNS} FROM range({n_rows})) TO '{table}' (FORMAT parquet, COMPRESSION zstd)"
    )
    jobs = ["copy", *mechanisms]
    rounds = [{job: _run(job, table) for job in jobs} for _ in range(_n_rounds(n_rows))]
    for job in jobs:
        seconds, peak, written = (median(run[job][what] for run in rounds) for what in _MEASURED)
        ratios = [_per_row(run[job]) / _per_row(run["copy"]) for run in rounds]
        shown = f"{n_rows:>13,} {job:<12} {written:>13,.0f} {seconds:>9.2f} {peak:>9,.0f}"
        print(f"{shown} {median(ratios):>14.2f} {min(ratios):>6.2f} {max(ratios):>5.2f}", flush=True)
    shutil.rmtree(folder)


def _n_rounds(n_rows: int) -> int:
    return 7 if n_rows <= 10**6 else 5 if n_rows <= 10**7 else 1


def _run(job: str, table: Path) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", job, str(table)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _per_row(run: dict[str, float]) -> float:
    return run["seconds"] / run["written"]


def _measure(job: str, table: Path) -> None:
    _warm_up(table.parent)
    started = time.perf_counter()
    written = _copy(table) if job == "copy" else _publish(job, table)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(dict(zip(_MEASURED, (seconds, peak, written), strict=True))))


def _warm_up(folder: Path) -> None:
    """Publish a small table by every mechanism, so that every library is loaded."""
    table = folder / "warm.parquet"
    duckdb.execute(f"COPY (SELECT {_COLUMNS} FROM range(50000)) TO '{table}' (FORMAT parquet)")
    for mechanism in _PROMISES:
        _publish(mechanism, table)


def _copy(table: Path) -> int:
    connection = duckdb.connect(config={"temp_directory": str(table.parent / "spill")})
    target = table.with_name("copy.parquet")
    connection.execute(
        f"COPY (SELECT * FROM read_parquet('{table}') ORDER BY random()) TO '{target}'"
        " (FORMAT parquet, COMPRESSION zstd)"
    )
    target.unlink()
    (written,) = connection.execute(f"SELECT count(*) FROM read_parquet('{table}')").fetchone()
    return written


def _publish(mechanism: str, table: Path) -> int:
    ledger = table.with_name("ledger")
    policy = dalenius.Policy.from_dict(
        {
            "source": str(table),
            "release": str(table.with_name("release")),
            "columns": {"quasi": _QUASI, "sensitive": ["disease"]},
            "ledger": {"path": str(ledger)},
            **_PROMISES[mechanism],
        }
    )
    release = dalenius.publish(policy)
    shutil.rmtree(release.path)
    ledger.unlink()  # or the next mechanism's release would be a second one of the same table
    return int(release.manifest["rows"]["published"])


if __name__ == "__main__":
    main()
