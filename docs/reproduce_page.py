"""The text of docs/reproduce.md: every experiment, ours beside the paper's."""

from __future__ import annotations

import re

from dalenius.reproduce.catalogue import PAPERS
from dalenius.reproduce.experiment import Experiment, Reproduction

MOST_ROWS = 40
"""Longer tables are not printed under a picture."""

INTRODUCTION = """# The papers' tables and figures, made again

Every table and figure of the four papers that holds results, ours beside what the paper states in words or
numbers, and where they differ. `dalenius reproduce NAME` runs one of them and prints its numbers (`--json`
for machines, `--chart FILE` for the picture); the functions behind them take parameters for larger runs.
The data are real and not part of the project. Put `adult.data` ([UCI Adult](
https://archive.ics.uci.edu/dataset/2/adult)) and `census-income.data` and `census-income.test` ([UCI
Census-Income](https://archive.ics.uci.edu/dataset/117/census+income+kdd)) into a folder: `dalenius reproduce
--data FOLDER` prepares them and checks that they are the right ones (30,162, 148,318 and 219,751 rows, and
the SHA-256 of their cells), also of files that are there already, and
`dalenius reproduce NAME --data FOLDER` runs an experiment on them; the environment variable DALENIUS_DATA can
name the folder too. CENSUS, the data of two papers, is not to be had; KDD Census-Income stands in for it, or
a histogram of the stated shape. Everything random is seeded.
Times are processor time, measured on a shared machine.

This page is written by `make figures` (docs/figures.py) from what each experiment gave when it was run.

```console
$ dalenius reproduce --list
```
"""

LEFT_OUT = {
    "bucketization": "Table 3 lists notation and table 4 the parameters, which the figures use as they are.",
    "suppression": (
        "Table 1 lists notation; figures 2 and 3 are the algorithms, run in `suppression-fig1`. The "
        "introduction counts violations of 6-eligibility in an adverse drug reaction database published by "
        "month (none), week (4 %) and day (30 %): which columns and years these are of is not said, so they "
        "cannot be made again."
    ),
    "perturbation": (
        "Table 4 lists notation. The introduction prints p + q = 7.4e-4 for the 5,390 values of Age × "
        "Country at γ = 5; that is p = 4/5394, and p + q is 5/5394 = 9.3e-4."
    ),
    "αβ": (
        "Figure 1 and tables 2 and 3 are a diagram, notation and a classification. Example 4.1 (α = 2/3, "
        "β = 1/150, score < 3·age) states n_D = 190 and the estimate 7.1 for a truth of 4; an exact count "
        "gives n_D = 549, and the estimate becomes 3.51."
    ),
}


def page(outcomes: dict[str, Reproduction]) -> str:
    """The page, from the outcomes by name."""
    parts = [INTRODUCTION]
    for paper, experiments in PAPERS.items():
        parts.append(f"## {paper}\n")
        parts += [_section(experiment, outcomes[experiment.name]) for experiment in experiments]
        parts.append(f"{LEFT_OUT[paper.split('(')[1].rstrip(')')]}\n")
    return "\n".join(parts)


def with_section(text: str, experiment: Experiment, outcome: Reproduction) -> str:
    """The page's text with this outcome in the place of the experiment's earlier one."""
    ends = "|".join(("### ", "## ", *map(re.escape, LEFT_OUT.values())))
    begins = rf"### [^\n]*\n\n`dalenius reproduce {re.escape(experiment.name)}`\n"
    return re.sub(rf"{begins}.*?(?=\n(?:{ends}))", lambda _: _section(experiment, outcome), text, flags=re.S)


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
