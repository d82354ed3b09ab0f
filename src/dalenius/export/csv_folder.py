"""Export to a folder of CSV files."""

from __future__ import annotations

from pathlib import Path

from dalenius.errors import InputError
from dalenius.export.files import unfinished
from dalenius.export.staging import Staged
from dalenius.export.weights import VIEW
from dalenius.sql import identifier, literal

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
