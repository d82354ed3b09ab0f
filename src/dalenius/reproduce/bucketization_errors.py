"""Figure 5 of "Inferential or Differential": relative errors of count queries answered from buckets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalenius.mechanisms.bucketize.plan import plan_buckets
from dalenius.randomness import Randomness
from dalenius.reproduce.answers import Answering, Bucketized, Floats, Ints, TrueCounts
from dalenius.reproduce.bucketization_mse import METHODS, THETAS, linear_problem
from dalenius.reproduce.census import KDD, Microdata, Source, kdd
from dalenius.reproduce.experiment import Experiment, Line, Reproduction, Row
from dalenius.reproduce.progress import track
from dalenius.reproduce.query_pools import anatomy_pool

N_QUERIES = 2_000
"""The paper asks 5,000."""
_SOURCES: tuple[Source, ...] = ("OCC", "EDU")


class _Pool:
    """A pool of queries, with the true answers."""

    def __init__(self, data: Microdata, n_queries: int, stream: np.random.Generator) -> None:
        queries = list(anatomy_pool(data, n_queries, stream))
        self._conditions: list[Ints] = [query.rows(data) for query in track(queries, "queries")]
        self._is_counted = np.stack([query.sensitive for query in queries], axis=1)
        self.truth = self.answers(TrueCounts(sensitive=data.sensitive, n_values=len(data.counts)))

    def answers(self, release: Answering) -> Floats:
        return np.where(self._is_counted, release.by_value(self._conditions), 0.0).sum(axis=0)

    def relative_errors(self, release: Answering, least: float) -> Floats:
        """|act − est|/act of the queries whose true answer is positive and at least `least`."""
        asked = self.truth >= max(least, 1)
        return np.asarray(np.abs(self.answers(release) - self.truth)[asked] / self.truth[asked])


def compare_errors(thetas: Sequence[int] = THETAS, n_queries: int = N_QUERIES) -> Reproduction:
    """The relative errors of TwoSize, MultiSize and Optimal."""
    rows: list[Row] = []
    for source in _SOURCES:
        data, randomness = kdd(source), Randomness.seeded(1)
        pool = _Pool(data, n_queries, randomness.stream("queries", source))
        settings = [(theta, method) for theta in thetas for method in METHODS]
        for theta, method in track(settings, f"{source}, answers"):
            plan = plan_buckets(linear_problem(data.counts, theta), METHODS[method])
            release = Bucketized.of(plan, data.sensitive, randomness)
            errors, of_large = (100 * pool.relative_errors(release, s * data.n_rows) for s in (0, 0.01))
            rows.append(
                (source, theta, method, float(errors.mean()), float(np.median(errors)), float(of_large.mean()))
            )
    return Reproduction(
        columns=("table", "theta", "method", "mean RE, %", "median RE, %", "mean RE of counts >= 1 %, %"),
        rows=tuple(rows),
        stated="OCC: at most slightly over 10 %, all three close to each other; EDU: no more than 10 %, "
        "MultiSize about 2 points better than TwoSize, Optimal about 2 better than MultiSize",
        differs=_differences(rows, n_queries),
        data=f"{KDD}; one seeded release each, {n_queries:,} queries of Anatomy's form at an expected "
        "selectivity of 1 %, answered with the paper's estimator",
    )


def _differences(rows: Sequence[Row], n_queries: int) -> str:
    found = []
    for source in _SOURCES:
        mean, median, of_large = (
            [float(cell) for cell in column]
            for column in list(zip(*(row for row in rows if row[0] == source), strict=True))[3:]
        )
        found.append(
            f"{source}: mean {min(mean):.1f} to {max(mean):.1f} %, median {min(median):.1f} to "
            f"{max(median):.1f} %, mean over counts of at least 1 % of the records {min(of_large):.1f} to "
            f"{max(of_large):.1f} %"
        )
    return (
        f"{'; '.join(found)}. The mean depends on the small counts of the pool, which the paper does not "
        "describe: KDD's country of birth has 43 values, of which one has nine tenths of the records. For "
        "small θ the three methods are close to each other as stated; for large θ TwoSize is behind, as its "
        "MSE is, and Optimal answers no better than MultiSize"
    )


FIGURE_5 = Experiment(
    name="bucketization-fig5",
    title="Relative error of count queries by θ (KDD)",
    run=compare_errors,
    picture=Line(
        x="theta",
        y="mean RE, %",
        series="method",
        panel="table",
        x_title="θ",
        y_title="mean relative error, %",
        x_scale="log",
    ),
)
