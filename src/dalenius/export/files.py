"""Writing a file or folder so that it is there whole or not at all, and never over another one."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dalenius.errors import EngineError, InputError


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """A path inside a hidden folder beside the target; what is made there becomes the target at the end."""
    refuse_taken(target)
    if not target.parent.is_dir():
        raise InputError(f"folder {target.parent} does not exist", hint="make it first")
    folder = None
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
        # The final name: a DuckDB file knows itself by it.
        partial = folder / target.name
        yield partial
        refuse_taken(target)
        partial.rename(target)
    except (OSError, duckdb.IOException, duckdb.OutOfMemoryException) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not enough disk or memory"
        raise EngineError(f"{target} cannot be written: {reason}") from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def refuse_taken(target: Path) -> None:
    """Nothing is overwritten; an empty folder may be filled."""
    is_empty_folder = target.is_dir() and not any(target.iterdir())
    if (target.exists() or target.is_symlink()) and not is_empty_folder:
        what = "is not empty" if target.is_dir() else "exists already"
        raise InputError(f"{target} {what}", hint="remove it, or export to another place")
