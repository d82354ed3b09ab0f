"""How long publishing takes and how much memory, beside DuckDB copying the same table in random order.

    python -m bench.publish_speed [--rows 1000000 10000000] [--mechanisms bucketize perturb]

Every line is a process of its own, so that its peak memory is its own; libraries are imported before the
clock starts. The floor is what anyone has to pay whose output order must say nothing:
`COPY (SELECT * FROM t ORDER BY random()) TO …`. Each ratio is per row written, to the copy of the same round.
Short jobs are noisy, so that there are several rounds of all jobs; the printed numbers are medians, and the
least and the greatest ratio. Needs about 15 GB of disk for 100 million rows.
"""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

import duckdb
import pyarrow.parquet as pq

from bench.publish_jobs import generate, in_own_process, options_parser, publish, warm_up

_MEASURED = ("seconds", "peak_mib", "written")


def main() -> None:
    parser = options_parser()
    parser.add_argument("--rows", type=int, nargs="+", default=[10**6, 10**7, 10**8])
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
    generate(n_rows, table)
    jobs = ["copy", *mechanisms]
    rounds = [
        {job: in_own_process("bench.publish_speed", job, table) for job in jobs}
        for _ in range(_n_rounds(n_rows))
    ]
    for job in jobs:
        seconds, peak, written = (median(run[job][what] for run in rounds) for what in _MEASURED)
        ratios = [_per_row(run[job]) / _per_row(run["copy"]) for run in rounds]
        shown = f"{n_rows:>13,} {job:<12} {written:>13,.0f} {seconds:>9.2f} {peak:>9,.0f}"
        print(f"{shown} {median(ratios):>14.2f} {min(ratios):>6.2f} {max(ratios):>5.2f}", flush=True)
    shutil.rmtree(folder)


def _n_rounds(n_rows: int) -> int:
    return 7 if n_rows <= 10**6 else 5 if n_rows <= 10**7 else 1


def _per_row(run: dict[str, float]) -> float:
    return run["seconds"] / run["written"]


def _measure(job: str, table: Path) -> None:
    warm_up(table.parent)
    started = time.perf_counter()
    written = _copy(table) if job == "copy" else publish(job, table)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps(dict(zip(_MEASURED, (seconds, peak, written), strict=True))))


def _copy(table: Path) -> int:
    connection = duckdb.connect(config={"temp_directory": str(table.parent / "spill")})
    target = table.with_name("copy.parquet")
    connection.execute(
        f"COPY (SELECT * FROM read_parquet('{table}') ORDER BY random()) TO '{target}'"
        " (FORMAT parquet, COMPRESSION zstd)"
    )
    written = int(pq.read_metadata(target).num_rows)
    target.unlink()
    return written


if __name__ == "__main__":
    main()
