"""Draws the pictures of the documentation and writes docs/reproduce.md: `make figures`.

With names of experiments as arguments, only these are run and drawn, and the page is left alone.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow.csv

import dalenius
from dalenius.cli.demo import POLICY
from dalenius.demo_data import hospital
from dalenius.errors import InputError
from dalenius.report.plan_chart import draw_plan
from dalenius.reproduce.catalogue import EXPERIMENTS, PAPERS
from dalenius.reproduce.experiment import Experiment, Reproduction
from dalenius.reproduce.picture import draw

FIGURES = Path(__file__).parent / "figures"
PAGE = Path(__file__).parent / "reproduce.md"
MOST_ROWS = 40
"""Longer tables are not printed under a picture."""

INTRODUCTION = """# The papers' tables and figures, made again

Every table and figure of the four papers that holds results, ours beside what the paper states in words or
numbers, and where they differ. `dalenius reproduce NAME` runs one of them and prints its numbers (`--json`
for machines, `--chart FILE` for the picture); the functions behind them take parameters for larger runs.
The data are real and not part of the project: the environment variable DALENIUS_DATA names their folder, and
an experiment that needs them says so where they are missing. CENSUS, the data of two papers, is not to be
had; KDD Census-Income stands in for it, or a histogram of the stated shape. Everything random is seeded.
Times are processor time, measured on a shared machine.

This page is written by `make figures` (docs/figures.py), with the numbers of that run.

```console
$ dalenius reproduce --list
```
"""

LEFT_OUT = {
    "bucketization": "Table 3 lists notation and table 4 the parameters, which the figures use as they are.",
    "suppression": "Table 1 lists notation; figures 2 and 3 are the algorithms, run in `suppression-fig1`.",
    "perturbation": "Table 4 lists notation.",
    "αβ": "Figure 1 and tables 2 and 3 are a diagram, notation and a classification.",
}


def main() -> None:
    """The plan of the tour, and every experiment."""
    FIGURES.mkdir(exist_ok=True)
    if names := sys.argv[1:]:
        for name in names:
            _run(EXPERIMENTS[name])
        return
    _draw_plan()
    outcomes = {name: _run(experiment) for name, experiment in EXPERIMENTS.items()}
    if missing := [name for name, outcome in outcomes.items() if outcome is None]:
        print(f"{PAGE.name} is left as it is: {len(missing)} experiments could not run", file=sys.stderr)
        return
    PAGE.write_text(_page({name: o for name, o in outcomes.items() if o is not None}), encoding="utf-8")


def _draw_plan() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.csv.write_csv(hospital(), Path(folder) / "patients.csv")
        (Path(folder) / "patients.toml").write_text(POLICY, encoding="utf-8")
        draw_plan(dalenius.plan(Path(folder) / "patients.toml"), FIGURES / "plan.svg")


def _run(experiment: Experiment) -> Reproduction | None:
    """The outcome, drawn; None if something that it needs is not there."""
    print(f"{experiment.name}: {experiment.title}", file=sys.stderr)
    try:
        outcome = experiment.run()
    except InputError as error:
        print(f"  skipped: {error.message}; {error.hint}", file=sys.stderr)
        return None
    if experiment.picture is not None:
        draw(experiment, outcome, FIGURES / f"{experiment.name}.svg")
    return outcome


def _page(outcomes: dict[str, Reproduction]) -> str:
    parts = [INTRODUCTION]
    for paper, experiments in PAPERS.items():
        parts.append(f"## {paper}\n")
        parts += [_section(experiment, outcomes[experiment.name]) for experiment in experiments]
        parts.append(f"{LEFT_OUT[paper.split('(')[1].rstrip(')')]}\n")
    return "\n".join(parts)


def _section(experiment: Experiment, outcome: Reproduction) -> str:
    lines = [f"### {experiment.title}\n", f"`dalenius reproduce {experiment.name}`\n"]
    if experiment.picture is not None:
        lines.append(f"![{experiment.title}](figures/{experiment.name}.svg)\n")
    lines.append(
        f"- **The paper:** {outcome.stated}.\n- **Ours:** {outcome.differs}.\n- **Data:** {outcome.data}.\n"
    )
    if experiment.picture is None:
        lines.append(_table(outcome))
    elif len(outcome.rows) <= MOST_ROWS:
        lines.append(f"<details><summary>the numbers</summary>\n\n{_table(outcome)}\n</details>\n")
    return "\n".join(lines)


def _table(outcome: Reproduction) -> str:
    rows = [outcome.columns, ["---"] * len(outcome.columns)]
    rows += [[_cell(cell) for cell in row] for row in outcome.rows]
    escaped = ([str(cell).replace("|", r"\|") for cell in row] for row in rows)
    return "".join(f"| {' | '.join(row)} |\n" for row in escaped)


def _cell(cell: str | float) -> str:
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


if __name__ == "__main__":
    main()
