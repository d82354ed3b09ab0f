"""Whether the files of a release are the ones that were published."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from dalenius.engines.preparing import sha256
from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.base import Check
from dalenius.release.manifest import FILE_NAME
from dalenius.release.reader import StoredRelease

STRANGE = (
    duckdb.Error,
    pa.ArrowException,
    ArithmeticError,
    AssertionError,
    LookupError,
    TypeError,
    ValueError,
)
"""What may come of reading tables and manifests that no mechanism made."""


def check_files(release: StoredRelease) -> Check:
    """Every file that the manifest lists is there, unchanged, and no other is."""
    listed = _listed(release)
    present = {
        path.relative_to(release.path).as_posix() for path in release.path.rglob("*") if path.is_file()
    }
    extra = sorted(present - set(listed) - {FILE_NAME})
    problems = [*changed_files(release), *(f"{name} is not in the manifest" for name in extra)]
    n_files = f"{len(listed)} files match" if len(listed) > 1 else f"{len(listed)} file matches"
    detail = "; ".join(problems) or f"{n_files} the SHA-256 of the manifest"
    return Check(name="files", ok=not problems, detail=detail)


def refuse_changed(release: StoredRelease) -> None:
    """Only what was published can be asked; a file beside it does no harm."""
    for one in (*release.earlier, release):
        changes = changed_files(one)
        if changes:
            raise ReleaseCorrupt(
                f"{one.path} is damaged: {'; '.join(changes)}", hint="`dalenius verify` lists what is wrong"
            )


def changed_files(release: StoredRelease) -> list[str]:
    """What is missing or was changed, a sentence each."""
    listed = sorted(_listed(release).items())
    missing = [name for name, _ in listed if not (release.path / name).is_file()]
    changed = [
        name for name, hashed in listed if name not in missing and sha256(release.path / name) != hashed
    ]
    return [
        *(f"{name} is missing" for name in missing),
        *(f"{name} is not the file that was published (SHA-256 differs)" for name in changed),
    ]


def _listed(release: StoredRelease) -> dict[str, str]:
    return {file["file"]: file["sha256"] for table in release.manifest["tables"] for file in table["files"]}
