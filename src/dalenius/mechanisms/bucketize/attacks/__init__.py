"""Attacks on bucketized releases."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dalenius.mechanisms.bucketize.attacks.association import (
    attack_definetti,
    attack_negative_association,
    learn_exclusions,
)
from dalenius.mechanisms.bucketize.attacks.case import BucketCase, RowPairs, draw_buckets
from dalenius.mechanisms.bucketize.attacks.dates import attack_dates
from dalenius.mechanisms.bucketize.attacks.dealing import attack_law_of_dealing, attack_law_of_numbers
from dalenius.mechanisms.bucketize.attacks.fakes import attack_fakes_by_exclusion, attack_law_of_fakes
from dalenius.mechanisms.bucketize.attacks.linking import (
    attack_corruption,
    attack_linking,
    attack_linking_groups,
    attack_near_numbers,
    attack_two_bucketizations,
)
from dalenius.mechanisms.bucketize.attacks.order import (
    attack_bucket_numbers,
    attack_dealing,
    attack_places,
    attack_row_order,
    attack_source_order,
)
from dalenius.mechanisms.registry import stage_rooms
from dalenius.randomness import Randomness
from dalenius.release.series import earlier_in_series
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult
from dalenius.threats.traces import attack_metadata


def attack(subject: Subject) -> Iterator[AttackResult]:
    """All attacks, on the stages before the buckets too."""
    release, original = subject.release, subject.original
    case = BucketCase.load(release, original)
    if case.has_dates:
        yield from _attack_date(case, subject)
        return
    yield attack_linking(case)
    if case.groups:
        yield attack_linking_groups(case)
    if case.proximity:
        yield attack_near_numbers(case, case.proximity)
    yield _attack_others_known(case, subject)
    yield from _learn(case, subject.randomness)
    yield attack_row_order(case)
    yield attack_source_order(case)
    yield attack_bucket_numbers(case)
    yield attack_dealing(case)
    yield attack_places(case)
    yield attack_law_of_numbers(case)
    yield attack_law_of_dealing(case)
    yield attack_metadata(subject, (*release.columns("quasi"), *release.columns("sensitive")))
    for other in subject.also:
        yield from attack_two_bucketizations(case, BucketCase.load(other, original))
    del case  # stages find the people by themselves
    for stage in stage_rooms("attacks"):
        yield from stage.attack(subject)


def _attack_date(case: BucketCase, subject: Subject) -> Iterator[AttackResult]:
    """One of several dates: its buckets are of several plans, and list people who have left."""
    release, original = subject.release, subject.original
    yield from attack_dates(case, [BucketCase.load(other, original) for other in earlier_in_series(release)])
    yield _attack_others_known(case, subject)
    yield from _learn(case, subject.randomness)
    yield attack_metadata(subject, (*release.columns("quasi"), *release.columns("sensitive")))


def _attack_others_known(case: BucketCase, subject: Subject) -> AttackResult:
    """Corruption, with advice that a policy like this one can take: fakes do not go with everything."""
    found = attack_corruption(case, subject.randomness.stream("audit", "corruption"))
    manifest = subject.release.manifest
    is_plain = not {"groups", "suppression", "within", "having"} & set(manifest.promise)
    if case.n_fakes or (is_plain and not case.has_dates and "regions" not in manifest.parameters):
        return found
    return replace(found, advice=_WITHOUT_FAKES)


_WITHOUT_FAKES = (
    "nothing hides the last person's value from who knows all others of the bucket, and fakes do not go with "
    "such releases: coarsen or drop quasi-identifiers, so that fewer can be told apart"
)


def _learn(case: BucketCase, randomness: Randomness) -> Iterator[AttackResult]:
    """Attackers who see every row beside every value of its bucket: much memory, which is free after them."""
    pairs = RowPairs.of(case, draw_buckets(case, randomness.stream("audit", "buckets")))
    exclusions = learn_exclusions(case)
    yield attack_negative_association(case, pairs, exclusions)
    if case.n_fakes:
        yield attack_fakes_by_exclusion(case, exclusions)
        yield attack_law_of_fakes(case)
    yield attack_definetti(case, pairs, randomness.stream("audit", "definetti"))
