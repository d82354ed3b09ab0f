"""A shell that asks how a line may go on gets commands, and the options of the command on the line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dalenius


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [("dalenius ver", 1, ["verify"]), ("dalenius verify --str", 2, ["--strict"])],
)
def test_bash_is_told_how_to_go_on(line: str, place: int, expected: list[str]) -> None:
    asked = {"_DALENIUS_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(place)}
    environment = {**os.environ, **asked, "PYTHONPATH": str(Path(dalenius.__file__).parent.parent)}
    ran = subprocess.run(
        [sys.executable, "-m", "dalenius"], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == expected
