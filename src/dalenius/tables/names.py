"""Which names a table's columns may have."""

from __future__ import annotations

from collections.abc import Sequence

from dalenius.errors import SourceError


def refuse_unusable_names(where: str, names: Sequence[str]) -> None:
    """Every column needs a name of its own; SQL does not tell upper from lower case."""
    seen: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise SourceError(
                f"{where}, column {position}: the column has no name",
                hint="name it, or remove a trailing delimiter",
            )
        folded = name.casefold()
        if folded in seen:
            raise SourceError(
                f"{where}, column {position}: columns {seen[folded]!r} and {name!r} have the same name",
                hint="rename one of them (upper and lower case count as the same)",
            )
        seen[folded] = name


def unused_name(wish: str, taken: Sequence[str]) -> str:
    """The wished name, lengthened until no column has it.

    >>> unused_name("tag", ["age", "Tag"])
    'tag_'
    """
    folded = {name.casefold() for name in taken}
    while wish in folded:
        wish += "_"
    return wish
