"""People whose sensitive value a release tells for certain: counted, and never published silently."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dalenius
from dalenius import Policy, PolicyError, PromiseNotMet
from dalenius.cli.main import run
from dalenius.engines.base import silent
from dalenius.mechanisms.bucketize.apply import Layout, count_alike
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.perturb import mechanism as perturbing
from dalenius.pages.words import say_plan
from dalenius.randomness import Randomness
from dalenius.release.folder import sha256
from dalenius.studio import work
from dalenius.studio.project import Project
from dalenius.tables.histogram import Histogram


def table() -> pa.Table:
    """60 people, half of them with a cold, which their policy calls no secret."""
    values = ["Cold"] * 30 + ["Flu"] * 10 + ["HIV"] * 10 + ["Gout"] * 10
    return pa.table({"age": [row * 7 % 60 for row in range(60)], "disease": values})


def policy(tmp_path: Path, **more: Any) -> Policy:
    return Policy.from_dict(
        {
            "source": table(),
            "release": str(tmp_path / "out"),
            "columns": {"quasi": ["age"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": 0.4, "values": {"Cold": 1.0}},
            **more,
        }
    )


def certain_people(release: Path) -> int:
    """By hand: the people of buckets that hold one value."""
    rows = pq.read_table(release / "st.parquet").to_pylist()
    values: dict[int, Counter[str]] = {}
    for row in rows:
        values.setdefault(row["bucket"], Counter())[row["disease"]] += row["count"]
    return sum(sum(found.values()) for found in values.values() if len(found) == 1)


def test_nobody_is_published_outright_without_a_word(tmp_path: Path) -> None:
    planned = dalenius.plan(policy(tmp_path)).outright
    assert planned
    with pytest.raises(PromiseNotMet, match=f"{planned} people are published outright") as refused:
        dalenius.publish(policy(tmp_path))
    assert "--yes" in (refused.value.hint or "")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("word", ["argument", "policy"])
def test_with_a_word_the_count_is_stated_and_checked(tmp_path: Path, word: str) -> None:
    own = policy(tmp_path, **({"outright": "allowed"} if word == "policy" else {}))
    release = dalenius.publish(own, yes=word == "argument")
    counted = certain_people(release.path)
    assert counted == dalenius.plan(own).outright == release.manifest["outright"]
    verdict = release.verify()
    assert verdict.ok
    assert verdict.outright == counted


def test_a_manifest_that_hides_them_is_caught(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path), yes=True)
    file = release.path / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"outright": 0}))
    verdict = dalenius.verify(release.path)
    assert [check.name for check in verdict.checks if not check.ok] == ["published outright"]


def test_releases_that_say_nothing_of_it_still_open(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path), yes=True)
    file = release.path / "manifest.json"
    old = json.loads(file.read_text())
    del old["outright"]
    file.write_text(json.dumps(old))
    verdict = dalenius.verify(release.path)
    assert verdict.ok
    assert verdict.outright == certain_people(release.path)
    assert sha256(file)


def test_thresholds_below_one_publish_nobody_outright(tmp_path: Path) -> None:
    own = policy(tmp_path, promise={"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}})
    release = dalenius.publish(own)
    assert release.manifest["outright"] == 0
    assert certain_people(release.path) == 0


def test_the_word_must_be_known(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="outright: True is unknown"):
        policy(tmp_path, outright=True)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=3), st.data())
def test_the_plan_counts_what_the_buckets_will_hold(
    shape: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Against the dealt buckets, for any loads, valid or not."""
    sizes = dict(shape)
    n_values = data.draw(st.integers(1, 4))
    columns = []
    for size, b in sorted(sizes.items()):
        places = st.lists(st.integers(0, size * b), min_size=n_values - 1, max_size=n_values - 1)
        cuts = sorted(data.draw(places))
        columns.append([high - low for low, high in zip([0, *cuts], [*cuts, size * b], strict=True)])
    plan = BucketPlan(
        method="",
        sizes=tuple(sorted(sizes)),
        n_buckets=tuple(sizes[size] for size in sorted(sizes)),
        loads=tuple(zip(*columns, strict=True)),
        lower_bound=None,
    )
    held: dict[int, list[int]] = {}
    for bucket, _, count in (
        entry
        for batch in Layout.shuffled(plan, Randomness.seeded(1)).contents()
        for entry in zip(*(column.tolist() for column in batch), strict=True)
    ):
        held.setdefault(bucket, []).append(count)
    assert plan.count_certain() == sum(counts[0] for counts in held.values() if len(counts) == 1)


def test_the_commands_say_how_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(), tmp_path / "t.parquet")
    text = (
        'source = "t.parquet"\nrelease = "t.release"\n[columns]\nquasi = ["age"]\nsensitive = ["disease"]\n'
        '[promise]\nkind = "f-privacy"\ndefault = 0.4\nvalues = {{ Cold = {cold} }}\n'
    )
    exposing, safe = tmp_path / "exposing.toml", tmp_path / "safe.toml"
    exposing.write_text(text.format(cold="1.0"))
    safe.write_text(text.format(cold="0.7"))

    def told(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
        code = run([*map(str, arguments), "--json"])
        return code, json.loads(capsys.readouterr().out)

    planned = told("plan", exposing)[1]["outright"]
    assert planned > 0
    code, refused = told("publish", exposing)
    assert code == 3
    assert f"{planned} people" in refused["error"]["message"]
    assert run(["plan", str(exposing)]) == 0
    assert f"{planned} people are published outright" in capsys.readouterr().out
    compared = told("compare", exposing, safe, "--queries", "5", "--seeds", "1")[1]
    standing = {one["policy"]: one for one in compared["policies"]}
    assert standing["exposing"]["outright"] == planned
    assert not standing["exposing"]["best"]
    assert not standing["exposing"]["frontier"]
    assert standing["safe"]["outright"] == 0
    assert {"exposing"} == {
        row["policy"] for row in compared["results"] if row["metric"] == "outright" and row["value"]
    }
    assert told("publish", exposing, "--yes")[1]["outright"] == planned
    assert told("verify", tmp_path / "t.release")[1]["outright"] == planned
    assert run(["report", str(tmp_path / "t.release"), "--output", str(tmp_path / "r.html")]) == 0
    assert f"{planned} people are published outright" in (tmp_path / "r.html").read_text()


def test_values_that_are_written_in_several_ways_are_refused_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket of HIV, hiv and Hiv tells everybody in it, and each of them is within its threshold."""
    monkeypatch.chdir(tmp_path)
    tests = ["HIV", "hiv", "Hiv ", "negative"] * 60
    rows = [f"{20 + i % 50},{test}" for i, test in enumerate(tests)]
    Path("t.csv").write_text("\n".join(["age,test", *rows]) + "\n", encoding="utf-8")
    assert run(["init", "t.csv", "--sensitive", "test", "--quasi", "age"]) == 0
    assert run(["plan", "t.toml"]) == 0
    assert "180 people have a value of 'test' that is written in several ways" in capsys.readouterr().out
    assert run(["publish", "t.toml"]) == 3
    refused = capsys.readouterr().err
    assert "180 people" in refused
    assert 'test = { map = "values.csv" } under [recode]' in " ".join(refused.split())
    assert "--yes" in refused
    assert "hiv" not in refused.lower()
    assert not Path("t.release").exists()
    assert run(["publish", "t.toml", "--draft"]) == 0
    assert run(["publish", "t.toml", "--yes"]) == 0
    by_bucket: dict[int, set[str]] = {}
    for row in pq.read_table("t.release/st.parquet").to_pylist():
        by_bucket.setdefault(row["bucket"], set()).add(row["test"].strip().lower())
    assert any(held == {"hiv"} for held in by_bucket.values())  # what the refusal is for
    capsys.readouterr()
    (Path("t.toml")).write_text(
        Path("t.toml").read_text(encoding="utf-8").replace("t.release", "u.release")
        + '\n[recode]\ntest = { map = "test.csv" }\n',
        encoding="utf-8",
    )
    mapped = "from,to\nHIV,HIV\nhiv,HIV\nHiv ,HIV\nnegative,negative\n"
    Path("test.csv").write_text(mapped, encoding="utf-8")
    assert run(["plan", "t.toml", "--json"]) in (0, 3)
    assert json.loads(capsys.readouterr().out).get("spellings", 0) == 0


def test_a_code_of_the_secret_beside_it_is_refused_without_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buckets of four diagnoses hide nothing where the row beside them has the diagnosis's code."""
    monkeypatch.chdir(tmp_path)
    codes = {"E11": "Diabetes", "J10": "Flu", "B20": "HIV", "M10": "Gout"}
    rows = [f"{20 + i % 50},{code},{codes[code]}" for i, code in enumerate([*codes] * 60)]
    Path("t.csv").write_text("\n".join(["age,icd,diagnosis", *rows]) + "\n", encoding="utf-8")
    assert run(["init", "t.csv", "--sensitive", "diagnosis", "--quasi", "age,icd"]) == 0
    assert run(["plan", "t.toml"]) == 0
    told = "'icd' gives 'diagnosis' away: 100 % of the people who share a cell of it share the value too"
    assert told in capsys.readouterr().out
    assert run(["publish", "t.toml"]) == 3
    refused = capsys.readouterr().err
    assert told in refused
    assert "--yes" in refused
    assert not any(cell in refused for cell in [*codes, *codes.values()])
    assert not Path("t.release").exists()
    assert run(["publish", "t.toml", "--yes"]) == 0
    capsys.readouterr()
    roles = ["--sensitive", "diagnosis", "--quasi", "age", "--dropped", "icd"]
    assert run(["init", "t.csv", *roles, "--out", "u.toml", "--json"]) == 0
    capsys.readouterr()
    assert run(["plan", "u.toml", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["giveaways"] == []


@pytest.mark.parametrize(
    ("promise", "mechanism"),
    [
        ('kind = "l-diversity"\nl = 3', 'kind = "bucketize"'),
        ('kind = "rho-privacy"\nrho1 = "max"\nrho2 = "1/4"', 'kind = "perturb"\nmethod = "paper"'),
    ],
)
def test_a_column_that_is_certain_counts_though_the_whole_value_is_not(
    promise: str, mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Everybody of a bucket has HIV, in different stages."""
    rows = [f"{20 + i % 50},{'Flu' if i % 40 == 0 else 'HIV'},{i // 40}" for i in range(1_200)]
    (tmp_path / "t.csv").write_text("\n".join(["age,disease,stage", *rows]) + "\n", encoding="utf-8")
    policy = tmp_path / "t.toml"
    policy.write_text(
        'source = "t.csv"\nrelease = "t.release"\n[columns]\nquasi = ["age"]\nsensitive = ["disease", '
        f'"stage"]\n[promise]\n{promise}\n[mechanism]\n{mechanism}\n',
        encoding="utf-8",
    )

    def told(*arguments: str | Path) -> dict[str, Any]:
        run([*map(str, arguments), "--json"])
        return dict(json.loads(capsys.readouterr().out))

    planned = told("plan", policy)["outright"]
    assert planned > 100
    assert f"{planned:,} people" in told("publish", policy)["error"]["message"]
    assert told("publish", policy, "--yes")["outright"] == planned
    found = told("verify", tmp_path / "t.release")
    assert found["ok"]
    assert found["outright"] == planned
    if "bucketize" in mechanism:
        rows_of: dict[int, set[str]] = {}
        for row in pq.read_table(tmp_path / "t.release" / "st.parquet").to_pylist():
            rows_of.setdefault(row["bucket"], set()).add(row["disease"])
        buckets = pq.read_table(tmp_path / "t.release" / "qit.parquet")["bucket"].to_pylist()
        assert planned == sum(len(rows_of[bucket]) == 1 for bucket in buckets)
        run(["plan", str(policy)])
        assert f"{planned:,} people are in a bucket whose people are all alike" in capsys.readouterr().out


def test_one_refusal_tells_all_that_a_word_would_let_pass(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who says yes to people who are certain has not said yes to a code of the secret beside it."""
    codes = {"E11": "Diabetes", "J10": "Flu", "B20": "HIV", "M10": "Gout"}
    cells = [f"{code},{disease},{1 + (disease == 'Gout')}" for code, disease in codes.items()]
    rows = [f"{20 + i % 50},{cell}" for i, cell in enumerate(cells * 60)]
    (tmp_path / "t.csv").write_text("\n".join(["age,icd,diagnosis,stage", *rows]) + "\n", encoding="utf-8")
    policy = tmp_path / "t.toml"
    text = (
        'source = "t.csv"\nrelease = "t.release"\n[columns]\nquasi = ["age", "icd"]\n'
        'sensitive = ["diagnosis", "stage"]\n[promise]\nkind = "l-diversity"\nl = 2\n'
    )
    policy.write_text(text, encoding="utf-8")
    assert run(["publish", str(policy)]) == 3
    refused = capsys.readouterr().err
    assert "people are published outright" in refused
    assert "'icd' gives" in refused
    policy.write_text('outright = "allowed"\n' + text, encoding="utf-8")
    assert run(["publish", str(policy)]) == 3
    refused = capsys.readouterr().err
    assert "published outright" not in refused
    assert "'icd' gives" in refused
    policy.write_text(text, encoding="utf-8")
    state = Project(folder=tmp_path, uploads=tmp_path).state()
    with pytest.raises(PromiseNotMet, match="'icd' gives"):  # the studio's box is about the count
        work.publish(str(policy), state, True, "somebody", silent)
    assert not (tmp_path / "t.release").exists()


def stages() -> pa.Table:
    """39 of 40 people have HIV, in thirty stages, and nothing beside that tells which."""
    age = np.random.default_rng(3).permutation(1_200)
    return pa.table(
        {
            "age": age,
            "disease": ["Flu" if i % 40 == 0 else "HIV" for i in range(1_200)],
            "stage": [i // 40 for i in range(1_200)],
        }
    )


def test_fakes_hide_no_column_that_all_of_a_bucket_have_in_common(tmp_path: Path) -> None:
    """Real or fake, everything that a bucket lists is HIV; "nobody" was said of buckets with fakes."""
    own = Policy.from_dict(
        {
            "source": stages(),
            "release": str(tmp_path / "out"),
            "columns": {"quasi": ["age"], "sensitive": ["disease", "stage"]},
            "promise": {"kind": "l-diversity", "l": 3},
            "mechanism": {"kind": "bucketize", "fakes": 1},
        }
    )
    planned = dalenius.plan(own)
    assert planned.outright is None
    assert "depends on the coins" in " ".join(say_plan("bucketize", "optimal", planned))
    with pytest.raises(PromiseNotMet, match="people are published outright"):
        dalenius.publish(own)
    release = dalenius.publish(own, yes=True)
    held: dict[int, set[str]] = {}
    for row in pq.read_table(release.path / "st.parquet").to_pylist():
        held.setdefault(row["bucket"], set()).add(row["disease"])
    buckets = pq.read_table(release.path / "qit.parquet")["bucket"].to_pylist()
    assert release.manifest["outright"] == sum(len(held[bucket]) == 1 for bucket in buckets) > 500
    assert release.verify().ok


def test_who_is_refused_for_one_of_several_columns_is_told_of_limits_for_its_cells(tmp_path: Path) -> None:
    """Lower limits for all columns together cost much, and help one of them only by the way."""
    own: dict[str, Any] = {
        "source": stages(),
        "release": str(tmp_path / "out"),
        "columns": {"quasi": ["age"], "sensitive": ["disease", "stage"]},
        "promise": {"kind": "f-privacy", "default": 0.3},
    }
    with pytest.raises(PromiseNotMet, match="people are published outright") as refused:
        dalenius.publish(Policy.from_dict(own))
    assert "`groups`" in str(refused.value.hint)
    own["promise"]["groups"] = {"hiv": {"values": [{"disease": "HIV"}], "at_most": "0.98"}}
    assert dalenius.publish(Policy.from_dict(own)).manifest["outright"] == 0


def test_people_who_all_have_a_value_that_is_no_secret_are_counted_after_buckets_traded(
    tmp_path: Path,
) -> None:
    """Buckets of sets trade at random: what was counted before they did was not what they then held."""
    age = np.random.default_rng(4).permutation(400)
    cells = {"flu": [i % 5 != 0 for i in range(400)], "hiv": [i % 7 == 0 for i in range(400)]}
    own = Policy.from_dict(
        {
            "source": pa.table({"age": age, **cells, "gout": [i % 3 == 0 for i in range(400)]}),
            "release": str(tmp_path / "out"),
            "columns": {"quasi": ["age"], "sensitive": ["flu", "hiv", "gout"]},
            "promise": {"kind": "sets", "default": {"times": 4, "plus": 0.1}, "values": {"flu": 1.0}},
        }
    )
    with pytest.raises(PromiseNotMet, match="people are published outright"):
        dalenius.publish(own)
    release = dalenius.publish(own, yes=True)
    held: dict[int, list[dict[str, Any]]] = {}
    for row in pq.read_table(release.path / "st.parquet").to_pylist():
        held.setdefault(row["bucket"], []).append(row)
    certain = sum(
        sum(row["count"] for row in rows)
        for rows in held.values()
        if len(rows) == 1 or any(all(row[name] for row in rows) for name in ("flu", "hiv", "gout"))
    )
    assert release.manifest["outright"] == certain > 0
    assert release.verify().ok


@given(
    st.lists(st.integers(1, 3), min_size=2, max_size=5),
    st.integers(0, 2),
    st.lists(st.integers(0, 1), min_size=5, max_size=5),
)
def test_what_is_certain_among_fakes_is_what_every_choice_of_them_has(
    counts: list[int], n_fakes: int, cells: list[int]
) -> None:
    """Beside trying out which of the values that are listed once are fakes."""
    once = [code for code, count in enumerate(counts) if count == 1]
    if len(once) < n_fakes or sum(counts) == n_fakes:
        return
    ways = [set(range(len(counts))) - set(fakes) for fakes in combinations(once, n_fakes)]
    possible = set().union(*ways)
    is_certain = len(possible) == 1 or len({cells[code] for code in possible}) == 1
    listed = (np.ones(len(counts), dtype=int), np.arange(len(counts)), np.array(counts))
    found = count_alike([listed], [np.array(cells)], only_yes=False, n_fakes=n_fakes)
    assert found == (sum(counts) - n_fakes if is_certain else 0)


@pytest.mark.parametrize("word", ["seed", "draft", "yes"])
def test_whoever_may_go_on_is_told_all_the_same(
    word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a release that is for nobody, and after the word, everything is told all the same."""
    codes = {"E11": "Diabetes", "J10": "Flu", "B20": "H.I.V.", "M10": "HIV"}
    rows = [f"{20 + i % 50},{code},{codes[code]}" for i, code in enumerate([*codes] * 60)]
    (tmp_path / "t.csv").write_text("\n".join(["age,icd,diagnosis", *rows]) + "\n", encoding="utf-8")
    policy = str(tmp_path / "t.toml")
    roles = ["--sensitive", "diagnosis", "--quasi", "age,icd", "--out", policy]
    assert run(["init", str(tmp_path / "t.csv"), *roles]) == 0
    capsys.readouterr()
    said = {"seed": ["--seed", "1"], "draft": ["--draft"], "yes": ["--yes"]}[word]
    assert run(["publish", policy, *said]) == 0
    printed = capsys.readouterr().out
    assert "warning: 120 people have a value of 'diagnosis' that is written in several ways" in printed
    assert "warning: 'icd' gives 'diagnosis' away" in printed
    assert "H.I.V." not in printed
    again = ["--again"] if word == "yes" else []
    (tmp_path / "t.release").rename(tmp_path / "first") if word != "draft" else None
    assert run(["publish", policy, *said, *again, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["spellings"], [one["column"] for one in told["giveaways"]]) == (120, ["icd"])


@pytest.mark.parametrize(
    ("cells", "n_people"),
    [
        (["H.I.V.", "HIV", "H I V", "hiv\u200b", "Flu"], 4),
        (["pos", "positive", "POS.", "neg", "negative"], 5),
        (["Diabe\u0300te", "Diab\u00e8te", "Diabete", "Sida", "Grippe"], 3),
        (["<50", "< 50", "50", "50.0", "200"], 4),
        (["E11.9", "E119", "E11.8", "J10", "J11"], 2),
        (["O+", "O-", "AB+", "1.5 mg", "15 mg"], 0),
        (["-5", "5", "1-5", "15", "1.5"], 0),
        ([0.1 + 0.2, 0.3, 0.31, float("nan"), None], 2),
        (["Type 1", "Type 2", "Type-1", "Crohn's", "Crohn\u2019s"], 4),
        (["HIV+", "HIV pos.", "HIV (positive)", "HIV-neg", "HIV negative"], 5),
        (["HIV", "\u041d\u0406V", "\u0397IV", "\u041d\u0435\u0442", "\u043d\u0435\u0442"], 5),
        (["1,5", "1.5", "1,50", "1,500", "1500"], 3),
        (["Hypos", "Hy pos", "compositive", "tripos", "neg"], 0),
        (["Diabetes mellitus, type 2", "Type 2 diabetes mellitus", "Type 1 diabetes mellitus"], 2),
        (["no pain, fever", "pain, no fever", "fever (high)", "high fever", "fever"], 2),
        ([None, "", "N/A", "none", "unknown"], 3),
    ],
)
def test_values_are_alike_as_one_would_say_them(cells: list[Any], n_people: int) -> None:
    counted = Histogram.of(("test",), {(cell,): 1 for cell in cells})
    assert counted.n_spelt_otherwise == n_people


def test_nan_is_one_cell_where_it_is_certain(tmp_path: Path) -> None:
    """Of people whose stage is unknown a bucket was thought to hold different stages."""
    age = np.random.default_rng(6).permutation(600)
    stage = [float("nan") if i % 8 else 1.5 * (i % 5) for i in range(600)]
    table = pa.table({"age": age, "ward": [f"w{i // 20}" for i in range(600)], "stage": stage})
    columns = {"quasi": ["age"], "sensitive": ["ward", "stage"]}
    promise = {"kind": "f-privacy", "default": {"times": 3, "plus": 0.05}}
    own = Policy.from_dict(
        {"source": table, "release": str(tmp_path / "out"), "columns": columns, "promise": promise}
    )
    release = dalenius.publish(own, yes=True)
    assert (dalenius.plan(own).outright or 0) == release.manifest["outright"] > 0
    assert release.verify().ok
    assert perturbing._is_certain([("w1", float("nan")), ("w2", float("nan"))])


def two_of_a_series(tmp_path: Path, kind: str) -> tuple[Path, list[int]]:
    """Two batches, or two dates, that tell some people's value; and of how many people each of them does."""
    everybody, counted = table().append_column("id", [list(range(60))]), []
    for part in (everybody if kind == "dates" else everybody.slice(0, 50), everybody.slice(10)):
        own = policy(
            tmp_path,
            source=part,
            columns={"unit": "id", "quasi": ["age"], "sensitive": ["disease"]},
            series={"kind": kind},
            ledger={"path": str(tmp_path / "ledger")},
            outright="allowed",
        )
        counted.append(certain_people(dalenius.publish(own, seed=1).path))
    return tmp_path / "out", counted


@pytest.mark.parametrize("kind", ["batches", "dates"])
def test_a_series_tells_what_its_releases_tell(tmp_path: Path, kind: str) -> None:
    """The people of batches are different ones; at the last date everybody is in who is told of at all."""
    out, counted = two_of_a_series(tmp_path, kind)
    assert min(counted) > 0
    found = dalenius.verify(out)
    assert found.ok
    assert found.outright == (sum(counted) if kind == "batches" else counted[-1])
    (file,) = out.glob("*-2/qit.parquet")
    pq.write_table(pq.read_table(file), file)  # the same rows in other bytes
    found = dalenius.verify(out)
    assert not found.ok
    assert found.outright == (counted[0] if kind == "batches" else 0), "nobody is counted in what is damaged"


def test_values_of_sets_that_are_written_in_several_ways_are_refused_too(tmp_path: Path) -> None:
    """They are names of columns: each had a limit of its own, and buckets held all of them."""
    rng = np.random.default_rng(3)
    names = ["HIV", "H.I.V. ", "Flu"]
    columns = {name: rng.random(200) < 0.2 for name in names}
    given: dict[str, Any] = {
        "source": pa.table({"age": rng.integers(20, 80, 200), **columns}),
        "columns": {"quasi": ["age"], "sensitive": names},
        "promise": {"kind": "sets", "default": {"times": 2, "plus": 0.02}},
    }
    with pytest.raises(PromiseNotMet, match=r"columns 'HIV', 'H.I.V. ' are of values that are written"):
        dalenius.publish(policy(tmp_path, **given))
    given["source"] = given["source"].rename_columns(["age", "HIV", "Gout", "Flu"])
    given["columns"] = {"quasi": ["age"], "sensitive": ["HIV", "Gout", "Flu"]}
    dalenius.publish(policy(tmp_path, **given))
