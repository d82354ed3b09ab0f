"""What a plan says about people: the limits that it keeps, and errors that answers then have."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.pages.words import say_plan

N_ROWS = 6_000
SHARES = {"Flu": 0.4, "Cold": 0.3, "Gout": 0.2, "HIV": 0.1}


def people() -> pa.Table:
    """The quasi column is random: what the buckets do not know."""
    stream = np.random.default_rng(7)
    return pa.table(
        {
            "ward": pa.array(stream.integers(0, 20, N_ROWS), type=pa.int64()),
            "disease": pa.array(stream.choice(list(SHARES), p=list(SHARES.values()), size=N_ROWS)),
        }
    )


BUCKETS = {
    "promise": {
        "kind": "f-privacy",
        "default": {"times": 2, "plus": 0.0, "cap": "0.6"},
        "values": {"HIV": 0.12},
    }
}
COINS = {
    "promise": {"kind": "rho-privacy", "rho1": "1/3", "rho2": "3/5"},
    "mechanism": {"kind": "perturb", "method": "uniform"},
}


def policy(parts: dict[str, Any], release: Path | None = None) -> dalenius.Policy:
    columns = {"quasi": ["ward"], "sensitive": ["disease"]}
    where = {} if release is None else {"release": str(release)}
    return dalenius.Policy.from_dict({"source": people(), "columns": columns, **where, **parts})


def sentences(made: dalenius.Policy) -> list[str]:
    return say_plan(made.mechanism.kind, made.mechanism.method, dalenius.plan(made))


def test_buckets_say_their_limits_and_who_is_certain() -> None:
    told = sentences(policy(BUCKETS))
    assert told[0] == (
        "An attacker who finds a person's bucket by the other columns, and uses nothing else, can link "
        "nobody to HIV with more than 12 in 100, nor to any of the 3 others with more than 60 in 100."
    )
    assert told[1] == "Nobody's value is certain."
    open_flu = {"promise": {"kind": "f-privacy", "default": 0.5, "values": {"Flu": 1.0}}}
    assert re.fullmatch(
        r"[\d,]+ people have a value that is certain: Flu, which you called no secret\.",
        sentences(policy(open_flu))[1],
    )
    alike = sentences(policy({"promise": {"kind": "l-diversity", "l": 2}}))
    assert alike[0].endswith("can link nobody to a value with more than 50 in 100.")


@pytest.mark.parametrize("parts", [BUCKETS, COINS], ids=["buckets", "coins"])
def test_limits_of_combinations_are_not_said_to_be_those_of_a_column(parts: dict[str, Any]) -> None:
    """At most 29 in 100 was said of any value, and a disease made up 60 of 100 of a bucket."""
    stage = pa.array(np.random.default_rng(8).integers(1, 4, N_ROWS))
    columns = {"quasi": ["ward"], "sensitive": ["disease", "stage"]}
    promise = {key: value for key, value in parts["promise"].items() if key != "values"}
    both = {**parts, "promise": promise, "source": people().append_column("stage", stage), "columns": columns}
    told = sentences(dalenius.Policy.from_dict(both))
    assert any(
        "disease and stage together: a cell of one of them alone has no limit" in line for line in told
    )
    assert not any("together" in line for line in sentences(policy(parts)))


def test_coins_say_how_far_a_belief_grows() -> None:
    told = sentences(policy(COINS))
    assert "at most 33.4 in 100 before, gives it at most 60 in 100 after" in told[0]
    assert "1 value is too common to be protected" in told[1]


@pytest.mark.parametrize(
    ("method", "who"),
    [
        ("uniform", "takes people's values as independent, and gave"),
        ("small-domain", "expects a value as often as it occurs in the person's part, and gave"),
    ],
)
def test_coins_name_the_attacker_whom_the_promise_is_about(method: str, who: str) -> None:
    """With parts the part's number is evidence: whoever believes anything else may become certain."""
    told = sentences(policy({**COINS, "mechanism": {"kind": "perturb", "method": method}}))
    assert who in told[0]


@pytest.mark.parametrize(
    ("parts", "estimator"), [(BUCKETS, "anatomy"), (COINS, None)], ids=["buckets", "coins"]
)
def test_the_error_is_what_answers_then_state(
    parts: dict[str, Any], estimator: str | None, tmp_path: Path
) -> None:
    told = sentences(policy(parts))[-1]
    said = re.fullmatch(
        r"A count of 200 people with the commonest (protected )?value will typically be off by (\d+)\.", told
    )
    assert said is not None, told
    ((commonest, n_with),) = Counter(people().column("disease").to_pylist()).most_common(1)
    n_wards = round(200 / n_with * 20, 6)
    release = dalenius.publish(policy(parts, tmp_path / "r"), seed=3)
    sql = f"SELECT COUNT(*) FROM t WHERE ward < {{}} AND disease = '{commonest}'"
    errors = {}
    for n in (1, 2, 4):
        (row,) = release.ask(sql.format(n), estimator=estimator).to_dict()["rows"]
        errors[n] = row["std_error"]
    expected = float(np.interp(n_wards, list(errors), list(errors.values())))
    assert float(said[2]) == pytest.approx(expected, rel=0.1, abs=0.6)


@pytest.mark.parametrize("method", ["alpha-beta", "frapp"])
def test_tuples_say_the_error_that_answers_then_state(method: str, tmp_path: Path) -> None:
    parts = {
        "promise": {"kind": "d-gamma-privacy", "k": 4, "gamma": 0.4},
        "mechanism": {
            "kind": "alpha-beta",
            "method": method,
            "domains": "active",
            **({"duplicates": "distinct"} if method == "alpha-beta" else {}),
        },
    }
    stream = np.random.default_rng(7)
    table = pa.table({name: pa.array(stream.integers(0, 40, 3_000), type=pa.int64()) for name in "abc"})
    made = dalenius.Policy.from_dict(
        {"source": table, "release": str(tmp_path / "r"), "columns": {"quasi": ["a", "b", "c"]}, **parts}
    )
    told = sentences(made)
    said = re.search(r"A count of (\d+) rows.* off by (\d+)\.", told[-1])
    assert said is not None, told
    release = dalenius.publish(made, seed=1)
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE a < 3").to_dict()["rows"]
    of_as_many = row["std_error"] * (int(said[1]) / (3_000 * 3 / 40)) ** 0.5
    assert float(said[2]) == pytest.approx(of_as_many, rel=0.06)


def test_the_command_prints_them_first_and_json_holds_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.toml"
    (tmp_path / "t.csv").write_text("a,d\n" + "1,x\n2,y\n3,z\n" * 20, encoding="utf-8")
    file.write_text(
        'source = "t.csv"\n[columns]\nquasi = ["a"]\nsensitive = ["d"]\n'
        '[promise]\nkind = "l-diversity"\nl = 2\n',
        encoding="utf-8",
    )
    assert run(["plan", str(file)]) == 0
    assert capsys.readouterr().out.startswith("An attacker who finds a person's bucket by the other columns")
    assert run(["plan", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["words"][1] == "Nobody's value is certain."


@pytest.mark.parametrize("regions", [False, True])
def test_numbers_that_hardly_differ_are_told_though_each_has_its_limit(regions: bool, tmp_path: Path) -> None:
    """Nobody's salary is certain, and yet most people's is, to within three."""
    rng = np.random.default_rng(2)
    salary = np.where(rng.random(600) < 0.8, 100_000, 50_000) + rng.integers(0, 4, 600)
    table = pa.table({"age": rng.integers(18, 60, 600), "salary": salary})
    policy = dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["age"], "sensitive": ["salary"]},
            "promise": {"kind": "l-diversity", "l": 3},
            "mechanism": {"kind": "bucketize", "regions": regions},
        }
    )
    (told,) = [line for line in say_plan("bucketize", "optimal", dalenius.plan(policy)) if "nearly" in line]
    release = dalenius.publish(policy)
    held: dict[int, list[int]] = {}
    for row in pq.read_table(release.path / "st.parquet").to_pylist():
        held.setdefault(row["bucket"], []).extend([row["salary"]] * row["count"])
    near = sum(len(cells) for cells in held.values() if max(cells) - min(cells) <= 0.01 * max(cells))
    assert told.startswith(f"{near} people are in a bucket whose numbers all lie within 1 %")
    assert near > 60
