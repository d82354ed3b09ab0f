"""`ask --seconds --memory`: a question that exceeds its limits ends, with a message and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.conftest import PROJECT

RELEASE = PROJECT / "tests" / "releases" / "bucketize"
QUESTION = "SELECT COUNT(*) FROM t"


def ask(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dalenius", "ask", str(RELEASE), QUESTION, "--json", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--seconds", "0.001"], "longer than 0.001 seconds"),
        (["--memory", "1"], "more than 1 MB"),
    ],
)
def test_what_exceeds_its_limits_is_ended(options: list[str], message: str) -> None:
    ended = ask(*options)
    assert ended.returncode == 2
    assert message in json.loads(ended.stdout)["error"]["message"]


def test_generous_limits_change_nothing() -> None:
    ended = ask("--seconds", "600", "--memory", "20000")
    assert ended.returncode == 0
    assert json.loads(ended.stdout)["rows"][0]["estimate"] > 0
