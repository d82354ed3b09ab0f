"""Releases that somebody made by hand, hashes and all, which promise more than their tables keep.

Each was called good once. A manifest may only promise what `verify` compares with the tables.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy
from tests.auditing.releases import sign
from tests.fuzz.seeds import MADE, people

_rng = np.random.default_rng(3)
_N = 120
_SEVERAL = pa.table(
    {
        "age": _rng.integers(30, 42, _N),
        "sex": _rng.choice(["F", "M"], _N),
        "flu": np.arange(_N) % 4 == 0,
        "hiv": np.arange(_N) % 8 == 1,
    }
)
_PERTURBED = {"promise": {"kind": "rho-privacy", "rho1": "2/5", "rho2": "3/5"}}
SUBJECTS: dict[str, dict[str, Any]] = {
    **{name: MADE[name] for name in ("diverse", "safe", "frapp", "view", "fakes")},
    "limits": {"promise": {"kind": "f-privacy", "default": "2/5"}},
    "sets": {
        "source": _SEVERAL,
        "columns": {"quasi": ["age", "sex"], "sensitive": ["flu", "hiv"]},
        "promise": {"kind": "sets", "default": 0.4},
    },
    "parts": {**_PERTURBED, "mechanism": {"kind": "perturb"}},
    "weighted": {"promise": {"kind": "f-privacy", "default": "3/5"}, "mechanism": {"kind": "perturb"}},
}
_DOMAINS = {"age": "30..41", "sex": ["F", "M"], "ill": ["cold", "flu", "gout", "hiv", "none"]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Releases that keep what they promise, each made when it is first asked for."""
    folder, found = tmp_path_factory.mktemp("made"), {}

    def make(name: str) -> Path:
        if name not in found:
            policy = {
                "source": people(),
                "release": str(folder / name),
                "columns": {"quasi": ["age", "sex"], "sensitive": ["ill"]},
                **({"domains": _DOMAINS} if name in ("frapp", "view") else {}),
                **SUBJECTS[name],
            }
            found[name] = dalenius.publish(Policy.from_dict(policy), seed=5, yes=True).path
        return found[name]

    return make


def problems(folder: Path) -> str:
    """What `verify` says against a release; nothing: that it is good."""
    try:
        return "; ".join(check.detail for check in dalenius.verify(folder).checks if not check.ok)
    except dalenius.ReleaseCorrupt as error:
        return error.message


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def in_promise(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["promise"].update(changes)


def in_suppression(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["promise"]["suppression"].update(changes)


def limit(value: str, at_most: str, **more: str) -> dict[str, Any]:
    return {"value": [value], "at_most": at_most, **more}


def doubled(manifest: dict[str, Any]) -> None:
    manifest["promise"]["thresholds"].insert(0, limit("hiv", "1/20", prior_at_most="1/30"))


def weigh(manifest: dict[str, Any]) -> None:
    """The first value is drawn as a replacement so seldom that it is nearly always true where it is seen."""
    for part in manifest["parameters"]["parts"]:
        del part["gamma"]
        part |= {"retention": "1/2", "weights": [1, 10**9, 10**9, 10**9, 10**9]}


def withheld(method: str, bound: str) -> dict[str, Any]:
    words = {"name": "x", "attacker": "x", "prior": "x"}
    return {"suppression": {"method": method, "bound": bound, "posterior": None, **words}}


GROUP = {"name": "x", "values": [["hiv"]], "at_most": "1/50"}
OF_BUCKETS = "one of buckets, which perturbation does not keep"
PER_RECORD = "what holds for one record"
CHANGES: dict[str, tuple[str, Callable[[dict[str, Any]], object], str]] = {
    "thresholds beside l": ("diverse", in_promise(thresholds=[limit("hiv", "1")]), "states 'thresholds'"),
    "two thresholds of a value": ("limits", doubled, "two thresholds of one value"),
    "two of a perturbed value": ("weighted", doubled, "two thresholds of one value"),
    "groups beside sets": ("sets", in_promise(groups=[GROUP]), "states 'groups'"),
    "a belief before buckets": ("limits", in_promise(prior="any"), "a belief beforehand"),
    "any belief about parts": ("parts", in_promise(prior_at_most="59/100"), "for any belief"),
    "weights in parts": ("parts", weigh, "gamma of part 1"),
    "groups of perturbed values": ("weighted", in_promise(groups=[GROUP]), OF_BUCKETS),
    "thresholds of buckets": ("weighted", lambda m: m["promise"].pop("prior"), OF_BUCKETS),
    "a larger belief before": ("frapp", in_promise(d="1/5"), PER_RECORD),
    "sets of tuples": ("frapp", in_promise(adversary="exclusive"), PER_RECORD),
    "more views of records": ("frapp", in_promise(views=7), PER_RECORD),
    "tuples for records": ("frapp", in_promise(unit="tuple"), PER_RECORD),
    "records that change": ("frapp", in_promise(changing=True), "may change"),
    "people for tuples": ("view", in_promise(unit="person"), "other units"),
    "a view of withheld rows": ("view", in_promise(**withheld("safe", "1/9")), "never does"),
    "diversity of a view": (
        "view",
        lambda m: m.update(promise={"kind": "l-diversity", "l": 9}),
        "l-diversity, which alpha-beta does not keep",
    ),
    "a lower bound": ("safe", in_suppression(bound="1/100"), "the stated bound is 1/100"),
    "an unknown method": ("safe", in_suppression(method="magic", posterior=None), "method that there is not"),
    "a bound of a method without": ("safe", in_suppression(method="randomized"), "the stated bound is 1/4"),
    "a bound without need": ("diverse", in_promise(**withheld("safe", "1/9")), "the stated bound is 1/9"),
    "a lower posterior": (
        "safe",
        lambda m: m["promise"]["suppression"]["posterior"].update(value=0.001),
        "the stated posterior 0.001 is not 1/4",
    ),
    "dates without a series": (
        "diverse",
        lambda m: m["parameters"].update(dates={"last_bucket": 2**53, "absent": 0}),
        "who has left",
    ),
    "who left before the first date": (
        "diverse",
        lambda m: m.update(
            parameters={"dates": {"last_bucket": 40, "absent": 1}},
            series={"id": "s", "kind": "dates", "index": 1, "of": None},
        ),
        "dates.absent is 1",
    ),
    "fakes of dates": (
        "fakes",
        lambda m: (
            m["parameters"].update(dates={"last_bucket": 40, "absent": 0}),
            m.update(series={"id": "s", "kind": "dates", "index": 1, "of": None}),
        ),
        "fakes and dates",
    ),
    "regions of withheld people": (
        "safe",
        lambda m: m["parameters"].update(regions=[]),
        "regions and suppression",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_manifest_promises_nothing_that_is_not_checked(
    made: Callable[[str], Path], tmp_path: Path, name: str
) -> None:
    subject, change, said = CHANGES[name]
    assert problems(made(subject)) == ""
    folder = shutil.copytree(made(subject), tmp_path / "r")
    edit(folder, change)
    found = problems(folder)
    assert found
    assert said in found
    if "is damaged" in found:  # by its words alone: then nobody reads the tables
        with pytest.raises(dalenius.ReleaseCorrupt, match="is damaged"):
            dalenius.open_release(folder).ask("SELECT COUNT(*) FROM t")


def rewrite(
    folder: Path, table: str, change: Callable[[list[dict[str, Any]]], None], **types: pa.DataType
) -> None:
    path = folder / f"{table}.parquet"
    was = pq.ParquetFile(path).read()
    schema = pa.schema([pa.field(f.name, types.get(f.name, f.type)) for f in was.schema])
    rows = was.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(sorted(rows, key=lambda row: row["bucket"]), schema), path)
    sign(folder)


def test_buckets_are_numbered_by_whole_numbers(made: Callable[[str], Path], tmp_path: Path) -> None:
    """Rounded, the person is in bucket 1; read as it stands, alone in bucket 1.25 with a known value."""

    def leave_alone(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row["bucket"] == 1 and row.get("count", 1) == 1)["bucket"] = 1.25

    folder = shutil.copytree(made("diverse"), tmp_path / "r")
    for table in ("st", "qit"):
        rewrite(folder, table, leave_alone, bucket=pa.float64())
    edit(folder, lambda manifest: manifest.pop("outright"))
    assert "other columns or types than in the manifest: 'bucket'" in problems(folder)


def test_who_has_a_value_is_said_by_yes_and_no(made: Callable[[str], Path], tmp_path: Path) -> None:
    """1 for yes is no yes: everybody would have none of the values, for which the limit is no secret's."""

    def everybody_has_it(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row |= {"flu": int(row["flu"]), "hiv": 1}

    folder = shutil.copytree(made("sets"), tmp_path / "r")
    rewrite(folder, "st", everybody_has_it, flu=pa.int64(), hiv=pa.int64())
    edit(folder, _say_whole_numbers)
    assert "above their threshold" in problems(folder)


def _say_whole_numbers(manifest: dict[str, Any]) -> None:
    manifest["promise"]["having"][-1]["at_most"] = "1"
    for column in manifest["columns"]:
        column["type"] = "int64" if column["role"] == "sensitive" else column["type"]
