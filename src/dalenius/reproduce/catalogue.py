"""Every experiment by its name."""

from __future__ import annotations

from dalenius.reproduce import corruption, differential_inference, perturbation
from dalenius.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *corruption.EXPERIMENTS,
        *differential_inference.EXPERIMENTS,
        *perturbation.EXPERIMENTS,
    )
}
