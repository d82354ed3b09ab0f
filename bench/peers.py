"""The same job beside what a user could install instead: anonypy, anjana, pycanon and multi-freq-ldpy.

    python -m bench.peers [--data FOLDER] [--limit 300]

in the environment that `make bench-peers` makes from bench/peers.txt, and then runs this in.

On Adult (where the data folder is there) and on 500,000 generated rows. Each job is a process of its own
with the table in memory as a pandas frame, libraries imported and compiled code warm; ours include
planning, writing and checking a release on disk, theirs end in memory. The jobs are not the same promise:
the peers generalise quasi-identifiers until groups are diverse, and their randomized response has one
domain for everybody.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dalenius.reproduce.microdata import data_folder

_LEDGER = "DALENIUS_LEDGER"
_ELL = 3
_QUASI = ["age", "sex", "education", "marital"]
_SENSITIVE = "illness"
_LIMIT_SECONDS = 300
_PAIRS = [
    ("diverse table", "dalenius bucketize", ["anonypy l-diversity", "anjana l-diversity"]),
    ("check of diversity", "dalenius verify", ["pycanon l-diversity"]),
    ("randomized response", "dalenius perturb", ["multi-freq-ldpy GRR"]),
]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=data_folder())
    parser.add_argument("--limit", type=float, default=_LIMIT_SECONDS, help="seconds a job may take")
    parser.add_argument("--measure", nargs=2, metavar=("JOB", "TABLE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure[0], Path(options.measure[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, frame in _tables(options.data).items():
            path = Path(folder) / f"{name}.parquet"
            frame.to_parquet(path)
            _compare(f"{name}, {len(frame):,} rows", path, options.limit)


def _tables(data: Path) -> dict[str, pd.DataFrame]:
    rng = np.random.default_rng(1)
    n = 500_000
    skewed = (50 * rng.random(n) * np.sqrt(rng.random(n))).astype(int)
    tables = {
        "generated": pd.DataFrame(
            {
                "age": rng.integers(17, 91, n),
                "sex": rng.choice(["female", "male"], n),
                "education": rng.choice([f"level {i}" for i in range(16)], n),
                "marital": rng.choice(["single", "married", "divorced", "widowed"], n),
                "illness": np.char.add("illness ", skewed.astype(str)),
            }
        )
    }
    adult = data / "adult.csv"
    if not adult.exists():
        print(f"no {adult}: Adult is left out", file=sys.stderr)
        return tables
    people = pd.read_csv(adult, na_values="?", skipinitialspace=True).rename(columns=str.lower)
    chosen = people[["age", "sex", "education", "marital-status", "occupation"]].dropna()
    return {"Adult": chosen.set_axis([*_QUASI, _SENSITIVE], axis=1).reset_index(drop=True), **tables}


def _compare(title: str, table: Path, limit: float) -> None:
    print(f"\n{title}", flush=True)
    for job, ours, theirs in _PAIRS:
        own = _seconds(ours, table, limit)
        print(f"  {job:<20} {ours:<22} {_shown(own, limit):>10}")
        for peer in theirs:
            other = _seconds(peer, table, limit)
            at_least = "> " if isinstance(other, str) else ""
            ratio = f"{at_least}{_number(other, limit) / _number(own, limit):,.2f} times"
            print(f"  {'':<20} {peer:<22} {_shown(other, limit):>10}   {ratio} ours", flush=True)


def _seconds(job: str, table: Path, limit: float) -> float | str:
    command = [sys.executable, "-m", "bench.peers", "--measure", job, str(table)]
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=limit + 60)
    except subprocess.TimeoutExpired:
        return "stopped"
    return float(json.loads(done.stdout.splitlines()[-1]))


def _number(found: float | str, limit: float) -> float:
    return limit if isinstance(found, str) else found


def _shown(found: float | str, limit: float) -> str:
    return f"> {limit:.0f} s" if isinstance(found, str) else f"{found:.2f} s"


def _measure(job: str, table: Path) -> None:
    frame = pd.read_parquet(table)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        os.environ[_LEDGER] = str(Path(folder) / "ledger")  # the same table is published again and again here
        run = _JOBS[job](frame, Path(folder))
        started = time.perf_counter()
        run()
        seconds = time.perf_counter() - started
    print(json.dumps(seconds))


def _policy(frame: pd.DataFrame, folder: Path, promise: dict[str, Any], mechanism: dict[str, Any]) -> Any:
    import dalenius

    return dalenius.Policy.from_dict(
        {
            "source": frame,
            "release": str(folder / "release"),
            "columns": {"quasi": _QUASI, "sensitive": [_SENSITIVE]},
            "promise": promise,
            "mechanism": mechanism,
        }
    )


def _published(frame: pd.DataFrame, folder: Path, promise: dict[str, Any], kind: str) -> Callable[[], Any]:
    import dalenius

    (folder / "warm").mkdir()
    # a few rows first: what a library imports when it is needed first is not timed for the peers either
    dalenius.publish(_policy(frame.head(1000), folder / "warm", promise, {"kind": kind}))
    policy = _policy(frame, folder, promise, {"kind": kind})
    return lambda: dalenius.publish(policy)


def _bucketize(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:
    return _published(frame, folder, {"kind": "l-diversity", "l": _ELL}, "bucketize")


def _verify(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:
    release = _bucketize(frame, folder)()
    verify: Callable[[], Any] = release.verify
    return verify


def _perturb(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:
    return _published(frame, folder, {"kind": "rho-privacy", "rho1": "max", "rho2": "1/3"}, "perturb")


def _anonypy(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:  # noqa: ARG001
    import anonypy

    for name in ("sex", "education", "marital", _SENSITIVE):
        frame[name] = frame[name].astype("category")
    return lambda: anonypy.Preserver(frame, _QUASI, _SENSITIVE).anonymize_l_diversity(k=2, l=_ELL)


def _anjana(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:  # noqa: ARG001
    from anjana.anonymity import l_diversity

    hierarchies = {name: _levels(frame[name]) for name in _QUASI}
    return lambda: l_diversity(frame, [], _QUASI, _SENSITIVE, 2, _ELL, 50, hierarchies)


def _levels(column: pd.Series) -> dict[int, Any]:
    values = column.to_numpy()
    if column.name != "age":
        return {0: values, 1: np.array(["*"] * len(values))}
    decades = np.array([f"[{10 * (v // 10)}, {10 * (v // 10) + 10})" for v in values])
    return {0: values, 1: decades, 2: np.array(["*"] * len(values))}


def _pycanon(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:  # noqa: ARG001
    from pycanon.anonymity import l_diversity

    return lambda: l_diversity(frame, _QUASI, [_SENSITIVE])


def _grr(frame: pd.DataFrame, folder: Path) -> Callable[[], Any]:  # noqa: ARG001
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    codes, values = pd.factorize(frame[_SENSITIVE])
    GRR_Client(0, len(values), 1.0)  # compiled at its first call
    return lambda: [GRR_Client(code, len(values), 1.0) for code in codes]


_JOBS: dict[str, Callable[[pd.DataFrame, Path], Callable[[], Any]]] = {
    "dalenius bucketize": _bucketize,
    "dalenius verify": _verify,
    "dalenius perturb": _perturb,
    "anonypy l-diversity": _anonypy,
    "anjana l-diversity": _anjana,
    "pycanon l-diversity": _pycanon,
    "multi-freq-ldpy GRR": _grr,
}


if __name__ == "__main__":
    main()
