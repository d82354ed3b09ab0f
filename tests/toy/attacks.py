"""Attacks on releases of roulette."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dalenius.threats.original import CommonCodes, People, Subject
from dalenius.threats.result import AttackResult, Threat, make_result
from dalenius.threats.traces import attack_metadata, attack_table_order
from tests.toy.published import read

LINKING = Threat(
    knows="everybody's quasi-identifiers, so the person's published value",
    wants="the person's sensitive value",
    covered=True,
)


def attack(subject: Subject) -> Iterator[AttackResult]:
    """All attacks."""
    release, original = subject.release, subject.original
    quasi, sensitive = release.columns("quasi"), release.columns("sensitive")
    published = release.read("data", [*quasi, *sensitive])
    people = People.find(original, published, quasi)
    value, row_value = CommonCodes.of(sensitive, (original, published)).of_rows(sensitive)
    yield _link(subject, people.value_of_row(value), row_value, np.bincount(value))
    yield attack_table_order(people)
    yield attack_metadata(subject, (*quasi, *sensitive))


def _link(subject: Subject, truth: np.ndarray, seen: np.ndarray, counts: np.ndarray) -> AttackResult:
    """Take the published value as it is: it is right with probability 1 − s + s/m."""
    wheel = read(subject.release.manifest).wheel
    known = truth >= 0
    return make_result(
        "linking",
        LINKING,
        successes=float((truth == seen)[known].sum()),
        trials=int(known.sum()),
        baseline=float(counts.max() / counts.sum()),
        bound=float(1 - wheel.spin + wheel.spin / wheel.n_values),
        n_failed=int((~known).sum()),
        advice="the wheel was spun less often than the manifest states: publish again",
    )
