"""What columns are called in a file of Stata, where not every name can be a variable's."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LONGEST = 32
_RESERVED = frozenset(
    {
        "aggregate", "array", "boolean", "break", "byte", "case", "catch", "class", "colvector", "complex",
        "const", "continue", "default", "delegate", "delete", "do", "double", "else", "eltypedef", "end",
        "enum", "explicit", "export", "external", "float", "for", "friend", "function", "global", "goto",
        "if", "in", "inline", "int", "local", "long", "NULL", "pragma", "protected", "quad", "rowvector",
        "short", "typedef", "typename", "using", "virtual", "with", "_all", "_b", "_coef", "_cons", "_merge",
        "_n", "_N", "_pi", "_pred", "_rc", "_se", "_skip", "strL",
    }
)  # fmt: skip
_TYPE = re.compile(r"str(\d+|#)")
_LATIN = 192
"""Of the signs beyond ASCII those before this are no letters to Stata."""


def stata_names(columns: Sequence[str]) -> dict[str, str]:
    """The name of each column there: letters, digits and _, no word of Stata's own, and no name twice.

    >>> list(stata_names(["age", "marital-status", "marital status", "2nd", "long"]).values())
    ['age', 'marital_status', 'marital_status_2', '_2nd', '_long']
    """
    own = {name: _variable(name) for name in columns}
    taken = {name for name, new in own.items() if name == new}  # who need not change does not
    found = {}
    for name, new in own.items():
        number, free = 1, new
        while name != new and free in taken:
            number += 1
            free = f"{new[: _LONGEST - len(str(number)) - 1]}_{number}"
        taken.add(free)
        found[name] = free
    return found


def _variable(name: str) -> str:
    text = "".join(c if _may_stand(c) else "_" for c in name) or "_"
    if text[0].isdigit() or text in _RESERVED or _TYPE.fullmatch(text):
        text = f"_{text}"
    return text[:_LONGEST]


def _may_stand(c: str) -> bool:
    if c.isascii():
        return c.isalnum() or c == "_"
    return c.isalpha() and ord(c) >= _LATIN
