"""The service under load: analysts who ask at once on loopback, beside `ask_many` in one process.

    python -m bench.serve_load --analysts 50 --questions 20
    python -m bench.serve_load --minutes 60 --rate 8

The questions are bounded in number. With `--minutes` there is round after round until the time is over, each
with questions of its own, and the memory of the server's processes is looked at after every round. `--rate`
bounds how many are asked in a second, by all analysts together: an hour at a low rate shows memory, and not
speed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import dalenius
from dalenius.demo_data import hospital

AGES = range(20, 80)
WARM = 3
"""Rounds after which the workers have opened what they need; memory is compared with theirs."""


def questions(n: int, first: int = 0) -> list[str]:
    """Different ones, so that nothing is only remembered."""
    found = []
    for i in range(first, first + n):
        age, width = AGES[i % len(AGES)], 5 + i // len(AGES)
        where = f"age >= {age} AND age < {age + width} AND sex = '{'FM'[i % 2]}'"
        found.append(f"SELECT disease, COUNT(*) FROM t WHERE {where} GROUP BY disease")
    return found


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


@contextmanager
def serving(release: Path, analysts: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """The service's process, and where it is."""
    command = [sys.executable, "-m", "dalenius", "serve", str(release), "--port", "0", "--json"]
    command += ["--waiting", str(2 * analysts), "--seconds", "600"]  # no question is about speed
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        told += server.stdout.readline()
    try:
        yield server.pid, json.loads(told)
    finally:
        server.terminate()
        server.wait()


def ask_as_analyst(where: dict[str, Any], asked: list[str], pause: float = 0.0) -> tuple[list[float], int]:
    """How long each question took, and how many failed; one is begun every `pause` seconds at most."""
    times, failed = [], 0
    headers = {"Authorization": f"Bearer {where['token']}"}
    kept = httpx.Limits(keepalive_expiry=2.0)  # the server closes what is idle for 5 s, perhaps just then
    with httpx.Client(base_url=where["url"], headers=headers, timeout=600, limits=kept) as client:
        for sql in asked:
            started = time.perf_counter()
            failed += client.post("releases/hospital/ask", json={"sql": sql}).status_code != 200
            times.append(time.perf_counter() - started)
            time.sleep(max(pause - times[-1], 0.0))
    return times, failed


def memories(process: int) -> list[int]:
    """Resident megabytes of a process, and of its children after it."""
    threads = Path(f"/proc/{process}/task").glob("*/children")  # a worker's parent may be any of them
    children = [child for thread in threads for child in thread.read_text(encoding="ascii").split()]
    status = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
    return [int(status[1]) * 4096 // 2**20, *(size for child in children for size in memories(int(child)))]


def memory(process: int) -> int:
    """Resident megabytes of a process and its children together."""
    return sum(memories(process))


def measure(
    where: dict[str, Any], analysts: int, asked: list[str], rate: float = 0.0
) -> tuple[list[float], int, float]:
    """All waiting times, how many questions failed, and how long it took; each begins at another question."""
    started, pause = time.perf_counter(), analysts / rate if rate else 0.0

    def ask(analyst: int) -> tuple[list[float], int]:
        time.sleep(pause * analyst / analysts)
        first = analyst % len(asked)
        return ask_as_analyst(where, asked[first:] + asked[:first], pause)

    with ThreadPoolExecutor(analysts) as pool:
        found = list(pool.map(ask, range(analysts)))
    seconds = time.perf_counter() - started
    return [t for times, _ in found for t in times], sum(failed for _, failed in found), seconds


def time_alone(release: Path, asked: list[str]) -> float:
    """Seconds per question of `ask_many` in this process."""
    opened = dalenius.open_release(release)
    opened.ask(asked[0])
    started = time.perf_counter()
    opened.ask_many(asked * 5)
    return (time.perf_counter() - started) / (5 * len(asked))


def tell(times: list[float], failed: int, seconds: float, alone: float) -> str:
    """A round in one line."""
    speed, cuts = len(times) / seconds, statistics.quantiles(times, n=100)
    return (
        f"{len(times)} questions, {failed} failed: median {cuts[49]:.3f} s, p99 {cuts[98]:.3f} s, "
        f"{speed:.1f} questions per second, {speed * alone:.2f} × ask_many in one process "
        f"({alone * 1000:.1f} ms each)"
    )


def sizes(seen: list[int]) -> str:
    """The memory of the server and of its processes."""
    return f"{sum(seen)} MB: {' + '.join(map(str, seen))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analysts", type=int, default=50)
    parser.add_argument("--questions", type=int, default=20, help="of each analyst, in a round")
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=0.0, help="questions per second at most; 0: no bound")
    arguments = parser.parse_args()
    n, analysts, rate = arguments.questions, arguments.analysts, arguments.rate
    with tempfile.TemporaryDirectory() as folder:
        release = publish(Path(folder))
        alone = time_alone(release, questions(n))
        with serving(release, analysts) as (server, where):
            ask_as_analyst(where, questions(4))  # both workers have the release open
            begun = time.monotonic()
            seen: list[list[int]] = []
            while not seen or time.monotonic() - begun < 60 * arguments.minutes:
                found = measure(where, analysts, questions(n, n * len(seen)), rate)
                seen.append(memories(server))
                minutes = (time.monotonic() - begun) / 60
                print(f"minute {minutes:4.1f}: {tell(*found, alone)}; {sizes(seen[-1])}", flush=True)
        totals = [sum(each) for each in seen[WARM:]]
        if totals:
            print(f"memory after round {WARM + 1}: {totals[0]} MB; most {max(totals)}, last {totals[-1]} MB")


if __name__ == "__main__":
    main()
