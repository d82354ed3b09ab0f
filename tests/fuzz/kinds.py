"""The kinds of input that are fuzzed, each with what makes and runs its cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.fuzz.cases import Fuzzer
from tests.fuzz.policies import Policies
from tests.fuzz.questions import Questions
from tests.fuzz.releases import Releases
from tests.fuzz.seeds import make_seeds
from tests.fuzz.sources import Sources


def _releases(folder: Path) -> Fuzzer:
    return Releases(make_seeds(folder / "seeds"), folder / "work" / "r")


def _questions(folder: Path) -> Fuzzer:
    return Questions(make_seeds(folder / "seeds", kept=False))


def _service(_: Path) -> Fuzzer:
    from tests.fuzz.service import Service

    return Service()


KINDS: dict[str, Callable[[Path], Fuzzer]] = {
    "manifest": _releases,
    "table": _releases,
    "bytes": _releases,
    "policy": Policies,
    "sql": _questions,
    "source": Sources,
    "service": _service,
}
"""By kind: what runs its cases, in a folder of its own."""
