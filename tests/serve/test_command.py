"""`dalenius serve` as a program: started, asked with what its own description allows, and stopped."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from bench.serve_load import memory
from dalenius.cli.reader import serve
from tests.conftest import PROJECT

schemathesis = pytest.importorskip("schemathesis")
httpx = pytest.importorskip("httpx")
RELEASES = PROJECT / "tests" / "releases"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dalenius", "serve", *arguments]


@dataclass(frozen=True)
class Running:
    """A service that runs."""

    url: str
    headers: dict[str, str]
    process: subprocess.Popen[str]


def _end() -> signal.Signals:
    """That the terminal is closed; under `nohup` nobody heeds it."""
    closed = getattr(signal, "SIGHUP", signal.SIGTERM)
    return signal.SIGTERM if signal.getsignal(closed) is signal.SIG_IGN else closed


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    started = subprocess.Popen(
        command(str(RELEASES / "perturb"), "--port", "0", "--seconds", "600", "--waiting", "100", "--json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    told = ""
    while not told.rstrip().endswith("}"):
        line = started.stdout.readline()
        assert line, "it ended before it said where it listens"
        told += line
    where = json.loads(told)
    yield Running(
        url=where["url"].rstrip("/"), headers={"Authorization": f"Bearer {where['token']}"}, process=started
    )
    started.send_signal(_end())
    _, said = started.communicate(timeout=60)
    assert started.returncode == 0 or sys.platform == "win32"
    assert "Traceback" not in said


def test_no_request_that_its_description_allows_is_an_internal_error(running: Running) -> None:
    """Whatever is sent, the status and the body are those that the service's OpenAPI description names."""
    schema = schemathesis.openapi.from_url(f"{running.url}/openapi.json", headers=running.headers)
    seen: set[int] = set()

    for operation in schema.get_all_operations():

        @given(case=operation.ok().as_strategy())
        @settings(
            max_examples=6,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )
        def send(case: Any) -> None:
            response = case.call(base_url=running.url, headers=running.headers)
            seen.add(response.status_code)
            assert response.status_code < 500
            if response.status_code != 404 or case.path_parameters:
                case.validate_response(response, checks=[schemathesis.checks.not_a_server_error])

        send()
    assert 200 in seen


def test_it_answers_and_refuses_over_http(running: Running) -> None:
    url = f"{running.url}/releases/perturb/ask"
    good = httpx.post(url, json={"sql": "SELECT COUNT(*) FROM t"}, headers=running.headers, timeout=600)
    assert good.json()["rows"][0]["estimate"] > 0
    assert httpx.post(url, json={"sql": "SELECT COUNT(*) FROM t"}).status_code == 401
    let_in = httpx.get(running.url, params={"token": running.headers["Authorization"].split()[1]})
    port = httpx.URL(running.url).port
    assert let_in.headers["set-cookie"].startswith(f"dalenius-{port}="), "or another server's takes its place"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads resident memory from /proc")
def test_fifty_analysts_at_once_are_answered_and_memory_stays_flat(running: Running) -> None:
    """`python -m bench.serve_load --minutes 60` is the long form."""
    asked = [f"SELECT disease, COUNT(*) FROM t WHERE age >= {20 + i} GROUP BY disease" for i in range(50)]
    many = httpx.Limits(max_connections=50)
    seen = []
    with (
        httpx.Client(base_url=running.url, headers=running.headers, timeout=600, limits=many) as client,
        ThreadPoolExecutor(50) as analysts,
    ):

        def ask(sql: str) -> int:
            return int(client.post("/releases/perturb/ask", json={"sql": sql}).status_code)

        for _ in range(3):
            assert set(analysts.map(ask, asked)) == {200}
            seen.append(memory(running.process.pid))
    assert seen[-1] <= seen[1] + 48, f"megabytes after each round of questions: {seen}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--no-token", "--host", "192.0.2.1"], "--no-token is for this machine alone"),
        (["--tokens", "/no/such/file"], "cannot be read as a file of tokens"),
        (["--port", "99999"], "65535"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], message: str) -> None:
    ended = subprocess.run(
        command(str(RELEASES / "perturb"), *arguments), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert message in ended.stderr


def test_what_is_no_release_is_refused() -> None:
    ended = subprocess.run(
        command(str(PROJECT / "docs"), "--port", "0"), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "is not a release" in ended.stderr


@pytest.mark.parametrize(("host", "is_warned"), [("127.0.0.1", False), ("::1", False), ("192.0.2.1", True)])
def test_an_address_that_other_machines_reach_is_warned_of(
    host: str, is_warned: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is opened to other machines here: the socket is a loopback one, and the server does not run."""
    uvicorn = pytest.importorskip("uvicorn")
    served: list[str] = []
    opened = []

    def listen(asked: str, port: int) -> socket.socket:
        served.append(asked)
        opened.append(socket.create_server(("127.0.0.1", port)))
        return opened[0]

    monkeypatch.setattr(serve, "listen", listen)
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    assert serve.command([RELEASES / "perturb"], host=host, port=0) == 0
    opened[0].close()
    assert served == [host]
    assert ("other machines can reach this address" in capsys.readouterr().err) is is_warned


@pytest.mark.parametrize(
    ("release", "warning"),
    [("perturb", "made with a seed: whoever knows it can undo"), ("draft", "a draft"), ("bucketize", None)],
)
def test_a_release_that_is_not_for_publication_is_warned_of(
    release: str,
    warning: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Beside the release that was published a draft of it tells what two releases tell together."""
    uvicorn = pytest.importorskip("uvicorn")
    path = RELEASES / release
    if release == "draft":
        shutil.copytree(RELEASES / "perturb", path := tmp_path / "draft")
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        (path / "manifest.json").write_text(json.dumps({**manifest, "draft": True}), encoding="utf-8")
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: None)
    with socket.create_server(("127.0.0.1", 0)) as opened:
        monkeypatch.setattr(serve, "listen", lambda *_: opened)
        assert serve.command([path]) == 0
    said = capsys.readouterr().err
    assert ("is not for publication" in said) == (warning is not None)
    assert (warning or "") in said
