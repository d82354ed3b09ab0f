"""How the process of a command ends: all that is to be done is done, and nothing is taken apart."""

from __future__ import annotations

import atexit
import os
import select
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


UNREAD = 141
"""What a shell says of a command whose reader has gone (128 + SIGPIPE), as `head` goes once it has enough."""


def is_unread() -> bool:
    """Whether nobody reads what is printed."""
    try:
        number = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # there is no file, or none any more
        return False
    if not hasattr(select, "poll"):  # as on Windows
        return True
    asked = select.poll()
    asked.register(number, 0)  # an error is told in any case
    return any(found & select.POLLERR for _, found in asked.poll(0))


def print_no_more() -> None:
    """Let what is still to be printed go nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


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
        except BrokenPipeError:  # nobody reads any more, and nobody needs to be told
            os._exit(self.code or UNREAD)
        except (
            OSError,
            ValueError,
        ):  # nobody reads: Python has words and a code for it
            return
        os._exit(self.code)
