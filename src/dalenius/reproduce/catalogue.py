"""Every experiment by its name."""

from __future__ import annotations

from dalenius.reproduce import perturbation, suppression
from dalenius.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (*suppression.EXPERIMENTS, *perturbation.EXPERIMENTS)
}
