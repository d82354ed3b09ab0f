"""Export to a DuckDB file."""

from __future__ import annotations

from pathlib import Path

import duckdb

from dalenius.errors import InputError
from dalenius.export.files import unfinished
from dalenius.export.staging import Staged
from dalenius.export.weights import VIEW
from dalenius.sql import identifier, literal


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
