"""How large the source is, room by room: files, lines, and lines of code (no blank, comment or docstring).

    python -m bench.size

prints the table of docs/architecture.md; a test fails when that is more than a tenth off.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "dalenius"
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_MECHANISMS = "mechanisms"

Size = tuple[int, int, int]
"""Files, lines, lines of code."""


def count_code(text: str) -> int:
    r"""The lines of a module with code on them.

    >>> count_code('def f():\n    "what it does"\n\n    # why\n    return 1\n')
    2
    """
    told = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    coded = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in _NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(coded - told)


def room_of(path: Path) -> str:
    """The room of a module: a folder, of the mechanisms the one below, or what lies beside all of them."""
    parts = path.relative_to(SOURCE).parts
    if len(parts) == 1:
        return "beside the rooms"
    return "/".join(parts[:2]) + "/" if parts[0] == _MECHANISMS and len(parts) > 2 else f"{parts[0]}/"


def measure() -> dict[str, Size]:
    """By room, and all of them together."""
    found: dict[str, Size] = defaultdict(lambda: (0, 0, 0))
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        own = (1, len(text.splitlines()), count_code(text))
        for name in (room_of(path), "all"):
            files, lines, code = found[name]
            found[name] = (files + own[0], lines + own[1], code + own[2])
    return dict(sorted(found.items(), key=lambda entry: (entry[0] == "all", entry[0])))


def main() -> None:
    print("| room | files | lines | of them code |\n|---|---|---|---|")
    for name, (files, lines, code) in measure().items():
        shown = f"`{name}`" if name.endswith("/") else name
        print(f"| {shown} | {files} | {lines:,} | {code:,} |")


if __name__ == "__main__":
    main()
