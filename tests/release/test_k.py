"""People who are alone with their quasi-identifiers: counted beforehand, and refused where k says so."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy, PolicyError, PromiseNotMet
from dalenius.cli.main import run
from dalenius.publishing import preview
from dalenius.release.folder import sha256
from dalenius.reporting.build import build_report
from dalenius.tables.uniqueness import Uniqueness

VIEW: dict[str, Any] = {
    "promise": {"kind": "d-gamma-privacy", "k": 2, "gamma": "1/2"},
    "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
}
PERTURB = {"promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}}


def table(n: int = 1_500, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "zip": [f"{code:05d}" for code in rng.integers(100, 140, n)],
            "disease": rng.choice(["a", "b", "c", "d", "e"], n),
        }
    )


def policy(tmp_path: Path, quasi: tuple[str, ...] = ("age", "sex", "zip"), **more: Any) -> Policy:
    k = more.pop("k", 5)
    source = more.pop("source", table())
    dropped = [name for name in source.column_names if name not in (*quasi, "disease")]
    columns = {"quasi": list(quasi), "sensitive": ["disease"], "dropped": dropped}
    return Policy.from_dict(
        {
            "source": source,
            "release": str(tmp_path / "out"),
            "columns": columns if k is None else {**columns, "k": k},
            "promise": {"kind": "f-privacy", "default": 0.4},
            **more,
        }
    )


def rare_by_hand(release: Path, name: str, quasi: tuple[str, ...], k: int) -> int:
    rows = pq.read_table(release / f"{name}.parquet").select(list(quasi)).to_pylist()
    sizes = Counter(tuple(row.values()) for row in rows)
    return sum(size for size in sizes.values() if size < k)


def follow(tmp_path: Path, found: Uniqueness, **more: Any) -> Policy:
    """The policy that the hint asks for."""
    assert found.way is not None
    recode: dict[str, Any] = {}
    for line in (found.way.recode or "").split("; "):
        recode |= tomllib.loads(line)
    kept = tuple(name for name in found.columns if name not in found.way.left_out)
    return policy(tmp_path, quasi=kept, recode=recode, **more)


@pytest.mark.parametrize(("more", "shown"), [({}, "qit"), (PERTURB, "data")])
def test_k_is_a_condition_that_the_hint_reaches(tmp_path: Path, more: dict[str, Any], shown: str) -> None:
    refused = policy(tmp_path, **more)
    with pytest.raises(PromiseNotMet, match=r"k = 5: .* are alone with their age, sex and zip") as error:
        dalenius.plan(refused)
    assert "leaves nobody among fewer than 5" in (error.value.hint or "")
    with pytest.raises(PromiseNotMet, match="k = 5"):
        dalenius.publish(refused)
    assert not (tmp_path / "out").exists()
    found = preview(refused).uniqueness
    assert found is not None
    assert found.way is not None
    assert found.way.words() in (error.value.hint or "")
    reached = follow(tmp_path, found, **more)
    release = dalenius.publish(reached)
    assert release.manifest["k"] == 5
    assert not rare_by_hand(release.path, shown, reached.columns.quasi, 5)
    assert ("k", True) in [(check.name, check.ok) for check in release.verify(strict=True).checks]


def test_nothing_that_the_hint_asks_for_could_be_left_undone(tmp_path: Path) -> None:
    """Each column as it is, with the others as the hint has them, leaves somebody rare."""
    found = preview(policy(tmp_path)).uniqueness
    assert found is not None
    reached = follow(tmp_path, found)
    assert found.way is not None
    for name in found.way.columns:
        recode = [entry for entry in reached.recode if entry[0] != name]
        quasi = (*(other for other in reached.columns.quasi if other != name), name)
        finer = policy(tmp_path, quasi=quasi)
        object.__setattr__(finer, "recode", tuple(recode))
        with pytest.raises(PromiseNotMet, match="k = 5"):
            dalenius.plan(finer)


def test_the_smallest_group_decides(tmp_path: Path) -> None:
    """At k people a release is published, at k + 1 it is not."""
    source = pa.table({"sex": ["f"] * 4 + ["m"] * 16, "disease": ["a", "b", "c", "d"] * 5})
    dalenius.plan(policy(tmp_path, quasi=("sex",), source=source, k=4))
    with pytest.raises(PromiseNotMet, match=r"4 .* are among fewer than 5"):
        dalenius.plan(policy(tmp_path, quasi=("sex",), source=source, k=5))
    with pytest.raises(PromiseNotMet) as error:
        dalenius.plan(policy(tmp_path, quasi=("sex",), source=source, k=21))
    assert "fewer than 21 people" in (error.value.hint or "")


def test_null_is_a_value_like_others(tmp_path: Path) -> None:
    source = pa.table({"sex": [None] * 3 + ["m"] * 17, "disease": ["a", "b", "c", "d"] * 5})
    with pytest.raises(PromiseNotMet, match=r"3 .* are among fewer than 5"):
        dalenius.plan(policy(tmp_path, quasi=("sex",), source=source, k=5))


def test_verify_counts_again(tmp_path: Path) -> None:
    """A broken twin: a release of people who are alone, whose manifest says that nobody is."""
    release = dalenius.publish(policy(tmp_path, k=None))
    assert "k" not in release.manifest
    assert "k" not in [check.name for check in release.verify().checks]
    path = release.path / "manifest.json"
    path.write_text(json.dumps({**release.manifest, "k": 5}))
    found = {check.name: check for check in dalenius.verify(release.path).checks}
    n_rare = rare_by_hand(release.path, "qit", ("age", "sex", "zip"), 5)
    assert not found["k"].ok
    assert f"{n_rare:,} records" in found["k"].detail


def test_changed_people_are_seen_by_k_alone(tmp_path: Path) -> None:
    """One person moved to a group of one, with hashes that fit."""
    source = pa.table({"sex": ["f", "m"] * 10, "disease": ["a", "b", "c", "d"] * 5})
    release = dalenius.publish(policy(tmp_path, quasi=("sex",), source=source))
    file = release.path / "qit.parquet"
    rows = pq.read_table(file)
    cells = rows.column("sex").to_pylist()
    changed = pa.array(["x", *cells[1:]])
    pq.write_table(rows.set_column(rows.schema.get_field_index("sex"), "sex", changed), file)
    manifest = release.manifest
    for entry in manifest["tables"]:
        for one in entry["files"]:
            one["sha256"] = sha256(release.path / one["file"])
    (release.path / "manifest.json").write_text(json.dumps(manifest))
    assert [check.name for check in dalenius.verify(release.path).checks if not check.ok] == ["k"]


@pytest.mark.parametrize("k", [1, 0, -3, True, 2.5, "5"])
def test_k_must_be_a_number_of_people(tmp_path: Path, k: Any) -> None:
    with pytest.raises(PolicyError, match=r"\[columns\] k"):
        policy(tmp_path, k=k)


def test_k_is_refused_where_it_would_not_be_true(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="publishes nobody's quasi-identifiers"):
        policy(tmp_path, **VIEW)
    with pytest.raises(PolicyError, match=r"does not go with \[suppress\]"):
        policy(tmp_path, promise={"kind": "l-diversity", "l": 3}, suppress={"method": "safe"})


def test_the_commands_say_who_is_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pyarrow.csv.write_csv(table(), tmp_path / "people.csv")
    text = """source = "people.csv"
release = "out"
[columns]
quasi = ["age", "sex", "zip"]
sensitive = ["disease"]
[promise]
kind = "f-privacy"
default = 0.4
"""
    (tmp_path / "free.toml").write_text(text)
    (tmp_path / "k.toml").write_text(text.replace("[columns]", "[columns]\nk = 5"))
    found = preview(policy(tmp_path, k=None)).uniqueness
    assert found is not None

    def asked(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = run([*arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    code, plan = asked("plan", str(tmp_path / "free.toml"))
    assert (code, plan["feasible"], plan["uniqueness"]["few"]) == (0, True, found.rarity.n_few)
    code, inspected = asked("inspect", str(tmp_path / "people.csv"), "--quasi", "age,sex,zip")
    assert code == 0
    assert inspected["uniqueness"] == plan["uniqueness"] == found.to_dict()
    assert inspected["uniqueness"]["private"] is True
    code, refused = asked("plan", str(tmp_path / "k.toml"))
    assert (code, refused["feasible"]) == (3, False)
    assert refused["uniqueness"]["way"]["few"] == 0
    assert asked("publish", str(tmp_path / "k.toml"))[0] == 3
    assert run(["plan", str(tmp_path / "free.toml")]) == 0
    assert found.sentence() in capsys.readouterr().out
    assert run(["inspect", str(tmp_path / "people.csv"), "--quasi", "age", "--quasi", "sex"]) == 0
    assert "alone with their age and sex" in capsys.readouterr().out
    assert run(["inspect", str(tmp_path / "people.csv"), "--quasi", "agee"]) == 2
    assert "age" in capsys.readouterr().err


def test_only_the_private_report_tells_what_would_help(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path, k=None))
    private = build_report(release.stored, table(), seed=1)
    section = next(section for section in private.sections if section.id == "people")
    assert "are alone with their age, sex and zip" in str(section)
    assert "[recode] zip = { prefix" in str(section)
    assert "people" not in [section.id for section in build_report(release.stored).sections]
