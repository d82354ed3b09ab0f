"""All attacks on one release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dalenius.auditing.original import read_original
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError
from dalenius.mechanisms.registry import find_room
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult, Audit


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
    others, room = tuple(also), find_room(release.mechanism, release.method, "attacks")
    unlike = [other.mechanism for other in others if other.mechanism != release.mechanism]
    if room is None or unlike:
        strange = release.mechanism if room is None else unlike[0]
        raise InputError(f"releases of mechanism {strange!r} cannot be audited here")
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
    for result in room.attack(subject):
        results.append(result)
        progress("attacks", len(results), None)
    return Audit(attacks=tuple(results))
