"""Releases that belong together: a folder whose sub-folders are the releases of one series."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.base import SeriesPlace, Statement
from dalenius.release.folder import StoredRelease, sha256
from dalenius.release.ledger import Ledger
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
    place: SeriesPlace
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


def rehearse_first(kind: Literal["views", "batches"], of: int | None, ledger: Ledger) -> NextInSeries:
    """The first release of a series that nobody publishes: neither the folder nor the ledger is looked at."""
    place = SeriesPlace(id=secrets.token_hex(16), index=1, of=of)
    return NextInSeries(kind=kind, place=place, ledger=ledger, fingerprint="", records=None, earlier=())


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
