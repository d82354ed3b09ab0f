"""Mutation testing of the modules that promises depend on: would a test notice if the code were wrong?

    python -m bench.mutants --sample 40

makes small changes of a module (a comparison, an operator, a constant, a condition), one at a time, and runs
the tests that come through the changed line against each, fastest first, until one fails; a change that
no test notices is a survivor. A mutant runs in a forked process that has the tests collected already.
Survivors that do the same as the original are in `mutants_equivalent.txt`: the mutant as it is printed, and
below it, indented, why no test can tell.
"""

from __future__ import annotations

import argparse
import builtins
import importlib
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

import pytest

from bench.mutating import Mutant, apply, find_mutants, take_on, watched

SOURCE = Path(__file__).parents[1] / "src"
EQUIVALENT = Path(__file__).with_name("mutants_equivalent.txt")
_SECONDS = 90
"""Of the processor: a change that makes a loop endless is noticed, too."""
_NOT_APPLIED = 77
_OPTIONS = ["-x", "-q", "--capture=no", "-m", "not slow"]
_OPTIONS += [word for name in ("randomly", "cacheprovider", "xdist") for word in ("-p", f"no:{name}")]
_M, _T = "dalenius.mechanisms", "tests/mechanisms"
_BUCKET_PLANS = ["bucket_plan", "branching", "groups", "integer", "methods", "optimal", "problem"]
_BUCKET_PLANS += ["rounding", "sizes", "two_size"]
GROUPS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "promises": (
        tuple(
            f"dalenius.promises.{n}"
            for n in ("bounds", "d_gamma_privacy", "f_privacy", "groups", "l_diversity", "rho_privacy")
        ),
        (
            "tests/promises",
            *(f"{_T}/bucketize/test_{n}.py" for n in ("check", "groups", "thresholds")),
            "tests/policy/test_policy.py",
        ),
    ),
    "bucketize plan": (
        (
            *(f"{_M}.bucketize.plan.{n}" for n in _BUCKET_PLANS),
            f"{_M}.bucketize.table_plan",
        ),
        (
            f"{_T}/bucketize/plan",
            *(f"{_T}/bucketize/test_{n}.py" for n in ("groups", "table_plan", "thresholds")),
        ),
    ),
    "bucketize apply": (
        (f"{_M}.bucketize.apply", f"{_M}.bucketize.shards"),
        (
            *(f"{_T}/bucketize/test_{n}.py" for n in ("apply", "shards", "check", "near", "sets")),
            f"{_T}/bucketize/plan/test_hints.py",
            f"{_T}/test_dealing.py",
            f"{_T}/test_sharding.py",
            "tests/release/test_outright.py",
        ),
    ),
    "bucketize check": (
        (f"{_M}.bucketize.check",),
        (
            *(f"{_T}/bucketize/test_{n}.py" for n in ("check", "groups", "near", "sets", "set_attacker")),
            f"{_T}/bucketize/dates/test_series.py",
            f"{_T}/bucketize/fakes/test_fakes.py",
            f"{_T}/bucketize/regions/test_regions.py",
        ),
    ),
    "suppress law": (
        tuple(f"{_M}.suppress.{n}" for n in ("d_suppression", "exact", "r_posterior", "r_suppression")),
        (f"{_T}/suppress",),
    ),
    "suppress apply": ((f"{_M}.suppress.plan", f"{_M}.suppress.stage"), (f"{_T}/suppress",)),
    "perturb channel": (
        (f"{_M}.perturb.channel",),
        tuple(f"{_T}/perturb/test_{n}.py" for n in ("channel", "check", "weighted")),
    ),
    "perturb plan": (
        tuple(
            f"{_M}.perturb.plan.{n}"
            for n in ("improvers", "layout", "lockstep", "methods", "moves", "starts", "thresholds")
        ),
        (f"{_T}/perturb/plan", f"{_T}/perturb/test_weighted.py"),
    ),
    "perturb apply": (
        (f"{_M}.perturb.apply",),
        (f"{_T}/perturb/test_apply.py", f"{_T}/perturb/test_weighted.py"),
    ),
    "perturb check": (
        (f"{_M}.perturb.check",),
        (f"{_T}/perturb/test_check.py", f"{_T}/perturb/test_weighted.py"),
    ),
    "alpha-beta law": (
        (f"{_M}.alphabeta.plan.law",),
        (*(f"{_T}/alphabeta/test_{n}.py" for n in ("law", "plan", "changing", "edges", "choice")),),
    ),
    "alpha-beta parameters": (
        (f"{_M}.alphabeta.plan.views", f"{_M}.tuples.plan"),
        (
            *(f"{_T}/alphabeta/test_{n}.py" for n in ("plan", "law", "series", "edges")),
            f"{_T}/tuples/test_plan.py",
        ),
    ),
    "alpha-beta apply": (
        (f"{_M}.alphabeta.apply", f"{_M}.tuples.apply", f"{_M}.tuples.noise"),
        (
            *(f"{_T}/alphabeta/test_{n}.py" for n in ("apply", "mechanism", "changing", "edges")),
            f"{_T}/tuples/test_apply.py",
        ),
    ),
    "alpha-beta check": (
        (f"{_M}.alphabeta.check", f"{_M}.tuples.check"),
        (
            *(f"{_T}/alphabeta/test_{n}.py" for n in ("check", "mechanism", "series")),
            f"{_T}/tuples/test_check.py",
        ),
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
            "tests/release/test_stored.py",
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


class _Learned:
    """Which tests come through which lines of some modules, and how long they take."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.modules = modules
        self.through: dict[str, set[tuple[str, int]]] = {}
        self.seconds: dict[str, float] = {}
        self._seen: set[tuple[str, int]] = set()

    def watch(self, tests: _Tests, items: list[pytest.Item], told: Path) -> bool:
        """Run the unchanged tests in a child, and take over what it learned; whether they pass."""
        child = os.fork()
        if child == 0:
            self._watch_lines()
            passed = tests.run(items, self)
            seen = {test: sorted(lines) for test, lines in self.through.items()}
            told.write_text(json.dumps([seen, self.seconds]))
            os._exit(0 if passed else 1)
        if os.waitpid(child, 0)[1]:
            return False
        seen, self.seconds = json.loads(told.read_text())
        self.through = {test: {(file, line) for file, line in lines} for test, lines in seen.items()}
        return True

    def _watch_lines(self) -> None:
        """Functions say which of their statements are run; a trace would slow down all others as well."""
        builtins.__dict__["__seen__"] = self._seen.add
        for module in self.modules:
            path = path_of(module)
            take_on(sys.modules[module], watched(path.read_text(encoding="utf-8"), str(path)))

    def begin(self) -> None:
        """Before a test."""
        self._seen.clear()
        self._started = time.process_time()

    def end(self, test: str) -> None:
        """After it."""
        self.seconds[test] = time.process_time() - self._started
        self.through[test] = set(self._seen)

    def choose(self, mutant: Mutant, budget: float) -> list[str]:
        """Tests that come through the changed line, fastest first, then others of their files.

        For what a fixture does that many tests share is seen in one of them only.
        """
        path = str(path_of(mutant.module))
        places = {(path, line) for line in range(mutant.first, mutant.last + 1)}
        through = {test for test, seen in self.through.items() if not mutant.function or seen & places}
        files = {_file_of(test) for test in through}
        found = [test for test in self.through if _file_of(test) in files]
        found.sort(key=lambda test: (test not in through, self.seconds[test]))
        return self._take(found, budget)

    def fastest(self, budget: float) -> list[str]:
        """Tests of all files."""
        return self._take(sorted(self.through, key=self.seconds.__getitem__), budget)

    def _take(self, tests: list[str], budget: float) -> list[str]:
        total = 0.0
        chosen: list[str] = []
        for test in tests:
            total += self.seconds[test]
            if chosen and total > budget:
                break
            chosen.append(test)
        return chosen


def _file_of(test: str) -> str:
    return test.partition("::")[0]


class _Tests:
    """A pytest plugin that runs what it is asked for instead of everything that was collected."""

    def __init__(self, group: str, given: argparse.Namespace, out: TextIO) -> None:
        self.group, self.given, self.out = group, given, out
        self.failed, self.why = False, ""

    def pytest_collection(self) -> None:
        """A failing example needs no smaller one."""
        from hypothesis import Phase, settings

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("dalenius"), phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed
        if report.failed:
            self.why = report.longreprtext[-600:]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        score(self, session.items)
        return True

    def run(self, items: list[pytest.Item], learned: _Learned | None = None, about: str = "") -> bool:
        """Whether these tests pass; the first that fails is the last."""
        for number, item in enumerate(items):
            following = items[number + 1] if number + 1 < len(items) else None
            if learned:
                learned.begin()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if learned:
                learned.end(item.nodeid)
            if self.failed:
                if self.given.verbose or learned:
                    self.tell(f"{item.nodeid} fails: {about or self.why}")
                return False
        return True

    def tell(self, text: str) -> None:
        """Print a line."""
        print(text, file=self.out, flush=True)


def path_of(module: str) -> Path:
    """A module's file."""
    return SOURCE / Path(*module.split(".")).with_suffix(".py")


def read_equivalent(text: str) -> dict[str, str]:
    """The mutants that do the same as the original, and why."""
    found: dict[str, str] = {}
    mutants: list[str] = []
    last = ""
    for line in text.splitlines():
        if line.startswith("    "):
            for mutant in mutants:
                found[mutant] = f"{found.get(mutant, '')} {line.strip()}".strip()
        elif line and not line.startswith("#"):
            mutants = [line] if last.startswith("    ") or not last else [*mutants, line]
        last = line
    return found


def try_mutant(mutant: Mutant | None, tests: _Tests, items: list[pytest.Item]) -> str:
    """`killed`, `survived` or `not applied`; None changes nothing, and must survive."""
    if not items:
        return "survived"
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
        signal.alarm(10 * _SECONDS)  # one that waits for ever
        code = 1
        try:
            if mutant and not _take_on(mutant):
                os._exit(_NOT_APPLIED)
            code = 0 if tests.run(items, about=str(mutant)) else 1
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.waitstatus_to_exitcode(status) == _NOT_APPLIED:
        return "not applied"
    return "survived" if status == 0 else "killed"


def _take_on(mutant: Mutant) -> int:
    source = path_of(mutant.module).read_text(encoding="utf-8")
    return take_on(sys.modules[mutant.module], apply(source, mutant))


def draw(group: str, given: argparse.Namespace) -> tuple[list[Mutant], int]:
    """The mutants to try, always the same of a group, and how many it has."""
    found = [
        m for name in GROUPS[group][0] for m in find_mutants(name, path_of(name).read_text(encoding="utf-8"))
    ]
    n_all = len(found)
    if given.sample is not None and given.sample < n_all:
        rng = random.Random(f"{group} {given.seed}")  # noqa: S311  (no secret)
        found = rng.sample(found, given.sample)
    if given.only is not None:
        lines = given.only.read_text(encoding="utf-8").splitlines()
        only = {line.removeprefix("survived: ") for line in lines if line.startswith("survived: ")}
        found = [mutant for mutant in found if str(mutant) in only]
    return found, n_all


def score(tests: _Tests, items: list[pytest.Item]) -> None:
    """Print the survivors of a group, then its score."""
    group, given = tests.group, tests.given
    mutants, n_all = draw(group, given)
    known = read_equivalent(EQUIVALENT.read_text(encoding="utf-8"))
    learned = _Learned(GROUPS[group][0])
    with tempfile.TemporaryDirectory() as folder:
        if not learned.watch(tests, items, Path(folder) / "told"):
            tests.tell(f"{group}: the tests fail without any change")
            return
    by_name = {item.nodeid: item for item in items}
    if try_mutant(None, tests, [by_name[test] for test in learned.fastest(given.budget)]) != "survived":
        tests.tell(f"{group}: the tests fail in another order")
        return
    counts = {"killed": 0, "equivalent": 0, "survived": 0, "not applied": 0}
    for mutant in mutants:
        if str(mutant) in known:
            counts["equivalent"] += 1
            continue
        chosen = [by_name[test] for test in learned.choose(mutant, given.budget)]
        found = try_mutant(mutant, tests, chosen)
        counts[found] += 1
        if found in ("survived", "not applied"):
            tests.tell(f"{found}: {mutant}\n    line {mutant.line}, {len(chosen)} tests")
    stated = ", ".join(f"{n} {what}" for what, n in counts.items())
    good = counts["killed"] + counts["equivalent"]
    part = f"{len(mutants)} of {n_all} mutants"
    tests.tell(f"{group}: {stated}; {part}: {100 * good / max(len(mutants), 1):.1f} %")


def run_group(group: str, given: argparse.Namespace) -> None:
    """Load a group's modules and tests, and try its mutants."""
    modules, files = GROUPS[group]
    for name in modules:
        importlib.import_module(name)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    with tempfile.TemporaryDirectory() as folder:  # of its own: those of other runs are cleared away
        options = [*_OPTIONS, "--basetemp", f"{folder}/tests"]
        pytest.main([*options, *(given.tests or files)], plugins=[_Tests(group, given, out)])


def main() -> int:
    """Print survivors, then a line with the score of each group."""
    parser = argparse.ArgumentParser(prog="python -m bench.mutants")
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help=", ".join(GROUPS))
    parser.add_argument("--sample", type=int, help="so many mutants of each group, at random; else all")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds of tests for a mutant at most")
    parser.add_argument("--tests", nargs="*", help="these instead of the group's, e.g. for what survived")
    parser.add_argument("--verbose", action="store_true", help="say which test noticed what")
    parser.add_argument("--only", type=Path, help="a file with survivors of an earlier run: only those")
    given = parser.parse_args()
    os.chdir(SOURCE.parent)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for group in given.groups:
        child = os.fork()  # each group imports and collects anew
        if child == 0:
            run_group(group, given)
            os._exit(0)
        os.waitpid(child, 0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
