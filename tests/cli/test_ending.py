"""How a command's process ends: what is to be done at the end is done, what Python clears away is not."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from dalenius.cli.ending import is_unread

START = """
import atexit, os, sys, threading, time
from dalenius.cli.ending import ended_at_once

class Cleared:
    def __del__(self):
        os.write(1, b"cleared ")

cleared = Cleared()
with ended_at_once():
    atexit.register(os.write, 1, b"registered ")
    threading.Thread(target=lambda: (time.sleep(0.05), os.write(1, b"thread "))).start()
"""


def ended(last: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-c", START + last]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_threads_and_what_is_registered_come_first_and_nothing_is_cleared_away() -> None:
    done = ended("    print('flushed', end=' ')\n    sys.exit(3)")
    assert (done.returncode, done.stdout) == (3, "thread registered flushed ")


def test_what_does_not_end_by_a_code_ends_as_python_has_it() -> None:
    for last in ("    raise KeyError(1)", "    sys.exit('words')"):
        done = ended(last)
        assert done.returncode == 1
        assert done.stdout == "thread registered cleared "
        assert "KeyError" in done.stderr or "words" in done.stderr


def test_a_stream_that_nobody_reads_is_told() -> None:
    done = ended("    print('x'); os.close(1); sys.exit(0)")
    assert done.returncode == 120  # Python's own, for output that was lost


def into_closed_pipe(*words: str, unbuffered: bool = False) -> tuple[int, str]:
    """The exit code and standard error of a command whose output nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, *(["-u"] if unbuffered else []), "-m", "dalenius"]
    done = subprocess.run([*command, *words], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize("words", [["--help"], ["doctor"], ["inspect", "TABLE"], ["publish", "POLICY"]])
def test_a_reader_that_has_enough_ends_a_command_quietly(
    words: list[str], unbuffered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `dalenius inspect FILE | head` does; what was to be written is written."""
    monkeypatch.setenv("DALENIUS_LEDGER", str(tmp_path / "ledger"))
    table, policy = tmp_path / "t.csv", tmp_path / "p.toml"
    table.write_text("".join(["age,ill\n", *(f"{20 + k % 9},{'abcd'[k % 4]}\n" for k in range(400))]))
    policy.write_text(
        f'source = "{table}"\nrelease = "{tmp_path / "r"}"\n[columns]\nquasi = ["age"]\nsensitive = ["ill"]\n'
        '[promise]\nkind = "f-privacy"\ndefault = 0.6\n[mechanism]\nkind = "bucketize"\n'
    )
    given = [{"TABLE": str(table), "POLICY": str(policy)}.get(word, word) for word in words]
    assert into_closed_pipe(*given, unbuffered=unbuffered) == (141, "")
    assert (tmp_path / "r").exists() == (words[0] == "publish")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_what_was_not_written_is_told_whoever_reads(tmp_path: Path) -> None:
    """On standard error if not as JSON; and another pipe that broke is no reader's."""
    for more in ([], ["--json"]):
        code, told = into_closed_pipe("publish", str(tmp_path / "none.toml"), *more)
        assert code == 2
        assert told.startswith("error: ")
        assert "none.toml" in told
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError):
        os.write(writing, b"a database's")
    os.close(writing)
    assert not is_unread()


def test_another_pipe_that_breaks_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: list[str]) -> object:
        raise BrokenPipeError(32, "Broken pipe")

    main = import_module("dalenius.cli.main")
    monkeypatch.setattr(main, "_run_command", fail)
    assert main.run(["publish", "p.toml"]) == 1
    assert "Broken pipe" in capsys.readouterr().err
