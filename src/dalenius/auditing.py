"""All attacks on one release, with its original at hand: a table, or the policy that published it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius.engines.base import Progress, silent
from dalenius.engines.local.engine import LocalEngine
from dalenius.errors import InputError, SourceError, did_you_mean
from dalenius.mechanisms.registry import find_room
from dalenius.policy import Policy
from dalenius.randomness import Randomness
from dalenius.release.admission import admit
from dalenius.release.blame import blamed_on
from dalenius.release.folder import StoredRelease
from dalenius.sql import identifiers
from dalenius.tables.source import Source, open_source, scanning
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
    for one in (release, *others):
        admit(one)
    subject = Subject(
        release=release,
        original=read_original(original, release, progress),
        also=others,
        randomness=Randomness.fresh() if seed is None else Randomness.seeded(seed),
    )
    results: list[AttackResult] = []
    with blamed_on(release, *others):
        for result in room.attack(subject):
            results.append(result)
            progress("attacks", len(results), None)
    return Audit.of(results)


def read_original(original: Any, release: StoredRelease, progress: Progress = silent) -> pa.Table:
    """The published columns of the original: a policy (file), whose recoding is applied, or a table."""
    if isinstance(original, str | Path) and str(original).endswith(".toml"):
        original = Policy.from_file(original)
    names = (*release.columns("quasi"), *release.columns("sensitive"))
    if isinstance(original, Policy):
        _refuse_missing(original.source, original.columns.published, names)
        with LocalEngine().open(original, None, progress) as scan:
            return scan.source.table().select(list(names))
    source = open_source(original)
    _refuse_missing(source, source.column_names, names)
    with scanning(source) as (connection, scan):
        table = connection.sql(f"SELECT {identifiers(names)} FROM {scan}").to_arrow_table()
    if not table.num_rows:
        raise SourceError(f"{source.name} has no rows", hint="give the table that was published")
    return table


def _refuse_missing(source: Source, has: Sequence[str], names: Sequence[str]) -> None:
    for name in names:
        if name not in has:
            raise InputError(
                f"{source.name} has no column {name!r}, which the release shows; {did_you_mean(name, has)}"
            )
