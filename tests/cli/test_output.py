"""What commands print: nothing in it moves the cursor, and no locale ends a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dalenius.cli.output import print_json, say, say_error, say_table

EVIL = "ill\x1b[2J\u202eco\x9bd\ud800\r"
SHOWN = "ill\\u001b[2J\\u202eco\\u009bd\\ud800\\u000d"
RELEASE = Path(__file__).parents[1] / "releases" / "bucketize"


def test_labels_cannot_command_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"{EVIL}\nnext line")
    say_table([EVIL, "n"], [[EVIL, "1"]])
    say_error({"error": {"kind": "x", "message": EVIL, "hint": EVIL}}, as_json=False)
    out, err = capsys.readouterr()
    assert out.splitlines()[:2] == [SHOWN, "next line"]
    assert out.count(SHOWN) == 3
    assert err.count(SHOWN) == 2
    assert not set(out + err) & set("\x1b\u202e\x9b\ud800\r")


def test_json_can_be_read_back(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"name": EVIL, "n": float("inf")})
    assert json.loads(capsys.readouterr().out) == {"name": EVIL, "n": "inf"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_poor_locale_is_no_error(encoding: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "LC_ALL": "C", "HOME": ""}
    command = [sys.executable, "-m", "dalenius", "ask", str(RELEASE), "SELECT COUNT(*) FROM t"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"\\u2026" in done.stdout or b"..." in done.stdout
