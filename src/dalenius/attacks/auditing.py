"""All attacks on one release, chosen by its mechanism."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from dalenius.attacks.bucket_case import BucketCase
from dalenius.attacks.corruption import attack_corruption
from dalenius.attacks.definetti import attack_definetti
from dalenius.attacks.linking import attack_linking
from dalenius.attacks.metadata import attack_metadata
from dalenius.attacks.negative_association import attack_negative_association
from dalenius.attacks.order import (
    attack_bucket_numbers,
    attack_dealing,
    attack_row_order,
    attack_source_order,
)
from dalenius.attacks.original import read_original
from dalenius.attacks.pairs import RowPairs, draw_buckets
from dalenius.attacks.result import AttackResult, Audit
from dalenius.engines.base import Progress, silent
from dalenius.errors import InputError
from dalenius.randomness import Randomness
from dalenius.release.reader import StoredRelease

Attacks = Iterator[AttackResult]


def audit_release(
    release: StoredRelease, original: Any, *, seed: int | None = None, progress: Progress = silent
) -> Audit:
    """Attack a release with its original at hand.

    Args:
        release: The release.
        original: The table that was published: a path, a data frame, or the policy (file) that published it.
        seed: Makes the attackers' own coins repeatable.
        progress: Told after each attack.
    """
    if release.mechanism not in AUDITS:
        raise InputError(f"releases of mechanism {release.mechanism!r} cannot be audited")
    randomness = Randomness.fresh() if seed is None else Randomness.seeded(seed)
    table = read_original(original, release, progress)
    results: list[AttackResult] = []
    for result in AUDITS[release.mechanism](release, table, randomness):
        results.append(result)
        progress("attacks", len(results), None)
    return Audit(attacks=tuple(results))


def _audit_buckets(release: StoredRelease, original: pa.Table, randomness: Randomness) -> Attacks:
    case = BucketCase.load(release, original)
    yield attack_linking(case)
    yield attack_corruption(case, randomness.stream("audit", "corruption"))
    pairs = RowPairs.of(case, draw_buckets(case, randomness.stream("audit", "buckets")))
    yield attack_negative_association(case, pairs)
    yield attack_definetti(case, pairs, randomness.stream("audit", "definetti"))
    yield attack_row_order(case)
    yield attack_source_order(case)
    yield attack_bucket_numbers(case)
    yield attack_dealing(case)
    yield attack_metadata(release, original)


AUDITS: dict[str, Callable[[StoredRelease, pa.Table, Randomness], Attacks]] = {"bucketize": _audit_buckets}
"""The attacks on the releases of each mechanism."""
