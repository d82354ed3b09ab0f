"""Pages do not wait: what takes long is shown as progress. Who is killed publishes nothing by halves."""

from __future__ import annotations

import html
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

pytest.importorskip("starlette")
from starlette.testclient import TestClient

import dalenius
from dalenius.cli.main import COMMANDS, application
from dalenius.release.folder import StoredRelease
from dalenius.release.verify import verify_release
from dalenius.studio.app import create_app
from dalenius.studio.project import to_toml
from dalenius.studio.tasks import Task, Tasks
from dalenius.web.guard import Access, host_names
from tests.studio.test_pages import ADDRESS, TOKEN, write_table

PAGES = ("data", "roles", "promise", "choose", "rehearse", "publish", "ask", "audit", "report")


def whole_policy(folder: Path, n: int = 400) -> dict[str, Any]:
    return {
        "source": str(write_table(folder / "people.csv", n)),
        "release": "people.release",
        "columns": {"identifiers": ["name"], "quasi": ["age", "sex"], "sensitive": ["disease"]},
        "promise": {"kind": "l-diversity", "l": 2},
        "mechanism": {"kind": "bucketize"},
    }


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A studio in which everything was done before: every page can be opened."""
    project = tmp_path / "project"
    project.mkdir()
    policy = whole_policy(tmp_path)
    (project / "policy.toml").write_text(to_toml(policy), encoding="utf-8")
    dalenius.publish(dalenius.Policy.from_dict({**policy, "ledger": {"path": str(tmp_path / "l")}}, project))
    access = Access(hosts=host_names("127.0.0.1", 8766), tokens=frozenset([TOKEN]))
    with TestClient(create_app(project, access), base_url=ADDRESS) as made:
        made.get(f"/?token={TOKEN}")
        yield made


def test_every_page_shows_progress_instead_of_reading_the_table(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No task ever ends here, and nothing that grows with the table may be called outside one."""
    asked: list[Any] = []

    def never(_: Tasks, key: Any, make: Any) -> Task:
        asked.append(key[0])
        return Task(step="reading", done=5, total=10)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a page did the work of a task")

    monkeypatch.setattr(Tasks, "read", never)
    monkeypatch.setattr(Tasks, "ask", never)
    monkeypatch.setattr("dalenius.studio.parts.PATIENCE", 0.0)
    for place in (
        "data.open_source_of",
        "roles.FirstPolicy.of_source",
        "roles.study_people",
        "promise.look_at",
        "promise.preview",
        "choose.find_ways",
    ):
        monkeypatch.setattr(f"dalenius.studio.steps.{place}", refuse)
    for path in ("/data", "/roles", "/promise", "/choose", "/ask?what=count", "/publish"):
        page = client.get(path).text
        assert path == "/publish" or 'class="waiting"' in page, path
        assert path == "/publish" or "5 of 10" in page, path
    assert set(asked) == {"preview", "look", "facts", "ask"}
    csrf = client.get("/data").text.partition('name="csrf" value="')[2].partition('"')[0]
    taken = client.post("/data", data={"csrf": csrf, "path": "/any/table.csv"}, follow_redirects=False)
    assert "/data?taking=" in taken.headers["location"]


@pytest.mark.parametrize("path", PAGES)
def test_every_page_shows_the_command_and_the_python(client: TestClient, path: str) -> None:
    page = client.get(f"/{path}").text
    shown = page.partition("The same without a browser")[2]
    assert "<code>dalenius " in shown
    assert shown.count("<code>") == 2
    commands, python = (html.unescape(code) for code in re.findall("<code>(.*?)</code>", shown, re.DOTALL))
    compile(python, "page", "exec")
    group = typer.main.get_command(application(COMMANDS))
    assert isinstance(group, typer.core.TyperGroup)
    for line in commands.splitlines():
        _, name, *arguments = shlex.split(line)
        assert group.commands[name].make_context(name, arguments) is not None


RUN = """
import sys, time
from pathlib import Path
from dalenius.studio import work
from dalenius.studio.project import Project
from dalenius.studio.tasks import Tasks

if __name__ == "__main__":
    folder = Path(sys.argv[1]).parent
    state = Project(folder=folder, uploads=folder).state()
    task = Tasks().run("publish", work.publish, sys.argv[1], state, False, "Ada")
    while task.process is None or task.process.pid is None:
        time.sleep(0.01)
    print(task.process.pid, flush=True)
    while not task.finished:
        time.sleep(0.01)
    time.sleep(600)
"""


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("also_the_worker", [False, True])
def test_a_studio_that_is_killed_while_it_publishes_leaves_no_partial_release(
    tmp_path: Path, also_the_worker: bool
) -> None:
    """Its process gives up by itself when nobody listens, or dies too; there is a whole release, or none."""
    project, script = tmp_path / "project", tmp_path / "run.py"
    project.mkdir()
    script.write_text(RUN, encoding="utf-8")
    policy = {**whole_policy(tmp_path, 30_000), "ledger": {"path": str(tmp_path / "ledger")}}
    file = project / "policy.toml"
    file.write_text(to_toml(policy), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    studio = subprocess.Popen(
        [sys.executable, str(script), str(file)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert studio.stdout is not None
    worker = int(studio.stdout.readline())
    target = project / "people.release"
    while not any(project.glob(".people.release.partial-*")) and not target.exists() and is_running(worker):
        time.sleep(0.001)
    studio.send_signal(signal.SIGKILL)
    if also_the_worker and is_running(worker):
        os.kill(worker, signal.SIGKILL)
    studio.communicate()
    while is_running(worker):
        time.sleep(0.01)
    assert not target.exists() or verify_release(StoredRelease.open(target), strict=True).ok
    assert {path.name for path in project.iterdir() if not path.name.startswith(".")} <= {
        "policy.toml",
        "people.release",
        "people.release.report.html",
        "people.release.private-report.html",
        "people.release.private-report.signed",
    }
    if not target.exists():
        dalenius.publish(file)  # what was left behind is in nobody's way
        assert verify_release(StoredRelease.open(target), strict=True).ok
        assert not list(project.glob(".people.release.partial-*"))
