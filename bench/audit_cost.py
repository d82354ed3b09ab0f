"""What an audit costs: processor time and the most memory, by mechanism and number of rows.

    python -m bench.audit_cost [--rows 30000 300000 3000000] [--mechanisms bucketize …] [--folder FOLDER]

Every audit runs in a process of its own, on a release of the benchmark's table (8 columns, of which one is
sensitive with 50 values) that another process published.
"""

from __future__ import annotations

import json
import resource
import shutil
import tempfile
from pathlib import Path

import dalenius
from bench.publish_jobs import generate, in_own_process, options_parser, policy_of
from dalenius.auditing import audit_release
from dalenius.release.folder import StoredRelease

ROWS = (30_000, 300_000, 3_000_000)


def measure(table: Path) -> dict[str, float]:
    """Audit the release beside the table."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    audit = audit_release(StoredRelease.open(table.with_name("release")), str(table), seed=1)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "gigabytes": after.ru_maxrss * 1024 / 1e9,
        "attacks": len(audit.attacks),
        "ok": audit.ok,
    }


def main() -> None:
    """Print a line for every mechanism and size."""
    parser = options_parser()
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS)
    options = parser.parse_args()
    if options.measure:
        job, table = options.measure
        kind, mechanism = job.split(":")
        if kind == "publish":
            dalenius.publish(policy_of(mechanism, Path(table)), seed=1)
            print("{}")
        else:
            print(json.dumps(measure(Path(table))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for n_rows in options.rows:
            table = Path(folder) / "table.parquet"
            generate(n_rows, table)
            for mechanism in options.mechanisms:
                in_own_process("bench.audit_cost", f"publish:{mechanism}", table)
                found = in_own_process("bench.audit_cost", f"audit:{mechanism}", table)
                shutil.rmtree(table.with_name("release"))
                print(
                    f"{n_rows:>9,} rows, {mechanism:>10}: {found['attacks']} attacks, "
                    f"{found['seconds']:.1f} s of processor time, at most {found['gigabytes']:.2f} GB, "
                    f"{'ok' if found['ok'] else 'BROKEN'}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
