"""Whole tables drawn from releases: their law against enumeration, what is kept, and what is refused."""

from __future__ import annotations

import ast
import itertools
import json
import math
import shutil
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.api import Release
from dalenius.cli.main import run
from dalenius.errors import InputError
from dalenius.export import complete
from dalenius.export.complete import draw_copies, write_copies
from dalenius.export.fitting import fit_copies
from dalenius.export.stata import stata_names
from dalenius.mechanisms.perturb.channel import Channel
from dalenius.mechanisms.perturb.estimate.drawing import draw_part
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.drawing import tables
from dalenius.mechanisms.tuples.drawing.evidence import Insertions, Replacements
from dalenius.mechanisms.tuples.drawing.tables import complete_records, complete_view
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from tests.conftest import PROJECT

RELEASES = PROJECT / "tests" / "releases"
FAR = 6.0
"""Standard deviations: one false alarm in 5·10⁸."""


def test_buckets_keep_their_people_and_values() -> None:
    stored = StoredRelease.open(RELEASES / "bucketize")
    quasi, (sensitive,) = stored.columns("quasi"), stored.columns("sensitive")
    qit = stored.read("qit", (*quasi, "bucket"))
    st = stored.read("st", ("bucket", sensitive, "count")).to_pylist()
    wanted = Counter({(row["bucket"], row[sensitive]): row["count"] for row in st})
    first, second = draw_copies(stored, 2)
    for copy in (first, second):
        assert copy.column_names == [*quasi, sensitive]
        assert copy.select(list(quasi)).equals(qit.select(list(quasi)))
        pairs = zip(qit.column("bucket").to_pylist(), copy.column(sensitive).to_pylist(), strict=True)
        assert Counter(pairs) == wanted
    assert not first.equals(second)


def test_every_matching_of_a_bucket_is_equally_likely() -> None:
    stored = StoredRelease.open(RELEASES / "bucketize")
    (sensitive,) = stored.columns("sensitive")
    bucket = np.array(stored.read("qit", ("bucket",)).column("bucket"))
    st = stored.read("st", ("bucket", sensitive, "count")).to_pylist()
    chosen = next(row for row in st if (bucket == row["bucket"]).sum() >= 3)
    size, n = int((bucket == chosen["bucket"]).sum()), 600
    person = int(np.flatnonzero(bucket == chosen["bucket"])[0])
    share = chosen["count"] / size
    hits = sum(copy.column(sensitive)[person].as_py() == chosen[sensitive] for copy in draw_copies(stored, n))
    assert abs(hits - n * share) <= FAR * math.sqrt(n * share * (1 - share))


@pytest.mark.parametrize(("n_people", "n_fakes"), [(600, 1), (1_500, 1), (600, 2)])
def test_releases_with_fakes_are_completed_without_them(n_people: int, n_fakes: int, tmp_path: Path) -> None:
    """With too few people for effects, and with them; every value of a bucket at most as often as listed."""
    rng = np.random.default_rng(n_people)
    illness = [f"d{k}" for k in rng.choice(7, n_people, p=[0.2, 0.2, 0.16, 0.14, 0.12, 0.1, 0.08])]
    policy = {
        "source": pa.table({"age": rng.integers(20, 60, n_people), "illness": illness}),
        "release": tmp_path / "f.release",
        "columns": {"quasi": ["age"], "sensitive": ["illness"]},
        "promise": {"kind": "l-diversity", "l": 3},
        "mechanism": {"kind": "bucketize", "fakes": n_fakes},
    }
    stored = StoredRelease.open(dalenius.publish(dalenius.Policy.from_dict(policy), seed=2).path)
    bucket = stored.read("qit", ("bucket",)).column("bucket").to_pylist()
    entries = stored.read("st", ("bucket", "illness", "count")).to_pylist()
    listed = Counter({(row["bucket"], row["illness"]): row["count"] for row in entries})
    n_copies, total = 20, Counter[str]()
    for copy in draw_copies(stored, n_copies, seed=4):
        values = copy.column("illness").to_pylist()
        held = Counter(zip(bucket, values, strict=True))
        assert all(listed[place] >= n for place, n in held.items())
        assert len(values) == n_people
        total.update(values)
    for value, n in Counter(illness).items():  # which the manifest states
        n_listed = sum(row["count"] for row in entries if row["illness"] == value)
        assert abs(total[value] / n_copies - n) < 0.03 * n_people
        assert total[value] <= n_copies * n_listed
    assert "are fakes" in write_copies(stored, tmp_path / "copies", copies=1).assumes


def test_beside_fakes_copies_have_as_many_of_each_value_as_people_have(tmp_path: Path) -> None:
    """Which the manifest states, whatever effects were drawn; which are fakes is left to chance."""
    rng, n_people, n_copies = np.random.default_rng(0), 1_500, 12
    age = rng.integers(20, 60, n_people)
    logits = np.log([0.2, 0.2, 0.16, 0.14, 0.12, 0.1, 0.08]) + np.outer(
        (age - 40) / 12, [1, -1, 0.5, -0.5, 0, 0, 0]
    )
    illness = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    policy = {
        "source": pa.table(
            {"age": age, "sex": rng.choice(["F", "M"], n_people), "illness": illness.astype(str)}
        ),
        "release": tmp_path / "f.release",
        "columns": {"quasi": ["age", "sex"], "sensitive": ["illness"]},
        "promise": {"kind": "l-diversity", "l": 3},
        "mechanism": {"kind": "bucketize", "fakes": 1},
    }
    stored = StoredRelease.open(dalenius.publish(dalenius.Policy.from_dict(policy), seed=2).path)
    drawn = [copy.column("illness").to_numpy().astype(int) for copy in draw_copies(stored, n_copies, seed=4)]
    totals = np.stack([np.bincount(own, minlength=7) for own in drawn])
    assert totals.mean(axis=0) == pytest.approx(np.bincount(illness), abs=0.01 * n_people)
    assert totals.std(axis=0).max() < 0.012 * n_people


def test_of_many_numbers_copies_keep_what_the_columns_explain(tmp_path: Path) -> None:
    """Dealt to the people of a bucket at random, salaries would hardly differ between departments."""
    rng, n_people = np.random.default_rng(6), 4_000
    older = rng.integers(0, 2, n_people)
    salary = np.round(np.exp(10.5 + 0.5 * older + 0.3 * rng.normal(size=n_people)), 2)
    policy = {
        "source": pa.table({"department": np.array(["a", "b"])[older], "salary": salary}),
        "release": tmp_path / "s.release",
        "columns": {"quasi": ["department"], "sensitive": ["salary"]},
        "promise": {"kind": "l-diversity", "l": 10},
        "mechanism": {"kind": "bucketize"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=2)
    found = []
    for copy in release.complete(8, seed=3):
        drawn = copy.column("salary").to_numpy()
        is_older = copy.column("department").to_numpy(zero_copy_only=False) == "b"
        assert sorted(drawn) == sorted(salary)
        found.append(drawn[is_older].mean() - drawn[~is_older].mean())
    assert np.mean(found) == pytest.approx(salary[older == 1].mean() - salary[older == 0].mean(), rel=0.2)
    fitted = release.fit("salary ~ department", copies=4)  # not refused for its many values
    low, high = fitted.interval()["department[T.b]"]
    assert 0 < low < high
    assert "how large a number is" in write_copies(release.stored, tmp_path / "copies", copies=1).assumes


def exact_first(published: list[int], gamma: float) -> float:
    """The chance that the first record had the value 0, over all tables and shares with a uniform prior."""
    weights = [0.0, 0.0]
    for original in itertools.product(range(2), repeat=len(published)):
        kept = sum(x == y for x, y in zip(original, published, strict=True))
        ones = sum(original)
        weights[original[0]] += gamma**kept / math.comb(len(original), ones)
    return weights[0] / sum(weights)


@pytest.mark.parametrize("published", [[0, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0, 1]])
def test_perturbed_values_are_drawn_from_their_posterior(published: list[int]) -> None:
    channel, n = Channel(codes=(0, 1), gamma=Fraction(3)), 4000
    stream = Randomness.seeded(5).stream("complete")
    hits = sum(int(draw_part(channel, np.array(published), stream)[0]) == 0 for _ in range(n))
    truth = exact_first(published, 3.0)
    spread = FAR * math.sqrt(n * truth * (1 - truth))
    assert abs(hits - n * truth) <= spread
    naive = 3 / 4 if published[0] == 0 else 1 / 4  # shares taken as known and even
    if abs(naive - truth) > 0.08:
        assert abs(hits - n * naive) > spread, "the test would not notice"


def test_perturbed_releases_are_completed() -> None:
    stored = StoredRelease.open(RELEASES / "perturb")
    (copy,) = draw_copies(stored, 1, seed=1)
    data = stored.read("data", stored.columns("quasi"))
    assert copy.select(data.column_names).equals(data)
    (again,) = draw_copies(stored, 1, seed=1)
    assert copy.equals(again)


@pytest.mark.parametrize("kind", ["parquet", "csv", "stata"])
def test_files_are_written_with_what_they_are(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if kind == "stata":
        pytest.importorskip("pandas")
    target = tmp_path / "copies"
    arguments = [
        "complete",
        str(RELEASES / "bucketize"),
        "--to",
        str(target),
        "--copies",
        "2",
        "--format",
        kind,
    ]
    assert run([*arguments, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {path.name for path in target.iterdir()} == set(told["files"])
    assert "draws, not\npeople" in (target / "README.md").read_text(encoding="utf-8")
    first = target / told["files"][0]
    if kind != "stata":
        read = pq.read_table if kind == "parquet" else arrow_csv.read_csv
        assert read(first).num_rows == told["rows"]
    assert run(arguments) == 2, "nothing is overwritten"


def test_long_work_shows_where_it_is(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int | None]] = []
    stored = StoredRelease.open(RELEASES / "bucketize")
    write_copies(stored, tmp_path / "copies", copies=3, progress=lambda *step: seen.append(step))
    assert seen == [("learning from the release", 0, None), *(("drawing", done, 3) for done in range(4))]


def test_names_that_stata_cannot_have_are_told(tmp_path: Path) -> None:
    """Without pandas' own warning, which names no file and is an error here."""
    pandas = pytest.importorskip("pandas")
    names = ["marital-status", "marital status", "long", "str7", "größe", "µ²", "a" * 40, "a" * 41]
    quasi = {name: [k % 2 for k in range(120)] for name in names}
    policy = {
        "source": pa.table({**quasi, "2nd illness": ["flu", "cold", "none", "gout"] * 30}),
        "release": str(tmp_path / "r"),
        "columns": {"quasi": names, "sensitive": ["2nd illness"]},
        "promise": {"kind": "f-privacy", "default": 0.6},
        "mechanism": {"kind": "bucketize"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1).stored
    done = write_copies(release, tmp_path / "copies", copies=1, kind="stata", seed=1)
    readme = (tmp_path / "copies" / "README.md").read_text(encoding="utf-8")
    read = pandas.read_stata(tmp_path / "copies" / done.files[0])
    assert sorted(read.columns) == sorted(stata_names([*names, "2nd illness"]).values())
    assert '"marital-status" is `marital_status`' in readme
    assert "gr\\u00f6\\u00dfe" not in readme  # who keeps their name is not listed
    assert 't["_2nd_illness"]' in readme


def test_a_stranger_writes_neither_formulas_nor_code(tmp_path: Path) -> None:
    """A column's name in the README's lines, and texts that a spreadsheet would run."""
    name = '=x"]); import os #`'
    table = pa.table(
        {
            "note": [("=1+1", "-", "plain", None)[i % 4] for i in range(120)],
            "code": pa.array([(b"=1", b"\xff")[i % 2] for i in range(120)]),
            name: [f"@{i // 3 % 3}" if i % 12 else "sure" for i in range(120)],
        }
    )
    policy = {
        "source": table,
        "release": tmp_path / "t.release",
        "columns": {"quasi": ["note", "code"], "sensitive": [name]},
        "promise": {"kind": "f-privacy", "default": {"times": 4}},
        "mechanism": {"kind": "bucketize"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1)
    write_copies(StoredRelease.open(release.path), tmp_path / "copies", copies=2, kind="csv")
    read = arrow_csv.read_csv(tmp_path / "copies" / "copy-001.csv")
    assert read.column_names == ["note", "code", f"'{name}"]
    assert set(read.column("code").to_pylist()) == {"'=1", r"\xFF"}
    assert set(read.column("note").to_pylist()) == {"'=1+1", "'-", "plain", ""}
    assert set(read.column(2).to_pylist()) == {"'@0", "'@1", "'@2", "sure"}
    text = (tmp_path / "copies" / "README.md").read_text(encoding="utf-8")
    python = ast.parse(text.partition("```python\n")[2].partition("```")[0])
    assert sum(isinstance(node, ast.Import) for node in ast.walk(python)) == 1, "our own"
    assert f"'{name}" in [node.value for node in ast.walk(python) if isinstance(node, ast.Constant)]
    assert "`'=x\\\"]); import os #\\x60`" in text.partition("```r\n")[2], "one name in R too"


def test_who_is_certain_is_told_to_be_no_draw(tmp_path: Path) -> None:
    table = pa.table({"age": list(range(60)), "disease": ["Flu"] * 40 + ["Cold", "Cough"] * 10})
    policy = {
        "source": table,
        "release": tmp_path / "t.release",
        "columns": {"quasi": ["age"], "sensitive": ["disease"]},
        "promise": {"kind": "f-privacy", "default": "0.5", "values": {"Flu": 1}},
        "mechanism": {"kind": "bucketize"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1, yes=True)
    stored = StoredRelease.open(release.path)
    assert stored.manifest.outright
    write_copies(stored, tmp_path / "copies", copies=2)
    text = (tmp_path / "copies" / "README.md").read_text(encoding="utf-8")
    assert f"Of {stored.manifest.outright} rows the release leaves nothing open" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bucketize", "--to", "x", "--copies", "0"], "copies: 0"),
        (["bucketize", "--to", "x", "--format", "xls"], "format 'xls' is unknown"),
    ],
)
def test_what_cannot_be_had_is_refused(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["complete", str(RELEASES / arguments[0]), *arguments[1:]]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["complete", "export"])
def test_nothing_is_written_into_the_release_itself(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    release = tmp_path / "r"
    shutil.copytree(RELEASES / "bucketize", release)
    for inside in (release / "copies", tmp_path / "x" / ".." / "r" / "tables"):
        (tmp_path / "x").mkdir(exist_ok=True)
        assert run([command, str(release), "--to", str(inside)]) == 2
        assert "is inside the release" in capsys.readouterr().err
    assert run(["verify", str(release)]) == 0


def test_a_mechanism_that_says_no_law_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "find_room", lambda *_: None)
    with pytest.raises(InputError, match="bucketize cannot be completed"):
        draw_copies(StoredRelease.open(RELEASES / "bucketize"), 1)


def with_wards(table: pa.Table) -> pa.Table:
    wards = np.random.default_rng(9).integers(1, 51, table.num_rows)
    return table.add_column(2, "ward", pa.array(wards))


def published_tuples(folder: Path, table: pa.Table, section: dict[str, object]) -> Release:
    """One view, in which a row of the table is as many as those that were added."""
    copies = {"copy": "1..6"} if section.get("duplicates") == "copies" else {}
    policy = {
        "source": table,
        "release": folder / "r",
        "columns": {"quasi": ["age", "sex", "ward"], "sensitive": ["disease"]},
        "promise": {"kind": "d-gamma-privacy", "k": 1, "gamma": "1/2"},
        "domains": {"age": "0..119", "ward": "1..50", **copies},
        "mechanism": {"kind": "alpha-beta", "domains": ["sex", "disease"], **section},
    }
    return dalenius.publish(dalenius.Policy.from_dict(policy), seed=4)


@pytest.mark.parametrize("method", ["alpha-beta", "frapp", "copies"])
def test_views_are_completed_row_by_row(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the command line, the same with the same seed; no copy is the view, and none has copies' numbers."""
    section: dict[str, object] = {"method": "frapp"} if method == "frapp" else {"duplicates": "distinct"}
    table = with_wards(association(600))
    if method == "copies":
        section, table = {"duplicates": "copies"}, pa.concat_tables([table, table.slice(0, 200)])
    release = published_tuples(tmp_path, table, section)
    arguments = ["complete", str(release.path), "--copies", "3", "--seed", "5", "--json", "--to"]
    tables = []
    for target in (tmp_path / "one", tmp_path / "two"):
        assert run([*arguments, str(target)]) == 0
        told = json.loads(capsys.readouterr().out)
        tables.append([pq.read_table(target / f"copy-00{k}.parquet") for k in (1, 2, 3)])
    assert all(one.equals(two) for one, two in zip(*tables, strict=True))
    assert not tables[0][0].equals(tables[0][1])
    sizes = [copy.num_rows for copy in tables[0]]
    assert told["rows"] == round(sum(sizes) / 3)
    if method == "frapp":
        assert sizes == [600] * 3
    else:
        assert np.mean(sizes) == pytest.approx(table.num_rows, rel=0.15)
    for copy in tables[0]:
        assert copy.column_names == ["age", "sex", "ward", "disease"]
        assert copy.schema.types == table.schema.types
    readme = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert "Rows are draws, not\npeople" in readme
    assert "Every row was drawn at random, in all its columns" in readme
    assert "the other columns\nare as it publishes them" not in readme
    shared = set(map(tuple, pq.read_table(tmp_path / "one" / "copy-001.parquet").to_pandas().to_numpy()))
    shown = set(
        map(tuple, release.stored.read("view", ("age", "sex", "ward", "disease")).to_pandas().to_numpy())
    )
    assert shared & shown
    assert shared - shown
    assert shown - shared


@pytest.mark.parametrize("is_changing", [False, True])
def test_views_of_a_series_are_completed_one_by_one(is_changing: bool, tmp_path: Path) -> None:
    """But of a table that changes only the first one; and no series as a whole."""
    table = with_wards(association(600))
    policy = {
        "source": table,
        "release": tmp_path / "r",
        "columns": {"quasi": ["age", "sex", "ward"], "sensitive": ["disease"]},
        "promise": {"kind": "d-gamma-privacy", "d": "1/80", "gamma": "1/2"},
        "domains": {
            "age": "0..119",
            "ward": "1..50",
            "sex": ["F", "M"],
            "disease": [f"d{k}" for k in range(4)],
        },
        "mechanism": {"kind": "alpha-beta", "views": 2, "changing": is_changing, "duplicates": "distinct"},
    }
    for _ in range(2):
        dalenius.publish(dalenius.Policy.from_dict(policy))
    with pytest.raises(InputError, match="a series cannot be completed as a whole"):
        dalenius.open_release(tmp_path / "r").complete(1)
    for number in (1, 2):
        view = dalenius.open_release(tmp_path / "r" / f"view-{number}")
        if is_changing and number == 2:
            with pytest.raises(InputError, match="table that changes cannot be completed"):
                view.complete(1)
            continue
        assert view.complete(1, seed=1)[0].num_rows == pytest.approx(600, rel=0.4)


def test_a_view_that_keeps_next_to_nothing_is_refused() -> None:
    domain = Domain.of({"a": range(10), "b": range(10)})
    codes, one = domain.unpack(np.arange(50)[:, None]), np.ones(50)
    told = Insertions(
        n_people=1e9, deviation=1e9, n_noise=50.0, ratio=one + 1e-8, shown=one / 2, absent=one, cost=1e-8
    )
    with pytest.raises(InputError, match="leaves open whether the table has 1,000,000,000 rows"):
        complete_view(domain, codes, told, lambda tuples: np.ones(len(tuples[0])), None, ("a", "b"))


def test_a_view_of_too_many_rows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "MOST_ROWS", 49)
    domain = Domain.of({"a": range(10), "b": range(10)})
    codes, one = domain.unpack(np.arange(50)[:, None]), np.ones(50)
    told = Insertions(
        n_people=9, deviation=9, n_noise=50.0, ratio=one * 2, shown=one / 2, absent=one / 2, cost=0.5
    )
    with pytest.raises(InputError, match="shows 50 rows; tables are drawn of at most 49"):
        complete_view(domain, codes, told, lambda tuples: np.ones(len(tuples[0])), None, ("a", "b"))
    replaced = Replacements(n_people=50, kept=0.5, other=0.5 / 99)
    with pytest.raises(InputError, match="shows 50 rows; tables are drawn of at most 49"):
        complete_records(domain, codes, replaced, ("a", "b"))


def test_copies_of_a_view_are_pooled_to_what_the_table_has(tmp_path: Path) -> None:
    table = with_wards(association(2_400))
    release = published_tuples(tmp_path, table, {"duplicates": "distinct"})
    copies = release.complete(8, seed=2)
    men = [np.mean(np.array(copy.column("sex")) == "M") for copy in copies]
    own = float(np.mean(np.array(table.column("sex")) == "M"))
    pooled = dalenius.pool(men, [m * (1 - m) / 2_400 for m in men])
    ((low, high),) = pooled.interval(0.999)
    assert low < own < high
    assert high - low < 0.3
    fitted = release.fit("disease == 'd0' ~ age + sex", kind="logistic", copies=8, seed=1)
    original = fit_copies([table, table], "disease == 'd0' ~ age + sex", kind="logistic")
    low, high = fitted.interval(0.999)["age"]
    assert low < original.coefficients["age"] < high
    assert fitted.interval()["age"][0] > 0, "what goes together is seen"


def test_views_without_a_sensitive_column_and_with_shaped_noise_are_completed(tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_text("[sex]\nF = 0.8\nM = 0.2\n", encoding="utf-8")
    policy = {
        "source": association(600).select(["age", "sex"]).append_column("k", pa.array(range(600))),
        "release": tmp_path / "r",
        "columns": {"quasi": ["age", "sex", "k"]},
        "promise": {"kind": "d-gamma-privacy", "k": 1, "gamma": "1/2"},
        "domains": {"k": "0..2999"},
        "mechanism": {
            "kind": "alpha-beta",
            "domains": ["age", "sex"],
            "noise": str(tmp_path / "noise.toml"),
            "duplicates": "distinct",
        },
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=4)
    write_copies(release.stored, tmp_path / "copies", copies=2, seed=1)
    copies = [pq.read_table(path) for path in sorted((tmp_path / "copies").glob("*.parquet"))]
    for copy in copies:
        assert copy.num_rows == pytest.approx(600, rel=0.2)
        men = np.mean(np.array(copy.column("sex")) == "M")
        assert men == pytest.approx(0.5, abs=0.12), "the noise has a fifth"


def test_results_are_pooled_by_rubins_rules() -> None:
    """By hand: mean 2, within 0.5, between 1, total 0.5 + 4/3."""
    pooled = dalenius.pool([[1.0], [2.0], [3.0]], [0.5, 0.5, 0.5])
    assert pooled.estimate == (2.0,)
    assert pooled.std_error[0] == pytest.approx(math.sqrt(0.5 + 4 / 3))
    assert pooled.degrees_of_freedom[0] == pytest.approx(2 * (1 + 0.5 / (4 / 3)) ** 2)
    (low, high), *_ = pooled.interval()
    assert low < 2 < high
    assert dalenius.pool([1.0, 1.0], [0.0, 0.0]).degrees_of_freedom == (math.inf,)
    with pytest.raises(InputError, match="at least 2 copies"):
        dalenius.pool([[1.0]], [[[1.0]]])


def association(n: int = 2_400) -> pa.Table:
    """A disease that goes with age and sex."""
    rng = np.random.default_rng(8)
    age, sex = rng.integers(20, 80, n), rng.choice(["F", "M"], n)
    logits = np.outer((age - 50) / 15, [1.0, 0.0, -0.6, 0.0]) + np.outer(sex == "M", [0.0, 0.8, 0.0, -0.5])
    disease = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return pa.table({"age": age, "sex": sex, "disease": [f"d{k}" for k in disease]})


def test_a_regression_on_copies_finds_what_the_original_has(tmp_path: Path) -> None:
    table = association()
    policy = {
        "source": table,
        "release": str(tmp_path / "r"),
        "columns": {"quasi": ["age", "sex"], "sensitive": ["disease"]},
        "promise": {"kind": "f-privacy", "default": {"times": 2, "plus": "1/10"}},
        "mechanism": {"kind": "bucketize"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=3)
    fitted = release.fit("disease == 'd0' ~ age + sex", kind="logistic", copies=6, seed=1)
    original = fit_copies([table, table], "disease == 'd0' ~ age + sex", kind="logistic")
    low, high = fitted.interval(0.99)["age"]
    assert low < original.coefficients["age"] < high
    assert fitted.coefficients["age"] > 0.6 * original.coefficients["age"] > 0.02
    assert fitted.pooled.std_error[1] > original.pooled.std_error[1]  # what is hidden adds to the error
    assert "logistic regression" in str(fitted.show())


@pytest.mark.parametrize(
    ("formula", "kind", "part"),
    [
        ("age", "linear", "needs a ~"),
        ("age ~ nobody", "linear", "cannot be fitted"),
        ("age ~ sex", "ordinal", "must be linear or logistic"),
    ],
)
def test_formulas_that_cannot_be_fitted_are_refused(formula: str, kind: Any, part: str) -> None:
    with pytest.raises(InputError, match=part):
        fit_copies([association(50)] * 2, formula, kind)


@pytest.mark.parametrize("n_values", [600, 601])
def test_regressions_are_refused_where_values_are_too_many_to_learn_what_goes_with_them(
    n_values: int, tmp_path: Path
) -> None:
    n = 1_300
    table = pa.table({"age": [20 + i % 60 for i in range(n)], "code": [f"c{i % n_values}" for i in range(n)]})
    policy = {
        "source": table,
        "release": str(tmp_path / "many"),
        "columns": {"quasi": ["age"], "sensitive": ["code"]},
        "promise": {"kind": "f-privacy", "default": 0.5},
        "mechanism": {"kind": "bucketize"},
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1)
    if n_values == 600:
        assert next(draw_copies(release.stored, 1, seed=1, to_fit=True)).num_rows == n
        return
    with pytest.raises(InputError, match="more than 600") as refused:
        release.fit("age ~ C(code == 'c1')", copies=2)
    assert "recode" in str(refused.value.hint)
    assert next(iter(release.complete(1))).num_rows == n


@pytest.mark.parametrize(
    ("estimates", "covariances", "part"),
    [
        ([], [], "at least 2 copies"),
        ([1.0], [1.0], "at least 2 copies"),
        ([[[1]], [[2]]], [1, 1], "at least 2 copies"),
        ([[1, 2], [1]], [[1, 1], [1]], "as many numbers"),
        (["a", "b"], [1, 1], "estimates: of every copy as many numbers"),
        (1.0, 2.0, "as many numbers"),
        ([1, math.nan], [1, 1], "estimates: some are no finite numbers"),
        ([1, 2], [1, math.inf], "covariances: some are no finite numbers"),
        ([1, 2], [-5, -5], "a variance is negative"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_results_that_cannot_be_pooled_are_refused(estimates: Any, covariances: Any, part: str) -> None:
    with pytest.raises(InputError, match=part):
        dalenius.pool(estimates, covariances)


@pytest.mark.parametrize("confidence", [0, 1, 95, -1, math.nan])
def test_an_interval_of_no_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(InputError, match="must be between 0 and 1"):
        dalenius.pool([1.0, 2.0], [1.0, 1.0]).interval(confidence)


@pytest.mark.parametrize("n_rows", [1, 2])
@pytest.mark.filterwarnings("error")
def test_a_regression_of_as_many_coefficients_as_rows_is_refused(n_rows: int) -> None:
    """Its errors were infinite or no numbers, and numpy wrote of it to stderr."""
    table = pa.table({"age": [30, 50][:n_rows], "sex": ["F", "M"][:n_rows]})
    with pytest.raises(InputError, match="none with an error"):
        fit_copies([table, table], "age ~ sex")
