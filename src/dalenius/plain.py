"""Values as JSON has them: a dataclass by its fields, a fraction as its text, a tuple as a list; and back.

Whether such a value fits a JSON Schema: of that language only the words that our schemas use are known, and
any other is an error, because the package that knows them all takes longer to load than a release to verify.
What somebody else has written is read through `Stated` alone: a value and its place, which gives what is
asked for or says what is there instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any

from dalenius.errors import ReleaseCorrupt

_LONGEST_NUMBER = 4_000
"""Characters of an exact number; Python itself reads no more digits than that."""
_SHOWN = 60
_CONTROLS = frozenset(
    (*range(0x20), *range(0x7F, 0xA0), 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
) | frozenset(range(0xD800, 0xE000))
"""Characters that move a cursor, end a line or change the direction of text, and halves of characters."""


class Plain:
    """A dataclass that `--json` prints by its fields.

    A field's metadata renames it (`{"json": "books"}`) or leaves it out (`{"json": None}`).

    >>> from dataclasses import dataclass, field
    >>> from fractions import Fraction
    >>> @dataclass(frozen=True, slots=True, kw_only=True)
    ... class Shelf(Plain):
    ...     n_books: int = field(metadata={"json": "books"})
    ...     share: Fraction
    ...     note: str = field(default="", metadata={"json": None})
    >>> Shelf(n_books=3, share=Fraction(1, 13)).to_dict()
    {'books': 3, 'share': '1/13'}
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return plain_fields(self)


def plain(value: Any) -> Any:
    """A value as JSON has it; a class with a `to_dict` of its own decides for itself.

    >>> from pathlib import Path
    >>> plain({"file": Path("a.csv"), "sizes": (1, 2), "share": None})
    {'file': 'a.csv', 'sizes': [1, 2], 'share': None}
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    return str(value)


def plain_fields(value: Any, *names: str) -> dict[str, Any]:
    """The named attributes of a value, or all fields of a dataclass, under their names in JSON."""
    if names:
        return {name: plain(getattr(value, name)) for name in names}
    named = {field.name: field.metadata.get("json", field.name) for field in fields(value)}
    return {shown: plain(getattr(value, name)) for name, shown in named.items() if shown is not None}


def escape_controls(text: str) -> str:
    r"""A text whose control characters, which could turn the rest of a line around, are written out.

    >>> print(escape_controls("a" + chr(0x202E) + "b" + chr(10) + chr(27) + "[2J"))
    a\u202eb\u000a\u001b[2J
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(f"\\u{ord(c):04x}" if ord(c) in _CONTROLS else c for c in text)


_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list, tuple),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_ABOUT = ("$schema", "title", "description")


def misfits(value: Any, schema: Mapping[str, Any], place: str = "$") -> Iterator[str]:
    """Where a value does not fit a JSON Schema, each with its place.

    >>> shelf = {"type": "object", "required": ["books"], "properties": {"books": {"type": "integer"}}}
    >>> list(misfits({"books": "three"}, shelf)), list(misfits({}, shelf))
    (["$.books: 'three' is not of type 'integer'"], ["$: 'books' is a required property"])
    """
    for word, stated in schema.items():
        match word:
            case "required":
                if isinstance(value, dict):
                    missing = [name for name in stated if name not in value]
                    yield from (f"{place}: {name!r} is a required property" for name in missing)
            case "properties" | "items":
                for key, part, own in _parts(word, stated, value):
                    yield from misfits(part, own, place + key)
            case _ if word not in _ABOUT and not _fits(word, stated, value):
                yield f"{place}: {value!r} is not of {word} {stated!r}"


def _fits(word: str, stated: Any, value: Any) -> bool:
    """What one word of a schema says of a value; one about other kinds of values says nothing."""
    match word:
        case "type":
            return any(_is_of(value, kind) for kind in (stated if isinstance(stated, list) else [stated]))
        case "const":
            return bool(value == stated)
        case "enum":
            return value in stated
        case "minimum":
            return not _is_of(value, "number") or bool(value >= stated)
        case "pattern":
            return not isinstance(value, str) or re.search(stated, value) is not None
    raise ValueError(f"a JSON Schema with {word!r}, which is not known here")


def _parts(word: str, stated: Any, value: Any) -> Iterator[tuple[str, Any, Mapping[str, Any]]]:
    """The parts of a value that have a schema of their own: the end of their place, they and their schema."""
    if word == "properties" and isinstance(value, dict):
        yield from ((f".{name}", value[name], own) for name, own in stated.items() if name in value)
    if word == "items" and isinstance(value, list | tuple):
        yield from ((f"[{number}]", part, stated) for number, part in enumerate(value))


def _is_of(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # which Python takes for a whole number
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A value of a manifest, and where it stands there.

    >>> given = Stated.of({"parts": [{"gamma": "92/29"}]}, "parameters")
    >>> given["parts"].entries()[0]["gamma"].fraction()
    Fraction(92, 29)
    >>> given["parts"].integer()
    Traceback (most recent call last):
    dalenius.errors.ReleaseCorrupt: the manifest's parameters.parts is a list of 1, not a whole number
    """

    value: Any
    place: str

    @classmethod
    def of(cls, value: Any, place: str) -> Stated:
        """A section of the manifest."""
        return cls(value=value, place=place)

    def __getitem__(self, key: str) -> Stated:
        """A field that must be there."""
        section = self.section()
        if key not in section:
            raise ReleaseCorrupt(f"the manifest's {self.place} has no {key!r}")
        return Stated(value=section[key], place=f"{self.place}.{key}")

    def get(self, key: str) -> Stated | None:
        """A field, or None where it is missing or null."""
        found = self.section().get(key)
        return None if found is None else Stated(value=found, place=f"{self.place}.{key}")

    def section(self) -> Mapping[str, Any]:
        """An object."""
        if not isinstance(self.value, Mapping):
            raise self._unlike("an object")
        return self.value

    def entries(self) -> list[Stated]:
        """A list, each with its place."""
        if not isinstance(self.value, list | tuple):
            raise self._unlike("a list")
        return [Stated(value=item, place=f"{self.place}[{i}]") for i, item in enumerate(self.value)]

    def is_set(self, key: str) -> bool:
        """A field that is true or false, and false where it is missing."""
        found = self.get(key)
        return found is not None and found.flag()

    def flag(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            raise self._unlike("true or false")
        return self.value

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            raise self._unlike("a text")
        return self.value

    def cells(self, n_cells: int | None = None) -> tuple[str | None, ...]:
        """A text or null for each of some columns."""
        found = tuple(entry.value for entry in self.entries())
        if not all(cell is None or isinstance(cell, str) for cell in found):
            raise self._unlike("a list of texts")
        if n_cells is not None and len(found) != n_cells:
            raise self._unlike(f"a cell for each of {n_cells} columns")
        return found

    def one_of(self, *names: str) -> str:
        """One of some texts."""
        if self.value not in names:
            raise self._unlike(" or ".join(map(repr, names)))
        return self.text()

    def integer(self, *, at_least: int | None = None, at_most: int | None = None) -> int:
        """A whole number; large ones are written as texts, for readers that have only floats."""
        found = self.value
        if isinstance(found, str) and re.fullmatch(r"[0-9]{1,4000}", found):
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._unlike("a whole number")
        self._refuse_outside(found, at_least, at_most)
        return found

    def number(self, *, at_least: float | None = None, at_most: float | None = None) -> float:
        """A finite number."""
        found = self.value
        if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) > 1e300:
            raise self._unlike("a finite number")
        if not math.isfinite(found):
            raise self._unlike("a finite number")
        self._refuse_outside(found, at_least, at_most)
        return float(found)

    def fraction(self, *, at_least: int | None = None, at_most: int | None = None) -> Fraction:
        """An exact number: `"1/13"`, or a whole number or decimal without an exponent."""
        found = self.value
        written = found if isinstance(found, str) else repr(found)
        is_number = re.fullmatch(r"-?[0-9]+(/0*[1-9][0-9]*|\.[0-9]+)?", written)
        if isinstance(found, bool) or len(written) > _LONGEST_NUMBER or not is_number:
            raise self._unlike('a number such as "1/13"')
        exact = Fraction(written)
        self._refuse_outside(exact, at_least, at_most)
        return exact

    def _refuse_outside(self, found: float | Fraction, at_least: float | None, at_most: float | None) -> None:
        if (at_least is not None and found < at_least) or (at_most is not None and found > at_most):
            ends = [f"at least {at_least}" if at_least is not None else ""]
            ends.append(f"at most {at_most}" if at_most is not None else "")
            raise self._unlike(" and ".join(filter(None, ends)))

    def _unlike(self, wanted: str) -> ReleaseCorrupt:
        return ReleaseCorrupt(f"the manifest's {self.place} is {self._show()}, not {wanted}")

    def _show(self) -> str:
        if isinstance(self.value, Mapping):
            return "an object"
        if isinstance(self.value, list | tuple):
            return f"a list of {len(self.value)}"
        shown = ascii(self.value) if isinstance(self.value, str) else repr(self.value)
        return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
