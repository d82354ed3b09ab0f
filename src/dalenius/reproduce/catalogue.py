"""Every experiment by its name."""

from __future__ import annotations

from dalenius.reproduce import perturbation
from dalenius.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiment in (*perturbation.EXPERIMENTS,)
}
