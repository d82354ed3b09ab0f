"""What a Spark job took: time, processor time and memory of its processes, and its event log's stages."""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import Any

_TICKS = os.sysconf("SC_CLK_TCK")
_INTERVAL = 1.0


class Watch:
    """Watches the driver, its JVM and the Python tasks from its making until `stop`."""

    def __init__(self, session: Any, events: Path) -> None:
        self._jvm = session.sparkContext._gateway.proc.pid  # noqa: SLF001
        self._events = events
        self._stopped, self._tasks_mb = Event(), 0
        self._before = {process: _cpu(process) for process in _descendants(self._jvm)}
        self._spent = dict(self._before)
        self._sampler = Thread(target=self._sample, daemon=True)
        self._sampler.start()
        self._cpu, self._begun = self._cpu_seconds(), time.time()
        self._started = time.monotonic()

    def stop(self) -> dict[str, Any]:
        """Seconds, processor seconds and peaks of memory; only the driver's and the JVM's are exact."""
        seconds = time.monotonic() - self._started
        self._look()
        cpu = {part: spent - self._cpu[part] for part, spent in self._cpu_seconds().items()}
        self._stopped.set()
        self._sampler.join()
        peaks = {"driver": _peak_mb(os.getpid()), "jvm": _peak_mb(self._jvm), "tasks": self._tasks_mb}
        return {"seconds": seconds, "cpu": cpu, "peak_mb": peaks}

    def logged(self) -> dict[str, Any]:
        """Bytes that tasks have read and shuffled, and what each stage took, once the session is stopped."""
        stages: dict[int, dict[str, Any]] = defaultdict(lambda: defaultdict(float))
        in_jobs = 0.0
        starts: dict[int, float] = {}
        for event in self._read_events():
            kind = event["Event"]
            if kind == "SparkListenerJobStart" and event["Submission Time"] / 1e3 >= self._begun:
                starts[event["Job ID"]] = event["Submission Time"] / 1e3
                for stage in event["Stage Infos"]:
                    stages[stage["Stage ID"]]["name"] = _plain_name(stage)
            elif kind == "SparkListenerJobEnd" and event["Job ID"] in starts:
                in_jobs += event["Completion Time"] / 1e3 - starts[event["Job ID"]]
            elif kind == "SparkListenerTaskEnd" and event["Stage ID"] in stages:
                _add_task(stages[event["Stage ID"]], event)
        listed = [{"stage": number, **stage} for number, stage in sorted(stages.items()) if stage["tasks"]]
        return {
            "in_jobs": in_jobs,
            "read": sum(stage["read"] for stage in listed),
            "shuffled": sum(stage["shuffled"] for stage in listed),
            "stages": listed,
        }

    def _read_events(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self._events.rglob("*")):
            if path.is_file() and path.name.startswith(("events_", "local-")):
                with path.open() as lines:
                    yield from map(json.loads, lines)

    def _sample(self) -> None:
        while not self._stopped.wait(_INTERVAL):
            self._look()

    def _look(self) -> None:
        """Tasks' processes come and go: what each has spent when it was last seen counts."""
        tasks = _descendants(self._jvm)
        self._tasks_mb = max(self._tasks_mb, sum(map(_resident_mb, tasks)))
        self._spent.update({process: _cpu(process) for process in tasks})

    def _cpu_seconds(self) -> dict[str, float]:
        tasks = sum(spent - self._before.get(process, 0.0) for process, spent in self._spent.items())
        return {"driver": time.process_time(), "jvm": _cpu(self._jvm), "tasks": tasks}


def print_stages(stages: list[dict[str, Any]]) -> None:
    """A line a stage: seconds from its first task to its last, and what its tasks took together."""
    names = ("tasks", "elapsed", "in tasks", "JVM CPU", "GC", "shuffled")
    print(f"    {'stage':<34}" + "".join(f"{name:>9}" for name in names))
    for stage in stages:
        seconds = [stage["last"] - stage["first"], stage["run"], stage["cpu"], stage["gc"]]
        cells = [*(f"{value:.1f}" for value in seconds), f"{stage['shuffled'] / 1e6:,.0f}M"]
        line = "".join(f"{cell:>9}" for cell in (int(stage["tasks"]), *cells))
        print(f"    {stage['stage']:>3} {stage['name'][:29]:<30}{line}")


def _add_task(stage: dict[str, Any], event: dict[str, Any]) -> None:
    info, metrics = event["Task Info"], event.get("Task Metrics") or {}
    stage["first"] = min(stage["first"] or info["Launch Time"] / 1e3, info["Launch Time"] / 1e3)
    stage["last"] = max(stage["last"], info["Finish Time"] / 1e3)
    stage["tasks"] += 1
    stage["run"] += metrics.get("Executor Run Time", 0) / 1e3
    stage["cpu"] += metrics.get("Executor CPU Time", 0) / 1e9
    stage["gc"] += metrics.get("JVM GC Time", 0) / 1e3
    stage["read"] += metrics.get("Input Metrics", {}).get("Bytes Read", 0)
    stage["shuffled"] += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)


def _plain_name(stage: dict[str, Any]) -> str:
    scopes = [json.loads(rdd["Scope"])["name"] for rdd in stage["RDD Info"] if "Scope" in rdd]
    wanted = ("Scan parquet", "MapInArrow", "Exchange", "Range", "HashAggregate", "Sort")
    return (
        "+".join(dict.fromkeys(s.strip() for s in reversed(scopes) if s.startswith(wanted)))
        or stage["Stage Name"]
    )


def _descendants(process: int) -> list[int]:
    children: dict[int, list[int]] = defaultdict(list)
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children[int(fields[1])].append(int(path.parent.name))
    found, new = [], [process]
    while new:
        new = [child for parent in new for child in children[parent]]
        found += new
    return found


def _cpu(process: int) -> float:
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:13])) / _TICKS


def _resident_mb(process: int) -> int:
    return _status_mb(process, "RssAnon")


def _peak_mb(process: int) -> int:
    return _status_mb(process, "VmHWM")


def _status_mb(process: int, entry: str) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith(entry)), 0)
