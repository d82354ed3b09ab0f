"""A series of batches: the same policy on the people of day 1, day 2, …, each batch published by itself.

The policy's `release` is then a folder that holds them as `batch-1`, `batch-2`, … Every batch is eligible or
thinned on its own, so every promise is about one batch; the manifests say that a series weakens it.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from dalenius.engines.base import OpenedTable
from dalenius.errors import InputError, PolicyError, PromiseNotMet
from dalenius.mechanisms import registry
from dalenius.mechanisms.base import Draft, SeriesPlace
from dalenius.policy import Policy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.kinds import read_promise
from dalenius.release.build import describe_columns
from dalenius.release.folder import StoredRelease
from dalenius.release.ledger import open_ledger
from dalenius.release.manifest import FILE_NAME
from dalenius.release.series import NextInSeries, refuse_wrong_series, releases_in

_ASSUMES = ("nobody is in two batches of the series",)
_NOT_COVERED = (
    "what the batches of the series tell together: a series weakens every promise here, because one batch "
    "tells about the next (a value that is the commonest on one day is likely to be so on the next)",
)


def batch_folder(release: Path) -> Path:
    """Where the next batch goes."""
    if (release / FILE_NAME).exists():
        raise InputError(
            f"{release} is a release of its own, not the folder of a series",
            hint="choose another `release` in the policy for the series",
        )
    return release / f"batch-{len(releases_in(release)) + 1}"


def next_batch(policy: Policy, scan: OpenedTable) -> NextInSeries:
    """The batch to publish now.

    Raises:
        InputError: the policy has changed since the first batch, or this table is one of the batches.
    """
    assert policy.release is not None  # noqa: S101  (the caller has checked)
    earlier = releases_in(policy.release)
    ledger = open_ledger(policy.ledger)
    fingerprint = scan.fingerprint(ledger.key())
    series_id = secrets.token_hex(16)
    if earlier:
        refuse_wrong_series(earlier, ledger, policy.release)
        _refuse_other_policy(earlier[0], policy, scan)
        series_id = earlier[0].series.id
        for entry in ledger.series(series_id):
            if entry.source_fingerprint == fingerprint:
                raise InputError(
                    f"this table was published already, as batch {entry.series_index} of the series",
                    hint="a batch holds people that are in no other; --source names today's table",
                )
    return NextInSeries(
        kind="batches",
        place=SeriesPlace(id=series_id, index=len(earlier) + 1, of=None),
        ledger=ledger,
        fingerprint=fingerprint,
        records=None,
        earlier=earlier,
    )


def as_batch(draft: Draft) -> Draft:
    """The draft with what its being one of a series adds to the statement."""
    statement = draft.statement
    return replace(
        draft,
        statement=replace(
            statement,
            assumes=(*statement.assumes, *_ASSUMES),
            not_covered=(*statement.not_covered, *_NOT_COVERED),
        ),
    )


def _refuse_other_policy(first: StoredRelease, policy: Policy, scan: OpenedTable) -> None:
    """All batches have the columns, types and promise of the first, so that they can be added up."""
    ours = {column.name: column for column in describe_columns(policy, scan.schema)}
    theirs = {column.name: column for column in first.manifest.columns}
    changed = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if changed:
        raise InputError(
            "columns of this batch differ from those of the first in name, role or type: "
            + ", ".join(changed),
            hint="all batches of a series have the same columns; `dalenius inspect` shows the types",
        )
    if not (_same_promise(first, policy) and _same_stage(first, policy)):
        raise InputError(
            "the policy has changed since the first batch: another promise or method of suppression",
            hint="a series has one promise; another one is a new series in another folder",
        )


def _same_promise(first: StoredRelease, policy: Policy) -> bool:
    """Whether the policy promises what the first batch does: every value of it, the threshold that it had."""
    promise = policy.promise
    if first.manifest.promise["kind"] != promise.kind:
        return False
    stated = read_promise(first.manifest.promise)
    if not isinstance(promise, FPrivacy) or not isinstance(stated, FPrivacy):
        return stated == promise
    mechanism = registry.room(first.mechanism, first.method, "mechanism").MECHANISM
    with first.connect() as connection:
        counts = mechanism.count_values(connection, first.manifest)
    try:
        return counts is None or promise.thresholds(counts) == stated.thresholds(counts)
    except (PolicyError, PromiseNotMet):  # it names a value that the first batch does not have, or must
        return False


def _same_stage(first: StoredRelease, policy: Policy) -> bool:
    before = registry.stage_room("suppress", "published").read(first.manifest)
    now = policy.suppress
    return (None if before is None else before.method) == (None if now is None else now.method)
