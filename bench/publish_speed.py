"""How long publishing takes and how much memory, beside DuckDB copying the same table in random order.

    python bench/publish_speed.py [--rows 1000000 10000000] [--mechanisms bucketize perturb ...]

Generates tables of 8 columns, one of them sensitive with 50 values. Every line is a process of its own, so that
its peak memory is its own. The floor is what anyone has to pay whose output order must say nothing:
`COPY (SELECT * FROM t ORDER BY random()) TO …`. Each ratio is per row written, within this run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

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
_POLICY = """
source = {source}
release = {release}
[columns]
quasi = {quasi}
sensitive = ["disease"]
"""
_SECTIONS = {
    "bucketize": '[promise]\nkind = "f-privacy"\ndefault = {times = 4, plus = 0.02}\n[mechanism]\nkind = "bucketize"',
    "suppress": '[promise]\nkind = "l-diversity"\nl = 20\n[mechanism]\nkind = "bucketize"\n[suppress]\nmethod = "safe"',
    "perturb": '[promise]\nkind = "rho-privacy"\nrho1 = "max"\nrho2 = "1/4"\n[mechanism]\nkind = "perturb"',
    "alpha-beta": '[promise]\nkind = "d-gamma-privacy"\nk = 2\ngamma = 0.9\n[mechanism]\nkind = "alpha-beta"\n'
    'domains = "active"\nduplicates = "distinct"',
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--mechanisms", nargs="+", default=list(_SECTIONS), choices=list(_SECTIONS))
    parser.add_argument("--folder", type=Path, help="where the tables go; needs room for several copies")
    parser.add_argument("--measure", nargs=2, metavar=("JOB", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure[0], Path(options.measure[1]))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        print(f"{'rows':>13} {'job':<12} {'written':>13} {'seconds':>9} {'peak MiB':>9} {'ratio per row':>14}")
        for n_rows in options.rows:
            _compare(n_rows, options.mechanisms, Path(folder) / f"rows{n_rows}")


def _compare(n_rows: int, mechanisms: list[str], folder: Path) -> None:
    folder.mkdir()
    table = folder / "table.parquet"
    duckdb.execute(
        f"COPY (SELECT {_COLUMNS} FROM range({n_rows})) TO '{table}' (FORMAT parquet, COMPRESSION zstd)"
    )
    floor = None
    for job in ["copy", *mechanisms]:
        done = subprocess.run(
            [sys.executable, __file__, "--measure", job, str(table)], check=True, capture_output=True, text=True
        )
        found = json.loads(done.stdout)
        per_row = found["seconds"] / found["written"]
        floor = floor or per_row
        print(
            f"{n_rows:>13,} {job:<12} {found['written']:>13,} {found['seconds']:>9.1f} {found['peak_mib']:>9,}"
            f" {per_row / floor:>14.2f}",
            flush=True,
        )
    shutil.rmtree(folder)


def _measure(job: str, table: Path) -> None:
    started = time.perf_counter()
    written = _copy(table) if job == "copy" else _publish(job, table)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(json.dumps({"seconds": seconds, "written": written, "peak_mib": peak}))


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
    import dalenius

    policy, release = table.with_name(f"{mechanism}.toml"), table.with_name(f"{mechanism}.release")
    head = _POLICY.format(
        source=json.dumps(str(table)), release=json.dumps(str(release)), quasi=json.dumps(_QUASI)
    )
    policy.write_text(head + _SECTIONS[mechanism])
    published = dalenius.publish(policy)
    written = published.manifest["rows"]["published"]
    if "DALENIUS_KEEP" not in os.environ:
        shutil.rmtree(release)
    return written


if __name__ == "__main__":
    main()
