"""Views of alpha-beta: the rows that could be count too, so that SUM(weight) is what `ask` answers."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import dalenius
from dalenius.errors import InputError
from dalenius.mechanisms.tuples import export as tuple_weights
from tests.export.server import query_all
from tests.mechanisms.alphabeta.releases import DOMAINS, policy, survey

KINDS = ["one", "frapp", "shaped", "copies", "second"]
CONDITIONS = [
    "TRUE",
    "age > 99",
    "ill = 'flu'",
    "ill IS NULL AND sex = 'F'",
    "age BETWEEN 25 AND 30 AND (ill = 'hiv' OR zip < 7)",
    "zip < age AND sex <> 'M'",
]
NOISE = "column,value,share\nill,flu,0.4\nill,cold,0.3\nill,hiv,0.2\nill,NULL,0.1\n"


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dalenius.Release]:
    folder = tmp_path_factory.mktemp("views")
    (folder / "noise.csv").write_text(NOISE)
    for seed in (1, 2):
        dalenius.publish(policy(folder / "series", views=3), seed=seed)
    twice = pa.concat_tables([survey(200), survey(200)])
    copies = {"table": twice, "duplicates": "copies", "domains": {**DOMAINS, "copy": "1..9"}}
    return {
        "one": dalenius.publish(policy(folder / "one"), seed=3),
        "frapp": dalenius.publish(policy(folder / "frapp", method="frapp"), seed=4),
        "shaped": dalenius.publish(policy(folder / "shaped", noise=str(folder / "noise.csv")), seed=5),
        "copies": dalenius.publish(policy(folder / "copies", **copies), seed=6),
        "second": dalenius.open_release(folder / "series" / "view-2"),
        "series": dalenius.open_release(folder / "series"),
    }


def asked(release: dalenius.Release, condition: str) -> tuple[float, float]:
    counted, total = release.ask(f"SELECT COUNT(*), SUM(age) FROM t WHERE {condition}").rows
    assert counted.estimate is not None
    return counted.estimate, 0.0 if total.estimate is None else total.estimate  # a SUM over nobody is NULL


def added_up(view: str, condition: str) -> str:
    return f"SELECT coalesce(sum(weight), 0), coalesce(sum(weight * age), 0) FROM {view} WHERE {condition}"


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_weights_in_duckdb(views: dict[str, dalenius.Release], kind: str, tmp_path: Path) -> None:
    views[kind].export(tmp_path / "out.duckdb")
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        for condition in CONDITIONS:
            found = connection.execute(added_up("weighted", condition)).fetchone()
            assert found == pytest.approx(asked(views[kind], condition), rel=1e-9, abs=1e-6), condition
        (about,) = connection.execute("SELECT text FROM about WHERE topic = 'how good it is'").fetchall()
        assert ("different rows" in about[0]) == (kind != "copies")


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_weights_in_postgresql(views: dict[str, dalenius.Release], kind: str, postgres: str) -> None:
    view = views[kind].export(postgres, name=f"view_{kind}").view
    sums = query_all(postgres, [added_up(str(view), condition) for condition in CONDITIONS])
    for condition, found in zip(CONDITIONS, sums, strict=True):
        assert found == pytest.approx(asked(views[kind], condition), rel=1e-9, abs=1e-6), condition


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_columns_give_the_same_sums(
    views: dict[str, dalenius.Release], kind: str, tmp_path: Path
) -> None:
    """The columns left out are summed over, so the view crosses 40 rows instead of 4,800."""
    views[kind].export(tmp_path / "out.duckdb", columns=["sex", "age"])
    with duckdb.connect(str(tmp_path / "out.duckdb"), read_only=True) as connection:
        names = [column for column, *_ in connection.execute("DESCRIBE weighted").fetchall()]
        assert names == ["age", "sex", "weight"]
        for condition in ("TRUE", "sex = 'F'", "age > 30 AND sex = 'M'"):
            found = connection.execute(added_up("weighted", condition)).fetchone()
            assert found == pytest.approx(asked(views[kind], condition), rel=1e-9, abs=1e-6), condition
        shown = len(connection.execute("FROM view").fetchall())
        assert len(connection.execute("FROM weighted").fetchall()) == shown + 40


def test_a_domain_too_large_to_add_up(
    views: dict[str, dalenius.Release], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuple_weights, "MOST_TUPLES", 4_799)
    with pytest.raises(InputError, match=r"4,800 different rows could be") as caught:
        views["one"].export(tmp_path / "out.duckdb")
    assert "--column" in (caught.value.hint or "")
    assert "zip (30)" in (caught.value.hint or "")
    views["one"].export(tmp_path / "out.duckdb", columns=["age", "sex", "zip"])


def test_what_cannot_be_chosen(views: dict[str, dalenius.Release], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'age'"):
        views["one"].export(tmp_path / "out.duckdb", columns=["agee"])
    with pytest.raises(InputError, match="is a series of releases"):
        views["series"].export(tmp_path / "out.duckdb")
    assert list(tmp_path.iterdir()) == []
