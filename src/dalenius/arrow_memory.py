"""Where Arrow takes its memory from while a table is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa

_lock = Lock()
_usual: list[pa.MemoryPool] = []
"""The pool before, once for every table that is being published: other threads may publish too."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Arrow takes its memory from the C library, which keeps what is freed for the next batch.

    Its own allocator gives pages back and has the kernel clear new ones: a quarter of the processor time of
    a table of a million rows.
    """
    with _lock:
        _usual.append(_usual[-1] if _usual else pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _lock:
            usual = _usual.pop()
            if not _usual:
                pa.set_memory_pool(usual)
