"""Every experiment by its name, paper by paper."""

from __future__ import annotations

from dalenius.reproduce import (
    alphabeta,
    bucketization,
    bucketization_errors,
    bucketization_runtime,
    census,
    perturbation,
    perturbation_errors,
    suppression,
)
from dalenius.reproduce.experiment import Experiment

PAPERS: dict[str, tuple[Experiment, ...]] = {
    "Inferential or Differential (bucketization)": (
        bucketization.TABLE_2,
        census.TABLE_5,
        bucketization.FIGURE_1,
        census.BUCKETIZATION_FIGURE_2,
        bucketization.FIGURE_3,
        bucketization.FIGURE_4,
        *bucketization_errors.EXPERIMENTS,
        bucketization_runtime.FIGURE_6,
        bucketization_runtime.FIGURE_7,
        *bucketization.EXPERIMENTS,
    ),
    "Publishing Skewed Sensitive Microdata (suppression)": suppression.EXPERIMENTS,
    "Small Domain Randomization (perturbation)": (
        *perturbation.EXPERIMENTS,
        *perturbation_errors.EXPERIMENTS,
        census.PERTURBATION_FIGURE_6,
    ),
    "The Boundary Between Privacy and Utility in Data Publishing (αβ)": alphabeta.EXPERIMENTS,
}

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiments in PAPERS.values() for experiment in experiments
}
