"""What a source needs beside its path, where it cannot be told from the file.

::

    source = { path = "t.csv", encoding = "latin-1", delimiter = ";", decimal = ",", missing = ["NA", "-99"] }
    source = { path = "t.xlsx", sheet = "2024" }
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from dalenius.errors import PolicyError, did_you_mean, refuse_unknown_keys
from dalenius.plain import escape_controls

Labels = Literal["codes", "labels"]
LABELS: tuple[Labels, ...] = get_args(Labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """What was said about a file; None: it is found out, or the usual.

    >>> SourceOptions.of({"decimal": ","}).to_toml(Path("t.csv"))
    '{ path = "t.csv", decimal = "," }'
    """

    encoding: str | None = None
    """Of a text file: any that Python knows, e.g. latin-1, cp1252, utf-16."""
    delimiter: str | None = None
    quote: str | None = None
    """One character, or an empty text: nothing is quoted."""
    decimal: str | None = None
    """The mark before decimals; a point unless stated."""
    thousands: str | None = None
    header: bool | None = None
    """Whether the first line names the columns; None: it does, unless it looks like a record."""
    missing: tuple[str, ...] | None = None
    """Texts that mean that a value is missing, beside the empty field."""
    dates: str | None = None
    """How days are written, e.g. %d.%m.%Y; ISO dates (2026-01-31) need nothing."""
    sheet: str | None = None
    """Of a workbook, by its name."""
    table: str | None = None
    """Of a database file."""
    labels: Labels | None = None
    """Of SPSS, Stata and SAS: what is read of a value that has a label."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SourceOptions:
        """Check what a policy or the command line says."""
        refuse_unknown_keys(given, OPTIONS, "source")
        texts = {
            key: _text(key, given[key])
            for key in OPTIONS
            if key in given and key not in ("header", "missing")
        }
        header = given.get("header")
        if header is not None and not isinstance(header, bool):
            raise PolicyError(f"source: header ({header!r}) must be true or false")
        checked: dict[str, Any] = {**texts, "header": header, "missing": _missing(given.get("missing"))}
        _check(checked)
        return cls(**checked)

    def given(self) -> dict[str, Any]:
        """What was said, by key."""
        found = {key: getattr(self, key) for key in OPTIONS}
        return {key: value for key, value in found.items() if value is not None}

    def to_toml(self, path: str | Path) -> str:
        """The `source` of a policy."""
        said = self.given()
        if not said:
            return _toml(str(path))
        written = {"path": str(path), **said}
        return "{ " + ", ".join(f"{key} = {_toml(value)}" for key, value in written.items()) + " }"

    def refuse_others(self, known: tuple[str, ...], what: str) -> None:
        """An option that says nothing about this kind of file was meant for another one."""
        for key in self.given():
            if key not in known:
                usual = f"it has {', '.join(known)}" if known else "it has none"
                raise PolicyError(
                    f"source: {key} says nothing about {what}",
                    hint=f"options of {what}: {usual}; leave {key} out",
                )


OPTIONS = tuple(field.name for field in fields(SourceOptions))


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise PolicyError(f"source: {key} ({value!r}) must be a text")
    return str(value)  # sheet = 2024


def _missing(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    listed = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(code, str | int) and not isinstance(code, bool) for code in listed):
        raise PolicyError("source: missing must be a list of texts", hint='e.g. missing = ["NA", "-99"]')
    return tuple(map(str, listed))


def _check(checked: Mapping[str, Any]) -> None:
    encoding = checked.get("encoding")
    try:
        codecs.lookup(encoding or "utf-8")
    except (LookupError, ValueError) as error:
        raise PolicyError(
            f"source: encoding {encoding!r} is unknown", hint="e.g. utf-8, latin-1, cp1252, utf-16, mac-roman"
        ) from error
    for key in ("delimiter", "decimal", "thousands"):
        if checked.get(key) is not None and len(checked[key]) != 1:
            raise PolicyError(f"source: {key} ({checked[key]!r}) must be one character")
    if len(checked.get("quote") or "") > 1:
        raise PolicyError(f"source: quote ({checked['quote']!r}) must be one character, or an empty text")
    if checked.get("decimal", ".") not in (".", ","):
        raise PolicyError(f"source: decimal ({checked['decimal']!r}) must be a point or a comma")
    thousands = checked.get("thousands")
    if thousands is not None and (
        thousands == checked.get("decimal", ".") or thousands not in ".,' _\u00a0\u202f"
    ):
        raise PolicyError(
            f"source: thousands ({thousands!r}) must be a point, a comma, an apostrophe or a space, and "
            "not the decimal mark"
        )
    if checked.get("labels", "codes") not in LABELS:
        raise PolicyError(
            f"source: labels {checked['labels']!r} is unknown; {did_you_mean(checked['labels'], LABELS)}"
        )
    dates = checked.get("dates")
    if dates is not None and not all(part in dates for part in ("%d", "%m")):
        raise PolicyError(
            f"source: dates ({dates!r}) must say where day, month and year are", hint='"%d.%m.%Y"'
        )


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return escape_controls(json.dumps(value, ensure_ascii=False))
