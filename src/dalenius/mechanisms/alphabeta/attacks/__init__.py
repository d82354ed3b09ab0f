"""Attacks on αβ views."""

from __future__ import annotations

from collections.abc import Iterator

from dalenius.mechanisms.alphabeta.attacks.laws import attack_laws
from dalenius.mechanisms.alphabeta.attacks.views import (
    ViewCase,
    attack_all_views,
    attack_correlated_tuples,
    attack_exclusive_set,
    attack_independent_views,
    attack_one_tuple,
    attack_shared_noise,
    attack_views,
)
from dalenius.mechanisms.alphabeta.published import read
from dalenius.release.series import earlier_views
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult
from dalenius.threats.traces import attack_metadata


def attack(subject: Subject) -> Iterator[AttackResult]:
    """All attacks."""
    release, original = subject.release, subject.original
    case = ViewCase.load(release, original)
    yield attack_one_tuple(case)
    yield attack_views(case)
    series = [*earlier_views(release), release]
    if len(series) > 1:
        yield attack_all_views(case, series, original)
    yield attack_correlated_tuples(case)
    yield attack_exclusive_set(case)
    own = {view.manifest.id for view in series}
    others = [other for other in subject.also if other.manifest.id not in own]
    if others:
        yield attack_independent_views(case, len(others))
    for other in others:
        yield attack_shared_noise(case, [release, other], original)
    yield from attack_laws(read(release.manifest), release, tuple(series[:-1]), original)
    yield attack_metadata(subject, genuine=())  # noise may be any tuple of the domain, in the table or not
