"""Draws the pictures of the documentation and writes docs/reproduce.md: `make figures`.

With names of experiments as arguments, only these are run and drawn, and only their sections written anew.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow.csv
from reproduce_page import page, with_section

import dalenius
from dalenius.cli.demo import POLICY
from dalenius.demo_data import hospital
from dalenius.errors import InputError
from dalenius.evaluate.compare import Comparison
from dalenius.evaluate.frontier import draw_frontier
from dalenius.pages.pictures import draw_plan
from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.experiment import Experiment, Reproduction, draw

FIGURES = Path(__file__).parent / "figures"
PAGE = Path(__file__).parent / "reproduce.md"


def main() -> None:
    """The plan of the tour, a comparison of policies for its table, and every experiment."""
    FIGURES.mkdir(exist_ok=True)
    if names := sys.argv[1:]:
        for name in names:
            if (outcome := _run(EXPERIMENTS[name])) is not None:
                text = with_section(PAGE.read_text(encoding="utf-8"), EXPERIMENTS[name], outcome)
                PAGE.write_text(text, encoding="utf-8")
        return
    _draw_tour()
    outcomes = {name: _run(experiment) for name, experiment in EXPERIMENTS.items()}
    if missing := [name for name, outcome in outcomes.items() if outcome is None]:
        print(f"{PAGE.name} is left as it is: {len(missing)} experiments could not run", file=sys.stderr)
        return
    PAGE.write_text(page({name: o for name, o in outcomes.items() if o is not None}), encoding="utf-8")


def _draw_tour() -> None:
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.csv.write_csv(hospital(), Path(folder) / "patients.csv")
        (Path(folder) / "patients.toml").write_text(POLICY, encoding="utf-8")
        draw_plan(dalenius.plan(Path(folder) / "patients.toml"), FIGURES / "plan.svg")
        draw_frontier(_comparison(Path(folder)), FIGURES / "compare.svg")


def _comparison(folder: Path) -> Comparison:
    """The policies of docs/compare.md."""
    head, _, _ = POLICY.partition("[promise]")
    promises = {
        "diverse": 'kind = "l-diversity"\nl = 4\n',
        "perturbed": 'kind = "rho-privacy"\nrho1 = "max"\nrho2 = "1/4"\n'
        '[mechanism]\nmethod = "least-variance"\n',
    }
    for name, promise in promises.items():
        (folder / f"{name}.toml").write_text(f"{head}[promise]\n{promise}", encoding="utf-8")
    files = [folder / f"{name}.toml" for name in ("patients", *promises)]
    return dalenius.compare(files, queries=100, seeds=3, seed=1)


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


if __name__ == "__main__":
    main()
