"""Connections: what does not fit into memory is nobody else's to read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
assert stat.S_IMODE(folder.stat().st_mode) == 0o700
print(folder)
"""


def test_what_outgrows_memory_goes_to_a_private_folder_that_is_removed(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-c", _SPILLS], {**os.environ, "PYTHONPATH": str(PROJECT / "src")}
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert not list(tmp_path.iterdir())  # DuckDB's own place is .tmp of the working folder
    assert not Path(ran.stdout.strip()).exists()
