"""Draws the pictures of the documentation: `make figures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.csv

import dalenius
from dalenius.cli.demo import POLICY
from dalenius.demo_data import hospital
from dalenius.evaluate.comparison import Comparison
from dalenius.evaluate.frontier_chart import draw_frontier
from dalenius.report.plan_chart import draw_plan

FIGURES = Path(__file__).parent / "figures"


def main() -> None:
    """The plan of the tour, and a comparison of policies for its table."""
    FIGURES.mkdir(exist_ok=True)
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


if __name__ == "__main__":
    main()
