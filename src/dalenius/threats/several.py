"""Several releases about the same people: what they tell together, and whether they share coins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.threats.chance import Chance
from dalenius.threats.original import People
from dalenius.threats.result import AttackResult, Threat, against_chance, measured

_TOGETHER = Threat(
    knows="two releases about the same people, and everybody's quasi-identifiers",
    wants="a person's sensitive value, from both together",
    covered=False,
)
_COINS = Threat(
    knows="two releases about the same people",
    wants="signs that both were made with the same coins, so that one tells what the other did",
    covered=True,
)
_MOST_PEOPLE = 200_000
_MOST_CELLS = 16_000_000
"""Of people, and of people × values; of more, evenly spaced people are looked at."""
_AGAIN = (
    "do not publish independent releases of one table: publish once, or use views that are planned together"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linked:
    """The people whose row is known in both releases."""

    truth: Ints
    first: Ints
    second: Ints
    """Row numbers in each release."""
    n_failed: int


def link(one: People, two: People, value: Ints, n_values: int) -> Linked:
    """People whose quasi-identifiers are unique in two releases of one original, with everybody's value."""
    first, second = one.row_of_person(), two.row_of_person()
    both = np.flatnonzero((first >= 0) & (second >= 0))
    most = max(1, min(_MOST_PEOPLE, _MOST_CELLS // n_values))
    both = both[:: len(both) // most + 1]
    return Linked(truth=value[both], first=first[both], second=second[both], n_failed=len(first) - len(both))


def expect_right(belief: Floats, truth: Ints) -> float:
    """People × values of beliefs: expected successes of guessing the likeliest; equals share."""
    is_best = belief >= belief.max(axis=1, keepdims=True) * (1 - 1e-12)
    rows = np.arange(len(truth))
    return float((is_best[rows, truth] / is_best.sum(axis=1)).sum())


def two_releases(people: Linked, *, right: float, right_alone: float, baseline: float) -> AttackResult:
    """What an attack on both releases gets right, beside the same on the first alone."""
    trials = len(people.truth)
    return measured(
        "two releases",
        _TOGETHER,
        successes=right,
        trials=trials,
        baseline=baseline,
        control=right_alone / max(trials, 1),
        n_failed=people.n_failed,
        advice=_AGAIN,
    )


def shared_coins(hits: float, expected: float, trials: int, n_failed: int = 0) -> AttackResult:
    """How often two releases agree, beside how often coins of their own would."""
    return against_chance(
        "shared coins",
        _COINS,
        hits=hits,
        trials=trials,
        # agreements are pairs, all but independent: their variance is below twice their mean
        chance=Chance(expected=expected, variance=2 * expected, largest=2.0),
        n_failed=n_failed,
        advice="the two releases share their randomness: publish without a seed",
    )
