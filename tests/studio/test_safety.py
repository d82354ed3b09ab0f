"""Attacks on the studio from other pages, other users, uploads and what tables hold."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from starlette.datastructures import UploadFile
from starlette.testclient import TestClient

import dalenius
from dalenius.studio.app import _routes, create_app
from dalenius.studio.project import to_toml
from dalenius.studio.steps import data as data_step
from dalenius.studio.tasks import Tasks
from dalenius.web.guard import HEADERS, Access, host_names
from tests.studio.test_pages import ADDRESS, TOKEN, csrf, settled
from tests.studio.test_responsive import PAGES, whole_policy

CHANGES = sorted(route.path for route in _routes() if "POST" in (route.methods or ()))
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything was done: a policy, a release and both reports; its labels are markup."""
    folder = tmp_path_factory.mktemp("safety")
    made = folder / "project"
    made.mkdir()
    policy = whole_policy(folder)
    table = Path(policy["source"])
    text = table.read_text(encoding="utf-8").replace("sex", "<b>s</b>").replace("Cough", MARKUP)
    table.write_text(text, encoding="utf-8")
    policy["columns"]["quasi"] = ["age", "<b>s</b>"]
    (made / "policy.toml").write_text(to_toml(policy), encoding="utf-8")
    parsed = dalenius.Policy.from_dict({**policy, "ledger": {"path": str(folder / "ledger")}}, made)
    release = dalenius.publish(parsed).path
    dalenius.report(release, output=release.with_name("people.release.report.html"))
    return made


def enter(project: Path, **options: Any) -> TestClient:
    access = Access(hosts=host_names("127.0.0.1", 8766), tokens=frozenset([TOKEN]), one_time=True)
    return TestClient(create_app(project, access, **options), base_url=ADDRESS)


@pytest.fixture(scope="module")
def client(project: Path) -> Iterator[TestClient]:
    with enter(project) as made:
        made.get(f"/?token={TOKEN}")
        yield made


@pytest.mark.parametrize("path", CHANGES)
def test_no_change_without_the_secret_of_the_page(
    client: TestClient, project: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another page of the same browser may send a form; it does not know the secret."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("work was started")

    monkeypatch.setattr(Tasks, "run", refuse)
    monkeypatch.setattr(Tasks, "cancel", refuse)
    monkeypatch.setattr(data_step, "_take", refuse)
    before = (project / "policy.toml").read_bytes()
    for secret in ({}, {"csrf": ""}, {"csrf": "0" * 64}):
        answer = client.post(
            path, data={**secret, "demo": "1", "kind": "bucketize", "phrase": "people.release"}
        )
        assert "the form is not of this session" in answer.text
    assert (project / "policy.toml").read_bytes() == before


@pytest.mark.parametrize("path", CHANGES)
def test_no_form_of_another_origin(client: TestClient, path: str) -> None:
    secret = csrf(client, "/report")
    for origin in (
        "https://evil.example",
        "null",
        "http://127.0.0.1:1",
        "http://localhost.evil.example:8766",
    ):
        sent = client.post(path, data={"csrf": secret}, headers={"Origin": origin})
        assert sent.status_code == 403


def test_no_other_name_and_no_second_user(client: TestClient, project: Path) -> None:
    """A name that somebody made point to this machine; and who finds the address in a history."""
    for host in ("evil.example", "evil.example:8766", "127.0.0.1.evil.example:8766"):
        assert client.get("/data", headers={"Host": host}).status_code == 421
    stranger = TestClient(client.app, base_url=ADDRESS)
    assert stranger.get(f"/?token={TOKEN}").status_code == 401, "the address worked once"
    for page in ("", *PAGES, "download/private", "download/release"):
        refused = stranger.get(f"/{page}")
        assert refused.status_code == 401
        assert str(project) not in refused.text


def test_a_second_tab_has_the_same_forms_and_the_same_state(client: TestClient) -> None:
    assert csrf(client, "/report") == csrf(client, "/audit")
    assert client.get("/publish").text == client.get("/publish").text


@pytest.mark.parametrize(
    "path",
    [
        "/download/../policy.toml",
        "/download/..%2Fpolicy.toml",
        "/download/%2e%2e%2fpolicy.toml",
        "/download/policy.toml",
        "/download/%2Fetc%2Fpasswd",
        "/static/../policy.toml",
        "/static/..%2f..%2fapp.py",
        "/policy.toml",
        "//etc/passwd",
    ],
)
def test_no_address_leads_to_other_files(client: TestClient, path: str) -> None:
    got = client.get(path)
    assert got.status_code == 404
    assert "sensitive" not in got.text


def test_nothing_is_kept_by_a_browser_or_a_proxy(client: TestClient) -> None:
    expected = {name: text for name, text in HEADERS.items() if name != "content-security-policy"}
    paths = (*PAGES, "nowhere", "style.css", "download/report", "download/release", "download/nothing")
    for path in paths:
        headers = client.get(f"/{path}").headers
        assert expected.items() <= headers.items(), path
        assert "default-src 'none'" in headers["content-security-policy"]


def tags_of(page: str) -> set[str]:
    """The elements that a browser would make of a page; `<` inside of an attribute makes none."""
    found: set[str] = set()

    class Parser(HTMLParser):
        def handle_starttag(self, tag: str, attrs: Any) -> None:
            found.add(tag)

    Parser().feed(page)
    return found


def test_what_a_table_holds_is_never_markup(client: TestClient) -> None:
    """Column names, values and questions, on every page and in the report."""
    ask = "/ask?sql=SELECT+disease,COUNT(*)+FROM+t+GROUP+BY+disease"
    wrong = "/ask?sql=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E%22%22%22"
    seen = ""
    for path in (*(f"/{page}" for page in PAGES), ask, wrong, "/download/report"):
        page = settled(client, client.get(path)).text
        assert not {"img", "b"} & tags_of(page), path
        seen += page
    assert seen.count("&lt;img src=x") >= 3
    assert "&lt;b&gt;s&lt;/b&gt;" in seen
    assert {"img", "b"} <= tags_of(f"<p>{MARKUP}<b>s</b>"), "it would be noticed"


@pytest.mark.parametrize(
    "name", ["<img src=x>.csv", "../../../tmp/evil.csv", "..", "/etc/passwd", "a\nb.csv", "x" * 999]
)
def test_an_upload_stays_where_uploads_are(tmp_path: Path, name: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with enter(project) as client:
        client.get(f"/?token={TOKEN}")
        studio = client.app.app.app.state.studio  # type: ignore[attr-defined]
        file = UploadFile(io.BytesIO(b"a,b\n1,2\n"), filename=name)
        kept = data_step._keep_upload(studio, file)
        assert kept.parent.parent == studio.project.uploads
        assert re.fullmatch(r"[\w. -]{1,100}", kept.name)
        uploads = studio.project.uploads
    assert not uploads.exists()


def test_a_database_gives_its_password_to_no_name(tmp_path: Path) -> None:
    assert data_step.release_name("postgresql://me:hush@host/clinic?password=hush") == "clinic.release"
    assert data_step.release_name("postgresql://me:hush@host?password=hush") == "table.release"
    assert data_step.release_name("/home/me/größen 2024.csv.gz") == "größen 2024.release"
    assert data_step.release_name("/home/<img src=x>.csv") == "img srcx.release"
    assert data_step.release_name("/home/...csv") == "table.release"


def test_an_upload_without_a_length_is_limited_too(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project, tmp_path / "copy")
    with enter(tmp_path / "copy", largest_upload=10_000) as client:
        client.get(f"/?token={TOKEN}")
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\n'
        chunks = (head, *([b"x" * 1000] * 20))
        headers = {"content-type": "multipart/form-data; boundary=b"}
        assert client.post("/data", content=iter(chunks), headers=headers).status_code == 413
        assert not list(client.app.app.app.state.studio.project.uploads.iterdir())  # type: ignore[attr-defined]


def test_a_link_in_a_release_does_not_lead_out_of_it(project: Path, tmp_path: Path) -> None:
    shutil.copytree(project, tmp_path / "copy")
    (tmp_path / "secret.txt").write_text("hush", encoding="utf-8")
    (tmp_path / "copy" / "people.release" / "extra.txt").symlink_to(tmp_path / "secret.txt")
    with enter(tmp_path / "copy") as client:
        client.get(f"/?token={TOKEN}")
        assert b"extra.txt" not in client.get("/download/release").content
