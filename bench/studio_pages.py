"""How long the studio's pages take on a large table, and whether those that take longer show progress.

    python -m bench.studio_pages --rows 1e6

Every page is fetched as a browser would, from the table to the report. A page that is not there within half a
second and shows no progress fails the run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from dalenius.demo_data import hospital

LONGEST = 0.5
ROLES = {"patient_id": "unit", "name": "identifiers", "disease": "sensitive"}


def write_table(path: Path, rows: int) -> list[str]:
    """The demo's hospital with as many patients; its columns."""
    import pyarrow.csv as arrow_csv

    table = hospital(rows)
    arrow_csv.write_csv(table, path)
    return list(table.column_names)


def start(project: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "dalenius", "studio", "--project", str(project), "--json"]
    studio = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert studio.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        told += studio.stdout.readline()
    return studio, json.loads(told)["url"]


class Visitor:
    """Opens pages, and notes how long each took to answer and how long it showed progress."""

    def __init__(self, url: str) -> None:
        address, _, query = url.partition("/?")
        self.client = httpx.Client(base_url=address, follow_redirects=False, timeout=600)
        self.client.get(f"/?{query}")
        self.slow: list[str] = []

    def fetch(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One answer, and the page that it leads to."""
        started = time.perf_counter()
        response = self.client.request(method, path, **options)
        seconds = time.perf_counter() - started
        if seconds > LONGEST:
            self.slow.append(f"{method} {path}: {seconds:.2f} s")
        place = response.headers.get("location")
        return response if place is None else self.fetch("GET", place)

    def visit(self, path: str, method: str = "GET", /, **data: Any) -> str:
        """The page when it has nothing to wait for any more."""
        started, n_slow = time.perf_counter(), len(self.slow)
        options = {"data": {"csrf": self.csrf, **data}} if method == "POST" else {}
        page = self.fetch(method, path, **options)
        first = time.perf_counter() - started
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
        found = re.search(r'name="csrf" value="(\w+)"', page.text)
        self.csrf = found[1] if found else self.csrf
        return page.text

    csrf = ""


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
    visitor.visit("/publish", "POST", phrase=f"{table.stem}.release", signed="Ada")
    visitor.visit("/ask?what=count&by=disease")
    visitor.visit("/ask?sql=SELECT+district,disease,COUNT(*)+FROM+t+GROUP+BY+district,disease")
    visitor.visit("/audit", "POST")
    visitor.visit("/report")
    visitor.visit("/report", "POST")
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
            visitor = Visitor(url)
            walk(visitor, table, columns)
        finally:
            studio.terminate()
            studio.wait()
    sys.exit("\n".join(["pages without progress that took longer:", *visitor.slow]) if visitor.slow else 0)


if __name__ == "__main__":
    main()
