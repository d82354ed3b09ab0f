"""Publishing tables of every kind and size, beside plain copies of the same file: seconds and ratios.

    python -m bench.publish_matrix [--quick] [--kinds integers texts] [--rows 1000 1000000] [--rounds 3]

Every job reads the file and writes Parquet: DuckDB's copy in random order (`copy`), Polars' streaming copy
in the order of the file (`polars`), and releases. `no ledger` is bucketize with a seed, which leaves out the
ledger and its sketch of the source. It runs twice, each time in a process of its own: the work alone, with
all libraries loaded, and, in brackets, the whole command, from the start of the process to its end. The least
processor time and the least time by the clock of all rounds are shown, and then the medians; a ratio is to
`copy`. Alpha-beta, that writes other rows than it reads, is counted per row written. A folder holds the table
in eight Parquet files. `--quick` has every kind of table and format once, at a thousand and a million rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from typing import Any

import duckdb

_LEDGER = "DALENIUS_LEDGER"
_MANY = 10**6
KINDS = {
    "integers": ["floor({k} * random())::BIGINT" for _ in range(7)],
    "texts": ["'value ' || floor({k} * random())::INTEGER" for _ in range(7)],
    "names": ["'name ' || floor(200000 * random())::INTEGER" for _ in range(3)],
    "wide": ["floor({k} * random())::BIGINT" for _ in range(59)],
    "widest": ["floor({k} * random())::BIGINT" for _ in range(299)],
}
_SIZES = (2, 5, 16, 50, 72, 100, 120)
_MOST_ROWS = {"integers": 20 * _MANY, "names": _MANY, "wide": _MANY, "widest": 10**5}
_FORMS = ("parquet", "csv", "csv.gz", "folder")
_FILES_IN_FOLDER = 8
_MECHANISMS: dict[str, dict[str, Any]] = {
    "bucketize": {
        "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": "0.02"}},
        "mechanism": {"kind": "bucketize"},
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
SECONDS = ("processor", "clock", "process_processor", "process_clock")
JOBS = ("copy", "polars", "bucketize", "no ledger", "perturb", "alpha-beta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds of a job: of the processors and by the clock, its work alone and its whole process."""

    processor: float
    clock: float
    process_processor: float
    process_clock: float
    written: int


def summarise(rounds: list[Took], of: Callable[[Iterable[float]], float]) -> Took:
    """One for all rounds: the least of each time, or their median."""
    seconds = {what: of([getattr(took, what) for took in rounds]) for what in SECONDS}
    return Took(**seconds, written=rounds[-1].written)


def generate(kind: str, n_rows: int, table: Path) -> None:
    """A random table whose sensitive column has 50 values."""
    cells = [text.format(k=_SIZES[i % len(_SIZES)]) for i, text in enumerate(KINDS[kind])]
    columns = ", ".join(f"{cell} AS q{i}" for i, cell in enumerate(cells))
    sensitive = "floor(50 * random() * sqrt(random()))::INTEGER"
    sensitive = sensitive if kind != "texts" else f"'disease ' || {sensitive}"
    how = "FORMAT csv, HEADER" if is_csv(table) else "FORMAT parquet, COMPRESSION zstd"
    files, n_files = [table], 1
    if is_folder(table):
        table.mkdir()
        n_files = _FILES_IN_FOLDER
        files = [table / f"part-{number}.parquet" for number in range(n_files)]
    for file in files:
        rows = f"SELECT {columns}, {sensitive} AS s FROM range({n_rows // n_files})"
        duckdb.execute(f"COPY ({rows}) TO '{file}' ({how})")


def is_csv(table: Path) -> bool:
    """Packed or not."""
    return ".csv" in table.suffixes


def is_folder(table: Path) -> bool:
    """Of Parquet files."""
    return table.suffix == ".folder"


def cells(options: argparse.Namespace) -> list[tuple[str, int, str]]:
    """(kind, rows, format) of the tables."""
    sizes = options.rows or (
        [1_000, _MANY] if options.quick else [1_000, 30_000, _MANY, 5 * _MANY, 20 * _MANY]
    )
    kinds = options.kinds or list(KINDS)
    found = []
    for kind in kinds:
        most = _MOST_ROWS.get(kind, 5 * _MANY)
        own = [n for n in sizes if n <= most] + ([most] if most < _MANY <= max(sizes) else [])
        found += [(kind, n, "parquet") for n in own]
    others = [("integers", n, form) for form in _FORMS[1:] for n in sizes if n <= _MANY]
    return found + (others if "integers" in kinds else [])


def jobs_of(kind: str, n_rows: int, form: str) -> list[str]:
    if form != "parquet" or n_rows > 5 * _MANY:
        return ["copy", "polars", "bucketize", "perturb"]
    is_tuples = kind in ("integers", "texts") and n_rows <= _MANY
    return [job for job in JOBS if job != "alpha-beta" or is_tuples]


def run(job: str, table: Path) -> Took:
    """A job in processes of its own: the work alone, and the whole command."""
    inside = _start([sys.executable, "-m", "bench.publish_matrix", "--measure", job, str(table)], table)[0]
    clean(table.parent)
    _, processor, clock = _start(command(job, table), table)
    return Took(**json.loads(inside), process_processor=processor, process_clock=clock)


def _start(arguments: list[str], table: Path) -> tuple[str, float, float]:
    """What a process printed, its processor time, and how long it took."""
    before, started = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    env = {**os.environ, _LEDGER: str(table.with_name("ledger"))}
    env.setdefault("OPENBLAS_NUM_THREADS", "1")  # as commands do
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    env["PYTHONPYCACHEPREFIX"] = str(table.parents[1] / "compiled")
    done = subprocess.run(arguments, check=True, stdout=subprocess.PIPE, text=True, env=env)
    clock, after = time.perf_counter() - started, getrusage(RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, clock


def command(job: str, table: Path) -> list[str]:
    """As somebody would type it."""
    if job == "copy":
        return [sys.executable, "-c", f"import duckdb; duckdb.execute({_copy(table)!r})"]
    if job == "polars":
        target = str(table.with_name("target.parquet"))
        scan = f"pl.scan_{'csv' if is_csv(table) else 'parquet'}({_pattern(table)!r})"
        return [
            sys.executable,
            "-c",
            f"import polars as pl; {scan}.sink_parquet({target!r}, compression='zstd')",
        ]
    policy = table.with_name("policy.toml")
    entries = _policy(job, table, _n_quasi(table), "release").items()
    policy.write_text("\n".join(f"{name} = {_toml(entry)}" for name, entry in entries))
    seed = ["--seed", "1"] if job == "no ledger" else []
    return [sys.executable, "-m", "dalenius", "publish", str(policy), *seed]


def _policy(job: str, table: Path, n_quasi: int, release: str) -> dict[str, Any]:
    columns = {"quasi": [f"q{i}" for i in range(n_quasi)], "sensitive": ["s"]}
    rest = _MECHANISMS["bucketize" if job == "no ledger" else job]
    return {"source": str(table), "release": str(table.with_name(release)), "columns": columns, **rest}


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {_toml(entry)}" for name, entry in value.items()) + "}"
    return json.dumps(value)


def _copy(table: Path) -> str:
    source = f"read_csv('{table}')" if is_csv(table) else f"read_parquet('{_pattern(table)}')"
    how = "FORMAT parquet, COMPRESSION zstd"
    target = table.with_name("target.parquet")
    return f"COPY (SELECT * FROM {source} ORDER BY random()) TO '{target}' ({how})"


def _pattern(table: Path) -> str:
    return str(table / "*.parquet" if is_folder(table) else table)


def measure(job: str, table: Path) -> None:
    """Do the job, and print how long the work took, imports left out."""
    work = _load(job, table)
    started = time.process_time(), time.perf_counter()
    written = work()
    ended = time.process_time(), time.perf_counter()
    print(
        json.dumps({"processor": ended[0] - started[0], "clock": ended[1] - started[1], "written": written})
    )


def _load(job: str, table: Path) -> Any:
    """What does the job, with its libraries loaded."""
    target = table.with_name("target.parquet")
    if job == "copy":
        return lambda: duckdb.connect().execute(_copy(table)).fetchall()[0][0]
    if job == "polars":
        import polars as pl

        scan = pl.scan_csv if is_csv(table) else pl.scan_parquet
        return lambda: scan(_pattern(table)).sink_parquet(target, compression="zstd") or -1
    return _publisher(job, table)


def _publisher(job: str, table: Path) -> Any:
    import dalenius
    from dalenius import system
    from dalenius.cli.main import _keep_pandas_out

    _keep_pandas_out()  # as the command does before it works
    system.keep_freed_memory()
    seed = 1 if job == "no ledger" else None

    def publish(source: Path, n_quasi: int, release: str) -> int:
        policy = dalenius.Policy.from_dict(_policy(job, source, n_quasi, release))
        return int(dalenius.publish(policy, seed=seed).manifest["rows"]["published"] or 0)

    small = table.with_name("small.parquet")  # what is loaded when it is first used is loaded for it
    generate("integers", 500, small)
    publish(small, len(KINDS["integers"]), "warm")
    n_quasi = _n_quasi(table)
    return lambda: publish(table, n_quasi, "release")


def _n_quasi(table: Path) -> int:
    return len(duckdb.connect().execute(f"SELECT * FROM '{_pattern(table)}' LIMIT 0").description or ()) - 1


def clean(folder: Path) -> None:
    for name in ("release", "warm"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("ledger", "target.parquet"):
        (folder / name).unlink(missing_ok=True)


def compare(kind: str, n_rows: int, form: str, rounds: int, folder: Path) -> dict[str, list[Took]]:
    folder.mkdir()
    table = folder / f"table.{form}"
    generate(kind, n_rows, table)
    found: dict[str, list[Took]] = {job: [] for job in jobs_of(kind, n_rows, form)}
    for _ in range(rounds):
        for job, own in found.items():
            own.append(run(job, table))
            clean(folder)
    shutil.rmtree(folder)
    return found


def show(kind: str, n_rows: int, form: str, what: str, seconds: dict[str, Took]) -> None:
    copy = seconds["copy"]
    for job, took in seconds.items():
        per_row = copy.written / took.written if job == "alpha-beta" and took.written else 1.0
        parts = [
            f"{getattr(took, what):7.2f} ({getattr(took, f'process_{what}'):6.2f}) "
            f"{per_row * getattr(took, what) / getattr(copy, what):5.1f} "
            f"({per_row * getattr(took, f'process_{what}') / getattr(copy, f'process_{what}'):4.1f})"
            for what in ("processor", "clock")
        ]
        print(f"{kind:<9} {form:<8} {n_rows:>10,} {what:<7} {job:<11} {parts[0]}   {parts[1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure publishing beside plain copies.")
    parser.add_argument("--quick", action="store_true", help="once each, up to a million rows")
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS))
    parser.add_argument("--rows", type=int, nargs="+")
    parser.add_argument("--rounds", type=int, help="3, with --quick 1; one less from a million rows")
    parser.add_argument("--folder", type=Path, help="where the tables go")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return
    if not options.json:
        head = f"{'table':<9} {'format':<8} {'rows':>10} {'of all':<7} {'job':<11}"
        print(f"{head}    processor (process)  ratio   clock …")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for number, (kind, n_rows, form) in enumerate(cells(options)):
            rounds = options.rounds or (1 if options.quick else 3)
            rounds = rounds if n_rows < _MANY else 1 if n_rows > _MANY else max(1, rounds - 1)
            found = compare(kind, n_rows, form, rounds, Path(folder) / str(number))
            ways: dict[str, Callable[[Iterable[float]], float]] = {"least": min, "median": median}
            told = {
                what: {job: summarise(own, of) for job, own in found.items()}
                for what, of in (ways if rounds > 1 else {"once": min}).items()
            }
            if options.json:
                plain = {what: {job: asdict(took) for job, took in own.items()} for what, own in told.items()}
                print(json.dumps({"table": kind, "format": form, "rows": n_rows, **plain}), flush=True)
            else:
                for what, own in told.items():
                    show(kind, n_rows, form, what, own)


if __name__ == "__main__":
    main()
