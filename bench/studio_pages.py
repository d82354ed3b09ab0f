"""How long the studio's pages take on a large table, and whether those that take longer show progress.

    python -m bench.studio_pages --rows 1e6

Every page is fetched as a browser would, from the table to the report, while another tab looks at all pages
in turn. A page that does not answer within half a second, whole or with its progress, fails the run. What the
server's loop waited for a processor, because others used it, is taken off (Linux tells).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from dalenius.demo_data import hospital

LONGEST = 0.5
PAGES = (
    "data",
    "roles",
    "promise",
    "choose",
    "rehearse",
    "publish",
    "ask",
    "ask?what=count",
    "audit",
    "report",
)
PAUSE = 0.05
ROLES = {"patient_id": "unit", "name": "identifiers", "disease": "sensitive"}


def write_table(path: Path, rows: int) -> list[str]:
    """The demo's hospital with as many patients; its columns."""
    import pyarrow.csv as arrow_csv

    table = hospital(rows)
    arrow_csv.write_csv(table, path)
    return list(table.column_names)


def start(project: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "dalenius", "studio", "--project", str(project), "--json"]
    own = {**os.environ, "XDG_DATA_HOME": str(project.parent)}  # no ledger that knows the table
    studio = subprocess.Popen(command, stdout=subprocess.PIPE, env=own, text=True)
    assert studio.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        told += studio.stdout.readline()
    return studio, json.loads(told)["url"]


class Clock:
    """How long an answer takes, without waiting for a processor."""

    def __init__(self, server: int) -> None:
        self.server = server

    def now(self) -> float:
        """Seconds of a time that stands still while the server's loop waits to be run."""
        file = Path(f"/proc/{self.server}/task/{self.server}/schedstat")
        waited = int(file.read_text().split()[1]) if file.exists() else 0
        return time.perf_counter() - waited / 1e9


class SecondTab(threading.Thread):
    """Looks at every page in turn, whatever the first tab waits for."""

    def __init__(self, client: httpx.Client, clock: Clock) -> None:
        super().__init__(daemon=True)
        self.client, self.clock = client, clock
        self.times: dict[str, list[float]] = {page: [] for page in PAGES}
        self.slow: list[str] = []
        self.meanwhile = ""
        self.closed = threading.Event()

    def run(self) -> None:
        """Until it is closed."""
        while not self.closed.is_set():
            for page in PAGES:
                meanwhile, started = self.meanwhile, self.clock.now()
                self.client.get(f"/{page}")
                self.times[page].append(self.clock.now() - started)
                if self.times[page][-1] > LONGEST:
                    self.slow.append(f"/{page} beside {meanwhile}: {self.times[page][-1]:.2f} s")
                self.closed.wait(PAUSE)

    def close(self) -> None:
        """Tell how long the pages took."""
        self.closed.set()
        self.join()
        for page, times in self.times.items():
            median = sorted(times)[len(times) // 2]
            print(
                f"beside it /{page:16} {len(times):5} times, median {median:.3f} s, most {max(times):.3f} s"
            )


class Visitor:
    """Opens pages, and notes how long each took to answer and how long it showed progress."""

    def __init__(self, url: str, clock: Clock) -> None:
        address, _, query = url.partition("/?")
        self.client = httpx.Client(base_url=address, follow_redirects=False, timeout=600)
        self.client.get(f"/?{query}")
        self.slow: list[str] = []
        self.hidden: dict[str, str] = {}
        self.clock = clock
        second = httpx.Client(base_url=address, cookies=self.client.cookies, timeout=600)
        self.other = SecondTab(second, clock)
        self.other.start()

    def fetch(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One answer, and the page that it leads to."""
        started = self.clock.now()
        response = self.client.request(method, path, **options)
        seconds = self.clock.now() - started
        if seconds > LONGEST:
            self.slow.append(f"{method} {path}: {seconds:.2f} s")
        place = response.headers.get("location")
        return response if place is None else self.fetch("GET", place)

    def visit(self, path: str, method: str = "GET", /, **data: Any) -> str:
        """The page when it has nothing to wait for any more."""
        started, n_slow = time.perf_counter(), len(self.slow)
        clock = self.clock.now()
        self.other.meanwhile = f"{method} {path}"
        options = {"data": {**self.hidden, **data}} if method == "POST" else {}
        page = self.fetch(method, path, **options)
        first = self.clock.now() - clock
        while 'class="waiting"' in page.text:
            time.sleep(0.2)
            again = path == "/roles/rare"  # a part of a page, which asks again for itself
            page = (
                self.fetch(method, path, **options)
                if again
                else self.fetch("GET", page.url.raw_path.decode())
            )
        whole = time.perf_counter() - started
        verdict = "too slow" if len(self.slow) > n_slow else "ok"
        print(f"{method:4} {path:16} first answer {first:5.2f} s, whole after {whole:6.2f} s  {verdict}")
        self.hidden.update(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)"', page.text))
        return page.text


def walk(visitor: Visitor, table: Path, columns: list[str]) -> None:
    visitor.visit("/data")
    visitor.visit("/data", "POST", path=str(table))
    visitor.visit("/roles")
    roles = {f"role-{i}": ROLES.get(name, "quasi") for i, name in enumerate(columns)}
    visitor.visit("/roles/rare", "POST", **roles)
    visitor.visit("/roles", "POST", **roles)
    visitor.visit("/promise")
    visitor.visit("/promise", "POST", kind="f-privacy", times="4", plus="0.02", cap="0.5")
    visitor.visit("/choose")
    visitor.visit("/choose", "POST", kind="bucketize")
    visitor.visit("/rehearse", "POST")
    visitor.visit("/publish")
    published = visitor.visit("/publish", "POST", phrase=f"{table.stem}.release", signed="Ada")
    if "Published:" not in published:
        sys.exit(re.sub("<[^>]*>", " ", published))
    visitor.visit("/ask?what=count&by=disease")
    visitor.visit("/ask?sql=SELECT+district,disease,COUNT(*)+FROM+t+GROUP+BY+district,disease")
    visitor.visit("/audit")
    visitor.visit("/audit", "POST")
    visitor.visit("/report")
    visitor.visit("/report", "POST")
    visitor.visit("/download/report")
    visitor.visit("/download/private")
    visitor.visit("/download/release")
    visitor.visit("/data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    rows = int(parser.parse_args().rows)
    with tempfile.TemporaryDirectory() as folder:
        table, project = Path(folder, "patients.csv"), Path(folder, "project")
        project.mkdir()
        columns = write_table(table, rows)
        studio, url = start(project)
        try:
            visitor = Visitor(url, Clock(studio.pid))
            walk(visitor, table, columns)
            visitor.other.close()
        finally:
            studio.terminate()
            studio.wait()
    slow = [*visitor.slow, *visitor.other.slow]
    sys.exit("\n".join([f"answers that took longer than {LONGEST} s:", *slow]) if slow else 0)


if __name__ == "__main__":
    main()
