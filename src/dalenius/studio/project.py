"""Where a studio keeps what was decided: a policy file, which is all its state, and nothing of the records.

Releases and reports go into the same folder. What is uploaded goes into a private folder that is removed when
the studio ends.
"""

from __future__ import annotations

import glob
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from dalenius.errors import InputError, PolicyError
from dalenius.files import PRIVATE, write_whole
from dalenius.plain import escape_controls
from dalenius.policy import Policy
from dalenius.release.folder import StoredRelease, draft_of
from dalenius.release.manifest import FILE_NAME
from dalenius.release.series import open_release

ROLES = ("unit", "identifiers", "quasi", "sensitive", "dropped")
_TITLE = "# Written by `dalenius studio`. Private: it tells about the table.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder with a policy file."""

    folder: Path
    uploads: Path

    @property
    def policy_file(self) -> Path:
        """The policy."""
        return self.folder / "policy.toml"

    def read(self) -> dict[str, Any]:
        """The policy as it is written; empty at first."""
        try:
            return tomllib.loads(self.policy_file.read_text(encoding="utf-8-sig"), parse_float=Decimal)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise PolicyError(
                f"{self.policy_file} cannot be read as a policy", hint="mend it, or move it away"
            ) from error

    def write(self, data: Mapping[str, Any]) -> None:
        """Keep what was decided; only its owner may read it."""
        write_whole(self.policy_file, _TITLE + to_toml(data), PRIVATE)

    def change(self, **sections: Any) -> dict[str, Any]:
        """Replace some sections; None removes one."""
        data = {**self.read(), **sections}
        kept = {name: section for name, section in data.items() if section is not None}
        self.write(kept)
        return kept

    def policy(self) -> Policy:
        """The policy as values, if it is whole."""
        return Policy.from_file(self.policy_file)

    def table(self) -> str:
        """Which table, and which state of its file: what was found out of another one is not shown."""
        spec = self.read().get("source")
        path = spec.get("path") if isinstance(spec, dict) else spec
        place = self.folder / str(path)
        try:
            found = [(file, file.stat()) for file in _files(place)]
        except OSError:
            return repr(spec)
        # a copy may have the older time of what it was copied from, but not of when it was put there
        states = [(str(file), at.st_mtime_ns, at.st_ctime_ns, at.st_size) for file, at in found]
        return repr((spec, states))

    def fingerprint(self) -> str:
        """Changes with every decision, so that what was computed for another policy is not shown."""
        try:
            return hashlib.sha256(self.policy_file.read_bytes()).hexdigest()[:16]
        except OSError:
            return ""

    def state(self) -> tuple[str, str]:
        """Of the table and of the policy: what was rehearsed, shown or confirmed is about one such state."""
        return self.table(), self.fingerprint()

    @property
    def release_path(self) -> Path | None:
        """Where the release goes."""
        name = self.read().get("release")
        return self.folder / str(name) if name else None

    def release(self) -> StoredRelease | None:
        """What can be asked: the release, or else its draft."""
        path = self.release_path
        for found in () if path is None else (path, draft_of(path)):
            if (found / FILE_NAME).exists():
                return open_release(found)
        return None

    def is_published(self) -> bool:
        """Whether the release is there, and not only its draft."""
        path = self.release_path
        return path is not None and (path / FILE_NAME).exists()


def _files(place: Path) -> list[Path]:
    """What a source reads: a file, all of a folder, or what a pattern stands for."""
    if place.is_dir():
        return sorted(place.rglob("*"))
    return [place] if place.exists() else sorted(map(Path, glob.glob(str(place), recursive=True)))


def to_toml(data: Mapping[str, Any]) -> str:
    """A policy as a file has it: what is no section first.

    >>> print(to_toml({"source": "t.csv", "columns": {"quasi": ["age"]}}), end="")
    source = "t.csv"
    <BLANKLINE>
    [columns]
    quasi = ["age"]
    """
    plain = [(key, value) for key, value in data.items() if not _is_section(key, value)]
    lines = [f"{_key(key)} = {_value(value)}" for key, value in plain]
    for name, section in data.items():
        if _is_section(name, section):
            lines += ["", f"[{_key(name)}]"]
            lines += [f"{_key(key)} = {_value(value)}" for key, value in section.items()]
    return "\n".join(lines) + "\n"


def _is_section(name: str, value: Any) -> bool:
    return isinstance(value, Mapping) and name != "source"


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    return name if is_bare else _value(name)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return str(value)
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {_value(part)}" for key, part in value.items())
            return f"{{ {inner} }}" if inner else "{}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
    return escape_controls(json.dumps(str(value), ensure_ascii=False))


def show_promise(section: Mapping[str, Any]) -> str:
    """The section `[promise]` in one line.

    >>> show_promise({"kind": "f-privacy", "default": {"cap": Decimal("0.5")}, "values": {"HIV": "1/30"}})
    'f-privacy; default: cap = 0.5; HIV at most 1/30'
    """
    parts = [str(section.get("kind"))]
    for key, value in section.items():
        if key == "values" and isinstance(value, Mapping):
            parts += [f"{name} at most {limit}" for name, limit in value.items()]
        elif key != "kind":
            shown = _value(value).strip("{} ") if isinstance(value, Mapping) else str(value)
            parts.append(f"{key}: {shown}" if isinstance(value, Mapping) else f"{key} = {shown}")
    return "; ".join(parts)


def number(text: str, what: str) -> Decimal | str:
    """A number that was typed: a decimal, per cent, or a fraction, which a policy has in quotes.

    >>> number("0.05", "limit"), number("5 %", "limit"), number("1/3", "limit"), number("1 in 3", "limit")
    (Decimal('0.05'), Decimal('0.05'), '1/3', '1/3')
    """
    text = text.strip().replace(",", ".")
    if text.endswith("%") and text[:-1].strip().replace(".", "", 1).isdigit():
        return Decimal(text[:-1].strip()) / 100
    parts = text.replace(" in ", "/").split("/")
    if len(parts) == 2 and all(part.strip().isdigit() for part in parts):
        return f"{parts[0].strip()}/{parts[1].strip()}"
    try:
        found = Decimal(text)
    except ArithmeticError as error:
        raise InputError(f"{what}: {text!r} is not a number", hint="e.g. 0.05, 5 % or 1/3") from error
    if not found.is_finite():
        raise InputError(f"{what}: {text!r} is not a number", hint="e.g. 0.05, 5 % or 1/3")
    return found
