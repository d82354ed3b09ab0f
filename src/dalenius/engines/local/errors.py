"""What goes wrong on this machine, told in plain words and without a cell of the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from dalenius.errors import EngineError


@contextmanager
def engine_errors() -> Iterator[None]:
    """Says in plain words what the machine could not do."""
    try:
        yield
    except (duckdb.IOException, duckdb.OutOfMemoryException, OSError) as error:
        text = str(error)
        if "no space left" in text.lower():
            raise EngineError(
                "the disk is full; nothing was published",
                hint="free space beside the release, or publish elsewhere",
            ) from error
        raise EngineError(
            f"the machine could not do it: {text.splitlines()[0]}; nothing was published"
        ) from error
    except (duckdb.Error, UnicodeDecodeError) as error:  # texts of a damaged file may be anything
        # What the error says may quote a cell of the table.
        raise EngineError(
            f"the table could not be read ({type(error).__name__}); nothing was published",
            hint="did it change while it was read? `dalenius inspect` reads it again",
        ) from error
