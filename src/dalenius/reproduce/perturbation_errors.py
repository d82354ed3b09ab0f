"""Figures 2 to 5 of "Small Domain Randomization": errors of count queries, perturbed or in groups; times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from time import process_time

import numpy as np

from dalenius.evaluate.metrics import Spread, mean_relative_error
from dalenius.evaluate.original import Original
from dalenius.mechanisms.perturb.plan.methods import PerturbPlan, plan_as_in_paper, plan_perturbation
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from dalenius.reproduce.answers import Answering, Perturbed, QuestionPool, anatomy, equality_pool
from dalenius.reproduce.census import KDD, Source, draw_rows, kdd, sensitive_codes, value_counts
from dalenius.reproduce.experiment import (
    DIAGONAL,
    Axis,
    Experiment,
    Line,
    Reproduction,
    Row,
    draw_errors,
    draw_seconds,
    track,
)

SELECTIVITIES = (0.001, 0.005, 0.01)
THOUSANDS = (100, 200, 300, 400, 500)
N_CONDITIONS = 200
N_SEEDS = 5
CLEARLY = 3
"""An order is clear where the mean difference over seeds is this many standard errors from 0."""
PAPER = "PP (the paper's procedure)"
PLANNERS: dict[str, Callable[[tuple[int, ...], RhoPrivacy], PerturbPlan]] = {
    "UP": partial(plan_perturbation, method="uniform"),
    PAPER: plan_as_in_paper,
    "best (the default)": partial(plan_perturbation, method="best"),
}
ANATOMY = "Anatomy"
_COLUMNS = ("varied", "x", "method", "mean RE, %", "± s.e.")
_NOTE = (
    f"rows drawn with replacement, {N_SEEDS} seeds, each with its own releases and {N_CONDITIONS} conditions "
    "× every sensitive value"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Which table, how the promise is made of L, and which L."""

    source: Source
    rho1: Fraction | None
    """None: the largest frequency, so that all values are protected (SA′ = SA)."""
    levels: tuple[int, ...]
    level: int
    """The L at which the number of rows is varied."""

    def promise(self, level: int) -> RhoPrivacy:
        """ρ2 = 1/L."""
        return RhoPrivacy(rho1=self.rho1, rho2=Fraction(1, level))


OCC = Setting(source="OCC", rho1=None, levels=(6, 5, 4, 3), level=6)
EDU = Setting(source="EDU", rho1=Fraction(1, 30), levels=(10, 8, 6, 4), level=10)


Publish = Callable[[Randomness], Answering]


def publishers(original: Original, promise: RhoPrivacy) -> dict[str, Publish]:
    """Every method at 1/L = ρ2, planned: what is left is to throw the coins."""
    codes, counts = sensitive_codes(original), value_counts(original)
    plans = {name: planner(counts, promise) for name, planner in PLANNERS.items()}
    perturbed: dict[str, Publish] = {name: partial(Perturbed.of, plan, codes) for name, plan in plans.items()}
    return {ANATOMY: partial(anatomy, original, int(1 / promise.rho2)), **perturbed}


Place = tuple[str, int, str]
"""A panel of the figure, the x of a point, and the method."""


def measure_errors(
    setting: Setting,
    thousands: Sequence[int] = THOUSANDS,
    levels: Sequence[int] = (),
    base: int = 300,
    n_seeds: int = N_SEEDS,
) -> dict[Place, Spread]:
    """Mean relative errors over seeds, by L for a table of `base` thousand rows, and by its size at one L.

    Every seed has its own queries and releases; the methods of a seed have the queries in common.
    """
    places = {(base, level): [("L", level)] for level in levels or setting.levels}
    for k in thousands:
        places.setdefault((k, setting.level), []).append(("thousands of rows", k))
    found: dict[Place, list[float]] = {}
    for k, level in track(list(places), f"{setting.source}, settings"):
        original = _table(setting.source, k)
        for name, publish in publishers(original, setting.promise(level)).items():
            for pool, randomness in zip(_pools(setting.source, k, n_seeds), _seeds(n_seeds), strict=True):
                cells = pool.cells(publish(randomness))
                for share, (varied, x) in product(SELECTIVITIES, places[k, level]):
                    error = 100 * mean_relative_error(cells.at_least(share), 0)
                    found.setdefault((f"by {varied}, s = {share:.1%}", x, name), []).append(error)
    return {place: Spread.of(errors) for place, errors in found.items()}


def _seeds(number: int) -> list[Randomness]:
    return [Randomness.seeded(seed) for seed in range(1, number + 1)]


@lru_cache(maxsize=1)
def _table(source: Source, thousands: int) -> Original:
    return draw_rows(kdd(source), 1_000 * thousands, Randomness.seeded(1).stream("rows", thousands))


@lru_cache(maxsize=1)
def _pools(source: Source, thousands: int, number: int) -> list[QuestionPool]:
    """A pool for each seed."""
    original = _table(source, thousands)
    return [equality_pool(original, N_CONDITIONS, one.stream("queries")) for one in _seeds(number)]


def _rows(found: dict[Place, Spread]) -> tuple[Row, ...]:
    by_varied = sorted(found.items(), key=lambda item: item[0][0].startswith("by thousands"))
    return tuple((*place, spread.mean, spread.standard_error) for place, spread in by_varied)


def _ranges(found: dict[Place, Spread]) -> str:
    means: dict[str, list[float]] = {}
    for (_, _, name), spread in found.items():
        means.setdefault(name, []).append(spread.mean)
    return ", ".join(f"{name} {min(own):.1f} to {max(own):.1f} %" for name, own in means.items())


def _wins(found: dict[Place, Spread]) -> str:
    settings = list(dict.fromkeys((panel, x) for panel, x, _ in found))
    told = []
    for other in (ANATOMY, "UP"):
        gains = [found[(*place, PAPER)].minus(found[(*place, other)]) for place in settings]
        n_below = sum(gain.mean < 0 for gain in gains)
        n_clearly = sum(gain.mean < -CLEARLY * gain.standard_error for gain in gains)
        lost = [f"{x} {panel}" for (panel, x), gain in zip(settings, gains, strict=True) if gain.mean >= 0]
        where = f" (not at {', '.join(lost)})" if lost else ""
        told.append(
            f"PP is below {other} in {n_below} of {len(gains)} settings{where} on average over the seeds, in "
            f"{n_clearly} of them by more than {CLEARLY} standard errors of the difference"
        )
    return "; ".join(told)


def _errors(setting: Setting, stated: str, *, besides: str = "", promise: str = "") -> Reproduction:
    found = measure_errors(setting)
    differs = f"over all settings: {_ranges(found)}. {_wins(found)}{besides}"
    data = f"{KDD}; {_NOTE}{promise}"
    return Reproduction(columns=_COLUMNS, rows=_rows(found), stated=stated, differs=differs, data=data)


def _figure2() -> Reproduction:
    return _errors(
        OCC,
        "PP errs less than Anatomy and UP, and gains from a smaller L, a larger table and a larger "
        "selectivity s; Anatomy hardly changes with L",
    )


def _figure4() -> Reproduction:
    return _errors(
        EDU,
        "Anatomy, which has to withhold records until the table is L-eligible, errs far more than PP "
        "and UP; PP is UP, because 14 values need no parts",
        besides=f". {_parts_of_pp()}, and with one part "
        "PP takes γ from the part's own top frequency instead of from ρ1, which keeps a little more",
        promise="; ρ1 = 1/30, which protects the 8 rarest educations of KDD (CENSUS: 9)",
    )


def _parts_of_pp() -> str:
    counts = value_counts(kdd("EDU"))
    n_parts = {level: len(plan_as_in_paper(counts, EDU.promise(level)).parts) for level in EDU.levels}
    parts = [f"{number} at L = {level}" for level, number in n_parts.items()]
    return f"KDD has 16 educations, and PP's procedure makes parts of them: {', '.join(parts)}"


def _figure3(n_drawn: int = 120) -> Reproduction:
    original, (randomness,) = _table("OCC", 300), _seeds(1)
    (pool,) = _pools("OCC", 300, 1)
    rows: list[Row] = []
    off = []
    for name, publish in publishers(original, OCC.promise(6)).items():
        cells = pool.cells(publish(randomness)).at_least(0.001)
        chosen = np.linspace(0, len(cells.truth) - 1, n_drawn).astype(int)
        shown = chosen[np.argsort(cells.truth[chosen])]
        pairs = zip(cells.truth[shown].tolist(), cells.estimate[shown].tolist(), strict=True)
        rows += [(name, "queries", act, round(est, 1)) for act, est in pairs]
        ends = [0.0, float(cells.truth.max())]
        rows += [(name, DIAGONAL, end, end) for end in ends]
        off.append(f"{name} {np.abs(cells.estimate - cells.truth).mean():.0f} records")
    return Reproduction(
        columns=("method", "points", "act", "est"),
        rows=tuple(rows),
        stated="of the points (act, est) those of PP lie closest to the diagonal",
        differs=f"the mean distance |est − act| over all queries of s ≥ 0.1 % is {', '.join(off)}; drawn are "
        f"{n_drawn} queries",
        data=f"{KDD}; 300,000 rows drawn with replacement, L = 6",
    )


def publish_times(original: Original, setting: Setting) -> dict[str, tuple[float, float]]:
    """For each method the processor seconds from codes to codes, and how many of them went into planning."""
    randomness, promise = Randomness.seeded(1), setting.promise(setting.level)
    counts, codes = value_counts(original), sensitive_codes(original)
    start = process_time()
    anatomy(original, setting.level, randomness)
    times = {ANATOMY: (process_time() - start, 0.0)}
    for name, planner in PLANNERS.items():
        start = process_time()
        plan = planner(counts, promise)
        planned = process_time()
        Perturbed.of(plan, codes, randomness)
        times[name] = (process_time() - start, planned - start)
    return times


def time_by_rows(thousands: Sequence[int] = THOUSANDS) -> Reproduction:
    """Both tables, by their number of rows."""
    rows: list[Row] = []
    for setting, k in track([(setting, k) for setting in (OCC, EDU) for k in thousands], "timing"):
        stream = Randomness.seeded(1).stream("rows", k)
        original = draw_rows(kdd(setting.source), 1_000 * k, stream)
        times = publish_times(original, setting)
        rows += [(setting.source, k, name, taken, planning) for name, (taken, planning) in times.items()]
    slowest = max(float(row[3]) for row in rows)
    searched = [row for row in rows if row[2] not in (ANATOMY, "UP")]
    share = sum(float(row[4]) for row in searched) / sum(float(row[3]) for row in searched)
    return Reproduction(
        columns=("table", "rows, thousands", "method", "processor seconds", "of these for the plan"),
        rows=tuple(rows),
        stated="PP takes no more than 30 s, as Anatomy and UP do; Anatomy is faster on EDU, where "
        "withholding leaves fewer records",
        differs=f"nothing takes more than {slowest:.2g} s here. {share:.0%} of the time "
        "for PP and for the default goes into searching the parts, which depends on the counts "
        "only; `PP` includes our own searches, because one function does both",
        data=f"{KDD}; rows drawn with replacement, L = {OCC.level} and {EDU.level}, one run each",
    )


_BY_BOTH = draw_errors(
    Axis("x", "L (above) or thousands of rows (below)"), "varied", columns=3, own_axes=("x", "y")
)
_CLOUD = Line(
    x=Axis("act", "true count"), y=Axis("est", "estimate"), series="points", panel="method", mark="points"
)
_BY_SIZE = draw_seconds(Axis("rows, thousands"), "method")
_OCC, _EDU = (
    f"{table} (KDD): error of count queries by L and by the number of rows" for table in ("OCC", "EDU")
)
EXPERIMENTS = (
    Experiment("perturbation-fig2", _OCC, _figure2, _BY_BOTH),
    Experiment("perturbation-fig3", "OCC (KDD), L = 6: estimates against true counts", _figure3, _CLOUD),
    Experiment("perturbation-fig4", _EDU, _figure4, _BY_BOTH),
    Experiment("perturbation-fig5", "Time to publish, by the number of rows (KDD)", time_by_rows, _BY_SIZE),
)
