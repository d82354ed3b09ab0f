"""Mutation testing of the modules that promises depend on: would a test notice if the code were wrong?

    python -m bench.mutants

makes small changes of a module (a comparison, operator, constant or condition), one at a time, and runs the
tests of its room against each; a change that no test notices is a survivor. A mutant runs in a forked
process that has the libraries loaded already, which is several times faster than a new interpreter.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib
import importlib.abc
import importlib.util
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

SOURCE = Path(__file__).parents[1] / "src"
_SECONDS = 240
MODULES = {
    "dalenius.mechanisms.bucketize.check": ["tests/mechanisms/bucketize/test_check.py"],
    "dalenius.promises.bounds": ["tests/mechanisms/bucketize/test_check.py", "tests/promises"],
    "dalenius.promises.rho_privacy": ["tests/promises"],
    "dalenius.promises.d_gamma_privacy": ["tests/promises"],
    "dalenius.promises.l_diversity": ["tests/promises", "tests/mechanisms/bucketize/test_check.py"],
    "dalenius.promises.f_privacy": ["tests/promises"],
    "dalenius.mechanisms.perturb.channel": ["tests/mechanisms/perturb/test_channel.py"],
    "dalenius.mechanisms.perturb.check": ["tests/mechanisms/perturb/test_check.py"],
    "dalenius.mechanisms.alphabeta.plan.law": ["tests/mechanisms/alphabeta/test_law.py"],
    "dalenius.mechanisms.suppress.d_suppression": ["tests/mechanisms/suppress/test_d_suppression.py"],
    "dalenius.randomness": ["tests/test_randomness.py"],
    "dalenius.release.admission": ["tests/release/test_admission.py"],
    "dalenius.release.signing": ["tests/release/test_signing.py"],
}
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


def find_mutants(source: str) -> list[tuple[int, str, str]]:
    """Every small change: the line, what it is, and the whole source with it."""
    found = []
    tree = ast.parse(source)
    for number, _ in enumerate(ast.walk(tree)):
        changed = copy.deepcopy(tree)
        node = list(ast.walk(changed))[number]
        found += [
            (getattr(node, "lineno", 0), what, ast.unparse(ast.fix_missing_locations(changed)))
            for what in _change(node)
        ]
    return found


def _change(node: ast.AST) -> Iterator[str]:
    """Change a node in place; nothing where it is of no kind that is changed."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        new = _SWAPS[type(node.ops[0])]
        yield from _replaced(node.ops, new)
    elif isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in _SWAPS:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and _is_text(node):
            return
        before, node.op = node.op, _SWAPS[type(node.op)]()  # type: ignore[assignment]
        yield f"{type(before).__name__} -> {type(node.op).__name__}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int):
        before_value = node.value
        node.value = (not node.value) if isinstance(node.value, bool) else node.value + 1
        yield f"{before_value!r} -> {node.value!r}"
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
        yield "if -> if not"


def _replaced(ops: list[ast.cmpop], new: type[ast.AST]) -> Iterator[str]:
    before = type(ops[0]).__name__
    ops[0] = new()  # type: ignore[call-overload]
    yield f"{before} -> {new.__name__}"


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str))
        for s in sides
    )


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from another source."""

    def __init__(self, name: str, source: str, path: Path) -> None:
        self.name, self.source, self.path = name, source, path

    def find_spec(self, name: str, path: object, target: object = None) -> object:  # type: ignore[override]  # noqa: ARG002
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def create_module(self, spec: object) -> None:  # noqa: ARG002
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, str(self.path), "exec"), module.__dict__)  # noqa: S102


def survives(name: str, source: str, path: Path, tests: list[str]) -> bool:
    """Whether all tests pass with the changed module."""
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        signal.alarm(_SECONDS)
        sys.meta_path.insert(0, _Finder(name, source, path))  # type: ignore[arg-type]
        code = 1
        try:
            import pytest

            code = int(pytest.main(["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]))
        finally:
            os._exit(0 if code == 0 else 1)
    _, status = os.waitpid(child, 0)
    return status == 0


def main() -> int:
    """Print survivors, then a line with the score of each module."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants")
    parser.add_argument("modules", nargs="*", default=list(MODULES))
    parser.add_argument("--sample", type=int, help="so many mutants of each, at random; else all")
    given = parser.parse_args()
    for library in ("numpy", "pyarrow.parquet", "duckdb", "pytest", "scipy.sparse"):
        importlib.import_module(library)
    for name in given.modules:
        path = SOURCE / Path(*name.split(".")).with_suffix(".py")
        source = path.read_text(encoding="utf-8")
        mutants = find_mutants(source)
        n_all = len(mutants)
        if given.sample and given.sample < n_all:
            mutants = random.Random(name).sample(mutants, given.sample)  # noqa: S311  (no secret)
        if not survives(name, source, path, MODULES[name]):
            print(f"{name}: the tests fail without any change", flush=True)
            continue
        killed = 0
        for line, what, changed in mutants:
            if survives(name, changed, path, MODULES[name]):
                print(f"  survivor: {name}, line {line}: {what}", flush=True)
            else:
                killed += 1
        print(f"{name}: {killed} of {len(mutants)} killed ({n_all} in all)", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
