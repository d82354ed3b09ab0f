"""Counts that a law decides, beside what it says, and the verdict on all counts of an attack.

Each facet is a group of tests. The groups of an attack share its part of the audit's false alarm equally, and
the cells of a group share its part, so that facets with many cells do not drown the others.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.arrays import Floats, Ints
from dalenius.threats.chance import SHARE, log_bennett, log_chernoff
from dalenius.threats.result import AttackResult, Threat

_SHOWN = 5
"""How many groups a result tells about."""
_FIELDS = ("observed", "expected", "variance", "trials")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counts:
    """Counts that a law decides, one a cell: a group of tests."""

    name: str
    observed: Floats
    expected: Floats
    variance: Floats
    trials: Floats
    """Of how many things each count is; what it is, at most."""
    label: Callable[[int], str]
    largest: float = 1.0
    """What one thing adds at most, less its expectation."""

    def p_values(self) -> Floats:
        """How likely each count is as far from its expectation, at most; both ways count."""
        excess = np.abs(self.observed - self.expected)
        excess = np.where(excess > 1e-9 * np.maximum(self.expected, 1.0), excess, 0.0)
        logs = log_bennett(excess, self.variance, self.largest)
        if self.largest == 1.0:
            logs = np.minimum(
                logs, np.where(excess > 0, log_chernoff(self.observed, self.expected, self.trials), 0.0)
            )
        return np.asarray(np.minimum(1.0, 2 * np.exp(logs)))

    @property
    def tested(self) -> Ints:
        """The cells that can show anything."""
        return np.flatnonzero(self.trials > 0)

    def at(self, cell: int) -> Counts:
        """One of the cells, which keeps nothing else of the group in memory."""
        arrays = {name: getattr(self, name)[cell : cell + 1].copy() for name in _FIELDS}
        text = self.label(cell)
        return replace(self, label=lambda _: text, **arrays)

    def joined(self) -> Counts:
        """Of two counts a cell, both together."""
        return replace(self, **{name: getattr(self, name).reshape(-1, 2).sum(axis=1) for name in _FIELDS})


def sum_by(keys: NDArray[np.integer[Any]], weights: Any, size: int) -> Floats:
    """The sum of the weights of each key, from 0."""
    return np.bincount(keys, weights, size).astype(np.float64)


def make_counts(
    name: str, observed: Any, expected: Any, variance: Any, trials: Any, labels: Iterable[str] = ()
) -> Counts:
    """A group of a few counts."""
    texts = tuple(labels) or (name,)
    arrays = (np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in (observed, expected, variance, trials))
    seen, mean, spread, n = np.broadcast_arrays(*arrays)
    return Counts(
        name=name,
        observed=seen,
        expected=mean,
        variance=spread,
        trials=n,
        label=lambda cell: texts[min(cell, len(texts) - 1)],
    )


def learnt(halves: Counts, spread: Floats, largest: float, n_outcomes: int = 1) -> Counts:
    """Weights by which one half deviates, tried on the other; and the other way round.

    Args:
        halves: by cell, half and outcome, of different things.
        spread: a variance by which those of weighted sums are bounded, count by count.
        largest: what one thing adds at most, where weights are at most 1.
        n_outcomes: how many outcomes there are, each by itself.
    """
    shape = (-1, 2, n_outcomes)
    observed, expected, v, bound = (
        a.reshape(shape) for a in (halves.observed, halves.expected, halves.variance, spread)
    )
    weight = (observed - expected) / (v + np.maximum(v.mean(axis=(0, 1)), 1e-12))
    weight = (weight / np.maximum(np.abs(weight).max(axis=0), 1e-300))[:, ::-1]  # of the other half
    names = ("the even half, as learnt from the odd one", "the odd half, as learnt from the even one")
    return Counts(
        name=f"{halves.name}, learnt",
        observed=(weight * observed).sum(axis=0).ravel(),
        expected=(weight * expected).sum(axis=0).ravel(),
        variance=(weight**2 * bound).sum(axis=0).ravel(),
        trials=halves.trials.reshape(shape).sum(axis=0).ravel(),
        label=lambda i: (
            f"{halves.label(i % n_outcomes)}: {names[i // n_outcomes]}" if n_outcomes > 1 else names[i]
        ),
        largest=max(largest, 1.0 + 1e-12),  # weighted sums are not counts: Chernoff's bound is not for them
    )


def judge_laws(
    name: str,
    threat: Threat,
    groups: Iterable[Counts],
    *,
    n_things: int,
    n_failed: int,
    advice: str,
    certain: tuple[str, ...] = (),
) -> AttackResult:
    """The strongest deviation from some laws, against what chance reaches in all these tests.

    Args:
        name: of the attack.
        threat: who would use a deviation.
        groups: of tests; they are used up one by one.
        n_things: how many people, rows or tuples are looked at.
        n_failed: how many are not.
        advice: what to do.
        certain: what is wrong whatever chance does.
    """
    best: list[tuple[float, int, Counts, int]] = []
    n_groups = n_tests = 0
    for group in groups:
        tested = group.tested
        if not len(tested):
            continue
        p = group.p_values()[tested]
        place = int(p.argmin())
        n_groups, n_tests = n_groups + 1, n_tests + len(tested)
        entry = (
            -min(1.0, float(p[place]) * len(tested)),
            n_groups,
            group.at(int(tested[place])),
            len(tested),
        )
        heapq.heappush(best, entry)
        if len(best) > _SHOWN:
            heapq.heappop(best)
    found = sorted(best, key=lambda entry: (-entry[0], entry[1]))
    p_value = 0.0 if certain else min(1.0, -found[0][0] * n_groups) if found else 1.0
    detail = {
        "tests": n_tests,
        "groups": n_groups,
        "strongest": [_finding(-p * n_groups, group) for p, _, group, _ in found],
        "certain": list(certain),
    }
    success = _deviation(found[0][2]) if found else 0.0
    return AttackResult(
        name=name,
        threat=threat,
        success=1.0 if certain else success,
        interval=None if certain or not found else _interval(found[0][2]),
        baseline=0.0,
        bound=_reach(found[0][2], SHARE / (n_groups * found[0][3])) if found else 1.0,
        holds=p_value > SHARE,
        p_value=p_value,
        n_trials=n_things,
        n_failed=n_failed,
        detail=detail,
        advice=advice,
    )


def _finding(p_value: float, cell: Counts) -> dict[str, Any]:
    return {
        "what": cell.name,
        "where": cell.label(0),
        "observed": float(cell.observed[0]),
        "expected": float(cell.expected[0]),
        "of": float(cell.trials[0]),
        "p_value": min(1.0, p_value),
    }


def _deviation(cell: Counts) -> float:
    """How far the count is from its expectation, as a part of all things that it is of."""
    return min(1.0, float(abs(cell.observed[0] - cell.expected[0]) / cell.trials[0]))


def _interval(cell: Counts) -> tuple[float, float]:
    width = 2 * math.sqrt(float(cell.variance[0])) / float(cell.trials[0])
    return max(0.0, _deviation(cell) - width), min(1.0, _deviation(cell) + width)


def _reach(cell: Counts, level: float) -> float:
    """The deviation that chance reaches with that probability at most, on the side that was seen."""
    side = 1.0 if cell.observed[0] >= cell.expected[0] else -1.0
    low, high = 0.0, float(cell.trials[0])
    for _ in range(30):
        middle = (low + high) / 2
        moved = replace(cell, observed=cell.expected + side * middle)
        low, high = (low, middle) if moved.p_values()[0] <= level else (middle, high)
    return min(1.0, high / float(cell.trials[0]))
