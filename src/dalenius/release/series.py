"""Releases that belong together: a folder whose sub-folders are the releases of one series.

A series of views: the promise is planned for v views, of one unchanged table or of one that changes, and the
later ones are drawn in view of the earlier ones. With `views = v` above 1 the policy's `release` is a folder
that holds them as `view-1`, `view-2`, …

A series of batches: the same policy on the people of day 1, day 2, …, each batch published by itself. The
policy's `release` is then a folder that holds them as `batch-1`, `batch-2`, … Every batch is eligible or
thinned on its own, so every promise is about one batch; the manifests say that a series weakens it.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dalenius.errors import InputError, PolicyError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms import registry
from dalenius.mechanisms.base import Draft, PlannedSeries, SeriesPlace, Statement
from dalenius.plain import escape_controls
from dalenius.promises import read_promise
from dalenius.promises.f_privacy import FPrivacy
from dalenius.release.folder import StoredRelease, changed_files, describe_columns, sha256
from dalenius.release.manifest import FILE_NAME, SeriesEntry

if TYPE_CHECKING:  # what is published is checked, and asked, without what publishes
    from dalenius.engines.base import OpenedTable
    from dalenius.policy import Policy
    from dalenius.release.dates import NextDate
    from dalenius.release.ledger import Entry, Ledger
    from dalenius.tables.histogram import Histogram

Kind = Literal["views", "batches", "dates"]


_NAMED = 10
"""So many releases are named of a folder that holds several."""


def is_series(folder: Path) -> bool:
    """Whether the folder is none but holds releases."""
    return folder.is_dir() and not (folder / FILE_NAME).exists() and any(folder.glob(f"*/{FILE_NAME}"))


def releases_in(folder: Path) -> tuple[StoredRelease, ...]:
    """The releases of a series' folder, in order; none if it has none yet."""
    if not folder.is_dir():
        return ()
    found = [StoredRelease.open(path.parent) for path in sorted(folder.glob(f"[!.]*/{FILE_NAME}"))]
    alone = [release.path for release in found if release.manifest.series is None]
    if alone and len(alone) == len(found):
        raise _several(folder, alone)
    if alone:
        raise ReleaseCorrupt(f"{folder} holds releases that do not belong to a series")
    if len({release.series.id for release in found}) > 1:
        raise ReleaseCorrupt(f"{folder} holds releases of different series")
    return tuple(sorted(found, key=lambda release: release.series.index))


def _several(folder: Path, releases: Sequence[Path]) -> InputError:
    """A folder of releases that have nothing to do with each other is none of them."""
    shown = [escape_controls(path.name) for path in releases[:_NAMED]]
    more = "" if len(releases) == len(shown) else f", and {len(releases) - len(shown)} more"
    holds = f"holds {len(releases)} of them" if len(releases) > 1 else "holds one"
    return InputError(
        f"{folder} is not a release, but {holds}: {', '.join(shown)}{more}",
        hint=f"give the path of one, e.g. `dalenius verify {escape_controls(str(releases[0]))}`",
    )


def earlier_in_series(release: StoredRelease) -> tuple[StoredRelease, ...]:
    """The views or dates before this one of its series, as far as they are in its folder."""
    series = release.manifest.series
    if release.earlier or series is None or series.kind == "batches" or series.index == 1:
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

    kind: Kind
    place: SeriesPlace
    ledger: Ledger
    records: str | None
    """The fingerprint of the whole records; None for batches, which are of different tables."""
    earlier: tuple[StoredRelease, ...]
    date: NextDate | None = None
    """Who is in the table of the next date."""

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
            changed = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
            if changed:
                raise InputError(
                    f"the policy has changed since the first view: {', '.join(changed)} would be different",
                    hint="all views of a series have one promise, one law and one domain; a series that an "
                    'older version began goes on with method = "paper"',
                )


def rehearse_first(kind: Kind, of: int | None, ledger: Ledger) -> NextInSeries:
    """The first release of a series that nobody publishes: neither the folder nor the ledger is looked at."""
    place = SeriesPlace(id=secrets.token_hex(16), index=1, of=of)
    return NextInSeries(kind=kind, place=place, ledger=ledger, records=None, earlier=())


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


@contextmanager
def series_folder(release: Path, target: Path) -> Iterator[None]:
    """The folder of a series, made for its first release and removed if that does not come to be."""
    is_new = target != release and not release.exists() and release.parent.is_dir()
    if is_new:
        release.mkdir()
    try:
        yield
    except BaseException:
        if is_new:
            release.rmdir()
        raise


def _ledger_of(policy: Policy) -> Ledger:
    from dalenius.release.ledger import open_ledger

    return open_ledger(policy.ledger)


def next_view(policy: Policy, scan: OpenedTable) -> NextInSeries:
    """The view to publish now.

    Raises:
        PromiseNotMet: all views are published, or the table has changed since the first and may not.
    """
    from dalenius.mechanisms.stages import serial_mechanism

    assert policy.release is not None  # noqa: S101  (the caller has checked)
    earlier = releases_in(policy.release)
    ledger = _ledger_of(policy)
    records = scan.record_fingerprint(ledger.key())
    index, n_views = len(earlier) + 1, policy.mechanism.views
    if earlier:
        refuse_wrong_series(earlier, ledger, policy.release)
        planned = serial_mechanism(policy).planned_series(earlier[0].manifest, index)
        _refuse_one_too_many(planned, index, n_views)
        _refuse_changed_files(earlier)
        if not planned.may_change and not _is_known(earlier[0], ledger, scan, records):
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


def _is_known(first: StoredRelease, ledger: Ledger, scan: OpenedTable, records: str) -> bool:
    """Whether the table is the one that all views are of."""
    views = ledger.series(first.series.id)
    known = _fingerprints(scan, ledger, views)
    return all(_is_same(view, known, records) for view in views)


def _is_same(entry: Entry, known: Collection[str], records: str) -> bool:
    """By whole records; a view that an older version published is known by the other fingerprint alone."""
    return entry.source_fingerprint in known and entry.record_fingerprint in (None, records)


def _fingerprints(scan: OpenedTable, ledger: Ledger, entries: Sequence[Entry]) -> set[str]:
    """By which these entries would know the table; some of them an earlier version may have made."""
    from dalenius.tables.sketch import BY_CELLS

    key = ledger.key()
    known = scan.fingerprint(key)
    are_new = all(entry.source_fingerprint.startswith(BY_CELLS) for entry in entries)
    return {known, scan.earlier_fingerprint(key)} if known.startswith(BY_CELLS) and not are_new else {known}


def _changed_table(planned: PlannedSeries, index: int) -> PromiseNotMet:
    tells = (
        f"a tuple that is new in it, and appears from view {index} on or later, would have a posterior of up "
        f"to {planned.if_changed:.3f}, and {planned.promised:g} was promised"
    )
    if planned.if_changed <= planned.promised:
        tells = "the noise of its views was planned for one table"
    return PromiseNotMet(
        f"the table has changed since the first view: {tells}",
        hint="ask the views that there are. This series is bound to the table that it began with, and a "
        "release of the changed table beside it would tell the same or more. A series whose table may change "
        "is planned so from its first view on: `views = 5, changing = true` under [mechanism]",
    )


_ASSUMES = ("nobody is in two batches of the series",)
_NOT_COVERED = (
    "what the batches of the series tell together: a series weakens every promise here, because one batch "
    "tells about the next (a value that is the commonest on one day is likely to be so on the next)",
)


_ONE = {"batches": "batch", "dates": "date", "views": "view"}


def next_folder(kind: Kind, release: Path) -> Path:
    """Where the next release of a series goes."""
    if kind == "batches" and (release / FILE_NAME).exists():
        raise InputError(
            f"{release} is a release of its own, not the folder of a series",
            hint="choose another `release` in the policy for the series",
        )
    return release / f"{_ONE[kind]}-{len(releases_in(release)) + 1}"


def next_batch(policy: Policy, scan: OpenedTable) -> NextInSeries:
    """The batch to publish now.

    Raises:
        InputError: the policy has changed since the first batch, or this table is one of the batches.
    """
    assert policy.release is not None  # noqa: S101  (the caller has checked)
    earlier = releases_in(policy.release)
    ledger = _ledger_of(policy)
    series_id = secrets.token_hex(16)
    if earlier:
        refuse_wrong_series(earlier, ledger, policy.release)
        _refuse_other_policy(earlier[0], policy, scan)
        series_id = earlier[0].series.id
        batches = ledger.series(series_id)
        known = _fingerprints(scan, ledger, batches)
        for entry in batches:
            if entry.source_fingerprint in known:
                raise InputError(
                    f"this table was published already, as batch {entry.series_index} of the series",
                    hint="a batch holds people that are in no other; --source names today's table",
                )
    return NextInSeries(
        kind="batches",
        place=SeriesPlace(id=series_id, index=len(earlier) + 1, of=None),
        ledger=ledger,
        records=None,
        earlier=earlier,
    )


def next_date(policy: Policy, scan: OpenedTable) -> NextInSeries:
    """The date to publish now.

    Raises:
        InputError: the policy has changed since the first date, or the people cannot be known again.
    """
    from dalenius.release.dates import NextDate, new_series_id

    earlier = () if policy.release is None else releases_in(policy.release)
    ledger = _ledger_of(policy)
    if earlier and policy.release is not None:
        refuse_wrong_series(earlier, ledger, policy.release)
        _refuse_other_policy(earlier[0], policy, scan)
        _refuse_changed_files(earlier)
        _refuse_other_rule(earlier, policy)
    series_id = earlier[0].series.id if earlier else new_series_id()
    return NextInSeries(
        kind="dates",
        place=SeriesPlace(id=series_id, index=len(earlier) + 1, of=None),
        ledger=ledger,
        records=None,
        earlier=earlier,
        date=NextDate.of(policy, scan, ledger, series_id, earlier),
    )


def _refuse_other_rule(earlier: tuple[StoredRelease, ...], policy: Policy) -> None:
    """People who once left must not come back because the rule is another one, nor the other way round."""
    rules = [release.manifest.parameters.get("changed") for release in earlier]
    stated = [rule for rule in rules if rule is not None]
    if stated and policy.changed != stated[-1]:
        raise InputError(
            f"the series was published with [series] changed = {stated[-1]!r}",
            hint="one rule holds for all dates from the first one that states it",
        )


def published_counts(policy: Policy) -> tuple[Histogram, ...]:
    """How often each batch so far has each value, as far as their tables tell."""
    found = []
    for release in () if policy.release is None else releases_in(policy.release):
        mechanism = registry.room(release.mechanism, release.method, "mechanism").MECHANISM
        with release.connect() as connection:
            found.append(mechanism.count_values(connection, release.manifest))
    return tuple(counts for counts in found if counts is not None)


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
    one = _ONE[first.series.kind]
    ours = {column.name: column for column in describe_columns(policy, scan.schema)}
    theirs = {column.name: column for column in first.manifest.columns}
    changed = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    if changed:
        raise InputError(
            f"columns of this {one} differ from those of the first in name, role or type: "
            + ", ".join(changed),
            hint="a series has the same columns throughout; `dalenius inspect` shows the types",
        )
    if not (_same_promise(first, policy) and _same_stage(first, policy)):
        raise InputError(
            f"the policy has changed since the first {one}: another promise or method of suppression",
            hint="a series has one promise, that of its first release; another one is for other people, as a "
            "new series in another folder",
        )


def _same_promise(first: StoredRelease, policy: Policy) -> bool:
    """Whether the policy promises what the first batch does: every value of it, the threshold that it had."""
    promise = policy.promise
    if first.manifest.promise["kind"] != promise.kind:
        return False
    stated = read_promise(first.manifest.promise)
    if not isinstance(promise, FPrivacy) or not isinstance(stated, FPrivacy):
        return stated == promise
    if set(stated.groups) != set(promise.groups):
        return False
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
