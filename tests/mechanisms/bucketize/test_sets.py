"""People with several values: published, verified, attacked, asked, refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.errors import InternalError, PolicyError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms.bucketize import apply
from dalenius.mechanisms.bucketize.apply import mix_contents
from dalenius.mechanisms.bucketize.repeated import repeat_table
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan, plan_counts
from dalenius.policy import Policy
from dalenius.promises import read_promise
from dalenius.randomness import Randomness
from dalenius.tables.giveaways import find_giveaways
from dalenius.tables.histogram import Histogram
from dalenius.tables.source import gather_persons

VALUES = ["Asthma", "Flu", "HIV"]
PROMISE: dict[str, Any] = {"kind": "sets", "default": 0.5, "values": {"HIV": "1/4"}}


def visits() -> pa.Table:
    """240 people with one to three visits; every tenth has HIV, half of them Flu, a quarter Asthma."""
    rows: dict[str, list[Any]] = {"patient": [], "age": [], "disease": []}
    for person in range(240):
        own = [v for v, every in zip(VALUES, (4, 2, 10), strict=True) if (person * 7) % (every * 5) < 5]
        for disease in [*own, *([] if own else [None])]:
            for column, cell in zip(rows, (person, 20 + person % 61, disease), strict=True):
                rows[column].append(cell)
    return pa.table(rows)


def policy(path: Path | None = None, table: Any = None, **sections: Any) -> Policy:
    source = gather_persons(visits(), unit="patient", values="disease") if table is None else table
    return Policy.from_dict(
        {
            "source": source,
            **({} if path is None else {"release": str(path)}),
            "columns": {"quasi": ["age"], "identifiers": ["patient"], "sensitive": VALUES},
            "promise": sections.pop("promise", PROMISE),
            **sections,
        }
    )


def buckets_of(release: Path) -> list[list[dict[str, bool]]]:
    found: dict[int, list[dict[str, bool]]] = {}
    for row in pq.read_table(release / "st.parquet").to_pylist():
        has = {value: row[value] for value in VALUES}
        found.setdefault(row["bucket"], []).extend([has] * row["count"])
    return list(found.values())


def test_nobody_has_a_value_with_more_than_its_limit(tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    held = buckets_of(path)
    assert sum(map(len, held)) == 240
    for bucket, (value, limit) in product(held, {"Asthma": 2, "Flu": 2, "HIV": 4}.items()):
        assert limit * sum(person[value] for person in bucket) <= len(bucket)
    report = dalenius.verify(path)
    assert report.ok
    assert [check.ok for check in report.checks if check.name == "promise on groups"] == [True]
    stated = dalenius.open_release(path).manifest
    assert stated["promise"]["having"][2:] == [
        {"column": "HIV", "at_most": "1/4"},
        {"column": None, "at_most": "1/2"},
    ]
    assert stated["assumes"][0] == "one row is one person, with all values that the person has"
    assert "patient" not in {column["name"] for column in stated["columns"]}


TWO: Any = policy(
    columns={"quasi": ["age"], "identifiers": ["patient", "Asthma"], "sensitive": ["Flu", "HIV"]},
    promise={"kind": "sets", "default": "2/3", "values": {"HIV": "1/2"}},
)


def plan_of(counts: tuple[int, ...]) -> BucketizePlan:
    pairs = dict(zip(product((False, True), repeat=2), counts, strict=True))
    schema = pa.schema([("Flu", pa.bool_()), ("HIV", pa.bool_())])
    return plan_counts(TWO, Histogram.of(("Flu", "HIV"), pairs), schema)


def contents_of(plan: BucketizePlan) -> Iterator[list[tuple[bool, ...]]]:
    for held in mix_contents(plan.buckets, plan.problem, Randomness.seeded(plan.n_rows)):
        yield from ([plan.histogram.values[code] for code in bucket] for bucket in held.tolist())


def test_every_person_of_every_small_table_is_bayes_within_the_limits() -> None:
    """All tables of up to 6 people with two values, by all matchings of a bucket's people with its sets."""
    n_tables = n_people = 0
    for counts in product(range(4), repeat=4):
        if not 2 <= sum(counts) <= 6:
            continue
        try:
            plan = plan_of(counts)
        except PromiseNotMet:
            continue
        n_tables += 1
        for bucket in contents_of(plan):
            worlds = list(permutations(bucket))
            for person in range(len(bucket)):
                flu, hiv = (Fraction(sum(w[person][v] for w in worlds), len(worlds)) for v in (0, 1))
                assert flu <= Fraction(2, 3)
                assert hiv <= Fraction(1, 2)
                assert hiv == Fraction(sum(one[1] for one in bucket), len(bucket))
                n_people += 1
    assert n_tables == 68
    assert n_people > 200


def test_a_release_that_keeps_sets_but_not_values_is_caught(tmp_path: Path) -> None:
    """The twin: each set of values within 1/2, as one compound value, and then said to keep each value."""
    path = tmp_path / "r"
    one = policy(path, promise={"kind": "f-privacy", "default": {"times": 4, "plus": "0.02"}})
    dalenius.publish(one, seed=1, yes=True)
    assert dalenius.verify(path).ok
    file = path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    limits = [*zip(VALUES, ("1/2", "1/2", "1/8"), strict=True), (None, "1/2")]
    manifest["promise"] = {
        "kind": "sets",
        "having": [{"column": name, "at_most": limit} for name, limit in limits],
    }
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert "promise on groups" in [check.name for check in dalenius.verify(path).checks if not check.ok]
    attacks = {attack.name: attack for attack in dalenius.audit(path, one).attacks}
    assert attacks["linking to groups"].holds is False


def test_an_honest_release_withstands_the_attack_on_values(tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    found = next(a for a in dalenius.audit(path, policy()).attacks if a.name == "linking to groups")
    assert found.holds
    assert [one["group"] for one in found.detail["groups"]] == [*VALUES, "none of them"]
    assert all(one["buckets_above_threshold"] == 0 for one in found.detail["groups"])


def test_the_writer_refuses_what_does_not_keep_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heap(contents: Any, *_: Any) -> Any:
        contents[:] = contents.ravel()[contents.ravel().argsort()].reshape(contents.shape)
        return contents

    monkeypatch.setattr(apply, "mix", heap)
    with pytest.raises(InternalError, match="passes a limit"):
        dalenius.publish(policy(tmp_path / "r"), seed=1)
    assert not (tmp_path / "r").exists()


def test_people_with_a_value_are_counted_by_other_columns(tmp_path: Path) -> None:
    path = tmp_path / "r"
    release = dalenius.publish(policy(path), seed=1)
    (hiv,) = release.ask("SELECT COUNT(*) FROM t WHERE HIV").rows
    assert (hiv.estimate, hiv.status) == (24, "exact")
    (both,) = release.ask("SELECT COUNT(*) FROM t WHERE HIV AND Flu AND age < 50").rows
    assert both.status == "estimate"
    assert len(release.ask("SELECT age, COUNT(*) FROM t WHERE Flu = true GROUP BY age").rows) == 61


def test_that_a_value_is_missing_can_be_certain(tmp_path: Path) -> None:
    """What is not covered: somebody in a bucket without HIV does not have it."""
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    assert any(not any(person["HIV"] for person in bucket) for bucket in buckets_of(path))


def test_two_releases_are_judged_by_each_value() -> None:
    found = repeat_table(plan_of((3, 3, 2, 1)), 2)
    assert found.how == "simulated"
    assert found.posterior >= found.promised


def test_the_command_line_gathers_plans_publishes_and_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pyarrow.csv.write_csv(visits(), tmp_path / "visits.csv")
    (tmp_path / "p.toml").write_text(
        'source = { path = "visits.csv", persons = { unit = "patient", values = "disease", '
        'count = "visits" } }\n'
        'release = "r"\n[columns]\nquasi = ["age"]\nsensitive = ["Asthma", "Flu", "HIV"]\n'
        'identifiers = ["patient"]\ndropped = ["visits"]\n'
        '[promise]\nkind = "sets"\ndefault = 0.5\nvalues = { HIV = 0.25 }\n',
        encoding="utf-8",
    )
    assert run(["plan", str(tmp_path / "p.toml")]) == 0
    assert "is sure of nobody to have HIV with more than 25 in 100" in capsys.readouterr().out
    assert run(["publish", str(tmp_path / "p.toml")]) == 0
    assert run(["verify", str(tmp_path / "r")]) == 0
    assert run(["report", str(tmp_path / "r"), "--output", str(tmp_path / "r.html")]) == 0
    assert run(["ask", str(tmp_path / "r"), "SELECT COUNT(*) FROM t WHERE HIV AND age < 40"]) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mechanism": {"kind": "bucketize", "fakes": 1}}, "fakes"),
        ({"mechanism": {"kind": "bucketize", "regions": True}}, "regions"),
        ({"mechanism": {"kind": "bucketize", "method": "anatomy"}}, "method"),
        ({"mechanism": {"kind": "perturb"}}, "does not keep sets"),
        ({"promise": {"kind": "sets", "default": 1}}, "default"),
        ({"promise": {"kind": "sets", "default": 0.5, "values": {"Gout": 0.1}}}, "Gout"),
        ({"promise": {"kind": "sets", "default": 0.5, "groups": {}}}, "groups"),
    ],
)
def test_what_would_not_keep_it_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(**changes)


def test_a_limit_below_a_values_share_is_named(tmp_path: Path) -> None:
    low = {"kind": "sets", "default": 0.5, "values": {"HIV": 0.05}}
    with pytest.raises(PromiseNotMet, match=r"'HIV' \(0.05\) is below its share of the people \(0.1\)"):
        dalenius.plan(policy(tmp_path / "r", promise=low))
    with pytest.raises(PolicyError, match="has no threshold"):
        dalenius.plan(policy(promise={"kind": "sets", "values": {"HIV": 0.2}}))


def test_columns_that_are_not_yes_or_no_are_refused() -> None:
    texts = gather_persons(visits(), unit="patient", values="disease")
    texts = texts.set_column(4, "HIV", texts.column("HIV").cast(pa.int64()))
    with pytest.raises(PolicyError, match="yes and no"):
        dalenius.plan(policy(table=texts))


@pytest.mark.parametrize("having", [[], [{"column": "HIV", "at_most": "2"}], [{"column": "HIV"}]])
def test_a_manifest_with_limits_that_cannot_be_is_damaged(having: Any, tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    file = path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["promise"]["having"] = having
    file.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(ReleaseCorrupt):
        dalenius.verify(path)


def test_the_promise_is_read_back() -> None:
    promise: Any = policy().promise
    histogram = Histogram.of(
        tuple(VALUES), {(True, False, False): 3, (False, True, True): 1, (False,) * 3: 4}
    )
    found: Any = read_promise(promise.to_dict(histogram))
    assert found.thresholds(histogram) == promise.thresholds(histogram)


def test_how_many_rows_a_person_has_tells_nothing_where_people_of_a_bucket_are_alike_in_it(
    tmp_path: Path,
) -> None:
    """It rules out sets of other sizes, which such buckets do not hold; other columns are looked at."""
    rng = np.random.default_rng(4)
    values = [f"v{i}" for i in range(8)]
    n_visits = rng.integers(1, 4, 400)
    rows = [(i, own) for i, n in enumerate(n_visits) for own in rng.choice(values, n, replace=False)]
    who = [i for i, _ in rows]
    ward, age = rng.choice(["N", "S", "E", "W"], 400), rng.integers(18, 95, 400)
    table = pa.table(
        {
            "patient": who,
            "age": age[who],
            "ward": ward[who],
            "disease": [own for _, own in rows],
        }
    )
    people = gather_persons(table, unit="patient", values="disease", count="visits")
    quasi = ["age", "ward", "visits"]
    found = find_giveaways(people, quasi, values)
    assert [(one.column, one.is_loose) for one in found] == [("visits", False)]
    own = policy(
        tmp_path / "r",
        people,
        columns={"unit": "patient", "quasi": quasi, "sensitive": values},
        promise={"kind": "sets", "default": 0.6, "alike": ["visits"]},
    )
    dalenius.publish(own)
    told = people.append_column(
        "code", pc.binary_join_element_wise(people["visits"].cast("string"), people["v0"].cast("string"), "")
    )
    assert "code" in {one.column for one in find_giveaways(told, [*quasi, "code"], values, ["visits"])}
