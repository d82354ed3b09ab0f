"""Every table and figure is listed, runs from the command line, and is on the page with its picture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dalenius.cli.main import run
from dalenius.errors import InputError
from dalenius.reproduce.catalogue import EXPERIMENTS, PAPERS
from dalenius.reproduce.census import kdd
from dalenius.reproduce.experiment import (
    DIAGONAL,
    Axis,
    Experiment,
    Line,
    Reproduction,
    Row,
    Scale,
    _drawn_cells,
    draw,
    track,
    watched,
)

DOCS = Path(__file__).parent.parent.parent / "docs"
RESULTS = {
    "bucketization": ("table2", "table5", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7"),
    "suppression": ("fig1", "fig4", "fig5", "fig6", "fig7", "fig8a", "fig8b"),
    "perturbation": ("table1", "table2", "table3", "fig1", "fig2", "fig3", "fig4", "fig5", "fig6"),
    "alphabeta": ("table1", "fig2", "fig3"),
}
"""Every table and figure of the papers that holds results or is worked out."""


def test_the_list_has_every_table_and_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "--list", "--json"]) == 0
    listed = {entry["name"] for entry in json.loads(capsys.readouterr().out)["experiments"]}
    assert listed >= {f"{paper}-{part}" for paper, parts in RESULTS.items() for part in parts}
    assert len(EXPERIMENTS) == sum(map(len, PAPERS.values())), "two experiments have one name"


def test_the_page_shows_every_experiment_with_a_small_picture() -> None:
    page = (DOCS / "reproduce.md").read_text(encoding="utf-8")
    for name, experiment in EXPERIMENTS.items():
        assert f"`dalenius reproduce {name}`" in page
        if experiment.picture is not None:
            assert f"(figures/{name}.svg)" in page
            assert 2_000 < (DOCS / "figures" / f"{name}.svg").stat().st_size < 200_000


@pytest.mark.parametrize("name", ["bucketization-fig5", "alphabeta-fig3", "suppression-fig6"])
def test_without_the_data_it_says_what_is_missing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(tmp_path))
    kdd.cache_clear()
    from dalenius.reproduce.alphabeta import all_queries

    all_queries.cache_clear()
    assert run(["reproduce", name]) == InputError("").exit_code
    said = capsys.readouterr().err
    assert "does not have it" in said
    assert "dalenius reproduce --data FOLDER" in said
    assert "archive.ics.uci.edu" in said


def test_progress_is_shown_to_who_watches_and_to_nobody_else() -> None:
    seen: list[tuple[str, int, int | None]] = []
    with watched(lambda *step: seen.append(step)):
        assert list(track([7, 8], "numbers")) == [7, 8]
    assert list(track([7], "more")) == [7]
    assert seen == [("numbers", 0, 2), ("numbers", 1, 2), ("numbers", 2, 2)]


def outcome(*rows: tuple[str, str, float, float]) -> Reproduction:
    columns = ("method: a.b", "panel, %", "x", "y [s]")
    return Reproduction(columns=columns, rows=rows, stated="-", differs="-", data="-")


def picture(scale: Scale = "linear", **more: Any) -> Experiment:
    line = Line(x=Axis("x", "how many", scale), y=Axis("y [s]", "seconds"), series="method: a.b", **more)
    return Experiment(name="drawn", title="A title", run=outcome, picture=line)


def test_pictures_have_their_words_and_all_their_series(tmp_path: Path) -> None:
    many = outcome(*[(f"method {i}", "left", float(x), x + i) for i in range(9) for x in (1, 2)])
    draw(picture("log"), many, tmp_path / "many.svg")
    text = (tmp_path / "many.svg").read_text()
    assert all(word in text for word in ("A title", "how many", "seconds", "method 0", "method 8"))
    assert 'stroke-dasharray="5,3"' in text  # more series than colours


def test_panels_get_their_names_and_a_cloud_its_diagonal(tmp_path: Path) -> None:
    points = outcome(
        ("queries", "left", 1.0, 2.0), (DIAGONAL, "left", 0.0, 0.0), (DIAGONAL, "left", 9.0, 9.0),
        ("queries", "right", 3.0, 2.0), (DIAGONAL, "right", 0.0, 0.0), (DIAGONAL, "right", 9.0, 9.0),
    )  # fmt: skip
    draw(picture(panel="panel, %", mark="points", own_axes=("x",)), points, tmp_path / "cloud.svg")
    text = (tmp_path / "cloud.svg").read_text()
    assert all(word in text for word in ("left", "right", "queries", DIAGONAL))
    assert text.count("mark-line") >= 2


def test_bars_show_two_standard_errors(tmp_path: Path) -> None:
    line = Line(x=Axis("x"), y=Axis("y"), error="e", series="s")
    rows: tuple[Row, ...] = (("a", 1.0, 5.0, 1.0), ("a", 2.0, 9.0, 0.5))
    found = Reproduction(columns=("s", "x", "y", "e"), rows=rows, stated="-", differs="-", data="-")
    assert [_drawn_cells(line, row) for row in found.to_dict()["rows"]] == [
        {"x": 1.0, "y": 5.0, "series": "a", "low": 3.0, "high": 7.0},
        {"x": 2.0, "y": 9.0, "series": "a", "low": 8.0, "high": 10.0},
    ]
    draw(Experiment(name="bars", title="-", run=outcome, picture=line), found, tmp_path / "bars.svg")
    assert "mark-rule" in (tmp_path / "bars.svg").read_text()


def test_what_cannot_be_drawn_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(tmp_path))  # the work would say that data are missing
    for name, file, message in (("table5", "x.svg", "is a table"), ("fig5", "x.pdf", "is drawn as .svg")):
        assert run(["reproduce", f"bucketization-{name}", "--chart", file]) == 2
        assert message in capsys.readouterr().err


def test_a_table_has_no_picture(tmp_path: Path) -> None:
    experiment = EXPERIMENTS["perturbation-table1"]
    with pytest.raises(InputError, match="is a table"):
        draw(experiment, experiment.run(), tmp_path / "table.svg")


@pytest.mark.parametrize(
    "name",
    [
        "bucketization-fig2",
        "bucketization-fig3",
        "suppression-fig4",
        "suppression-fig8a",
        "suppression-fig8b",
        "suppression-linear",
        "alphabeta-views",
    ],
)
@pytest.mark.usefixtures("made_up")
def test_what_is_drawn_are_columns_of_the_outcome(name: str) -> None:
    """Numbers along both axes and no empty panel, in experiments that are cheap on made-up data."""
    experiment = EXPERIMENTS[name]
    line, outcome = experiment.picture, experiment.run()
    assert line is not None
    drawn = [line.x.column, line.y.column, line.series, *filter(None, [line.panel, line.error])]
    assert set(drawn) <= set(outcome.columns)
    rows = outcome.to_dict()["rows"]
    assert all(isinstance(row[axis.column], int | float) for row in rows for axis in (line.x, line.y))
    assert all(row[axis.column] > 0 for row in rows for axis in (line.x, line.y) if axis.scale == "log")
    assert outcome.stated
    assert outcome.differs
    assert outcome.data
