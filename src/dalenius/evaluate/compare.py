"""Comparing policies: every contender is drawn several times and asked the same questions.

Workloads are given by name or file, policies by their files.

The outcome is a row per contender, the frontier, and the best at every bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.display import Private, View
from dalenius.engines.base import Progress, silent
from dalenius.errors import DaleniusError, InputError, InternalError, PromiseNotMet, did_you_mean
from dalenius.evaluate.contender import Contender, baselines, draw_sample, not_comparable, policy_contender
from dalenius.evaluate.measures import Measure, measures_named
from dalenius.evaluate.metrics import BandSpread, Spread, bands_over_draws
from dalenius.evaluate.original import Original, Shared, read_shared
from dalenius.evaluate.sql_workload import SqlWorkload
from dalenius.evaluate.workload import AnatomyWorkload, Cells, EqualityPool, Marginals, Questions, Workload
from dalenius.plain import plain
from dalenius.policy import Policy
from dalenius.randomness import Randomness
from dalenius.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standing:
    """A contender with what was measured of it."""

    contender: Contender
    spreads: dict[str, Spread]
    """By measure; one that does not apply is left out."""
    bands: tuple[BandSpread, ...] = ()
    """The error by selectivity."""
    n_unanswered: int = 0
    """How many cells of the workload had no answer, over all draws."""
    n_failed: int = 0
    """How many draws gave no release."""
    outright: int | None = None
    """How many people are published outright, at most over the draws; None: there is no release."""
    n_published: int | None = None
    """How many rows a draw publishes, on average; None: there is no release."""
    not_covered: tuple[str, ...] = ()
    """What its releases say that they do not promise."""
    reason: str | None = None
    """Why there is nothing: the promise cannot be kept, or a part is not installed."""

    @property
    def bound(self) -> float:
        """The largest probability that may be inferred."""
        return float(self.contender.bound.largest)

    def value(self, measure: Measure) -> float | None:
        """Its mean over the draws; None where there is none."""
        spread = self.spreads.get(measure.name)
        return spread.mean if spread and math.isfinite(spread.mean) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The policy with the best value among those that promise at least as much as a bound."""

    bound: float
    policy: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison(Private):
    """All contenders on one workload. It was made with the original: it is private."""

    measures: tuple[Measure, ...]
    """The first one ranks."""
    workload: str
    n_questions: int
    n_cells: int
    n_seeds: int
    standings: tuple[Standing, ...]

    def show(self) -> View:
        """The contenders by the first measure, the best first."""
        rows = tuple(
            (one.contender.name, f"{float(one.bound):.3g}", f"{one.value(self.measure) or 0:.4g}")
            for one in sorted(self.ranked, key=self._worth)
        )
        headings = ("policy", "largest probability that may be inferred", self.measure.title)
        return View(title="Comparison", is_private=True, headings=headings, rows=rows)

    @property
    def measure(self) -> Measure:
        """What the contenders are ranked by."""
        return self.measures[0]

    @property
    def ranked(self) -> tuple[Standing, ...]:
        """Those that have a value of that measure."""
        return tuple(one for one in self.standings if one.value(self.measure) is not None)

    @property
    def frontier(self) -> tuple[Standing, ...]:
        """Those that no other one beats in bound and value both, by rising bound."""
        safe = [one for one in self.ranked if not one.outright]
        kept = [one for one in safe if not any(self._beats(other, one) for other in safe)]
        return tuple(sorted(kept, key=lambda one: one.bound))

    @property
    def best(self) -> tuple[Best, ...]:
        """At every bound of a policy, the best policy that promises at least that.

        One that publishes people outright is never among them, however small its error.
        """
        own = [one for one in self.ranked if not one.contender.is_baseline and not one.outright]
        found = [self._best_at(bound, own) for bound in sorted({one.bound for one in own})]
        return tuple(found)

    @property
    def is_feasible(self) -> bool:
        """Whether some policy can be published."""
        return any(not one.contender.is_baseline and one.reason is None for one in self.standings)

    def _worth(self, standing: Standing) -> float:
        """Smaller is better, whatever the measure."""
        value = standing.value(self.measure)
        assert value is not None  # noqa: S101  (only ranked ones are compared)
        return value if self.measure.better == "lower" else -value

    def _beats(self, one: Standing, other: Standing) -> bool:
        pair, against = (one.bound, self._worth(one)), (other.bound, self._worth(other))
        return pair != against and pair[0] <= against[0] and pair[1] <= against[1]

    def _best_at(self, bound: float, own: list[Standing]) -> Best:
        candidates = sorted((one for one in own if one.bound <= bound), key=self._worth)
        winner = candidates[0]
        parts = [f"its {self.measure.name} is {_number(winner, self.measure)}"]
        if len(candidates) == 1:
            parts.append("no other policy promises as much")
        else:
            parts.append(f"the next policy {self._against(winner, candidates[1])}")
        better = [
            one
            for one in self.ranked
            if one.contender.is_baseline and one.bound <= bound and self._worth(one) < self._worth(winner)
        ]
        parts += [f"but the baseline {self._against(winner, one)}" for one in better]
        smallest = winner.contender.bound.smallest
        if better and smallest is not None and smallest < winner.contender.bound.largest:
            parts.append(f"no baseline keeps its lower thresholds, down to {float(smallest):.3g}")
        return Best(bound=bound, policy=winner.contender.name, reason="; ".join(parts))

    def _against(self, winner: Standing, other: Standing) -> str:
        """The other one's value, and whether the difference is more than the draws' own."""
        noise = math.hypot(*(_error(one, self.measure) for one in (winner, other)))
        close = abs(self._worth(winner) - self._worth(other)) <= 2 * noise
        note = " (no clear difference: within two standard errors)" if close else ""
        return f"{other.contender.name} has {_number(other, self.measure)}{note}"

    def to_dict(self) -> dict[str, Any]:
        """As `compare --json` prints it."""
        best = {one.policy for one in self.best}
        return {
            "private": True,
            "workload": {"name": self.workload, "questions": self.n_questions, "cells": self.n_cells},
            "seeds": self.n_seeds,
            "ranked_by": self.measure.name,
            "policies": [_describe(one, best, is_on_frontier=one in self.frontier) for one in self.standings],
            "results": [row for one in self.standings for row in _results(one, self.measures)],
            "by_selectivity": [_band(one, band) for one in self.standings for band in one.bands],
            "best": plain(self.best),
            "not_comparable": not_comparable(),
        }


def _describe(one: Standing, best: set[str], *, is_on_frontier: bool) -> dict[str, Any]:
    contender = one.contender
    return {
        "policy": contender.name,
        "baseline": contender.is_baseline,
        "mechanism": contender.kind,
        "method": contender.method,
        "bound": one.bound,
        "bound_is": contender.bound.symbol,
        "bound_on": contender.bound.meaning,
        "epsilon": contender.epsilon,
        "feasible": one.reason is None,
        "reason": one.reason,
        "frontier": is_on_frontier,
        "best": not contender.is_baseline and contender.name in best,
        "outright": one.outright,
        "published": one.n_published,
        "not_covered": list(one.not_covered),
        "unanswered": one.n_unanswered,
        "failed_draws": one.n_failed,
    }


def _results(one: Standing, measures: tuple[Measure, ...]) -> list[dict[str, Any]]:
    rows = []
    for measure in measures:
        spread = one.spreads.get(measure.name)
        rows.append(
            {
                "policy": one.contender.name,
                "metric": measure.name,
                "value": one.value(measure),
                "spread": spread.deviation if spread else None,
                "values": list(spread.values) if spread else [],
            }
        )
    name = one.contender.name
    rows.append({"policy": name, "metric": "outright", "value": one.outright, "spread": None, "values": []})
    return rows


def _band(one: Standing, band: BandSpread) -> dict[str, Any]:
    return {
        "policy": one.contender.name,
        "from": band.low,
        "to": band.high,
        "cells": band.n_cells,
        **{name: spread.mean for name, spread in band.spreads.items()},
        "spread": {name: spread.deviation for name, spread in band.spreads.items()},
    }


def _number(one: Standing, measure: Measure) -> str:
    spread = one.spreads[measure.name]
    return f"{spread.mean:.4g}" + ("" if spread.deviation is None else f" ± {spread.deviation:.2g}")


def _error(one: Standing, measure: Measure) -> float:
    """The standard error of the mean over the draws; 0 with one draw."""
    error = one.spreads[measure.name].standard_error
    return 0.0 if math.isnan(error) else error


QUERIES = 300
"""How many questions are drawn unless another number is given."""
WORKLOADS: dict[str, Callable[[int], Workload]] = {
    "anatomy": lambda queries: AnatomyWorkload(n_questions=queries),
    "equality": lambda queries: EqualityPool(n_conditions=queries),
    "marginals": lambda queries: Marginals(),  # noqa: ARG005  (all of them, however many)
}


def find_workload(name: str | Path, queries: int = QUERIES) -> Workload:
    """A workload by its name, or the questions of an .sql file.

    >>> find_workload("anatomy", 50)
    AnatomyWorkload(n_questions=50, selectivity=0.01, most_quasi=7)
    >>> find_workload("marginals:3")
    Marginals(most_columns=3)
    """
    if str(name) in WORKLOADS:
        return WORKLOADS[str(name)](queries)
    kind, _, number = str(name).partition(":")
    if kind == "marginals" and number.isdecimal():
        return Marginals(most_columns=int(number))
    if Path(name).suffix == ".sql":
        return SqlWorkload.from_file(name)
    raise InputError(
        f"workload {str(name)!r} is unknown; {did_you_mean(str(name), WORKLOADS)}",
        hint="or give a file of questions whose name ends in .sql",
    )


def read_policies(paths: Iterable[str | Path]) -> dict[str, Policy]:
    """Policies by the names of their files; where two files have one name, by their paths."""
    files = [Path(path) for path in paths]
    stems = Counter(file.stem for file in files)
    names = [file.stem if stems[file.stem] == 1 else str(file) for file in files]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise InputError(f"policy {twice[0]} is given twice")
    return {name: Policy.from_file(file) for name, file in zip(names, files, strict=True)}


SEEDS = 3
"""How many releases are drawn of each contender unless another number is given."""


def compare_policies(
    policies: Mapping[str, Policy],
    *,
    workload: Workload | None = None,
    metrics: Sequence[str] = (),
    n_seeds: int = SEEDS,
    seed: int | None = None,
    progress: Progress = silent,
) -> Comparison:
    """Publish every policy several times into a temporary folder, and measure what the releases answer.

    Args:
        policies: By the name that tables and pictures use; all for one table.
        workload: What is asked; None: Anatomy's random questions.
        metrics: What is measured, the first one to rank by; none: the usual ones.
        n_seeds: How many times each is drawn; what differs between draws is the spread.
        seed: Makes the questions and the releases repeatable, but not OpenDP's noise.
        progress: Told after each draw.
    """
    if not policies:
        raise InputError("no policy is given: there is nothing to compare")
    if n_seeds < 1:
        raise InputError(f"seeds: {n_seeds} draws measure nothing", hint="at least 1; 3 show a spread")
    measures = measures_named(tuple(metrics))
    workload = workload or AnatomyWorkload()
    randomness = Randomness.fresh() if seed is None else Randomness.seeded(seed)
    shared = read_shared(policies, silent)
    questions = workload.questions(shared.original, randomness.stream("compare", "workload"))
    setting = _Arena(
        original=shared.original,
        questions=questions,
        measures=measures,
        n_seeds=n_seeds,
        randomness=randomness,
    )
    standings = setting.stand_all(shared, progress)
    return Comparison(
        workload=workload.name,
        n_questions=len(questions.sqls),
        n_cells=questions.n_cells,
        n_seeds=n_seeds,
        measures=measures,
        standings=tuple(standings),
    )


def sample_randomness(randomness: Randomness, contender: Contender, number: int) -> Randomness:
    """The key of one draw of a contender; no two draws share anything."""
    role = "baseline" if contender.is_baseline else "policy"
    key = randomness.derived_key("compare", role, contender.name, number)
    return Randomness(key=key, is_seeded=randomness.is_seeded)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Arena:
    """Where contenders meet: the table, what is asked of it, and how often each one draws."""

    original: Original
    questions: Questions
    measures: tuple[Measure, ...]
    n_seeds: int
    randomness: Randomness

    def stand_all(self, shared: Shared, progress: Progress) -> list[Standing]:
        """The policies first; then the baselines at the bounds that were kept, or at all if none was."""
        own = [policy_contender(name, policy, shared) for name, policy in shared.policies.items()]
        standings = [self.stand(one) for one in _announce_each(own, progress, "policies")]
        kept = [one for one in standings if one.reason is None] or standings
        others = baselines(shared, {one.contender.bound.largest for one in kept})
        return standings + [self.stand(one) for one in _announce_each(others, progress, "baselines")]

    def stand(self, contender: Contender) -> Standing:
        """What was measured of a contender, or why nothing could be."""
        drawn: list[Cells] = []
        manifests: list[list[Manifest]] = []
        values: dict[str, list[float]] = {measure.name: [] for measure in self.measures}
        reason = contender.reason
        n_failed = 0
        for number in range(self.n_seeds if reason is None else 0):
            try:
                drawn.append(self._draw(contender, number, values, manifests))
            except DaleniusError as error:
                reason = _reason(contender, error)
                n_failed += 1
        if not drawn:
            return Standing(contender=contender, spreads={}, reason=reason)
        return Standing(
            contender=contender,
            spreads={name: Spread.of(found) for name, found in values.items() if found},
            bands=bands_over_draws(drawn),
            n_unanswered=sum(cells.n_unanswered for cells in drawn),
            n_failed=n_failed,
            **_summarize(manifests),
        )

    def _draw(
        self,
        contender: Contender,
        number: int,
        values: dict[str, list[float]],
        manifests: list[list[Manifest]],
    ) -> Cells:
        randomness = sample_randomness(self.randomness, contender, number)
        with draw_sample(contender, self.original, randomness) as sample:
            cells = sample.answer_workload(self.questions)
            if sample.release is not None:
                manifests.append([part.manifest for part in sample.release.parts])
            for measure in self.measures:
                value = measure.measure(sample, cells)
                if value is not None:
                    values[measure.name].append(value)
        return cells


def _summarize(drawn: list[list[Manifest]]) -> dict[str, Any]:
    """What the releases of all draws say of themselves; nothing, where there are none."""
    if not drawn:
        return {}
    published = [sum(part.rows.published or 0 for part in parts) for parts in drawn]
    return {
        "outright": max(sum(part.outright or 0 for part in parts) for parts in drawn),
        "n_published": round(sum(published) / len(published)),
        "not_covered": tuple(dict.fromkeys(text for part in drawn[0] for text in part.not_covered)),
    }


def _announce_each(contenders: list[Contender], progress: Progress, what: str) -> Iterator[Contender]:
    """One after the other, saying how many are done."""
    for done, contender in enumerate(contenders):
        progress(what, done, len(contenders))
        yield contender
    progress(what, len(contenders), len(contenders))


def _reason(contender: Contender, error: DaleniusError) -> str:
    """Why a draw gave nothing. A policy that is wrong, not too strict, is an error of the comparison."""
    if isinstance(error, InternalError):
        raise error
    if not contender.is_baseline and not isinstance(error, PromiseNotMet):
        raise type(error)(f"{contender.name}: {error.message}", hint=error.hint) from error
    return error.message if error.hint is None else f"{error.message} ({error.hint})"
