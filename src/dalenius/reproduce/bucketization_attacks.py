"""Attacks of "Inferential or Differential": what noisy counts give away, and corruption.

Section 2.1: x people have some quasi-identifiers, y of them a disease. Both counts are answered with Laplace
noise of scale b = 1/ε; the attacker divides. The theorem's E[Y/X] ≈ (y/x)(1 + 2b²/x²) and
Var[Y/X] ≈ (2b²/x²)(1 + (y/x)²) are a Taylor expansion: the ratio itself has no expectation, so medians and
quantiles are simulated, with OpenDP's discrete Laplace noise.

Corruption: the attacker knows others of a bucket; fakes are against him. On Adult, with ℓ = 7.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from dalenius.arrays import Ints
from dalenius.evaluate.sample import noisy_counts
from dalenius.mechanisms.bucketize.attacks.fakes import best_success, guess_knowing, naive_success
from dalenius.mechanisms.bucketize.fakes.law import FakeLaw, last_success
from dalenius.mechanisms.bucketize.fakes.plan import FakePlan, plan_fakes, simulate_contents
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from dalenius.reproduce.experiment import Axis, Experiment, Line, Reproduction, Row, column_counts

SHARE = 0.8
"""y/x, the inference that noise-free counts allow."""
EPSILONS = (0.1, 1.0)
SIZES = (20, 50, 100, 200, 500, 1_000, 5_000)
_DRAWS = 4_000
_BUCKET_L = 5
_ELL = 7
SIGMAS = (0, 1, 2, 4)


def theorem(x: int, y: int, epsilon: float) -> tuple[float, float]:
    """The theorem's mean and standard deviation of Y/X.

    >>> round(theorem(100, 100, 0.1)[0], 6), round(theorem(1000, 1000, 0.1)[0], 6)
    (1.02, 1.0002)
    """
    noise = 2 / epsilon**2 / x**2
    return y / x * (1 + noise), math.sqrt(noise * (1 + (y / x) ** 2))


def _infer() -> Reproduction:
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
    rows += [
        (f"buckets, l = {_BUCKET_L}", x, 1 / _BUCKET_L, 0.0, 1 / _BUCKET_L, 1 / _BUCKET_L, 0.0) for x in SIZES
    ]
    return Reproduction(
        columns=("answers", "x", "inference", "5 %", "95 %", "theorem's mean", "theorem's deviation"),
        rows=tuple(rows),
        stated="at epsilon 0.1 the mean of Y/X is 1.02 times y/x for x = 100 and 1.0002 times for x = 1000",
        differs="E[Y/X] does not exist under Laplace noise: medians and quantiles are given; where x is many "
        "times 1/epsilon they agree with the theorem's mean and deviation, below that they are far wider",
        data=f"counts x with y/x = {SHARE:g}; for buckets the bound of the promise, whoever is asked about",
    )


def _planned() -> tuple[BucketProblem, BucketPlan]:
    counts = column_counts("adult.csv", "occupation")
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, _ELL),) * len(counts), max_bucket=50)
    return problem, plan_buckets(problem, "optimal")


def _laws(found: FakePlan, counts: tuple[int, ...]) -> dict[str, FakeLaw]:
    """Of the commonest bucket size: the paper's uniform fakes, proportional ones, and ours."""
    ours = found.laws[0]
    frequency = np.array(counts) / sum(counts)
    others = {"uniform": np.ones(len(counts)), "proportional": frequency, "against him": ours.fake}
    return {
        name: FakeLaw(size=ours.size, n_fakes=ours.n_fakes, real=ours.real, fake=fake)
        for name, fake in others.items()
    }


def _fakes() -> Reproduction:
    problem, plan = _planned()
    contents = simulate_contents(plan, problem, 0)
    rows: list[Row] = []
    for sigma in SIGMAS[1:]:
        found = plan_fakes(plan, problem, sigma)
        for name, law in _laws(found, problem.counts).items():
            stream = Randomness.seeded(1).stream("corruption", sigma, name)
            fakes = law.draw(contents == 0, stream)
            naive = float((stream.integers(sigma + 1, size=contents.sum()) == 0).mean())
            exact = last_success(law, contents, fakes)[0]
            measured = best_success(law, contents, fakes)
            rows.append((sigma, name, naive, 1 / (1 + sigma), measured, exact, found.floor))
    return Reproduction(
        columns=("fakes", "law", "naive", "naive, exact", "knows the histogram", "exact Bayes", "floor"),
        rows=tuple(rows),
        stated="only 1/(1+fakes) certain when all but one are known",
        differs="that holds for who takes a fake for as likely as a real value; who knows the histogram is "
        "right far more often, least under the law chosen against him, and no law can get below the floor: "
        "what the others' values and the histogram tell without the sensitive table",
        data=f"Adult's occupations, l = {_ELL}, optimal buckets of {plan.sizes[0]} with mixed contents",
    )


def _curve() -> Reproduction:
    problem, plan = _planned()
    contents = simulate_contents(plan, problem, 0)[:2_000]
    rows: list[Row] = []
    for sigma in SIGMAS:
        law, fakes = _draw_fakes(plan, problem, contents, sigma)
        for known in range(plan.sizes[0]):
            stream = Randomness.seeded(2).stream("corruption", sigma, known)
            right, bayes = guess_knowing(law, contents, fakes, known, stream)
            # without fakes everybody who counts what is left over knows the same
            name = f"{sigma} fakes, knows the histogram" if sigma else "no fakes"
            rows.append((name, known, float(right.mean()), float(bayes.mean())))
            if sigma:
                naive = naive_success(contents, fakes, known, stream)
                rows.append((f"{sigma} fakes, naive", known, naive, 1 / (plan.sizes[0] - known + sigma)))
    return Reproduction(
        columns=("attacker", "known", "success", "exact"),
        rows=tuple(rows),
        stated="the more are known, the larger the share of fakes among what is left; 1/(1+fakes) at the end",
        differs="the naive curve is the paper's; who knows the histogram is well above it at every step",
        data=f"Adult's occupations, l = {_ELL}, buckets of {plan.sizes[0]}, random others known",
    )


def _draw_fakes(plan: BucketPlan, problem: BucketProblem, contents: Ints, sigma: int) -> tuple[FakeLaw, Ints]:
    if not sigma:
        blank = np.ones(problem.n_values)
        law = FakeLaw(size=plan.sizes[0], n_fakes=0, real=blank, fake=blank)
        return law, np.zeros((len(contents), 0), dtype=np.int64)
    law = plan_fakes(plan, problem, sigma).laws[0]
    return law, law.draw(contents == 0, Randomness.seeded(1).stream("corruption", "curve", sigma))


_INFERENCE = Line(
    x=Axis("x", "people with the quasi-identifiers", scale="log"),
    y=Axis("inference", "inferred probability (median)"),
    series="answers",
)
_SUCCESS = Line(
    x=Axis("known", "known others of a bucket of seven"),
    y=Axis("exact", "right about one of the rest"),
    series="attacker",
)
_CURVE = "What others' values tell about one person of a bucket"
EXPERIMENTS = (
    Experiment("differential-inference", "What two noisy counts let an attacker infer", _infer, _INFERENCE),
    Experiment("corruption-fakes", "Fakes against who knows all others of a bucket", _fakes),
    Experiment("corruption-curve", _CURVE, _curve, _SUCCESS),
)
