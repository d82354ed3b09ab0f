"""The outcome of a comparison: a row per contender, the frontier, and the best at every bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dalenius.evaluate.contender import Contender, not_comparable
from dalenius.evaluate.measures import Measure
from dalenius.evaluate.metrics import BandSpread, Spread
from dalenius.plain import plain


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """All contenders on one workload. It was made with the original: it is private."""

    workload: str
    n_questions: int
    n_cells: int
    n_seeds: int
    measures: tuple[Measure, ...]
    """The first one ranks."""
    standings: tuple[Standing, ...]

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
            "policies": [
                _described(one, best, is_on_frontier=one in self.frontier) for one in self.standings
            ],
            "results": [row for one in self.standings for row in _results(one, self.measures)],
            "by_selectivity": [_band(one, band) for one in self.standings for band in one.bands],
            "best": plain(self.best),
            "not_comparable": not_comparable(),
        }


def _described(one: Standing, best: set[str], *, is_on_frontier: bool) -> dict[str, Any]:
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
