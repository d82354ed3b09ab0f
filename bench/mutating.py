"""Small changes of a module's source, and how a process that has the module loaded takes one on."""

from __future__ import annotations

import ast
import copy
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_WORDS = ("detail", "hint", "title", "message", "strict", "doc", "metadata")
"""Arguments that say something to people, or that only guard (`zip(strict=True)`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One changed place of a module."""

    module: str
    number: int
    """Of the changed node, in the order of `ast.walk`."""
    line: int
    what: str
    text: str
    """The line as it was."""
    function: str
    """The innermost function that the place is in; of the module or a class: ""."""
    first: int
    """Of the statement that the place is in."""
    last: int
    nth: int
    """Among the changes of the same function that read alike, from 1."""

    def __str__(self) -> str:
        """Without its line, which moves whenever something above it is changed."""
        place = f"{self.module}.{self.function}" if self.function else self.module
        nth = f" #{self.nth}" if self.nth > 1 else ""
        return f"{place}: {self.what}{nth}: {self.text}"


def find_mutants(module: str, source: str) -> list[Mutant]:
    """Every small change of a module, but for words, annotations and how its classes are declared."""
    tree, lines = ast.parse(source), source.splitlines()
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    found: list[Mutant] = []
    alike: Counter[tuple[str, ...]] = Counter()
    for node, function, first in _places(tree, "", 0):
        what = _change(copy.deepcopy(node))
        if what:
            line = getattr(node, "lineno", 0)
            text = lines[line - 1].strip()
            alike[function, what, text] += 1
            ends = node.test if isinstance(node, ast.If) else node
            found.append(
                Mutant(
                    module=module,
                    number=numbers[id(node)],
                    line=line,
                    what=what,
                    text=text,
                    function=function,
                    first=first,
                    last=getattr(ends, "end_lineno", None) or line,
                    nth=alike[function, what, text],
                )
            )
    return found


def _places(node: ast.AST, function: str, first: int) -> Iterator[tuple[ast.AST, str, int]]:
    """The nodes that may be changed, each with its function and the first line of its statement."""
    yield node, function, first
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_spared(node, name, child):
                continue
            inner = child.name if isinstance(child, ast.FunctionDef) else function
            line = child.lineno if isinstance(child, ast.stmt) else first
            if isinstance(
                child, ast.FunctionDef
            ):  # where a call of it begins, for the defaults of its arguments
                line = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            yield from _places(child, inner, line)


def _is_spared(parent: ast.AST, field: str, child: ast.AST) -> bool:
    if field in ("annotation", "returns", "decorator_list") or isinstance(child, ast.JoinedStr):
        return True
    if isinstance(child, ast.Raise | ast.Assert) or isinstance(parent, ast.Assert):
        return True
    if isinstance(child, ast.IfExp) and any(map(_is_words, (child.body, child.orelse))):
        return True
    return isinstance(child, ast.keyword) and child.arg in _WORDS


def _is_words(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def apply(source: str, mutant: Mutant) -> str:
    """The source with the change."""
    tree = ast.parse(source)
    node = next(node for number, node in enumerate(ast.walk(tree)) if number == mutant.number)
    _change(node)
    return ast.unparse(ast.fix_missing_locations(tree))


def watched(source: str, path: str) -> str:
    """The source with a call of `__seen__((path, line))` before every statement of a function."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for function in functions:
        for block in _blocks(function):
            block[:] = [new for stmt in block for new in (_hit(path, stmt.lineno), stmt)]
        begins = min([function.lineno, *(d.lineno for d in function.decorator_list)])
        function.body.insert(0, _hit(path, begins))
    return ast.unparse(ast.fix_missing_locations(tree))


def _blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """The lists of statements in a function, but for those of functions inside it."""
    found: list[list[ast.stmt]] = []
    for value in (value for _, value in ast.iter_fields(node) if isinstance(value, list)):
        if value and isinstance(value[0], ast.stmt):
            found.append(value)
        for child in value:
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                found += [] if isinstance(child, ast.FunctionDef) else _blocks(child)
    return found


def _hit(path: str, line: int) -> ast.stmt:
    return ast.parse(f"__seen__(({path!r}, {line}))").body[0]


def _change(node: ast.AST) -> str | None:
    """Change a node in place and say how; None where it is of no kind that is changed."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        before = type(node.ops[0]).__name__
        node.ops[0] = _SWAPS[type(node.ops[0])]()  # type: ignore[call-overload]
        return f"{before} -> {type(node.ops[0]).__name__}"
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_text(node):
            return None
        before, node.op = type(node.op).__name__, _SWAPS[type(node.op)]()  # type: ignore[assignment]
        return f"{before} -> {type(node.op).__name__}"
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        shown = repr(node.value)
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
        return f"{shown} -> {node.value!r}"
    if isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
        return "if -> if not"
    return None


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.List | ast.Tuple) or _is_words(side) for side in sides)


def take_on(module: ModuleType, source: str) -> int:
    """Let a loaded module behave as another source of it; how many things differ.

    Functions get the other code in place, so that whoever imported them has it too.
    """
    other = ModuleType(module.__name__)
    other.__dict__.update(__file__=module.__file__, __package__=module.__package__)
    exec(compile(source, str(module.__file__), "exec"), other.__dict__)  # noqa: S102
    return sum(
        _take(module, name, module.__dict__[name], _as_loaded(module, new))
        for name, new in list(other.__dict__.items())
        if name in module.__dict__ and not name.startswith("__")
    )


def _as_loaded(module: ModuleType, new: Any) -> Any:
    """A dict with the loaded functions (which get the other code): others would not see what a test sets."""
    if type(new) is not dict:
        return new
    names = {key: value.__name__ for key, value in new.items() if isinstance(value, FunctionType)}
    return {key: module.__dict__.get(names.get(key, ""), value) for key, value in new.items()}


def _take(module: ModuleType, name: str, old: Any, new: Any) -> int:
    if isinstance(old, type):
        if old.__module__ != module.__name__:
            return 0
        pairs = [(key, vars(old)[key], value) for key, value in vars(new).items() if key in vars(old)]
        changed = [(key, value) for key, before, value in pairs if _is_number(value) and before != value]
        for key, value in changed:
            setattr(old, key, value)
        return len(changed) + sum(_patch(before, value) for _, before, value in pairs)
    if callable(old):
        return _patch(old, new) if getattr(old, "__module__", None) == module.__name__ else 0
    if isinstance(old, ModuleType) or _same(old, new):
        return 0
    for holder in list(sys.modules.values()):  # a constant, also where it was imported by name
        if getattr(holder, "__dict__", {}).get(name) is old:
            setattr(holder, name, new)
    return 1


def _is_number(value: Any) -> bool:
    """Of a class: what all its objects have, and no field of theirs."""
    return isinstance(value, int | float)


def _same(old: Any, new: Any) -> bool:
    try:
        return bool(old == new) or repr(old) == repr(new)
    except ValueError:  # arrays
        return repr(old) == repr(new)


def _patch(old: Any, new: Any) -> int:
    """Let a function, or what holds one, run the other's code; whether it differs."""
    if isinstance(old, property):
        return _patch(old.fget, new.fget)
    if isinstance(old, functools.cached_property):
        return _patch(old.func, new.func)
    if isinstance(old, staticmethod | classmethod):
        return _patch(old.__func__, new.__func__)
    if hasattr(old, "cache_clear"):
        old.cache_clear()
    if hasattr(old, "__wrapped__") and hasattr(new, "__wrapped__"):
        inner = _patch(old.__wrapped__, new.__wrapped__)
        return inner + _patch_code(old, new)
    return _patch_code(old, new)


def _patch_code(old: Any, new: Any) -> int:
    if not isinstance(old, FunctionType) or not isinstance(new, FunctionType):
        return 0
    differs = not _same_code(old.__code__, new.__code__) or repr(
        (old.__defaults__, old.__kwdefaults__)
    ) != repr((new.__defaults__, new.__kwdefaults__))
    if differs and len(old.__code__.co_freevars) == len(new.__code__.co_freevars):
        old.__code__ = new.__code__
        old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return int(differs)


def _same_code(old: CodeType, new: CodeType) -> bool:
    """Whether two functions do the same, wherever their lines are."""
    if old.co_code != new.co_code or len(old.co_consts) != len(new.co_consts):
        return False
    pairs = zip(old.co_consts, new.co_consts, strict=True)
    return all(
        _same_code(a, b) if isinstance(a, CodeType) and isinstance(b, CodeType) else repr(a) == repr(b)
        for a, b in pairs
    ) and (old.co_names == new.co_names)
