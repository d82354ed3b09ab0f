"""How the process of a command ends: all that is to be done is done, and nothing is taken apart."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Leave by what `sys.exit` says, once threads and everything that was registered for the end are done.

    Python would go on to clear every module and object, which is a fifth of the processor time of a small
    command, for memory that the kernel takes back anyway.
    """
    ending = _Ending()
    atexit.register(ending)  # the first to be registered is the last to be called
    try:
        yield
    except SystemExit as stop:
        ending.code = stop.code
        raise


class _Ending:
    """Ends the process with a code, if that is one."""

    code: object = "the process ends as Python has it"

    def __call__(self) -> None:
        if not isinstance(self.code, int):
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        except (
            OSError,
            ValueError,
        ):  # nobody reads: Python has words and a code for it
            return
        os._exit(self.code)
