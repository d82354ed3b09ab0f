"""Forms of a tab that was left open, and tables and policies that change before what was asked for starts."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
from starlette.testclient import TestClient

from dalenius.engines.base import silent
from dalenius.errors import InputError
from dalenius.files import own_temporary_folder
from dalenius.studio import work
from dalenius.studio.app import create_app
from dalenius.studio.project import Project, to_toml
from dalenius.studio.tasks import Task
from dalenius.web.guard import Access
from tests.studio.test_pages import choose_roles, client, hidden, post, project, take, write_table
from tests.studio.test_responsive import whole_policy

__all__ = ["client", "project"]
OUTDATED = "of another table, or of choices that were changed since"
RULE = {"kind": "f-privacy", "times": "4", "plus": "0.1", "cap": "0.9"}


def read(folder: Path) -> dict[str, Any]:
    return Project(folder=folder, uploads=folder).read()


def test_roles_of_another_table_are_not_given_to_this_one(
    client: TestClient,
    project: Path,
    tmp_path: Path,
) -> None:
    """Roles go by place: the diagnosis of the second table would be dropped, and its names published."""
    take(client, write_table(tmp_path / "people.csv"))
    left_open = hidden(client, "/roles")
    table = tmp_path / "others.csv"
    rows = [f"{'ABCD'[i % 4]},Person {i},{20 + i % 50},{'FM'[i % 2]}" for i in range(400)]
    table.write_text("disease,name,age,sex\n" + "\n".join(rows) + "\n", encoding="utf-8")
    take(client, table)
    hidden(client, "/roles")
    roles = ("identifiers", "quasi", "quasi", "sensitive")
    sent = {**left_open, **{f"role-{i}": role for i, role in enumerate(roles)}}
    refused = client.post("/roles", data=sent)
    assert refused.status_code == 400
    assert OUTDATED in refused.text
    assert set(read(project)["columns"]) == {"undecided"}
    assert OUTDATED in client.post("/roles/rare", data=sent).text
    choose_roles(client, *roles[-1:], *roles[:-1])
    assert read(project)["columns"]["sensitive"] == ["disease"]


def test_limits_are_not_given_to_other_values(
    client: TestClient,
    project: Path,
    tmp_path: Path,
) -> None:
    """So do limits: that of one value would be kept as that of another one, which has its place now."""
    table = write_table(tmp_path / "people.csv")
    take(client, table)
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    left_open = hidden(client, "/promise")
    before = 'aria-label="limit of HIV"'
    name = client.get("/promise").text.partition(before)[0].rpartition('name="')[2].partition('"')[0]
    table.write_text(table.read_text(encoding="utf-8").replace("Cold", "Zoster"), encoding="utf-8")
    hidden(client, "/promise")
    refused = client.post("/promise", data={**left_open, **RULE, name: "1/3"})
    assert refused.status_code == 400
    assert OUTDATED in refused.text
    assert "promise" not in read(project)
    assert post(client, "/promise", **RULE).status_code == 200


def test_what_is_published_is_what_the_form_showed(
    client: TestClient,
    project: Path,
    tmp_path: Path,
) -> None:
    """A confirmation is of one policy, and not of what another tab has made of it, rehearsed or not."""
    (project / "policy.toml").write_text(to_toml(whole_policy(tmp_path)), encoding="utf-8")
    made: Any = client.app
    studio = made.app.app.state.studio
    rehearsal = {"published": {"outright": 0}, "exposures": [], "notes": [], "not_covered": [], "audit": []}

    def rehearse() -> None:
        done = Task(finished=True, result=rehearsal)
        studio.tasks._tasks[("rehearse", *studio.project.state())] = done

    rehearse()
    left_open = hidden(client, "/publish")
    assert "of" in left_open
    studio.project.change(promise={"kind": "l-diversity", "l": 2})
    rehearse()
    name = str(read(project)["release"])
    refused = client.post("/publish", data={**left_open, "signed": "me", "phrase": name})
    assert refused.status_code == 400
    assert OUTDATED in refused.text
    assert studio.tasks.find(("publish", *studio.project.state())) is None


def change_policy(folder: Path, _: Path) -> None:
    Project(folder=folder, uploads=folder).change(promise={"kind": "l-diversity", "l": 2})


def change_table(_: Path, table: Path) -> None:
    """A copy that has the older time of its original, and the same length."""
    other = write_table(table.with_name("other.csv"))
    before = table.stat()
    other.write_bytes(table.read_bytes().replace(b"Flu", b"HIV"))
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    shutil.copy2(other, table)


def publish(policy: str, state: tuple[str, str], progress: Any) -> Any:
    return work.publish(policy, state, True, "me", progress)


@pytest.mark.parametrize("change", [change_policy, change_table])
@pytest.mark.parametrize("start", [work.rehearse, publish])
def test_a_process_that_starts_later_does_what_was_asked_for(
    project: Path,
    tmp_path: Path,
    change: Callable[[Path, Path], None],
    start: Callable[..., Any],
) -> None:
    policy = whole_policy(tmp_path)
    (project / "policy.toml").write_text(to_toml(policy), encoding="utf-8")
    state = Project(folder=project, uploads=project).state()
    change(project, Path(policy["source"]))
    with pytest.raises(InputError, match="changed after this was asked for"):
        start(str(project / "policy.toml"), state, silent)
    assert {path.name for path in project.iterdir()} == {"policy.toml"}


@pytest.mark.parametrize("source", ["tables", "tables/*.csv"])
def test_a_table_of_several_files_is_another_one_when_one_of_them_changes(
    project: Path,
    source: str,
) -> None:
    (project / "tables").mkdir()
    file = write_table(project / "tables" / "a.csv", 40)
    write_table(project / "tables" / "b.csv", 50)
    (project / "policy.toml").write_text(to_toml({"source": source}), encoding="utf-8")
    found = Project(folder=project, uploads=project)
    before = found.table()
    assert found.table() == before
    write_table(file, 41)
    assert found.table() != before


def test_a_terminal_that_is_closed_leaves_no_upload(project: Path) -> None:
    """The server is cancelled then; and what a killed one leaves is where the next run looks for it."""
    app = create_app(project, Access(hosts=frozenset(), tokens=frozenset()))
    uploads = app.app.app.state.studio.project.uploads
    assert uploads.parent == own_temporary_folder()
    write_table(uploads / "people.csv")

    async def run() -> None:
        messages = iter([{"type": "lifespan.startup"}])

        async def receive() -> Any:
            for message in messages:
                return message
            raise asyncio.CancelledError

        async def send(_: Any) -> None: ...

        with pytest.raises(asyncio.CancelledError):
            await app({"type": "lifespan", "state": {}}, receive, send)

    asyncio.run(run())
    assert not uploads.exists()
