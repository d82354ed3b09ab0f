"""The new user's path: what the program itself suggests, on messy tables, gives nobody away unasked.

A user types what is printed: `init`, the steps that the policy's head names, what errors hint at, and what
`publish` calls next. The publisher's part is to say what is sensitive; everything else is believed.
"""

from __future__ import annotations

import inspect
import json
import re
import shlex
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dalenius.cli.main import COMMANDS, application, run
from tests.cli.messy_tables import TABLES, Messy

SUGGESTED = re.compile(
    r"`dalenius ([^`]+)`|(?:next:|;|^#   \d\.) dalenius ([^;\n]+?)(?=;|   |$)", re.MULTILINE
)
OUTRIGHT = r"\b{:,} (person is|people are) published outright"
OTHERWISE = ["five rows", "one dominant value", "mostly missing", "one column", "everybody the same"]
HOPELESS = {"one row", "two rows", "everybody the same"}
"""Everybody has the same value: nothing can be promised."""


@dataclass(slots=True, kw_only=True)
class Step:
    """A command, how it ended, and all that it printed."""

    command: str
    code: int
    text: str


@dataclass(slots=True, kw_only=True)
class NewUser:
    """Somebody with a table, who types commands into the table's folder."""

    messy: Messy
    capsys: pytest.CaptureFixture[str]
    steps: list[Step] = field(default_factory=list)

    def types(self, command: str) -> Step:
        """Run `dalenius COMMAND`; whatever it does, it must not do this."""
        self.capsys.readouterr()
        code = run(shlex.split(command))
        printed = self.capsys.readouterr()
        step = Step(command=command, code=code, text=printed.out + printed.err)
        self.steps.append(step)
        assert code in (0, 2, 3), step
        assert not re.search("Traceback|bug in Dalenius", step.text), step
        self._check_cells(step)
        check_suggestions(step)
        if command.startswith("publish") and code == 0:
            check_outright(step)
        return step

    def _check_cells(self, step: Step) -> None:
        """The policy of these tables names no value, so no message may."""
        words = set(re.findall(r"[\w-]+", step.text))
        assert not words & self.messy.cells, step

    def edits(self, **sections: str) -> None:
        """Replace the right side of lines `key = …` of the policy."""
        policy = Path("t.toml")
        lines = policy.read_text(encoding="utf-8").splitlines()
        for key, value in sections.items():
            (place,) = [i for i, line in enumerate(lines) if re.match(rf"{key}\s*=", line)]
            lines[place] = f"{key} = {value}"
        policy.write_text("\n".join(lines), encoding="utf-8")

    def gives_roles(self, *, everything_is_quasi: bool = False) -> dict[str, list[str]]:
        """Move names out of `undecided`, as the guesses in the comments say; what is secret she knows."""
        text = Path("t.toml").read_text(encoding="utf-8")
        found = tomllib.loads(text)["columns"]
        guesses = dict(re.findall(r"^# (.+?) {2,}(\w+)\? ", text, re.MULTILINE))
        roles = {role: found[role] for role in ("identifiers", "quasi", "sensitive", "dropped")}
        for name in found["undecided"]:
            guess = "dropped" if guesses[name] == "unit" else guesses[name]
            roles[
                "sensitive" if name == self.messy.secret else "quasi" if everything_is_quasi else guess
            ].append(name)
        if self.messy.secret not in roles["sensitive"]:  # init took it for something that nobody publishes
            roles = {
                role: [name for name in names if name != self.messy.secret] for role, names in roles.items()
            }
            roles["sensitive"] = [self.messy.secret]
        self.edits(undecided="[]", **{role: json.dumps(names) for role, names in roles.items()})
        return roles

    def follows_hints(self) -> Step:
        """Plan, and change what the error says would do, until there is a plan or nothing is suggested."""
        for _ in range(3):
            step = self.types("plan t.toml")
            larger = re.search(r"max_bucket = (\d+) would do", step.text)
            if step.code == 0 or larger is None:
                return step
            assert step.code == 3
            self.edits(max_bucket=larger[1])
        raise AssertionError(f"hints go round in circles: {self.steps[-3:]}")


def check_suggestions(step: Step) -> None:
    """What is suggested exists: the command, and its options."""
    commands = {command.name: command.callback for command in application(COMMANDS).registered_commands}
    for command in suggestions(step.text):
        name, *arguments = shlex.split(command)
        assert name in commands, (command, step)
        known = {"help", *inspect.signature(commands[name]).parameters}  # type: ignore[arg-type]
        options = [part[2:].replace("-", "_") for part in arguments if part.startswith("--")]
        assert all(option in known for option in options), (command, step)


def suggestions(text: str) -> Iterator[str]:
    """The commands that a text names."""
    for one, other in SUGGESTED.findall(text):
        yield (one or other).strip()


def check_outright(step: Step) -> None:
    """By hand: whoever is in a bucket of one value was counted on the screen and asked for with --yes."""
    folder = re.search(r" to (\S+) in ", step.text)
    assert folder is not None, step
    values: dict[int, dict[str, int]] = defaultdict(dict)
    for row in pq.read_table(Path(folder[1]) / "st.parquet").to_pylist():
        cells = {name: cell for name, cell in row.items() if name not in ("bucket", "count")}
        values[row["bucket"]][repr(cells)] = row["count"]
    certain = sum(sum(found.values()) for found in values.values() if len(found) == 1)
    told = json.loads((Path(folder[1]) / "manifest.json").read_text(encoding="utf-8"))["outright"]
    assert told == certain, step
    if certain and "--draft" not in step.command:
        assert "--yes" in step.command
    if certain:
        assert re.search(OUTRIGHT.format(certain), step.text), step


@pytest.fixture
def user(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> NewUser:
    """In a folder of her own, with a table and the policy that `init` wrote for it."""
    monkeypatch.chdir(tmp_path)
    messy = TABLES[request.param]
    messy.write(Path("t.csv"), seed=list(TABLES).index(request.param))
    user = NewUser(messy=messy, capsys=capsys)
    assert user.types("init t.csv").code == 0
    return user


every_table = pytest.mark.parametrize("user", TABLES, indirect=True)
every_hopeful_table = pytest.mark.parametrize("user", sorted(TABLES.keys() - HOPELESS), indirect=True)
every_hopeless_table = pytest.mark.parametrize("user", sorted(HOPELESS), indirect=True)


def decided(text: str) -> dict[str, list[str]]:
    columns = tomllib.loads(text)["columns"]
    return {role: names for role, names in columns.items() if isinstance(names, list)}


@every_table
def test_nothing_is_published_before_the_roles_are_decided(user: NewUser) -> None:
    """Blank roles are refused by name, whatever is typed; who somebody is is never proposed as quasi."""
    text = Path("t.toml").read_text(encoding="utf-8")
    columns = decided(text)
    assert (columns["quasi"], columns["sensitive"]) == ([], [])
    proposed = {
        name for name, role in re.findall(r"^# (.+?) {2,}(\w+)\?? ", text, re.MULTILINE) if role == "quasi"
    }
    assert not proposed & user.messy.personal
    assert not set(re.findall(r"[\w-]+", text)) & user.messy.cells
    for command in ("plan t.toml", "publish t.toml --yes"):
        step = user.types(command)
        assert step.code == 2
        assert all(repr(name) in step.text for name in columns["undecided"]), step
    assert not Path("t.release").exists()


@every_hopeful_table
def test_the_suggested_path_gives_nobody_away(user: NewUser) -> None:
    """Every guess believed, every hint followed, every next step typed."""
    roles = user.gives_roles()
    assert not set(roles["quasi"]) & user.messy.personal
    planned = user.follows_hints()
    assert planned.code == 0, planned
    assert "nobody is published outright" in planned.text
    head = Path("t.toml").read_text(encoding="utf-8").partition("[columns]")[0]
    for command in suggestions(head):
        assert user.types(command).code == 0, user.steps[-1]
    published = user.types("publish t.toml")
    assert published.code == 0, published
    following = (
        *suggestions(published.text),
        "verify t.release --strict",
        "audit t.release --original t.toml",
        "report t.release",
        "report t.release --original t.toml",
    )
    for command in dict.fromkeys(following):
        assert user.types(command).code == 0, user.steps[-1]
    again = user.types("publish t.toml")
    assert again.code in (2, 3), again
    shown = {column["name"] for column in json.loads(Path("t.release/manifest.json").read_text())["columns"]}
    assert not shown & user.messy.personal


@every_hopeless_table
def test_where_nothing_can_be_promised_nothing_is_published_unasked(user: NewUser) -> None:
    """The hints, followed: a column that is no secret is not sensitive, or is named with 1 and asked for."""
    user.gives_roles()
    planned = user.follows_hints()
    assert planned.code == 3
    assert "every release tells it" in planned.text
    for command in ("publish t.toml", "publish t.toml --yes"):
        assert user.types(command).code == 3
        assert not Path("t.release").exists()
    rows = Path("t.csv").read_text(encoding="utf-8").splitlines()[1:]
    (cell,) = {row.split(",")[-1] for row in rows}
    named = f"{{ times = 4, plus = 0.02 }}\nvalues = {{ {cell} = 1.0 }}"
    user.edits(default=named)
    user.messy = TABLES["yes and no"]  # now the policy names the value, and messages may
    told = OUTRIGHT.format(len(rows))
    assert re.search(told, user.types("plan t.toml").text)
    refused = user.types("publish t.toml")
    assert refused.code == 3
    assert re.search(told, refused.text)
    assert not Path("t.release").exists()
    assert user.types("publish t.toml --yes").code == 0
    assert "published outright" in user.types("verify t.release --strict").text


@pytest.mark.parametrize(
    "user",
    ["names and diagnoses", "dates of birth", "every column unique", "many different secrets"],
    indirect=True,
)
def test_nor_does_one_who_publishes_every_other_column(user: NewUser) -> None:
    """The reckless user: all that init left undecided is quasi."""
    user.gives_roles(everything_is_quasi=True)
    assert user.follows_hints().code == 0
    assert user.types("publish t.toml").code == 0
    assert user.types("verify t.release --strict").code == 0


@pytest.mark.parametrize("user", OTHERWISE, indirect=True)
def test_the_other_promise_that_the_policy_offers(user: NewUser) -> None:
    """l-diversity in place of the default, as the comment has it: a plan, or a refusal with a next step."""
    user.gives_roles()
    policy = Path("t.toml")
    text = policy.read_text(encoding="utf-8")
    (offered,) = re.findall(r"^# l = (\d+)", text, re.MULTILINE)
    text = re.sub(r"^(kind\s*= \"f-privacy\"|default\s*=)", r"# \1", text, flags=re.MULTILINE)
    text = text.replace('# kind = "l-diversity"', 'kind = "l-diversity"').replace(
        f"# l = {offered}", f"l = {offered}"
    )
    policy.write_text(text, encoding="utf-8")
    step = user.follows_hints()
    assert step.code == 0 or "hint: " in step.text, step
    assert user.types("publish t.toml").code == step.code
