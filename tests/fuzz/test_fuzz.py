"""Damaged releases by the thousand: none of them may end in an internal error, a crash or a leftover.

By count, never by the clock; `make fuzz` runs many more. What was ever found is in `corpus.jsonl`, and is
replayed with the command that it was found with.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.running import Case, Seeds, run_case
from tests.fuzz.seeds import make_seeds

CORPUS = Path(__file__).with_name("corpus.jsonl").read_text(encoding="utf-8").splitlines()
COUNTS = {"manifest": 300, "table": 20, "bytes": 20}


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Seeds:
    return Seeds(make_seeds(tmp_path_factory.mktemp("seeds")))


@pytest.mark.parametrize("line", CORPUS)
def test_what_was_found_once_is_not_found_again(seeds: Seeds, line: str, tmp_path: Path) -> None:
    assert [finding.what for finding in run_case(seeds, Case.from_json(line), tmp_path / "r")] == []


@pytest.mark.parametrize("kind", COUNTS)
def test_new_damage_is_found_out(seeds: Seeds, kind: str, tmp_path: Path) -> None:
    found = [
        finding
        for number in range(1, COUNTS[kind] + 1)
        for finding in run_case(seeds, seeds.draw(kind, -number), tmp_path / "r", number * 3)
    ]
    assert [(finding.command, finding.what, finding.case.to_json()) for finding in found] == []
