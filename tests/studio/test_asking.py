"""Questions on the page of a studio: another process answers, within limits, and can be stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from dalenius.release.folder import StoredRelease
from dalenius.studio import asking
from dalenius.studio.asking import Asker
from dalenius.studio.tasks import Task, Tasks
from dalenius.web.page import unpack
from dalenius.web.worker import Handle, Worker
from tests.conftest import PROJECT
from tests.studio.test_pages import settled
from tests.studio.test_responsive import client  # noqa: F401  (a fixture)

RELEASE = PROJECT / "tests" / "releases" / "bucketize"


@pytest.fixture
def asker() -> Iterator[Asker]:
    made = Asker()
    yield made
    made.close()


def wait(task: Task) -> Task:
    while not task.finished:
        time.sleep(0.01)
    return task


def ask(asker: Asker, sql: str, stored: StoredRelease | None = None) -> Task:
    """One question, to its end."""
    release = stored or StoredRelease.open(RELEASE)
    return wait(Tasks().ask("question", lambda task: asker.answer(task, release, sql)))


def never_ready() -> Handle:
    time.sleep(3600)
    raise AssertionError


def test_a_process_answers_and_stays_for_the_next_question(asker: Asker) -> None:
    first = ask(asker, "SELECT COUNT(*) FROM t")
    assert first.error is None
    assert "".join(unpack(first.result)[1].itertext()).startswith("Answer")
    process = asker._worker
    odd = ask(asker, "SELECT \x0b\ufffe<b> FROM t")  # what XML cannot hold comes back all the same
    assert "cannot be answered" in "".join(unpack(odd.result)[1].itertext())
    assert asker._worker is process
    assert process is not None
    process.process.kill()
    assert "more than" in str(ask(asker, "SELECT COUNT(*) FROM t").error)


def test_a_question_is_cancelled_with_its_process_and_so_is_one_that_waits(
    asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No answer ever comes here: what ends is what was cancelled."""
    stuck = Worker(never_ready, seconds=3600, megabytes=4096)
    monkeypatch.setattr(asking.Asker, "_worker_of", lambda *_: stuck)
    tasks, stored = Tasks(), StoredRelease.open(RELEASE)
    first = tasks.ask("first", lambda task: asker.answer(task, stored, "SELECT 1"))
    while first.process is None:
        time.sleep(0.01)
    second = tasks.ask("second", lambda task: asker.answer(task, stored, "SELECT 2"))
    assert tasks.ask("second", lambda _: pytest.fail("it is started once")) is second
    tasks.cancel("second")
    assert "cancelled" in str(wait(second).error)
    assert stuck.process.is_alive(), "the first one goes on"
    assert not first.finished
    tasks.cancel("first")
    assert "cancelled" in str(wait(first).error)
    assert not stuck.process.is_alive()


def test_a_question_that_takes_too_long_is_refused(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    stuck = Worker(never_ready, seconds=0.01, megabytes=4096)
    monkeypatch.setattr(asking.Asker, "_worker_of", lambda *_: stuck)
    assert "longer than 0.01 seconds" in str(ask(asker, "SELECT 1").error)


def test_the_page_waits_cancels_and_asks_again(
    client: TestClient,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = "/ask?what=count&by=disease"
    stuck = Worker(never_ready, seconds=3600, megabytes=4096)
    with monkeypatch.context() as patched:
        patched.setattr(asking.Asker, "_worker_of", lambda *_: stuck)
        page = client.get(query).text
        assert 'class="waiting"' in page
        assert "opening the release" in page
        secret = re.search(r'name="csrf" value="(\w+)"', page)
        assert secret is not None
        cancel = f"/ask/cancel{query.removeprefix('/ask')}"
        assert client.post(cancel, data={"csrf": "0"}).status_code == 400
        stopped = client.post(cancel, data={"csrf": secret[1]})
    stopped = settled(client, stopped)
    assert "the question was cancelled" in stopped.text
    assert "the question was cancelled" in client.get(query).text, "it is not asked again by looking"
    answered = client.post(f"/ask/again{query.removeprefix('/ask')}", data={"csrf": secret[1]})
    assert "Answer" in settled(client, answered).text


def test_another_draft_gets_another_process(asker: Asker) -> None:
    stored = StoredRelease.open(RELEASE)
    first = asker._worker_of(stored)
    assert asker._worker_of(stored) is first
    later = replace(stored, manifest=replace(stored.manifest, id="another"))
    assert asker._worker_of(later) is not first
    assert not first.process.is_alive()
