"""What an experiment gives, and what is drawn of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dalenius.display import drawing_library
from dalenius.errors import InputError
from dalenius.pages.pictures import COLOURS
from dalenius.reproduce import experiment as module
from dalenius.reproduce.experiment import (
    Axis,
    Experiment,
    Line,
    Reproduction,
    column_counts,
    draw_errors,
    draw_seconds,
    refuse_table,
    track,
    watched,
)
from tests.reproduce.conftest import ADULT, OCCUPATIONS

OUTCOME = Reproduction(
    columns=("method", "x", "y"),
    rows=(("a", 1, 2.5), ("b", 2, 3.5)),
    stated="what was stated",
    differs="how it differs",
    data="of which data",
)


def test_rows_are_named_by_their_columns() -> None:
    assert OUTCOME.to_dict() == {
        "rows": [{"method": "a", "x": 1, "y": 2.5}, {"method": "b", "x": 2, "y": 3.5}],
        "stated": "what was stated",
        "differs": "how it differs",
        "data": "of which data",
    }
    assert json.loads(json.dumps(OUTCOME.to_dict())) == OUTCOME.to_dict()
    short = Reproduction(columns=("a", "b"), rows=((1,),), stated="", differs="", data="")
    with pytest.raises(ValueError, match="zip"):
        short.to_dict()


def test_an_axis_is_called_as_its_column_unless_it_has_a_label() -> None:
    assert Axis("x").title == "x"
    assert Axis("x", "how many").title == "how many"
    assert Axis("x").scale == "linear"


def test_values_are_counted_commonest_first(made_up: Path) -> None:
    assert made_up.is_dir()
    assert column_counts("adult.csv", "occupation") == ADULT
    assert column_counts("kdd_workers.csv.gz", "occupation_code") == OCCUPATIONS
    assert column_counts("adult.csv", "marital-status") == tuple(
        sorted(column_counts("adult.csv", "marital-status"), reverse=True)
    )


def test_a_missing_file_is_named(made_up: Path) -> None:
    (made_up / "adult.csv").unlink()
    with pytest.raises(InputError, match=r"needs adult\.csv, and .* does not have it"):
        column_counts("adult.csv", "occupation")


def test_who_stops_watching_sees_no_more() -> None:
    seen: list[int] = []
    with watched(lambda _, done, __: seen.append(done)):
        for item in track([1, 2, 3], "x"):
            if item == 2:
                break  # in the middle of the second
    assert seen == [0, 1]
    list(track([1], "x"))
    assert seen == [0, 1]


def test_pictures_of_errors_and_times_have_their_columns() -> None:
    errors = draw_errors(Axis("L"), "data", columns=3)
    assert (errors.y.column, errors.error, errors.series) == ("mean RE, %", "± s.e.", "method")
    assert (errors.panel, errors.columns) == ("data", 3)
    seconds = draw_seconds(Axis("rows"), "search")
    assert (seconds.y.column, seconds.y.scale, seconds.panel) == ("processor seconds", "log", "table")
    with pytest.raises(InputError, match="a-table is a table; it has no picture"):
        refuse_table(Experiment("a-table", "A table", lambda: OUTCOME))
    assert refuse_table(Experiment("a", "A", lambda: OUTCOME, seconds)) is seconds


@pytest.mark.parametrize(
    ("scale", "values", "shown"),
    [
        ("log", [1, 10, 100], {"values": [1, 10, 100], "format": "~s"}),
        ("log", list(range(1, 10)), {"tickMinStep": 1, "format": ",d"}),
        ("linear", [1, 2, 3], {"tickMinStep": 1, "format": ",d"}),
        ("linear", [1.5, 2.0], {}),
    ],
)
def test_marks_are_at_whole_numbers_and_at_few_numbers_on_a_log(
    scale: str, values: list[float], shown: dict[str, object]
) -> None:
    line = Line(x=Axis("x", scale=scale), y=Axis("y"), series="s")  # type: ignore[arg-type]
    axis = module._x_axis(line, [{"x": value} for value in values]).to_dict()
    assert axis == shown


def test_series_have_a_colour_each_and_dashes_where_colours_end() -> None:
    names = [f"s{i}" for i in range(len(COLOURS) + 2)]
    encoded = module._series(drawing_library(), names)
    colours = encoded["color"].to_dict()["scale"]
    assert colours["domain"] == names
    assert colours["range"][0] == colours["range"][len(COLOURS)]
    dashes = encoded["strokeDash"].to_dict()["scale"]["range"]
    assert dashes == [[1, 0]] * len(COLOURS) + [[5, 3]] * 2


def test_cells_that_are_drawn_have_plain_names() -> None:
    line = Line(x=Axis("x: [s]"), y=Axis("y, %"), series="a.b", panel="p")
    row = {"x: [s]": 1, "y, %": 2.0, "a.b": 3, "p": 4, "left out": 5}
    assert module._drawn_cells(line, row) == {"x": 1, "y": 2.0, "series": "3", "panel": "4"}


def test_scales_begin_at_zero_where_heights_are_compared() -> None:
    altair = drawing_library()
    assert module._scale(altair, "linear", zero=True).to_dict() == {"zero": True}
    assert module._scale(altair, "linear").to_dict() == {"zero": False}
    assert module._scale(altair, "log", zero=True).to_dict() == {"type": "log"}
    assert module._scale(altair, "log").to_dict()["padding"] == 12
