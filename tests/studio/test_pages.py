"""The studio's pages without a browser: what is written, what is refused, and what is never left behind."""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
from httpx import Response
from starlette.testclient import TestClient

from dalenius.policy import Policy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.studio.app import create_app
from dalenius.studio.project import Project, number, to_toml
from dalenius.web.guard import Access, host_names

TOKEN = "a-token-of-some-length"
ADDRESS = "http://127.0.0.1:8766"
DISEASES = ("Flu", "Cold", "Cough", "HIV")


def write_table(path: Path, n: int = 400) -> Path:
    """Names with diagnoses: what must never be published by going on."""
    rows = [f"Person {i},{20 + i % 50},{'FM'[i % 2]},{DISEASES[(i // 2 + i // 50) % 4]}" for i in range(n)]
    path.write_text("name,age,sex,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def client(project: Path) -> Iterator[TestClient]:
    access = Access(hosts=host_names("127.0.0.1", 8766), tokens=frozenset([TOKEN]), one_time=True)
    with TestClient(create_app(project, access), base_url=ADDRESS) as made:
        made.get(f"/?token={TOKEN}")
        yield made


def hidden(client: TestClient, path: str) -> dict[str, str]:
    """What a page's forms send by themselves, once it shows them: its secret, and what it is about."""
    for _ in range(600):
        page = client.get(path).text
        found = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)"', page))
        if "csrf" in found:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{path} never showed a form")


def csrf(client: TestClient, path: str) -> str:
    """The secret of a page's forms."""
    return hidden(client, path)["csrf"]


def settled(client: TestClient, response: Response) -> Response:
    """The page when nothing is waited for any more."""
    for _ in range(600):
        if 'class="waiting"' not in response.text:
            return response
        time.sleep(0.05)
        response = client.get(str(response.url))
    raise AssertionError(f"{response.url} waits for ever")


def take(client: TestClient, table: Path) -> None:
    sent = client.post("/data", data={"csrf": csrf(client, "/data"), "path": str(table)})
    assert settled(client, sent).status_code == 200


def post(client: TestClient, path: str, /, **data: str) -> Response:
    """What becomes of a form."""
    sent = client.post(path, data={**hidden(client, path), **data})
    return settled(client, sent)


def choose_roles(client: TestClient, *roles: str) -> str:
    data = {**hidden(client, "/roles"), **{f"role-{i}": role for i, role in enumerate(roles)}}
    return str(client.post("/roles", data=data).text)


def test_roles_are_blank_until_they_are_chosen(client: TestClient, project: Path, tmp_path: Path) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    policy = Project(folder=project, uploads=tmp_path).read()
    assert policy["columns"] == {"undecided": ["name", "age", "sex", "disease"]}
    csrf(client, "/roles")
    page = client.get("/roles").text
    assert "4 columns have no role yet" in page
    assert not re.search(r'<option value="(quasi|sensitive)" selected', page)
    assert client.get("/promise", follow_redirects=False).headers["location"] == "/roles"
    assert client.get("/publish", follow_redirects=False).headers["location"] == "/choose"


def test_no_page_after_the_roles_opens_while_one_is_blank(client: TestClient, tmp_path: Path) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    assert "1 column has no role yet" in choose_roles(client, "", "quasi", "quasi", "sensitive")
    for step in ("promise", "choose", "rehearse", "publish", "ask", "audit", "report"):
        assert client.get(f"/{step}", follow_redirects=False).status_code == 303


def test_the_policy_is_the_state_and_only_its_owner_reads_it(
    client: TestClient, project: Path, tmp_path: Path
) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    client.post("/promise", data={**hidden(client, "/promise"), "kind": "l-diversity", "l": "2"})
    file = project / "policy.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    policy = Policy.from_file(file)
    assert (policy.columns.identifiers, policy.columns.sensitive) == (("name",), ("disease",))
    assert policy.promise.kind == "l-diversity"
    assert {path.name for path in project.iterdir()} == {"policy.toml"}, "no record is kept here"


def test_groups_of_the_policy_file_outlive_the_form(
    client: TestClient, project: Path, tmp_path: Path
) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    rule = {"kind": "f-privacy", "times": "4", "plus": "0.1", "cap": "0.9"}
    sent = {**hidden(client, "/promise"), **rule}
    client.post("/promise", data=sent)
    file = project / "policy.toml"
    group = 'groups = { any = { values = ["a", "b"], at_most = 0.9 } }'
    file.write_text(
        file.read_text(encoding="utf-8").replace("[promise]", f"[promise]\n{group}"), encoding="utf-8"
    )
    client.post("/promise", data={**sent, "times": "5"})
    promise = Policy.from_file(file).promise
    assert isinstance(promise, FPrivacy)
    assert [(group.name, group.values) for group in promise.groups] == [("any", (("a",), ("b",)))]
    assert "limit together: any" in client.get("/promise").text


def test_limits_of_values_without_a_line_outlive_the_form(
    client: TestClient, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dalenius.studio.steps.promise.SHOWN", 3)
    table = write_table(tmp_path / "people.csv")
    table.write_text(f"{table.read_text(encoding='utf-8')}Zoe,30,F,Gout\n", encoding="utf-8")
    take(client, table)
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    rule = {"kind": "f-privacy", "times": "4", "plus": "0.1", "cap": "0.9"}
    client.post("/promise", data={**hidden(client, "/promise"), **rule})
    file = project / "policy.toml"
    limits = "[promise]\nvalues = { Gout = 0.01 }"
    file.write_text(file.read_text(encoding="utf-8").replace("[promise]", limits), encoding="utf-8")
    kept = post(client, "/promise", **{**rule, "times": "5"}).text
    promise = Policy.from_file(file).promise
    assert isinstance(promise, FPrivacy)
    assert [(cells, str(limit)) for cells, limit in promise.named] == [(("Gout",), "1/100")]
    assert "that have no line here: Gout" in kept


def test_the_fewest_who_share_cells_outlive_the_forms(
    client: TestClient, project: Path, tmp_path: Path
) -> None:
    table, roles = write_table(tmp_path / "people.csv"), ("identifiers", "quasi", "quasi", "sensitive")
    take(client, table)
    choose_roles(client, *roles)
    file = project / "policy.toml"
    file.write_text(
        file.read_text(encoding="utf-8").replace("[columns]", "[columns]\nk = 9"), encoding="utf-8"
    )
    choose_roles(client, *roles)
    take(client, table)
    assert "k = 9" in file.read_text(encoding="utf-8").splitlines()
    refused = post(client, "/promise", kind="l-diversity", l="2").text
    assert "[columns] k = 9: 0 of 400 people" in refused


def test_another_mechanism_does_not_loosen_the_promise(
    client: TestClient, project: Path, tmp_path: Path
) -> None:
    """The limit of HIV is kept by coins too; near numbers by buckets alone; and what is chosen stays."""
    take(client, write_table(tmp_path / "people.csv"))
    choose_roles(client, "identifiers", "sensitive", "quasi", "dropped")
    near = post(client, "/promise", kind="proximity", within="3", at_most="0.3")
    assert near.status_code == 200
    offered = settled(client, client.get("/choose")).text
    assert re.findall('value="([a-z-]+)">Choose this', offered) == ["bucketize", "alpha-beta"]
    assert offered.count("Another promise than yours") == 1
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    hidden(client, "/promise")
    file = project / "policy.toml"
    text = file.read_text(encoding="utf-8").partition("[promise]")[0]
    promise = '[promise]\nkind = "f-privacy"\ndefault = 0.5\nvalues = { HIV = "1/3" }\n'
    file.write_text(f"{text}\n{promise}", encoding="utf-8")
    for kind in ("bucketize", "perturb"):
        assert post(client, "/choose", kind=kind).status_code == 200
        kept = Policy.from_file(file)
        assert kept.mechanism.kind == kind
        assert isinstance(kept.promise, FPrivacy)
        assert [(cells, str(limit)) for cells, limit in kept.promise.named] == [(("HIV",), "1/3")]
    mechanism = '[mechanism]\nkind = "bucketize"\nmin_bucket = 6\n'
    file.write_text(f"{text}\n{promise}\n{mechanism}", encoding="utf-8")
    post(client, "/choose", kind="bucketize")
    assert "min_bucket = 6" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("typed", ["x", "", "nan", "1e999", "1/0/2", "-"])
def test_a_limit_that_is_no_number_is_refused(client: TestClient, tmp_path: Path, typed: str) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    sent = {**hidden(client, "/promise"), "kind": "f-privacy", "times": typed, "plus": "0", "cap": "0.5"}
    response = client.post("/promise", data=sent)
    assert response.status_code == 400 or typed == "1e999"


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        ({"path": "/no/such/file.csv"}, "does not exist"),
        ({}, "no table was given"),
    ],
)
def test_what_is_no_table_is_refused_on_the_page(
    client: TestClient, sent: dict[str, str], message: str
) -> None:
    response = post(client, "/data", **sent)
    assert response.status_code == 400
    assert message in response.text
    swapped = client.get(str(response.url), headers={"HX-Request": "true"})
    assert swapped.status_code == 200, "or the script leaves the page that waits as it is"
    assert message in swapped.text


def test_an_upload_stays_in_a_private_folder_that_is_removed(project: Path, tmp_path: Path) -> None:
    access = Access(hosts=host_names("127.0.0.1", 8766), tokens=frozenset([TOKEN]), one_time=True)
    table = write_table(tmp_path / "people.csv").read_bytes()
    with TestClient(create_app(project, access), base_url=ADDRESS) as client:
        client.get(f"/?token={TOKEN}")
        files = {"file": ("../../etc/people.csv", table, "text/csv")}
        settled(client, client.post("/data", data={"csrf": csrf(client, "/data")}, files=files))
        kept = Path(str(Project(folder=project, uploads=tmp_path).read()["source"]))
        assert kept.read_bytes() == table
        assert kept.name == "people.csv"
        assert stat.S_IMODE(kept.parent.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not kept.exists()


def test_forms_of_other_sessions_are_refused(client: TestClient) -> None:
    response = client.post("/data", data={"csrf": "0" * 64, "demo": "1"})
    assert response.status_code == 400
    assert "not of this session" in response.text


def test_an_upload_that_is_too_large_is_refused(project: Path) -> None:
    access = Access(hosts=host_names("127.0.0.1", 8766), tokens=frozenset([TOKEN]))
    with TestClient(create_app(project, access, largest_upload=1000), base_url=ADDRESS) as client:
        client.get(f"/?token={TOKEN}")
        files = {"file": ("t.csv", b"x" * 2000, "text/csv")}
        assert client.post("/data", files=files).status_code == 413


def test_labels_are_escaped(client: TestClient, tmp_path: Path) -> None:
    table = tmp_path / "nasty.csv"
    table.write_text("a,<script>alert(1)</script>\n" + '1,<b>x</b>\n2,"=1+1"\n' * 30, encoding="utf-8")
    take(client, table)
    for path in ("/data", "/roles"):
        csrf(client, path)
        assert "<script>alert" not in client.get(path).text
        assert "<b>x</b>" not in client.get(path).text


def test_coarser_values_are_counted_before_they_are_taken(client: TestClient, tmp_path: Path) -> None:
    """Prefix, bins, top-coding: a number for what is chosen, and the policy as it was until it is kept."""
    take(client, write_table(tmp_path / "people.csv"))
    roles = {"role-0": "dropped", "role-1": "quasi", "role-2": "quasi", "role-3": "sensitive"}
    sent = {**hidden(client, "/roles"), **roles}
    before = (tmp_path / "project" / "policy.toml").read_bytes()

    def count(**chosen: str) -> str:
        for _ in range(600):
            part = str(client.post("/roles/rare", data={**sent, **chosen}).text)
            if "waiting" not in part:
                return part
            time.sleep(0.05)
        raise AssertionError("it counts for ever")

    assert "nobody is alone with their age and sex" in count()
    assert "400 of 400 people (100 %) are alone" in count(**{"role-0": "quasi"})
    assert "nobody" in count(**{"role-0": "quasi", "coarser-0": '{"prefix": 3}'})
    assert "nobody" in count(**{"coarser-1": "top", "typed-1": "30"})
    assert "nobody" in count(**{"coarser-1": "bins", "typed-1": "0, 40, 90"})
    assert "a value that the recoding does not cover" in count(**{"coarser-1": "bins", "typed-1": "0, 40"})
    assert "type a number, e.g. 90" in count(**{"coarser-1": "top", "typed-1": ""})
    assert "must not decide its own groups" in count(**{"coarser-3": '{"rare": 20}'})
    assert (tmp_path / "project" / "policy.toml").read_bytes() == before
    client.post("/roles", data={**sent, "coarser-1": "bins", "typed-1": "0, 40, 90"})
    assert Project(folder=tmp_path / "project", uploads=tmp_path).read()["recode"] == {
        "age": {"bins": [0, 40, 90]}
    }
    assert 'value="0, 40, 90"' in client.get("/roles").text


def test_a_promise_starts_from_a_sentence(client: TestClient, project: Path, tmp_path: Path) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    choose_roles(client, "identifiers", "quasi", "quasi", "sensitive")
    csrf(client, "/promise")
    page = client.get("/promise").text
    about = re.search(r'<option value="(\d+)"[^>]*>HIV', page)
    assert about is not None
    rule = {"kind": "f-privacy", "times": "4", "plus": "0.1", "cap": "0.9"}
    sentence = {"sentence-limit": "1 in 3", "sentence-value": about[1]}
    kept = post(client, "/promise", **rule, **sentence).text
    promise = Policy.from_file(project / "policy.toml").promise
    assert isinstance(promise, FPrivacy)
    assert [(cells, str(limit)) for cells, limit in promise.named] == [(("HIV",), "1/3")]
    assert "limit now" in kept
    low = post(client, "/promise", **rule, **{"sentence-limit": "1 %", "sentence-value": about[1]}).text
    assert "cannot be kept: everybody can guess the share" in low
    wrong = {**rule, **sentence, "kind": "l-diversity", "l": "2"}
    assert "is about one value" in post(client, "/promise", **wrong).text


def test_a_column_that_gives_the_secret_away_is_named_in_red(client: TestClient, tmp_path: Path) -> None:
    table = tmp_path / "codes.csv"
    rows = [f"{20 + i % 50},{'CGHF'[i % 4]},{sorted(DISEASES)[i % 4]}" for i in range(400)]
    table.write_text("age,code,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    take(client, table)
    choose_roles(client, "quasi", "quasi", "sensitive")
    page = post(client, "/promise", kind="l-diversity", l="2").text
    red = page.partition("Somebody is exposed")[2].partition("</div>")[0]
    assert "code" in red
    assert "whoever knows such a cell of a person reads the value off it" in red


def test_limits_are_for_the_values_as_they_are_published(
    client: TestClient, project: Path, tmp_path: Path
) -> None:
    take(client, write_table(tmp_path / "people.csv"))
    data = {**hidden(client, "/roles"), "coarser-3": '{"prefix": 1}'}
    roles = ("identifiers", "quasi", "quasi", "sensitive")
    client.post("/roles", data={**data, **{f"role-{i}": role for i, role in enumerate(roles)}})
    csrf(client, "/promise")
    page = client.get("/promise").text
    assert 'aria-label="limit of C"' in page
    assert 'aria-label="limit of Cold"' not in page


def test_toml_that_is_written_is_read_again() -> None:
    import tomllib

    data = {
        "source": {"path": 'a "b" \\ c.csv', "missing": ["NA"]},
        "columns": {"quasi": ["a b", "ü"], "sensitive": ["x"]},
        "promise": {"kind": "f-privacy", "default": {"times": 4}, "values": {"a.b": "1/3", "": 1}},
        "series": {"flag": True},
    }
    assert tomllib.loads(to_toml(data)) == data
    assert str(number("0,05", "limit")) == "0.05"


def test_a_rehearsal_tells_what_gives_people_away(client: TestClient, project: Path, tmp_path: Path) -> None:
    """Nobody is certain in a bucket, and yet who takes the medicine has the disease; the studio says so."""
    table = tmp_path / "people.csv"
    rows = [f"{20 + i % 47},{'yes' if i % 10 == 0 else 'no'},{_disease(i)}" for i in range(400)]
    table.write_text("age,medicine,disease\n" + "\n".join(rows) + "\n", encoding="utf-8")
    take(client, table)
    choose_roles(client, "quasi", "quasi", "sensitive")
    promise = {"kind": "f-privacy", "times": "4", "plus": "0.1", "cap": "0.7"}
    assert post(client, "/promise", **promise).status_code == 200
    post(client, "/choose", kind="bucketize")
    told = "40 of 400 people looked at have a cell of it that nearly always tells the value"
    assert told in post(client, "/rehearse").text
    settled(client, client.get("/publish"))
    assert told in client.get("/publish").text
    name = str(Project(folder=project, uploads=tmp_path).read()["release"])
    assert "Nothing was published" in post(client, "/publish", signed="me", phrase=name).text
    assert not (project / name).exists()


def _disease(i: int) -> str:
    return "HIV" if i % 10 == 0 else ("Flu", "Cold", "Cough")[(i + i // 10 + i // 70) % 3]
