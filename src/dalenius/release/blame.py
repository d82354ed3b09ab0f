"""Whose fault it is that something goes wrong with a release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dalenius.errors import DaleniusError, ReleaseCorrupt
from dalenius.release.folder import StoredRelease, list_malformed


@contextmanager
def blamed_on(*releases: StoredRelease) -> Iterator[None]:
    """What goes wrong with releases of which one does not verify is that release's fault, and no bug."""
    try:
        yield
    except DaleniusError:
        raise
    except list_malformed() as error:
        from dalenius.release.verify import verify_release  # what is as it should be is asked without it

        for release in releases:
            failed = [check for check in verify_release(release).checks if not check.ok]
            if failed:
                raise ReleaseCorrupt(
                    f"{release.path} is damaged: {failed[0].name}: {failed[0].detail}",
                    hint=f"dalenius verify {release.path}",
                ) from error
        raise
