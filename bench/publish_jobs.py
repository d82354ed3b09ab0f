"""The table and the policies of the benchmarks of publishing, each measured in a process of its own.

The tables have 8 columns, one of them sensitive with 50 values.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb

import dalenius
from dalenius.release.ledger import ENVIRONMENT

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
MECHANISMS: dict[str, dict[str, Any]] = {
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


def options_parser() -> argparse.ArgumentParser:
    """The options that the benchmarks share; `--measure` is what `in_own_process` gives."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mechanisms", nargs="+", default=list(MECHANISMS), choices=list(MECHANISMS))
    parser.add_argument("--folder", type=Path, help="where the tables go; needs room for several copies")
    parser.add_argument("--measure", nargs=2, metavar=("JOB", "TABLE"), help=argparse.SUPPRESS)
    return parser


def in_own_process(module: str, job: str, table: Path) -> Any:
    """What `python -m MODULE --measure JOB TABLE` prints as JSON."""
    command = [sys.executable, "-m", module, "--measure", job, str(table)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def generate(n_rows: int, table: Path) -> None:
    """Write a random table."""
    duckdb.execute(
        f"COPY (SELECT {_COLUMNS} FROM range({n_rows})) TO '{table}' (FORMAT parquet, COMPRESSION zstd)"
    )


def policy_of(mechanism: str, table: Path) -> dalenius.Policy:
    """Publishes the table to the folder `release` beside it."""
    return dalenius.Policy.from_dict(
        {
            "source": str(table),
            "release": str(table.with_name("release")),
            "columns": {"quasi": _QUASI, "sensitive": ["disease"]},
            **MECHANISMS[mechanism],
        }
    )


def publish(mechanism: str, table: Path) -> int:
    """Publish the table and remove the release; the rows that it had."""
    os.environ[ENVIRONMENT] = str(table.with_name("ledger"))
    release = dalenius.publish(policy_of(mechanism, table))
    shutil.rmtree(release.path)
    table.with_name(
        "ledger"
    ).unlink()  # or the next mechanism's release would be a second one of the same table
    return int(release.manifest["rows"]["published"])


def warm_up(folder: Path) -> None:
    """Publish a small table by every mechanism, so that every library is loaded."""
    table = folder / "warm.parquet"
    generate(50_000, table)
    for mechanism in MECHANISMS:
        publish(mechanism, table)
