"""Connections: what does not fit into memory is nobody else's to read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
_SPILLS = """
import stat
from pathlib import Path
from dalenius.sql import connect

connection = connect()
connection.execute("SET memory_limit = '40MB'; SET threads = 1")
connection.execute("CREATE TABLE x AS SELECT hash(i) AS h, hash(i + 1) AS g FROM range(4000000) AS t(i)")
folder = Path(connection.execute("SELECT current_setting('temp_directory')").fetchone()[0])
assert any(folder.iterdir()), "nothing was spilled"
assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
connection.close()
assert not folder.exists()
"""


@pytest.mark.parametrize("taken", [False, True], ids=["free", "taken by somebody"])
def test_what_outgrows_memory_goes_to_a_private_folder_that_is_removed(tmp_path: Path, taken: bool) -> None:
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    if taken:
        (temporary / f"dalenius-{os.getuid()}").mkdir(mode=0o755)
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "src"), "TMPDIR": str(temporary)}
    command = [sys.executable, "-c", _SPILLS]
    ran = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not list(work.iterdir())  # DuckDB's own place is .tmp of the working folder
