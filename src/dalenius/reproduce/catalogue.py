"""Every experiment by its name."""

from __future__ import annotations

from dalenius.reproduce import corruption, differential_inference, perturbation, suppression
from dalenius.reproduce.alphabeta_adult import FIGURE_2, FIGURE_3
from dalenius.reproduce.alphabeta_views import VIEWS
from dalenius.reproduce.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        *corruption.EXPERIMENTS,
        *differential_inference.EXPERIMENTS,
        *suppression.EXPERIMENTS,
        *perturbation.EXPERIMENTS,
        FIGURE_2,
        FIGURE_3,
        VIEWS,
        *suppression.EXPERIMENTS,
    )
}
