"""Eligibility: which value was so common that records of it had to be withheld?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dalenius.mechanisms.suppress.plan import plan_suppression
from dalenius.mechanisms.suppress.published import read
from dalenius.threats.original import CommonCodes, Subject
from dalenius.threats.result import AttackResult, Threat

THREAT = Threat(
    knows="the algorithm, the number of records, and what was published of them",
    wants="which sensitive value was the commonest of the whole table",
    covered=True,
)


def attack(subject: Subject) -> Iterator[AttackResult]:
    """Nothing where no record could be withheld."""
    stated = read(subject.release.manifest)
    if stated is not None:
        sensitive = subject.release.columns("sensitive")
        (value,) = CommonCodes.of(sensitive, (subject.original,)).of_rows(sensitive)
        yield attack_eligibility(np.bincount(value).tolist(), stated.l, stated.method)


def attack_eligibility(counts: Sequence[int], ell: int, method: str) -> AttackResult:
    """The largest posterior over what can be published of a table with these counts.

    >>> attack_eligibility([10, 4, 2, 1, 1], 3, "safe").holds
    True
    """
    plan = plan_suppression(counts, ell, method)
    worst = plan.worst_posterior
    posterior = 1 / len(counts) if worst is None else float(worst.value)
    bound = None if method == "randomized" else 1 / ell
    holds = None if bound is None or worst is None else worst.low * ell <= 1
    return AttackResult(
        name="eligibility",
        threat=Threat(knows=THREAT.knows, wants=THREAT.wants, covered=bound is not None),
        success=posterior,
        interval=None if worst is None else (float(worst.low), float(worst.high)),
        baseline=1 / len(counts),
        bound=bound,
        holds=holds,
        detail={"how": "no suppression" if worst is None else worst.how},
        advice='[suppress] method = "safe" keeps 1/l' if posterior * ell > 1 else None,
    )
