"""The service under load: analysts who ask at once on loopback, beside `ask_many` in one process.

    python -m bench.serve_load --analysts 50 --questions 20 --minutes 0

The questions are bounded in number; with `--minutes` it is repeated until the time is over, and the memory
of the server's processes is looked at after every round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

import dalenius
from dalenius.demo_data import hospital

AGES = range(20, 80)


def questions(n: int) -> list[str]:
    """Different ones, so that nothing is only remembered."""
    where = (f"age >= {AGES[i % len(AGES)]} AND sex = '{'FM'[i % 2]}'" for i in range(n))
    return [f"SELECT disease, COUNT(*) FROM t WHERE {condition} GROUP BY disease" for condition in where]


def publish(folder: Path) -> Path:
    policy = {
        "source": hospital(),
        "release": str(folder / "hospital.release"),
        "columns": {
            "unit": "patient_id",
            "identifiers": ["name"],
            "quasi": ["age", "sex", "district", "insurance"],
            "sensitive": ["disease"],
        },
        "promise": {"kind": "l-diversity", "l": 3},
        "ledger": {"path": str(folder / "ledger")},
    }
    return dalenius.publish(dalenius.Policy.from_dict(policy)).path


def start(release: Path, analysts: int) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    command = [sys.executable, "-m", "dalenius", "serve", str(release), "--port", "0", "--json"]
    command += ["--waiting", str(2 * analysts), "--seconds", "120"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        told += server.stdout.readline()
    return server, json.loads(told)


def ask_as_analyst(where: dict[str, Any], asked: list[str]) -> tuple[list[float], int]:
    """How long each question took, and how many failed."""
    times, failed = [], 0
    headers = {"Authorization": f"Bearer {where['token']}"}
    with httpx.Client(base_url=where["url"], headers=headers, timeout=300) as client:
        for sql in asked:
            started = time.perf_counter()
            failed += client.post("releases/hospital/ask", json={"sql": sql}).status_code != 200
            times.append(time.perf_counter() - started)
    return times, failed


def memory(process: int) -> int:
    """Resident megabytes of a process and its children."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()
    status = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    return int(status[1]) * 4096 // 2**20 + sum(memory(int(child)) for child in children)


def measure(where: dict[str, Any], analysts: int, asked: list[str]) -> tuple[list[float], int, float]:
    started = time.perf_counter()
    with ThreadPoolExecutor(analysts) as pool:
        found = list(pool.map(lambda _: ask_as_analyst(where, asked), range(analysts)))
    seconds = time.perf_counter() - started
    return [t for times, _ in found for t in times], sum(failed for _, failed in found), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysts", type=int, default=50)
    parser.add_argument("--questions", type=int, default=20, help="of each analyst")
    parser.add_argument("--minutes", type=float, default=0.0)
    arguments = parser.parse_args()
    asked = questions(arguments.questions)
    with tempfile.TemporaryDirectory() as folder:
        release = publish(Path(folder))
        opened = dalenius.open_release(release)
        opened.ask(asked[0])
        started = time.perf_counter()
        opened.ask_many(asked * 5)
        alone = (time.perf_counter() - started) / (5 * len(asked))
        server, where = start(release, arguments.analysts)
        try:
            ask_as_analyst(where, asked[:1] * 4)  # both workers have the release open
            end = time.monotonic() + 60 * arguments.minutes
            while True:
                times, failed, seconds = measure(where, arguments.analysts, asked)
                rate, cuts = len(times) / seconds, statistics.quantiles(times, n=100)
                print(
                    f"{arguments.analysts} analysts, {len(times)} questions, {failed} failed: "
                    f"median {cuts[49]:.3f} s, p99 {cuts[98]:.3f} s, {rate:.0f} questions per second, "
                    f"{rate * alone:.2f} × ask_many in one process ({alone * 1000:.1f} ms each); "
                    f"{memory(server.pid)} MB",
                    flush=True,
                )
                if time.monotonic() > end:
                    return
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
