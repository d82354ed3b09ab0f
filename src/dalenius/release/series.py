"""Releases that belong together: a folder whose sub-folders are the releases of one series.

A series of views: which one comes next, and whether it may.

The promise is planned for v views of one unchanged table, and the later ones are drawn in view of the earlier
ones. With `views = v` above 1 the policy's `release` is a folder that holds them as `view-1`, `view-2`, …
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from dalenius.engines.base import OpenedTable
from dalenius.errors import InputError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms.alphabeta.published import read
from dalenius.mechanisms.base import Place, Statement
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease, changed_files, sha256
from dalenius.release.ledger import Entry, Ledger, open_ledger
from dalenius.release.manifest import FILE_NAME, SeriesEntry


def is_series(folder: Path) -> bool:
    """Whether the folder is none but holds releases."""
    return folder.is_dir() and not (folder / FILE_NAME).exists() and any(folder.glob(f"*/{FILE_NAME}"))


def releases_in(folder: Path) -> tuple[StoredRelease, ...]:
    """The releases of a series' folder, in order; none if it has none yet."""
    if not folder.is_dir():
        return ()
    found = [StoredRelease.open(path.parent) for path in sorted(folder.glob(f"[!.]*/{FILE_NAME}"))]
    if any(release.manifest.series is None for release in found):
        raise ReleaseCorrupt(f"{folder} holds releases that do not belong to a series")
    if len({release.series.id for release in found}) > 1:
        raise ReleaseCorrupt(f"{folder} holds releases of different series")
    return tuple(sorted(found, key=lambda release: release.series.index))


def earlier_views(release: StoredRelease) -> tuple[StoredRelease, ...]:
    """The views that a view of a series was drawn in view of, as far as they are in its folder."""
    series = release.manifest.series
    if release.earlier or series is None or series.kind != "views" or series.index == 1:
        return release.earlier
    beside = (
        StoredRelease.open(path.parent) for path in sorted(release.path.parent.glob(f"[!.]*/{FILE_NAME}"))
    )
    same = [other for other in beside if other.manifest.series and other.series.id == series.id]
    same = [other for other in same if other.series.index < series.index]
    return tuple(sorted(same, key=lambda other: other.series.index))


def open_release(path: str | Path) -> StoredRelease:
    """A release; for a series' folder its last release, together with those before it."""
    folder = Path(path)
    if not is_series(folder):
        return StoredRelease.open(folder)
    *earlier, last = releases_in(folder)
    return StoredRelease(path=last.path, manifest=last.manifest, earlier=tuple(earlier))


@dataclass(frozen=True, slots=True, kw_only=True)
class NextInSeries:
    """The release of a series that a run is about to publish."""

    kind: Literal["views", "batches"]
    place: Place
    ledger: Ledger
    fingerprint: str
    records: str | None
    """The fingerprint of the whole records; None for batches, which are of different tables."""
    earlier: tuple[StoredRelease, ...]

    def entry(self) -> SeriesEntry:
        """The manifest's `series`."""
        return SeriesEntry(id=self.place.id, kind=self.kind, index=self.place.index, of=self.place.of)

    def refuse_other_parameters(self, statement: Statement) -> None:
        """All views of a series have the parameters of the first."""
        if not self.earlier:
            return
        first = self.earlier[0].manifest
        for ours, theirs in (
            (statement.parameters, first.parameters),
            (statement.promise, first.promise),
        ):
            changed = sorted(key for key in ours if ours[key] != theirs.get(key))
            if changed:
                raise InputError(
                    f"the policy has changed since the first view: {', '.join(changed)} would be different",
                    hint="all views of a series have one promise and one domain",
                )


def views_planned(policy: Policy) -> int:
    """How many views the policy's table will have; 1: no series."""
    return policy.mechanism.views


def next_folder(policy: Policy) -> Path:
    """Where the next release goes: the policy's `release`, or the next view inside it."""
    assert policy.release is not None  # noqa: S101  (the caller has checked)
    if views_planned(policy) == 1:
        return policy.release
    return policy.release / f"view-{len(releases_in(policy.release)) + 1}"


def next_view(policy: Policy, scan: OpenedTable) -> NextInSeries | None:
    """The view to publish now; None where the policy is for a single release.

    Raises:
        PromiseNotMet: all views are published, or the table has changed since the first.
    """
    planned = views_planned(policy)
    if planned == 1:
        return None
    assert policy.release is not None  # noqa: S101
    earlier = releases_in(policy.release)
    ledger = open_ledger(policy.ledger)
    fingerprint, records = scan.fingerprint(ledger.key()), scan.record_fingerprint(ledger.key())
    if earlier:
        refuse_wrong_series(earlier, ledger, policy.release)
        _refuse_one_too_many(earlier, planned)
        _refuse_changed_files(earlier)
        _refuse_changed_table(earlier, ledger, fingerprint, records)
        series_id = earlier[0].series.id
    else:
        series_id = secrets.token_hex(16)
    place = Place(
        id=series_id,
        index=len(earlier) + 1,
        of=planned,
        earlier=tuple(tuple(release.files("view")) for release in earlier),
    )
    return NextInSeries(
        kind="views",
        place=place,
        ledger=ledger,
        fingerprint=fingerprint,
        records=records,
        earlier=earlier,
    )


def refuse_wrong_series(earlier: tuple[StoredRelease, ...], ledger: Ledger, folder: Path) -> None:
    """What is in the folder must be what the ledger remembers, whole and in order."""
    known = ledger.series(earlier[0].series.id)
    found = [(release.manifest.id, sha256(release.path / FILE_NAME)) for release in earlier]
    if not known:
        raise InputError(
            f"the ledger {ledger.path} does not know the releases in {folder}",
            hint="publish with the ledger that the first one was published with ([ledger] path)",
        )
    if found != [(entry.id, entry.manifest_sha256) for entry in known]:
        raise InputError(
            f"{folder} holds {len(found)} releases of this series and the ledger remembers {len(known)}, "
            "or a manifest was changed",
            hint="put the releases back as they were published",
        )


def _refuse_changed_files(earlier: tuple[StoredRelease, ...]) -> None:
    """The next view is drawn in view of what the earlier ones have shown, so that must be what is read."""
    changed = [f"{release.path}: {change}" for release in earlier for change in changed_files(release)]
    if changed:
        raise InputError(
            changed[0], hint="put it back as it was published: the next view is drawn in view of all of them"
        )


def _is_same(entry: Entry, fingerprint: str, records: str) -> bool:
    """By whole records; a view that an older version published is known by the other fingerprint alone."""
    return entry.source_fingerprint == fingerprint and entry.record_fingerprint in (None, records)


def _refuse_one_too_many(earlier: tuple[StoredRelease, ...], planned: int) -> None:
    first = earlier[0].manifest
    law, promise = read(first).law, first.promise
    if len(earlier) < law.views:
        if planned != law.views:
            raise InputError(
                f"the series was planned for {law.views} views, and the policy now says {planned}",
                hint=f"set views = {law.views}",
            )
        return
    d = Fraction(promise["d"])
    # Appearing once more: the likelihood ratio grows by 1/e, the smallest rate at which noise comes again.
    odds = law.largest_ratio() / law.decay * d / (1 - d)
    raise PromiseNotMet(
        f"all {law.views} views that the promise was planned for are published: a tuple that appears in one "
        f"more would have a posterior of {float(odds / (1 + odds)):.3f}, and "
        f"{float(Fraction(promise['gamma'])):g} was promised",
        hint="ask the views that there are; a policy for more views needs more noise from the first one on",
    )


def _refuse_changed_table(
    earlier: tuple[StoredRelease, ...], ledger: Ledger, fingerprint: str, records: str
) -> None:
    first = earlier[0].manifest
    known = ledger.series(earlier[0].series.id)
    if all(_is_same(entry, fingerprint, records) for entry in known):
        return
    law = read(first).law
    d = Fraction(first.promise["d"])
    index = len(earlier) + 1
    # A tuple that joins the table now and appears: s against b_i, which has decayed since the first view.
    odds = law.retention / law.fresh_rate(index) * d / (1 - d)
    raise PromiseNotMet(
        f"the table has changed since the first view: a tuple that is new in it and appears in view {index} "
        f"would have a posterior of {float(odds / (1 + odds)):.3f}, and "
        f"{float(Fraction(first.promise['gamma'])):g} was promised",
        hint="a series is bound to one unchanged table; publish the changed table as a release of its own",
    )
