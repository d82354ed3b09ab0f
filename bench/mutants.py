"""Mutation testing of the modules that promises depend on: would a test notice if the code were wrong?

    python -m bench.mutants --sample 60

makes small changes of a module (a comparison, an operator, a constant, a condition), one at a time, and runs
the tests that come through the changed function against each, fastest first, until one fails; a change that
no test notices is a survivor. A mutant runs in a forked process that has everything loaded already. Survivors
that do the same as the original are in `mutants_equivalent.txt`, each with why.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import pytest

from bench.mutating import Mutant, apply, find_mutants, take_on

SOURCE = Path(__file__).parents[1] / "src"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
_SECONDS = 90
"""Of the processor: a change that makes a loop endless is noticed, too."""
_BUDGET = 8.0
"""Seconds of tests, as long as they take unchanged, that a mutant is tried with at most."""
_NOT_APPLIED = 77
_OPTIONS = ["-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow"]
_M, _T = "dalenius.mechanisms", "tests/mechanisms"
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "promises": (
        tuple(
            f"dalenius.promises.{n}"
            for n in ("bounds", "d_gamma_privacy", "f_privacy", "groups", "l_diversity", "rho_privacy")
        ),
        ("tests/promises", f"{_T}/bucketize/test_check.py", f"{_T}/bucketize/test_thresholds.py"),
    ),
    "bucketize plan": (
        (
            *(
                f"{_M}.bucketize.plan.{n}"
                for n in ("bucket_plan", "groups", "integer", "methods", "optimal", "problem", "two_size")
            ),
            f"{_M}.bucketize.table_plan",
        ),
        (f"{_T}/bucketize/plan", f"{_T}/bucketize/test_groups.py"),
    ),
    "bucketize apply": (
        (f"{_M}.bucketize.apply", f"{_M}.bucketize.shards"),
        (f"{_T}/bucketize/test_apply.py", f"{_T}/test_dealing.py", f"{_T}/test_sharding.py"),
    ),
    "bucketize check": (
        (f"{_M}.bucketize.check",),
        (f"{_T}/bucketize/test_check.py", f"{_T}/bucketize/test_groups.py"),
    ),
    "suppress law": (
        tuple(f"{_M}.suppress.{n}" for n in ("d_suppression", "exact", "r_posterior", "r_suppression")),
        (f"{_T}/suppress",),
    ),
    "suppress apply": ((f"{_M}.suppress.plan", f"{_M}.suppress.stage"), (f"{_T}/suppress",)),
    "perturb channel": (
        (f"{_M}.perturb.channel",),
        (f"{_T}/perturb/test_channel.py", f"{_T}/perturb/test_check.py"),
    ),
    "perturb plan": (
        tuple(f"{_M}.perturb.plan.{n}" for n in ("improvers", "layout", "methods", "starts", "thresholds")),
        (f"{_T}/perturb/plan",),
    ),
    "perturb apply": (
        (f"{_M}.perturb.apply",),
        (f"{_T}/perturb/test_apply.py",),
    ),
    "perturb check": (
        (f"{_M}.perturb.check",),
        (f"{_T}/perturb/test_check.py",),
    ),
    "alpha-beta law": (
        (f"{_M}.alphabeta.plan.law",),
        (f"{_T}/alphabeta/test_law.py", f"{_T}/alphabeta/test_plan.py"),
    ),
    "alpha-beta parameters": (
        (f"{_M}.alphabeta.plan.choice", f"{_M}.alphabeta.plan.views", f"{_M}.tuples.plan"),
        (f"{_T}/alphabeta/test_plan.py", f"{_T}/alphabeta/test_law.py", f"{_T}/alphabeta/test_series.py"),
    ),
    "alpha-beta apply": (
        (f"{_M}.alphabeta.apply", f"{_M}.tuples.apply", f"{_M}.tuples.noise"),
        (
            f"{_T}/alphabeta/test_apply.py",
            f"{_T}/alphabeta/test_mechanism.py",
            f"{_T}/alphabeta/test_changing.py",
        ),
    ),
    "alpha-beta check": (
        (f"{_M}.alphabeta.check", f"{_M}.tuples.check"),
        (f"{_T}/alphabeta/test_mechanism.py", f"{_T}/alphabeta/test_series.py"),
    ),
    "randomness": (("dalenius.randomness",), ("tests/test_randomness.py",)),
    "ledger": (
        ("dalenius.release.ledger", "dalenius.release.repetition"),
        ("tests/release/test_ledger.py", "tests/release/test_repetition.py", "tests/release/test_people.py"),
    ),
    "release writer": (
        ("dalenius.release.folder", "dalenius.engines.parquet"),
        (
            "tests/release/test_folder.py",
            "tests/release/test_draft.py",
            "tests/engines/test_parquet.py",
            "tests/release/test_manifest.py",
            "tests/release/test_verify.py",
        ),
    ),
    "verify": (
        ("dalenius.release.verify", "dalenius.release.admission"),
        (
            "tests/release/test_verify.py",
            "tests/release/test_admission.py",
            "tests/release/test_damaged.py",
            "tests/release/test_k.py",
            "tests/release/test_outright.py",
            "tests/release/test_series.py",
        ),
    ),
}


class _Watch:
    """A pytest plugin: which tests come through which functions of some files, and how long they take."""

    def __init__(self, files: set[str]) -> None:
        self.files = files
        self.through: dict[str, list[tuple[str, str, int]]] = {}
        self.seconds: dict[str, float] = {}
        self._seen: set[tuple[str, str, int]] = set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._seen = set()
        started = time.process_time()
        sys.settrace(self._called)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = time.process_time() - started
            self.through[item.nodeid] = sorted(self._seen)

    def _called(self, frame: Any, _event: str, _arg: Any) -> None:
        code = frame.f_code
        if code.co_filename in self.files:
            self._seen.add((code.co_filename, code.co_name, code.co_firstlineno))


class _Select:
    """A pytest plugin: only some tests, in an order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: number for number, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self.order), key=lambda item: self.order[item.nodeid]
        )


def run_tests(arguments: list[str], plugin: object | None = None) -> int:
    """The exit code of pytest, in this process."""
    with warnings.catch_warnings():
        return int(pytest.main([*_OPTIONS, *arguments], plugins=[] if plugin is None else [plugin]))


def path_of(module: str) -> Path:
    """A module's file."""
    return SOURCE / Path(*module.split(".")).with_suffix(".py")


def watch(modules: tuple[str, ...], tests: list[str], told: Path) -> bool:
    """Run the unchanged tests in a child, and write what it learned; whether they pass."""
    child = os.fork()
    if child == 0:
        _be_quiet()
        plugin = _Watch({str(path_of(module)) for module in modules})
        code = run_tests(tests, plugin)
        told.write_text(json.dumps([plugin.through, plugin.seconds]))
        os._exit(min(code, 1))
    return os.waitpid(child, 0)[1] == 0


def tests_for(mutant: Mutant, through: dict[str, Any], seconds: dict[str, float]) -> list[str]:
    """The tests that come through the changed function, fastest first, within the budget."""
    place = [str(path_of(mutant.module)), *mutant.function]
    found = [test for test, seen in through.items() if mutant.function[1] == 0 or place in seen]
    found.sort(key=lambda test: seconds[test])
    total = 0.0
    chosen: list[str] = []
    for test in found:
        total += seconds[test]
        if chosen and total > _BUDGET:
            break
        chosen.append(test)
    return chosen


def try_mutant(mutant: Mutant, tests: list[str]) -> str:
    """`killed`, `survived` or `not applied`."""
    if not tests:
        return "survived"
    child = os.fork()
    if child == 0:
        _be_quiet()
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        code = 1
        try:
            source = path_of(mutant.module).read_text(encoding="utf-8")
            if not take_on(sys.modules[mutant.module], apply(source, mutant)):
                os._exit(_NOT_APPLIED)
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            code = run_tests(files, _Select(tests))
        finally:
            os._exit(0 if code == 0 else 1)
    status = os.waitpid(child, 0)[1]
    if os.waitstatus_to_exitcode(status) == _NOT_APPLIED:
        return "not applied"
    return "survived" if status == 0 else "killed"


def _be_quiet() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def score(group: str, sample: int | None, only: set[str] | None) -> None:
    """Print the survivors of a group, then its score."""
    modules, files = GROUPS[group]
    mutants = [m for name in modules for m in find_mutants(name, path_of(name).read_text(encoding="utf-8"))]
    n_all = len(mutants)
    if sample is not None and sample < n_all:
        mutants = random.Random(group).sample(mutants, sample)  # noqa: S311  (no secret)
    if only is not None:
        mutants = [mutant for mutant in mutants if str(mutant) in only]
    known = set(EQUIVALENT.read_text(encoding="utf-8").splitlines()) if EQUIVALENT.exists() else set()
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        if not watch(modules, list(files), told):
            print(f"{group}: the tests fail without any change", flush=True)
            return
        through, seconds = json.loads(told.read_text())
    counts = {"killed": 0, "survived": 0, "not applied": 0, "equivalent": 0}
    for mutant in mutants:
        found = try_mutant(mutant, tests_for(mutant, through, seconds))
        if found == "survived" and str(mutant) in known:
            found = "equivalent"
        counts[found] += 1
        if found in ("survived", "not applied"):
            print(f"{found}: {mutant}", flush=True)
    stated = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
    print(f"{group}: {stated}; {len(mutants)} of {n_all} mutants", flush=True)


def main() -> int:
    """Print survivors, then a line with the score of each group."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants")
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help=", ".join(GROUPS))
    parser.add_argument("--sample", type=int, help="so many mutants of each group, at random; else all")
    parser.add_argument("--only", type=Path, help="a file with survivors of an earlier run: only those")
    given = parser.parse_args()
    only = None
    if given.only is not None:
        lines = given.only.read_text(encoding="utf-8").splitlines()
        only = {line.removeprefix("survived: ") for line in lines if line.startswith("survived: ")}
    os.chdir(SOURCE.parent)
    for group in given.groups:
        modules, files = GROUPS[group]
        child = os.fork()  # each group imports and collects anew
        if child == 0:
            for name in modules:
                importlib.import_module(name)
            quiet = os.dup(1), os.dup(2)
            _be_quiet()
            run_tests(["--collect-only", *files])
            os.dup2(quiet[0], 1)
            os.dup2(quiet[1], 2)
            score(group, given.sample, only)
            os._exit(0)
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
