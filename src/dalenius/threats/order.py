"""Order: does the order of rows, or of numbers, tell anything of the source's order?

Nothing of it may show more than chance. Each test's success is a share that would be its baseline if order
were random; the bound is what chance reaches once in 10⁶ releases.
"""

from __future__ import annotations

import math

import numpy as np

from dalenius.threats.interval import FALSE_ALARM, rank_correlation
from dalenius.threats.original import People
from dalenius.threats.result import AttackResult, Threat, computed

SOURCE_ORDER = Threat(
    knows="the order of the source's rows and everybody's quasi-identifiers",
    wants="which rows and buckets belong to which values",
    covered=True,
)
_FEW = 30
"""Rank correlations of fewer are not tested."""


def attack_table_order(people: People) -> AttackResult:
    """Do the rows of a table follow the source's order?"""
    position = people.position_of_row()
    known = position[position >= 0]
    n = len(known)
    found = abs(rank_correlation(np.arange(n), known))
    return correlated(
        "source order",
        {"source order": found},
        n=n,
        n_failed=len(position) - n,
        recommendation="rows must be in random order, not in the source's",
    )


def correlated(
    name: str, found: dict[str, float], *, n: int, n_failed: int, recommendation: str
) -> AttackResult:
    """The strongest of some rank correlations over n things, against what chance reaches."""
    strongest, limit = max(found.values()), _correlation_limit(n, len(found))
    return computed(
        name,
        SOURCE_ORDER,
        posterior=strongest,
        interval=(0.0, min(1.0, strongest + 2 / math.sqrt(max(n - 1, 1)))),
        baseline=0.0,
        bound=limit,
        holds=strongest <= limit,
        n_trials=n,
        n_failed=n_failed,
        detail={"rank_correlation": found},
        recommendation=recommendation,
    )


def _correlation_limit(n: int, n_tests: int) -> float:
    """A correlation of independent orders has variance 1/(n−1) and lighter tails than the normal one."""
    if n < _FEW:
        return 1.0
    return min(1.0, math.sqrt(2 * math.log(2 * n_tests / FALSE_ALARM) / (n - 1)))
