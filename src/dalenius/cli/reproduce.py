"""`dalenius reproduce NAME | --list`: a table or figure of the papers, ours beside theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from dalenius.cli.declared import Argument, Option
from dalenius.cli.output import JsonOption, print_json, progress_bar, say, say_table
from dalenius.errors import InputError, did_you_mean
from dalenius.pages.pictures import refuse_other_formats
from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.experiment import draw, refuse_table, watched
from dalenius.reproduce.microdata import UNUSABLE, prepare, using


def command(
    name: Annotated[str | None, Argument(help="The experiment; --list shows them.")] = None,
    as_json: JsonOption = False,
    every: Annotated[bool, Option("--list", help="List the experiments.")] = False,
    chart: Annotated[Path | None, Option(help="Draw it into this .svg or .png file.")] = None,
    data: Annotated[
        Path | None,
        Option(help="The folder of the public files (UCI Adult, Census-Income KDD); prepares them."),
    ] = None,
) -> int:
    """Make a table or figure of the papers again, and say where ours differs."""
    if data is not None and name is None and not every:
        return _prepare(data, as_json=as_json)
    if every or name is None:
        return _list(as_json=as_json)
    if name not in EXPERIMENTS:
        raise InputError(f"experiment {name!r} is unknown; {did_you_mean(name, EXPERIMENTS)}")
    experiment = EXPERIMENTS[name]
    if chart is not None:
        refuse_other_formats(chart)
        refuse_table(experiment)
    if data is not None:
        _refuse_others(prepare(data))
    with progress_bar("steps") as progress, watched(progress), using(data):
        outcome = experiment.run()
    if chart is not None:
        draw(experiment, outcome, chart)
    if as_json:
        print_json({"experiment": experiment.name, "title": experiment.title, **outcome.to_dict()})
        return 0
    say(experiment.title)
    say_table(outcome.columns, [[_cell(cell) for cell in row] for row in outcome.rows])
    say(f"the paper: {outcome.stated}\nours:      {outcome.differs}\ndata:      {outcome.data}")
    return 0


def _prepare(folder: Path, *, as_json: bool) -> int:
    """Make the experiments' files from the public ones; 1 if one of them cannot be made."""
    said = prepare(folder)
    if as_json:
        print_json({"folder": str(folder), "files": said})
    else:
        say_table(["file", "what became of it"], [list(entry) for entry in said.items()])
        say(f"`dalenius reproduce NAME --data {folder}` runs an experiment on them")
    return 1 if any(text.startswith("cannot") for text in said.values()) else 0


def _refuse_others(said: dict[str, str]) -> None:
    """An experiment on other rows would be compared with the papers as if it were on theirs."""
    for name, text in said.items():
        if text.startswith(UNUSABLE):
            raise InputError(f"{name} {text}", hint=f"remove {name}, and it is made from the public files")


def _list(*, as_json: bool) -> int:
    if as_json:
        print_json({"experiments": [{"name": e.name, "title": e.title} for e in EXPERIMENTS.values()]})
    else:
        say_table(["experiment", "what it makes"], [[e.name, e.title] for e in EXPERIMENTS.values()])
    return 0


def _cell(cell: str | float) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)
