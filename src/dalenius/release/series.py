"""Releases that belong together: a folder whose sub-folders are the releases of one series."""

from __future__ import annotations

from pathlib import Path

from dalenius.errors import ReleaseCorrupt
from dalenius.release.manifest import FILE_NAME
from dalenius.release.reader import StoredRelease


def is_series(folder: Path) -> bool:
    """Whether the folder is none but holds releases."""
    return folder.is_dir() and not (folder / FILE_NAME).exists() and any(folder.glob(f"*/{FILE_NAME}"))


def releases_in(folder: Path) -> tuple[StoredRelease, ...]:
    """The releases of a series' folder, in order; none if it has none yet."""
    if not folder.is_dir():
        return ()
    found = [StoredRelease.open(path.parent) for path in sorted(folder.glob(f"[!.]*/{FILE_NAME}"))]
    if any(not isinstance(release.manifest["series"], dict) for release in found):
        raise ReleaseCorrupt(f"{folder} holds releases that do not belong to a series")
    if len({release.manifest["series"].get("id") for release in found}) > 1:
        raise ReleaseCorrupt(f"{folder} holds releases of different series")
    return tuple(sorted(found, key=lambda release: int(release.manifest["series"]["index"])))


def earlier_views(release: StoredRelease) -> tuple[StoredRelease, ...]:
    """The views that a view of a series was drawn in view of, as far as they are in its folder."""
    series = release.manifest["series"] or {}
    if release.earlier or series.get("kind") != "views" or series["index"] == 1:
        return release.earlier
    beside = (
        StoredRelease.open(path.parent) for path in sorted(release.path.parent.glob(f"[!.]*/{FILE_NAME}"))
    )
    same = [other for other in beside if (other.manifest["series"] or {}).get("id") == series["id"]]
    same = [other for other in same if other.manifest["series"]["index"] < series["index"]]
    return tuple(sorted(same, key=lambda other: int(other.manifest["series"]["index"])))


def open_release(path: str | Path) -> StoredRelease:
    """A release; for a series' folder its last release, together with those before it."""
    folder = Path(path)
    if not is_series(folder):
        return StoredRelease.open(folder)
    *earlier, last = releases_in(folder)
    return StoredRelease(path=last.path, manifest=last.manifest, earlier=tuple(earlier))
