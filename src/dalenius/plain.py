"""Values as JSON has them: a dataclass by its fields, a fraction as its text, a tuple as a list."""

from __future__ import annotations

from collections.abc import Mapping
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
