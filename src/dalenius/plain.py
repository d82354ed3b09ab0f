"""Values as JSON has them: a dataclass by its fields, a fraction as its text, a tuple as a list.

And whether such a value fits a JSON Schema. Of that language only the words that our schemas use are known,
and any other is an error: the package that knows them all takes longer to load than a release to verify.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any


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
