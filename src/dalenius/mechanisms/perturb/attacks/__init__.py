"""Attacks on perturbed releases."""

from __future__ import annotations

from collections.abc import Iterator

from dalenius.mechanisms.perturb.attacks.laws import PerturbCase, attack_laws
from dalenius.mechanisms.perturb.attacks.linking import (
    attack_another_prior,
    attack_corruption,
    attack_linking,
    attack_relatives,
    attack_retention,
    attack_two_perturbations,
)
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult
from dalenius.threats.traces import attack_metadata, attack_table_order


def attack(subject: Subject) -> Iterator[AttackResult]:
    """All attacks."""
    release, original = subject.release, subject.original
    case = PerturbCase.load(release, original)
    yield attack_linking(case)
    yield attack_retention(case)
    yield attack_another_prior(case)
    yield attack_corruption(case)
    if case.stated.is_for_any_prior:
        yield attack_relatives(case)
    yield attack_table_order(case.people)
    yield from attack_laws(case)
    yield attack_metadata(subject, (*release.columns("quasi"), *release.columns("sensitive")))
    for other in subject.also:
        yield from attack_two_perturbations(case, PerturbCase.load(other, original))
