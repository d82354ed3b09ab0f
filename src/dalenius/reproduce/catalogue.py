"""Every experiment by its name, paper by paper."""

from __future__ import annotations

from dalenius.reproduce import (
    bucketization_errors,
    bucketization_mse,
    bucketization_readings,
    bucketization_runtime,
    corruption,
    differential_inference,
    distributions,
    perturbation,
    perturbation_errors,
    perturbation_runtime,
    suppression,
    worked_examples,
)
from dalenius.reproduce.alphabeta_adult import FIGURE_2, FIGURE_3
from dalenius.reproduce.alphabeta_example import TABLE_1
from dalenius.reproduce.alphabeta_views import VIEWS
from dalenius.reproduce.experiment import Experiment

PAPERS: dict[str, tuple[Experiment, ...]] = {
    "Inferential or Differential (bucketization)": (
        worked_examples.ALICE,
        distributions.TABLE_5,
        worked_examples.RECORD_ASSIGNMENT,
        distributions.BUCKETIZATION_FIGURE_2,
        bucketization_mse.FIGURE_3,
        bucketization_mse.FIGURE_4,
        bucketization_errors.FIGURE_5,
        *bucketization_readings.EXPERIMENTS,
        bucketization_runtime.FIGURE_6,
        bucketization_runtime.FIGURE_7,
        *differential_inference.EXPERIMENTS,
        *corruption.EXPERIMENTS,
    ),
    "Publishing Skewed Sensitive Microdata (suppression)": (
        worked_examples.MINIMUM_SUPPRESSION,
        *suppression.EXPERIMENTS,
    ),
    "Small Domain Randomization (perturbation)": (
        *perturbation.EXPERIMENTS,
        worked_examples.BALANCING,
        perturbation_errors.FIGURE_2,
        perturbation_errors.FIGURE_3,
        perturbation_errors.FIGURE_4,
        perturbation_runtime.FIGURE_5,
        distributions.PERTURBATION_FIGURE_6,
    ),
    "The Boundary Between Privacy and Utility in Data Publishing (αβ)": (TABLE_1, FIGURE_2, FIGURE_3, VIEWS),
}

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment for experiments in PAPERS.values() for experiment in experiments
}
