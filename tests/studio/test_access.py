"""Every page in every state, empty, running and failed, for who cannot see it well, and on a phone.

What pages show when something is done is looked at where it is done, in test_browser.
"""

from __future__ import annotations

import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

import dalenius

pytest.importorskip("fastapi")
from dalenius.serve.app import create_app as create_service
from dalenius.serve.workers import Pool
from dalenius.studio.app import create_app
from dalenius.studio.project import to_toml
from dalenius.studio.tasks import Task, Tasks
from dalenius.web.guard import Access
from tests.conftest import PROJECT
from tests.studio.test_browser import PATIENCE, browser, check_access, fits, pytestmark  # noqa: F401  (fixture, mark)
from tests.studio.test_responsive import PAGES, whole_policy

LONG = "a-very-long-word-" + "without-an-end" * 9
ERROR = {"kind": "InputError", "message": LONG, "hint": "do this"}
ROW = {
    "group": {"disease": LONG},
    "column": "count",
    "estimate": 5.0,
    "std_error": 1.0,
    "low": 3.0,
    "high": 7.0,
}
ANSWER = {"rows": [ROW], "confidence": 0.95, "assumption": "all are alike", "notes": ["no such value"]}


class Stage:
    """A server on loopback whose application is changed while it runs."""

    def __init__(self) -> None:
        self.app: Any = None
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listening.getsockname()[1]}"
        config = uvicorn.Config(
            self._call, interface="asgi3", lifespan="off", log_level="error", access_log=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self.listening],), daemon=True)
        self._thread.start()

    async def _call(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app(scope, receive, send)

    @property
    def access(self) -> Access:
        return Access(hosts=frozenset([self.address]), tokens=frozenset())

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    made = Stage()
    yield made
    made.close()


@pytest.fixture(scope="module")
def projects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Nothing decided; everything decided and drafted."""
    folder = tmp_path_factory.mktemp("access")
    found = {name: folder / name for name in ("empty", "drafted")}
    for path in found.values():
        path.mkdir()
    (found["drafted"] / "policy.toml").write_text(to_toml(whole_policy(folder)), encoding="utf-8")
    dalenius.publish(found["drafted"] / "policy.toml", draft=True)
    return found


@pytest.fixture
def look(browser: Any, stage: Stage) -> Iterator[Any]:  # noqa: F811
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.route("**/htmx.min.js", lambda route: route.abort())  # the page stays as it is

    def check(path: str, expected: str, typed: str | None = None) -> None:
        page.goto(f"http://{stage.address}{path}")
        if typed is not None:
            page.fill("#field-sql", typed)
            page.click("button:has-text('Ask')")
        assert expected in page.content(), path
        check_access(page)
        assert fits(page), path

    yield check
    page.close()


def test_it_would_be_noticed(browser: Any) -> None:  # noqa: F811
    page = browser.new_page()
    page.set_content(
        "<html lang=en><title>t</title>"
        "<style>@media (prefers-color-scheme: dark) { p { color: #eee } }</style>"
        "<main><h1>t</h1><p>white on white, in the dark only</p></main>"
    )
    with pytest.raises(AssertionError, match="color-contrast"):
        check_access(page)
    page.close()


def enter(stage: Stage, project: Path) -> Iterator[None]:
    stage.app = create_app(project, stage.access)
    yield
    shutil.rmtree(stage.app.app.app.state.studio.project.uploads)


def pretend(monkeypatch: pytest.MonkeyPatch, task: Task) -> None:
    """Every task is this one."""
    for name in ("read", "ask", "find"):
        monkeypatch.setattr(Tasks, name, lambda *_: task)


def test_pages_with_nothing_done(stage: Stage, projects: dict[str, Path], look: Any) -> None:
    for _ in enter(stage, projects["empty"]):
        look("/data", "Take this file")
        look("/nowhere", "there is no such page")
    for _ in enter(stage, projects["drafted"]):
        look("/rehearse", "remembers nothing")
        look("/publish", "Rehearse first")
        look("/ask", "Or write it in SQL")
        look("/audit", "Attack it")
        look("/report", "Write both reports")


def test_pages_that_wait(
    stage: Stage, projects: dict[str, Path], look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in enter(stage, projects["drafted"]):
        pretend(monkeypatch, Task(step="reading", done=5, total=10))
        for page in PAGES:
            look("/ask?what=count" if page == "ask" else f"/{page}", "5 of 10")


def test_pages_of_what_failed(
    stage: Stage, projects: dict[str, Path], look: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in enter(stage, projects["drafted"]):
        pretend(monkeypatch, Task(finished=True, error=ERROR))
        for page in PAGES:
            look("/ask?what=count" if page == "ask" else f"/{page}", ERROR["message"])


def test_pages_of_the_service(stage: Stage, look: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_: Any, request: Any) -> Any:
        return [ANSWER if "nope" not in request["questions"][0] else {"error": ERROR}]

    monkeypatch.setattr(Pool, "call", answer)
    stage.app = create_service([PROJECT / "tests" / "releases" / "bucketize"], stage.access)
    look("/", "bucketize")
    look("/ask/bucketize", "The promise")
    look("/ask/bucketize", "The intervals assume", "SELECT COUNT(*) FROM t")
    look("/ask/bucketize", "This cannot be answered", "nope")
