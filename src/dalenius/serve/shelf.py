"""The releases that a service offers: checked when it starts, and described from themselves alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.errors import InputError, PromiseNotMet, did_you_mean
from dalenius.pages.words import unit_of
from dalenius.release.folder import StoredRelease
from dalenius.release.series import open_release
from dalenius.release.verify import verify_release
from dalenius.reporting.published import n_published, promise_in_words, subject_of


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offered:
    """A release under the name by which analysts ask it."""

    name: str
    number: int
    """Its place among the paths that the workers have."""
    release: StoredRelease

    def summary(self) -> dict[str, Any]:
        """A line of the list."""
        manifest = self.release.manifest
        return {
            "id": self.name,
            "title": subject_of(self.release),
            "mechanism": manifest.mechanism.kind,
            "published": n_published(self.release),
            "counts": unit_of(self.release),
            "created": manifest.created,
            "for_publication": manifest.for_publication,
            "promise": promise_in_words(self.release),
        }

    def details(self) -> dict[str, Any]:
        """Everything: what is promised and what is not, the columns, the manifest."""
        manifest = self.release.manifest
        columns = [{"name": c.name, "role": c.role, "type": c.type} for c in manifest.columns]
        return {**self.summary(), "columns": columns, "manifest": manifest.to_dict()}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shelf:
    """All releases of a service."""

    offered: tuple[Offered, ...]

    @classmethod
    def open(cls, paths: Iterable[Path]) -> Shelf:
        """Check every release and name it by its folder; two of one name get a number.

        Raises:
            PromiseNotMet: a release does not hold what it promises: it is not offered to anybody.
        """
        offered: list[Offered] = []
        for number, path in enumerate(paths):
            release = open_release(path)
            failed = [check for check in verify_release(release).checks if not check.ok]
            if failed:
                raise PromiseNotMet(
                    f"{path} is not offered: {failed[0].name}: {failed[0].detail}",
                    hint=f"`dalenius verify {path}` lists what is wrong",
                )
            name = _new_name(path, {other.name for other in offered})
            offered.append(Offered(name=name, number=number, release=release))
        if not offered:
            raise InputError("no release is named", hint="`dalenius serve patients.release`")
        return cls(offered=tuple(offered))

    def find(self, name: str) -> Offered:
        """The release of that name."""
        found = next((each for each in self.offered if each.name == name), None)
        if found is None:
            known = [each.name for each in self.offered]
            raise InputError(f"there is no release {name!r}", hint=did_you_mean(name, known))
        return found


def _new_name(path: Path, taken: set[str]) -> str:
    base = path.resolve().name.removesuffix(".release") or "release"
    names = (base if n == 1 else f"{base}-{n}" for n in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
