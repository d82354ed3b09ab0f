"""Tables 1 and 2 and figures 1, 3 and 4 of "Inferential or Differential", and its attacks.

Two examples that are worked out by hand, and what thresholds per value save against one ℓ for all.

Attacks: what noisy counts give away, and corruption. Section 2.1: x people have some quasi-identifiers, y of
them a disease. Both counts are answered with Laplace noise of scale b = 1/ε; the attacker divides. The
theorem's E[Y/X] ≈ (y/x)(1 + 2b²/x²) and Var[Y/X] ≈ (2b²/x²)(1 + (y/x)²) are a Taylor expansion: the ratio
itself has no expectation, so medians and quantiles are simulated, with OpenDP's discrete Laplace noise.

Corruption: the attacker knows others of a bucket; fakes are against him. On Adult, with ℓ = 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from dalenius.arrays import Ints
from dalenius.evaluate.contender import noisy_counts
from dalenius.mechanisms.bucketize.attacks.fakes import best_success, guess_knowing, naive_success
from dalenius.mechanisms.bucketize.fakes.law import FakeLaw, last_success
from dalenius.mechanisms.bucketize.fakes.plan import FakePlan, plan_fakes, simulate_contents
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.two_size import partition
from dalenius.randomness import Randomness
from dalenius.reproduce.census import KDD, SHAPES, STATED, Source, kdd, value_counts
from dalenius.reproduce.experiment import Axis, Experiment, Line, Reproduction, Row, column_counts, track

THETAS = (2, 4, 8, 16, 32)
METHODS = {"TwoSize": "two-size", "MultiSize": "multi-size", "Optimal": "optimal"}
MAX_BUCKET = 50
_SOURCES: tuple[Source, ...] = ("OCC", "EDU")


def _alice() -> Reproduction:
    problem = BucketProblem(counts=(1, 1, 1, 1), thresholds=(Fraction(1, 2),) * 4, max_bucket=4)
    plan = plan_buckets(problem)
    rows: list[Row] = [
        (size, n_buckets, f"{1 / size:.0%}", "50%")
        for size, n_buckets in zip(plan.sizes, plan.n_buckets, strict=True)
    ]
    return Reproduction(
        columns=("bucket size", "buckets", "Pr(disease | Alice)", "the paper"),
        rows=tuple(rows),
        stated="two buckets of two records; Alice has Cancer or HIV with 50 % each",
        differs="the same",
        data="the four records of table 1, four diseases, thresholds of 1/2",
    )


def _example3() -> Reproduction:
    counts = np.array([1] * 8 + [6] * 4 + [9] * 2)
    thresholds = tuple(2 * Fraction(int(o), 50) + Fraction(1, 20) for o in counts)
    problem = BucketProblem(counts=tuple(counts.tolist()), thresholds=thresholds, max_bucket=14)
    limits = problem.capacity_table([4, 14]) * np.array([9, 1])
    bounds, loads = np.minimum(limits, counts[:, None]), partition(counts, limits, 4 * 9)
    stated = {0: (0, 1), 8: (6, 4), 12: (9, 5)}
    rows: list[Row] = [
        (
            f"x{first + 1}-x{last}",
            int(counts[first]),
            *bounds[first].tolist(),
            f"{stated[first][0]}, {stated[first][1]}",
            *loads[first:last].sum(axis=0).tolist(),
        )
        for first, last in ((0, 8), (8, 12), (12, 14))
    ]
    best = plan_buckets(problem, "two-size")
    n_moved = int(bounds[:, 0].sum()) - 36
    return Reproduction(
        columns=("values", "o_i", "a_i1", "a_i2", "paper's a_i1, a_i2", "records in 9 x 4", "in 1 x 14"),
        rows=tuple(rows),
        stated="(4 x 9), (14 x 1) is valid; 6 records move from the first part to the second. The captions "
        "of the figure's two halves are swapped",
        differs=f"the same bounds, and {n_moved} records move; of which values is a free choice, the paper "
        f"takes one each of x9 to x14. The best two sizes have a loss of {best.loss} (this setting: "
        f"{9 * 9 + 13**2}): {_setting(best.sizes, best.n_buckets)}",
        data="example 3: 50 records, f' = 2f + 0.05",
    )


def _setting(sizes: tuple[int, ...], n_buckets: tuple[int, ...]) -> str:
    return ", ".join(f"{b} x {size}" for size, b in zip(sizes, n_buckets, strict=True))


def linear_problem(counts: Sequence[int], theta: int) -> BucketProblem:
    """The paper's thresholds f′ = min(1, θ·f + 0.02), in buckets of at most 50."""
    n_rows = sum(counts)
    thresholds = tuple(min(Fraction(1), theta * Fraction(o, n_rows) + Fraction(1, 50)) for o in counts)
    return BucketProblem(counts=tuple(counts), thresholds=thresholds, max_bucket=MAX_BUCKET)


def diversity(problem: BucketProblem) -> int:
    """ℓ = ⌈1/min f′⌉, with which ℓ-diversity keeps all thresholds (remark 1).

    >>> [diversity(linear_problem([9_982, 18], theta)) for theta in THETAS]  # OCC's rarest value: 0.18 %
    [43, 37, 30, 21, 13]
    """
    return ceil(1 / min(problem.thresholds))


def anatomy_mse(n_rows: int, ell: int) -> float:
    """MSE of ⌊n/ℓ⌋ groups of ℓ or ℓ+1 records, "ignoring the privacy constraint" as the paper does.

    >>> anatomy_mse(7, 3)  # groups of 3 and 4: (4 + 9)/6
    2.1666666666666665
    """
    size, n_larger = divmod(n_rows, n_rows // ell)
    return ((n_rows // ell - n_larger) * (size - 1) ** 2 + n_larger * size**2) / (n_rows - 1)


def _tables() -> dict[str, tuple[int, ...]]:
    stated = {f"{source}, stated shape": tuple(STATED[source](300_000)) for source in _SOURCES}
    return stated | {f"{source}, KDD": value_counts(kdd(source)) for source in _SOURCES}


def _diversities() -> Reproduction:
    rows: list[Row] = []
    for name, counts in _tables().items():
        top = max(counts) / sum(counts)
        for theta in THETAS:
            ell = diversity(linear_problem(counts, theta))
            rows.append((name, theta, ell, "yes" if ell * top <= 1 else "no"))
    possible = [f"{name} at θ = {theta}" for name, theta, _, can in rows if can == "yes"]
    return Reproduction(
        data=f"{SHAPES}; and {KDD}",
        columns=("data", "theta", "l", "l-diversity possible"),
        rows=tuple(rows),
        stated="except for θ = 32 a rather large l is needed; l-diversity is impossible from l = 14 on for "
        "OCC and from l = 4 on for EDU, so for most θ",
        differs=f"l-diversity is possible for {', '.join(possible) or 'none'} only. KDD's rarest occupation "
        "(0.035 %) asks for a larger l than CENSUS's (0.18 %)",
    )


def compare_mse(thetas: Sequence[int] = THETAS) -> Reproduction:
    """The MSE of Anatomy, TwoSize, MultiSize and the optimum."""
    rows: list[Row] = []
    tables = _tables()
    for name, theta in track([(name, theta) for name in tables for theta in thetas], "planning"):
        problem = linear_problem(tables[name], theta)
        rows.append((name, theta, "Anatomy", anatomy_mse(problem.n_rows, diversity(problem))))
        rows += [
            (name, theta, method, plan_buckets(problem, planner).mse) for method, planner in METHODS.items()
        ]
    return Reproduction(
        columns=("data", "theta", "method", "MSE"),
        rows=tuple(rows),
        stated="Anatomy far above all others at every θ; TwoSize only slightly above MultiSize, which is "
        "only slightly above Optimal",
        differs=f"the order is the same everywhere, but the steps are not slight: {_steps(rows)}",
        data=f"{SHAPES}; and {KDD}",
    )


def _steps(rows: Sequence[Row]) -> str:
    mse = {(name, theta, method): float(value) for name, theta, method, value in rows}
    settings = list(dict.fromkeys((row[0], row[1]) for row in rows))

    def between(above: str, below: str) -> str:
        ratios = [mse[name, theta, above] / mse[name, theta, below] for name, theta in settings]
        return f"{above} is {min(ratios):.2f} to {max(ratios):.2f} times {below}"

    pairs = (("Anatomy", "TwoSize"), ("TwoSize", "MultiSize"), ("MultiSize", "Optimal"))
    return ", ".join(between(*pair) for pair in pairs)


TABLE_2 = Experiment("bucketization-table2", "Tables 1 and 2: Alice in a bucket", _alice)
FIGURE_1 = Experiment(
    "bucketization-fig1", "Figure 1: records in buckets of two sizes (example 3)", _example3
)
_THETA = Axis("theta", "θ", scale="log")
_NEEDED = Line(x=_THETA, y=Axis("l", "l needed"), series="data")
_MSE = Line(x=_THETA, y=Axis("MSE", scale="log"), series="method", panel="data", own_axes=("y",))
FIGURE_3 = Experiment(
    "bucketization-fig3", "The l that l-diversity needs for thresholds θ·f + 0.02", _diversities, _NEEDED
)
FIGURE_4 = Experiment("bucketization-fig4", "Mean squared error by θ", compare_mse, _MSE)


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


def _plan_example() -> tuple[BucketProblem, BucketPlan]:
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
    problem, plan = _plan_example()
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
    problem, plan = _plan_example()
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
