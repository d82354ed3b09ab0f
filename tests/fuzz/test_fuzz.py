"""Damaged input by the thousand: none of it may end in an internal error, a crash or a leftover.

By count, never by the clock; `make fuzz` runs many more. What was ever found is in `corpus.jsonl`, and is
replayed with every command.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.cases import Case, Fuzzer
from tests.fuzz.kinds import KINDS

CORPUS = Path(__file__).with_name("corpus.jsonl").read_text(encoding="utf-8").splitlines()
COUNTS = {
    "manifest": 300,
    "table": 20,
    "bytes": 20,
    "policy": 300,
    "sql": 150,
    "source": 60,
    "service": 100,
}


@pytest.fixture(scope="module")
def fuzzers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Fuzzer]]:
    made: dict[object, Fuzzer] = {}
    for kind, make in KINDS.items():
        if make not in made:
            made[make] = make(tmp_path_factory.mktemp(kind))
    yield {kind: made[make] for kind, make in KINDS.items()}
    for fuzzer in made.values():
        getattr(fuzzer, "close", lambda: None)()


@pytest.mark.parametrize("line", CORPUS)
def test_what_was_found_once_is_not_found_again(fuzzers: dict[str, Fuzzer], line: str) -> None:
    case = Case.from_json(line)
    assert list(fuzzers[case.kind].run(case)) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", COUNTS)
def test_new_damage_is_found_out(fuzzers: dict[str, Fuzzer], kind: str) -> None:
    for number in range(1, COUNTS[kind] + 1):
        case = fuzzers[kind].draw(kind, -number)
        assert [(finding, case.to_json()) for finding in fuzzers[kind].run(case, number * 3)] == []
