"""A series of views: which one comes next, and whether it may.

The promise is planned for v views of one unchanged table, and the later ones are drawn in view of the earlier
ones. With `views = v` above 1 the policy's `release` is a folder that holds them as `view-1`, `view-2`, …
"""

from __future__ import annotations

import secrets
from pathlib import Path

from dalenius.engines.base import OpenedTable
from dalenius.errors import InputError, PromiseNotMet
from dalenius.mechanisms.base import PlannedSeries, SeriesPlace
from dalenius.mechanisms.stages import serial_mechanism
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease, changed_files
from dalenius.release.ledger import Entry, Ledger, open_ledger
from dalenius.release.series import NextInSeries, refuse_wrong_series, releases_in


def view_folder(release: Path) -> Path:
    """Where the next view goes."""
    return release / f"view-{len(releases_in(release)) + 1}"


def next_view(policy: Policy, scan: OpenedTable) -> NextInSeries:
    """The view to publish now.

    Raises:
        PromiseNotMet: all views are published, or the table has changed since the first.
    """
    assert policy.release is not None  # noqa: S101  (the caller has checked)
    earlier = releases_in(policy.release)
    ledger = open_ledger(policy.ledger)
    fingerprint, records = scan.fingerprint(ledger.key()), scan.record_fingerprint(ledger.key())
    index, n_views = len(earlier) + 1, policy.mechanism.views
    if earlier:
        refuse_wrong_series(earlier, ledger, policy.release)
        planned = serial_mechanism(policy).planned_series(earlier[0].manifest, index)
        _refuse_one_too_many(planned, index, n_views)
        _refuse_changed_files(earlier)
        if not _is_known(earlier[0], ledger, fingerprint, records):
            raise _changed_table(planned, index)
    place = SeriesPlace(
        id=earlier[0].series.id if earlier else secrets.token_hex(16),
        index=index,
        of=n_views,
        earlier=tuple(tuple(release.files(release.manifest.tables[0].name)) for release in earlier),
    )
    return NextInSeries(
        kind="views",
        place=place,
        ledger=ledger,
        fingerprint=fingerprint,
        records=records,
        earlier=earlier,
    )


def _refuse_one_too_many(planned: PlannedSeries, index: int, n_views: int) -> None:
    if index > planned.views:
        raise PromiseNotMet(
            f"all {planned.views} views that the promise was planned for are published: a tuple that appears "
            f"in one more would have a posterior of {planned.if_one_more:.3f}, and {planned.promised:g} was "
            "promised",
            hint="ask the views that there are; a policy for more views needs more noise from the first one "
            "on",
        )
    if n_views != planned.views:
        raise InputError(
            f"the series was planned for {planned.views} views, and the policy now says {n_views}",
            hint=f"set views = {planned.views}",
        )


def _refuse_changed_files(earlier: tuple[StoredRelease, ...]) -> None:
    """The next view is drawn in view of what the earlier ones have shown, so that must be what is read."""
    changed = [f"{release.path}: {change}" for release in earlier for change in changed_files(release)]
    if changed:
        raise InputError(
            changed[0], hint="put it back as it was published: the next view is drawn in view of all of them"
        )


def _is_known(first: StoredRelease, ledger: Ledger, fingerprint: str, records: str) -> bool:
    """Whether the table is the one that all views are of."""
    return all(_is_same(entry, fingerprint, records) for entry in ledger.series(first.series.id))


def _is_same(entry: Entry, fingerprint: str, records: str) -> bool:
    """By whole records; a view that an older version published is known by the other fingerprint alone."""
    return entry.source_fingerprint == fingerprint and entry.record_fingerprint in (None, records)


def _changed_table(planned: PlannedSeries, index: int) -> PromiseNotMet:
    return PromiseNotMet(
        f"the table has changed since the first view: a tuple that is new in it and appears in view {index} "
        f"would have a posterior of {planned.if_changed:.3f}, and {planned.promised:g} was promised",
        hint="a series is bound to one unchanged table; publish the changed table as a release of its own",
    )
