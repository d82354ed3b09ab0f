"""Section 2.1 of "Inferential or Differential": two noisy counts give away the share that they were to hide.

x people have some quasi-identifiers, y of them a disease. Both counts are answered with Laplace noise of
scale b = 1/ε; the attacker divides. The theorem's E[Y/X] ≈ (y/x)(1 + 2b²/x²) and
Var[Y/X] ≈ (2b²/x²)(1 + (y/x)²) are a Taylor expansion: the ratio itself has no expectation, so medians and
quantiles are simulated, with OpenDP's discrete Laplace noise.
"""

from __future__ import annotations

import math

import numpy as np

from dalenius.evaluate.sample import noisy_counts
from dalenius.reproduce.experiment import Experiment, Line, Reproduction, Row

SHARE = 0.8
"""y/x, the inference that noise-free counts allow."""
EPSILONS = (0.1, 1.0)
SIZES = (20, 50, 100, 200, 500, 1_000, 5_000)
_DRAWS = 4_000
_ELL = 5


def theorem(x: int, y: int, epsilon: float) -> tuple[float, float]:
    """The theorem's mean and standard deviation of Y/X.

    >>> round(theorem(100, 100, 0.1)[0], 6), round(theorem(1000, 1000, 0.1)[0], 6)
    (1.02, 1.0002)
    """
    noise = 2 / epsilon**2 / x**2
    return y / x * (1 + noise), math.sqrt(noise * (1 + (y / x) ** 2))


def _run() -> Reproduction:
    rows: list[Row] = []
    for epsilon in EPSILONS:
        for x in SIZES:
            y = round(SHARE * x)
            above = noisy_counts([x] * _DRAWS, 1 / epsilon)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = noisy_counts([y] * _DRAWS, 1 / epsilon) / above
            low, middle, high = np.nanquantile(ratio, [0.05, 0.5, 0.95]).tolist()
            mean, deviation = theorem(x, y, epsilon)
            rows.append((f"Laplace noise, epsilon {epsilon:g}", x, middle, low, high, mean, deviation))
    rows += [("noise-free counts", x, SHARE, SHARE, SHARE, SHARE, 0.0) for x in SIZES]
    rows += [(f"buckets, l = {_ELL}", x, 1 / _ELL, 0.0, 1 / _ELL, 1 / _ELL, 0.0) for x in SIZES]
    return Reproduction(
        columns=("answers", "x", "inference", "5 %", "95 %", "theorem's mean", "theorem's deviation"),
        rows=tuple(rows),
        stated="at epsilon 0.1 the mean of Y/X is 1.02 times y/x for x = 100 and 1.0002 times for x = 1000",
        differs="E[Y/X] does not exist under Laplace noise: medians and quantiles are given; where x is many "
        "times 1/epsilon they agree with the theorem's mean and deviation, below that they are far wider",
        data=f"counts x with y/x = {SHARE:g}; for buckets the bound of the promise, whoever is asked about",
    )


EXPERIMENTS = (
    Experiment(
        name="differential-inference",
        title="What two noisy counts let an attacker infer",
        run=_run,
        picture=Line(
            x="x",
            y="inference",
            series="answers",
            x_title="people with the quasi-identifiers",
            y_title="inferred probability (median)",
            x_scale="log",
        ),
    ),
)
