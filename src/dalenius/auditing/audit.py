"""All attacks on one release, chosen by its mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.auditing.metadata import attack_metadata
from dalenius.auditing.order import (
    attack_bucket_numbers,
    attack_dealing,
    attack_row_order,
    attack_source_order,
    attack_table_order,
    source_positions,
)
from dalenius.auditing.original import read_original
from dalenius.auditing.several import attack_two_bucketizations, attack_two_perturbations
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError
from dalenius.mechanisms.alphabeta.attacks.case import ViewCase
from dalenius.mechanisms.alphabeta.attacks.views import (
    attack_all_views,
    attack_correlated_tuples,
    attack_exclusive_set,
    attack_independent_views,
    attack_one_tuple,
    attack_shared_noise,
    attack_views,
)
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.corruption import attack_corruption
from dalenius.mechanisms.bucketize.attacks.definetti import attack_definetti
from dalenius.mechanisms.bucketize.attacks.exclusions import attack_negative_association, learn_exclusions
from dalenius.mechanisms.bucketize.attacks.fakes import attack_fakes_by_exclusion
from dalenius.mechanisms.bucketize.attacks.linking import attack_linking
from dalenius.mechanisms.bucketize.attacks.pairs import RowPairs, draw_buckets
from dalenius.mechanisms.frapp.attacks.records import attack_frapp
from dalenius.mechanisms.perturb.attacks import linking as perturb_linking
from dalenius.mechanisms.perturb.attacks import priors as perturb_priors
from dalenius.mechanisms.perturb.attacks.case import PerturbCase
from dalenius.mechanisms.suppress.attacks.eligibility import attack_eligibility
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.release.series import earlier_views
from dalenius.threats.result import AttackResult, Audit

Attacks = Iterator[AttackResult]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """A release, its original, and other releases about the same people."""

    release: StoredRelease
    original: pa.Table
    also: tuple[StoredRelease, ...]
    randomness: Randomness


def audit_release(
    release: StoredRelease,
    original: Any,
    *,
    also: Iterable[StoredRelease] = (),
    seed: int | None = None,
    progress: Progress = silent,
) -> Audit:
    """Attack a release with its original at hand.

    Args:
        release: The release.
        original: The table that was published: a path, a data frame, or the policy (file) that published it.
        also: Other releases of the same table by the same mechanism, which an attacker may join with it.
        seed: Makes the attackers' own coins repeatable.
        progress: Told after each attack.
    """
    others = tuple(also)
    for stored in (release, *others):
        if stored.mechanism not in AUDITS or stored.mechanism != release.mechanism:
            raise InputError(f"releases of mechanism {stored.mechanism!r} cannot be audited here")
    if release.is_several_batches:
        raise InputError(
            f"{release.path.parent} holds {1 + len(release.earlier)} batches, each of its own people",
            hint=f"audit them one by one, e.g. {release.path}, each with its own table",
        )
    subject = Subject(
        release=release,
        original=read_original(original, release, progress),
        also=others,
        randomness=Randomness.fresh() if seed is None else Randomness.seeded(seed),
    )
    results: list[AttackResult] = []
    for result in AUDITS[release.mechanism](subject):
        results.append(result)
        progress("attacks", len(results), None)
    return Audit(attacks=tuple(results))


def _audit_buckets(subject: Subject) -> Attacks:
    case, stream = BucketCase.load(subject.release, subject.original), subject.randomness.stream
    yield attack_linking(case)
    yield attack_corruption(case, stream("audit", "corruption"))
    pairs = RowPairs.of(case, draw_buckets(case, stream("audit", "buckets")))
    exclusions = learn_exclusions(case)
    yield attack_negative_association(case, pairs, exclusions)
    if case.n_fakes:
        yield attack_fakes_by_exclusion(case, exclusions)
    yield attack_definetti(case, pairs, stream("audit", "definetti"))
    yield attack_row_order(case)
    yield attack_source_order(case)
    yield attack_bucket_numbers(case)
    yield attack_dealing(case)
    yield attack_metadata(subject.release, subject.original)
    promise = subject.release.manifest.promise
    if promise.get("suppression"):
        counts = np.bincount(case.value)
        yield attack_eligibility(
            counts[counts > 0].tolist(), int(promise["l"]), promise["suppression"]["method"]
        )
    for other in subject.also:
        yield from attack_two_bucketizations(case, BucketCase.load(other, subject.original))


def _audit_perturbation(subject: Subject) -> Attacks:
    case = PerturbCase.load(subject.release, subject.original)
    yield perturb_linking.attack_linking(case)
    yield perturb_linking.attack_retention(case)
    yield perturb_priors.attack_another_prior(case)
    yield perturb_priors.attack_corruption(case)
    position = source_positions(case)
    yield attack_table_order(position[position >= 0], int((position < 0).sum()))
    yield attack_metadata(subject.release, subject.original)
    for other in subject.also:
        yield from attack_two_perturbations(case, PerturbCase.load(other, subject.original))


def _audit_view(subject: Subject) -> Attacks:
    release, original = subject.release, subject.original
    if release.manifest.parameters.get("method") == "frapp":
        yield from attack_frapp(release, original)
    else:
        yield from _audit_alphabeta(subject)
    yield attack_metadata(release, original)


def _audit_alphabeta(subject: Subject) -> Attacks:
    case = ViewCase.load(subject.release, subject.original)
    yield attack_one_tuple(case)
    yield attack_views(case)
    series = [*earlier_views(subject.release), subject.release]
    if len(series) > 1:
        yield attack_all_views(case, series, subject.original)
    yield attack_correlated_tuples(case)
    yield attack_exclusive_set(case)
    own = {view.manifest.id for view in series}
    others = [other for other in subject.also if other.manifest.id not in own]
    if others:
        yield attack_independent_views(case, len(others))
    for other in others:
        yield attack_shared_noise(case, [subject.release, other], subject.original)


AUDITS: dict[str, Callable[[Subject], Attacks]] = {
    "bucketize": _audit_buckets,
    "perturb": _audit_perturbation,
    "alpha-beta": _audit_view,
}
"""The attacks on the releases of each mechanism."""
