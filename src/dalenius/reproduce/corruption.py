"""The corruption attack of "Inferential or Differential", and fakes against it, on Adult with ℓ = 7."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dalenius.arrays import Ints
from dalenius.mechanisms.bucketize.attacks.fakes import best_success, guess_knowing, naive_success
from dalenius.mechanisms.bucketize.fakes.law import FakeLaw, last_success
from dalenius.mechanisms.bucketize.fakes.plan import FakePlan, plan_fakes, simulated_contents
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan, plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.randomness import Randomness
from dalenius.reproduce.experiment import Experiment, Line, Reproduction, Row, data_file
from dalenius.sql import connect, literal

_ELL = 7
SIGMAS = (0, 1, 2, 4)


def adult_occupations() -> tuple[int, ...]:
    """The counts of Adult's occupations."""
    file = literal(str(data_file("adult.csv")))
    with connect() as connection:
        rows = connection.execute(
            f"SELECT count(*) AS n FROM {file} GROUP BY occupation ORDER BY n DESC"
        ).fetchall()
    return tuple(int(row[0]) for row in rows)


def _planned() -> tuple[BucketProblem, BucketPlan]:
    counts = adult_occupations()
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
    contents = simulated_contents(plan, problem, 0)
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
    contents = simulated_contents(plan, problem, 0)[:2_000]
    rows: list[Row] = []
    for sigma in SIGMAS:
        law, fakes = _drawn(plan, problem, contents, sigma)
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


def _drawn(plan: BucketPlan, problem: BucketProblem, contents: Ints, sigma: int) -> tuple[FakeLaw, Ints]:
    if not sigma:
        blank = np.ones(problem.n_values)
        law = FakeLaw(size=plan.sizes[0], n_fakes=0, real=blank, fake=blank)
        return law, np.zeros((len(contents), 0), dtype=np.int64)
    law = plan_fakes(plan, problem, sigma).laws[0]
    return law, law.draw(contents == 0, Randomness.seeded(1).stream("corruption", "curve", sigma))


EXPERIMENTS = (
    Experiment(name="corruption-fakes", title="Fakes against who knows all others of a bucket", run=_fakes),
    Experiment(
        name="corruption-curve",
        title="What others' values tell about one person of a bucket",
        run=_curve,
        picture=Line(
            x="known",
            y="exact",
            series="attacker",
            x_title="known others of a bucket of seven",
            y_title="right about one of the rest",
        ),
    ),
)
