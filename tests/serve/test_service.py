"""The service over small releases: what it says, refuses and survives."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dalenius.ask import ask as ask_here
from dalenius.errors import PromiseNotMet
from dalenius.release.folder import StoredRelease
from tests.conftest import PROJECT

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

from dalenius.serve.app import LARGEST_BODY, create_app
from dalenius.serve.shelf import Shelf
from dalenius.serve.workers import Allowed
from dalenius.web.guard import Access, host_names

RELEASES = PROJECT / "tests" / "releases"
TOKEN = "a-token-of-some-length"
ADDRESS = "http://127.0.0.1:8765"


def make_client(allowed: Allowed, *paths: Path) -> TestClient:
    access = Access(hosts=host_names("127.0.0.1", 8765), tokens=frozenset([TOKEN]))
    app = create_app(paths, access, allowed)
    return TestClient(app, base_url=ADDRESS, headers={"Authorization": f"Bearer {TOKEN}"})


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """One server for the tests of this file; generous limits, since the machine may be busy."""
    allowed = Allowed(seconds=600, workers=1)
    with make_client(allowed, RELEASES / "bucketize", RELEASES / "alpha-beta") as made:
        yield made


def ask(client: TestClient, release: str, **body: Any) -> Any:
    return client.post(f"/releases/{release}/ask", json=body)


def test_releases_are_listed_and_described_from_themselves(client: TestClient) -> None:
    listed = client.get("/releases").json()["releases"]
    assert [entry["id"] for entry in listed] == ["bucketize", "alpha-beta"]
    details = client.get("/releases/bucketize").json()
    assert details["manifest"] == json.loads((RELEASES / "bucketize" / "manifest.json").read_text())
    assert {column["role"] for column in details["columns"]} == {"quasi", "sensitive"}
    assert details["promise"]


def test_an_answer_is_the_one_of_the_command_line(client: TestClient) -> None:
    stored = StoredRelease.open(RELEASES / "bucketize")
    column = stored.columns("sensitive")[0]
    sql = f'SELECT "{column}", COUNT(*) FROM t GROUP BY "{column}"'
    expected = json.loads(json.dumps(ask_here(stored, sql).to_dict()))
    assert ask(client, "bucketize", sql=sql).json() == expected


def test_a_wrong_question_spoils_no_other_one(client: TestClient) -> None:
    answers = ask(client, "bucketize", questions=["SELECT COUNT(*) FROM t", "SELECT nope FROM t"]).json()[
        "answers"
    ]
    assert "rows" in answers[0]
    assert answers[1]["error"]["kind"] == "QueryError"
    assert ask(client, "bucketize", questions=[]).json() == {"answers": []}


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/releases/nope/ask", {"sql": "SELECT COUNT(*) FROM t"}, 404),
        ("/releases/bucketize/ask", {"sql": "SELECT nope FROM t"}, 400),
        ("/releases/bucketize/ask", {"sql": "SELECT COUNT(*) FROM t", "estimator": "nope"}, 400),
        ("/releases/bucketize/ask", {"sql": "DROP TABLE t"}, 400),
        ("/releases/bucketize/ask", {"sql": "SELECT COUNT(*) FROM read_csv('/etc/passwd')"}, 400),
        ("/releases/bucketize/ask", {}, 422),
        ("/releases/bucketize/ask", {"sql": "SELECT 1", "questions": ["SELECT 1"]}, 422),
        ("/releases/bucketize/ask", {"sql": "SELECT 1", "confidence": 2}, 422),
        ("/releases/bucketize/ask", {"sql": "SELECT 1", "typo": 2}, 422),
        ("/releases/bucketize/ask", {"sql": "x" * (LARGEST_BODY + 1)}, 413),
    ],
)
def test_what_is_wrong_is_said_as_json(client: TestClient, path: str, body: Any, status: int) -> None:
    response = client.post(path, json=body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_a_body_without_a_length_is_limited_too(client: TestClient) -> None:
    chunks = (b" " * 2**20 for _ in range(6))
    headers = {"content-type": "application/json"}
    assert client.post("/releases/bucketize/ask", content=chunks, headers=headers).status_code == 413


def test_nobody_without_a_token(client: TestClient) -> None:
    for path in ("/releases", "/metrics", "/", "/openapi.json", "/ask/bucketize"):
        assert client.get(path, headers={"Authorization": ""}).status_code == 401
    assert client.get("/healthz", headers={"Authorization": ""}).json() == {"status": "ok"}


def test_metrics_and_logs_count_and_tell_no_question(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="dalenius.serve"):
        ask(client, "bucketize", sql="SELECT COUNT(*) FROM t WHERE 'secret' = 'secret'")
    assert json.loads(caplog.records[-1].message)["outcome"] == "answered"
    told = client.get("/metrics").text + caplog.text
    assert re.search(r'dalenius_requests_total\{release="bucketize",outcome="answered"\} [1-9]', told)
    assert "secret" not in told
    assert TOKEN not in told


def test_the_page_asks_by_choosing_and_by_sql(client: TestClient) -> None:
    page = client.get("/ask/bucketize")
    csrf = re.search(r'name="csrf" value="(\w+)"', page.text)
    assert csrf is not None
    column = client.get("/releases/bucketize").json()["columns"][0]["name"]
    chosen = {"csrf": csrf[1], "what": "count", "by": column, "sql": ""}
    answered = client.post("/ask/bucketize", data=chosen)
    assert "Answer" in answered.text
    assert "estimate and 95 % interval" in answered.text
    written = client.post("/ask/bucketize", data={"csrf": csrf[1], "sql": "SELECT <script> FROM t"})
    assert "<script>" not in written.text
    assert "This cannot be answered" in written.text
    assert client.post("/ask/bucketize", data={"sql": "SELECT COUNT(*) FROM t"}).status_code == 403


def test_a_question_that_takes_too_long_is_ended_and_the_next_one_answered() -> None:
    with make_client(Allowed(seconds=0.001, workers=1), RELEASES / "bucketize") as client:
        for _ in range(2):  # the second one has a new process
            response = ask(client, "bucketize", sql="SELECT COUNT(*) FROM t")
            assert response.status_code in (400, 504)
            assert "longer than 0.001 seconds" in response.json()["error"]["message"]


def test_a_question_that_takes_too_much_memory_is_ended() -> None:
    with make_client(Allowed(seconds=600, megabytes=0, workers=1), RELEASES / "bucketize") as client:
        response = ask(client, "bucketize", sql="SELECT COUNT(*) FROM t")
        assert response.status_code == 504
        assert "0 MB" in response.json()["error"]["message"]


def test_more_than_may_wait_are_turned_away() -> None:
    with make_client(Allowed(seconds=600, workers=1, waiting=0), RELEASES / "bucketize") as client:
        response = ask(client, "bucketize", sql="SELECT COUNT(*) FROM t")
        assert (response.status_code, response.headers["retry-after"]) == (503, "2")


def test_a_release_that_breaks_its_promise_is_not_offered(tmp_path: Path) -> None:
    shutil.copytree(RELEASES / "bucketize", tmp_path / "changed")
    (tmp_path / "changed" / "st.parquet").write_bytes(b"PAR1")
    with pytest.raises(PromiseNotMet, match="is not offered"):
        make_client(Allowed(), tmp_path / "changed")


def test_two_releases_of_one_name_get_numbers(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        shutil.copytree(RELEASES / "perturb", tmp_path / folder / "p.release")
    names = [
        offered.name for offered in Shelf.open([tmp_path / "a/p.release", tmp_path / "b/p.release"]).offered
    ]
    assert names == ["p", "p-2"]
