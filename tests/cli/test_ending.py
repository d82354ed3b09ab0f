"""How a command's process ends: what is to be done at the end is done, what Python clears away is not."""

from __future__ import annotations

import os
import subprocess
import sys

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
