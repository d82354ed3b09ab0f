"""Writing a file or folder so that it is there whole or not at all, and never over another one.

Export to a folder of CSV files.

Export to a DuckDB file.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from dalenius.errors import EngineError, InputError
from dalenius.export.staging import Staged
from dalenius.question.weighting import VIEW
from dalenius.sql import identifier, literal


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


_OPTIONS = "FORMAT csv, HEADER true, DELIMITER ',', QUOTE '\"', ESCAPE '\"', NULLSTR ''"
_SQL = """\
-- Load the CSV files into tables of the same names (types: dictionary.csv; an empty field is NULL, "" is an
-- empty text), then create this view. It is not a file because it can be many times larger than the tables.
CREATE VIEW {name} AS
{view};
"""


def write_csv(staged: Staged, target: Path) -> None:
    """Write a file per table, the dictionary among them, and the view's SQL."""
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} exists already and is not a folder", hint="export to another place")
    with unfinished(target) as partial:
        partial.mkdir()
        for table in staged.tables:
            file = literal(str(partial / f"{table}.csv"))
            staged.connection.execute(f"COPY {identifier(table)} TO {file} ({_OPTIONS})")
        text = _SQL.format(name=identifier(VIEW), view=staged.view)
        (partial / f"{VIEW}.sql").write_text(text, encoding="utf-8")


def write_duckdb(staged: Staged, target: Path) -> None:
    """Write the tables and the view into a new file."""
    if target.is_dir():
        raise InputError(f"{target} is a folder", hint="a DuckDB file is a new file, like patients.duckdb")
    with unfinished(target) as partial:
        connection = staged.connection
        connection.execute(f"ATTACH {literal(str(partial))} AS exported_file")
        for table in staged.tables:
            name = identifier(table)
            connection.execute(f"CREATE TABLE exported_file.main.{name} AS FROM {name}")
        connection.execute("DETACH exported_file")
        with duckdb.connect(str(partial)) as file:
            file.execute(f"CREATE VIEW {identifier(VIEW)} AS {staged.view}")
