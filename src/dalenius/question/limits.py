"""What holds a question to its limits from outside, where it does not stop by itself."""

from __future__ import annotations

import os
from pathlib import Path

GRACE = 0.1
"""How much longer than its time a question may take until its process is ended: it first stops by itself."""
LOOK_EVERY = 0.02
"""Seconds between two looks at how much memory a process holds."""


def resident(process: int | str | None = "self") -> int:
    """The memory that a process holds, in bytes; 0 where the system does not tell.

    What counts is what is held, not the addresses that are reserved: numerical libraries reserve gigabytes.
    """
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0  # elsewhere than on Linux only DuckDB's own limit holds
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
