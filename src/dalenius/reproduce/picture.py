"""Drawing an experiment's rows."""

from __future__ import annotations

from pathlib import Path

from dalenius.charts import COLOURS, drawing_library, save
from dalenius.errors import InputError
from dalenius.reproduce.experiment import Experiment, Reproduction


def draw(experiment: Experiment, outcome: Reproduction, path: Path) -> None:
    """Draw the outcome into an .svg or .png file."""
    line = experiment.picture
    if line is None:
        raise InputError(f"{experiment.name} is a table; it has no picture")
    altair = drawing_library()
    scale = altair.Scale(type="log") if line.is_log else altair.Scale(zero=True)
    chart = (
        altair.Chart(altair.Data(values=outcome.to_dict()["rows"]), title=experiment.title)
        .mark_line(point=True)
        .encode(
            x=altair.X(f"{line.x}:Q", title=line.x_title, scale=altair.Scale(zero=False)),
            y=altair.Y(f"{line.y}:Q", title=line.y_title, scale=scale),
            color=altair.Color(f"{line.series}:N", title=None, scale=altair.Scale(range=list(COLOURS))),
            shape=altair.Shape(f"{line.series}:N", legend=None),
        )
        .properties(width=420, height=280)
    )
    save(chart, path)
