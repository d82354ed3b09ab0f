"""Draws the pictures of the documentation: `make figures`."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.csv

import dalenius
from dalenius.cli.demo import POLICY
from dalenius.demo_data import hospital
from dalenius.report.plan_chart import draw_plan

FIGURES = Path(__file__).parent / "figures"


def main() -> None:
    """The plan of the tour."""
    FIGURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.csv.write_csv(hospital(), Path(folder) / "patients.csv")
        (Path(folder) / "patients.toml").write_text(POLICY, encoding="utf-8")
        draw_plan(dalenius.plan(Path(folder) / "patients.toml"), FIGURES / "plan.svg")


if __name__ == "__main__":
    main()
