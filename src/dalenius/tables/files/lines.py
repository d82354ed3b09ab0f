"""JSON lines, and Arrow's own files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa

from dalenius.errors import SourceError
from dalenius.sql import connect_shared, identifier, literal, one_row
from dalenius.tables.files.bytes import FileBytes, hold
from dalenius.tables.files.dialect import Dialect, Kind
from dalenius.tables.files.options import SourceOptions
from dalenius.tables.types import CheckedSource, check_types, refuse_unreadable

JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc", ".arrows")
_ARROW_START = b"ARROW1"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonSource(CheckedSource):
    """A file of JSON objects, one a line or in one list; texts stay texts, except for ISO days and times."""

    files: tuple[FileBytes, ...]
    texts: str
    """SQL to select from: the columns as JSON has them, numbers that a DOUBLE would change as texts."""
    is_slow: bool = field(default=True, init=False)
    is_shared: bool = field(default=True, init=False)

    @classmethod
    def open(cls, files: Sequence[FileBytes], options: SourceOptions, name: str) -> JsonSource:
        """Look at every object: which keys there are, and of which types."""
        options.refuse_others(("missing",), "JSON")
        plain = tuple(file.plain() for file in files)
        read = f"read_json([{', '.join(literal(file.path) for file in plain)}], format = 'auto', {{}})"
        connection = connect_shared()
        with refuse_unreadable(
            f"{name} cannot be read as JSON lines",
            hint='every line is one object, e.g. {"age": 30, "disease": "Flu"}',
        ):
            described = connection.execute(
                f"DESCRIBE SELECT * FROM {read.format('sample_size = -1')}"
            ).fetchall()
            kinds = {column: kind for column, kind, *_ in described}
            typed = _type_columns(connection, read, kinds)
            checked = check_types(connection, name, typed, options.missing)
        return cls(name=name, files=plain, texts=typed, checked=checked)

    def scan(self, connection: duckdb.DuckDBPyConnection) -> str:
        """The objects as rows; a key that one does not have is NULL."""
        hold(connection, self.files)
        return self.checked.select(self.texts)


_PLAIN = ("BOOLEAN", "BIGINT", "UBIGINT")


def _type_columns(connection: duckdb.DuckDBPyConnection, read: str, kinds: dict[str, str]) -> str:
    """What DuckDB takes for a decimal number or a day is read as text, and is one if every text is."""
    nested = {name: kind for name, kind in kinds.items() if "[" in kind or kind.startswith(("STRUCT", "MAP"))}
    asked = {name: kind if kind in _PLAIN or name in nested else "VARCHAR" for name, kind in kinds.items()}
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in asked.items())
    texts = read.format(f"columns = {{{columns}}}")
    _, number, day, moment = Dialect().kinds()
    tests: list[tuple[str, Kind]] = []
    for name in (name for name, kind in asked.items() if kind == "VARCHAR"):
        tests += [(name, kind) for kind in ([number] if kinds[name] == "DOUBLE" else [day, moment])]
    passed: Sequence[bool] = ()
    if tests:
        every = ", ".join(
            f"bool_and(coalesce({kind.test.format(name)}, false)) FILTER ({name} IS NOT NULL)"
            for name, kind in ((identifier(column), kind) for column, kind in tests)
        )
        passed = one_row(connection, f"SELECT {every} FROM {texts}")
    chosen = {
        name: kind.value.format(identifier(name))
        for (name, kind), ok in zip(reversed(tests), reversed(passed), strict=True)
        if ok
    }
    cells = ", ".join(f"{chosen.get(name, identifier(name))} AS {identifier(name)}" for name in asked)
    return f"(SELECT {cells} FROM {texts})"


def read_arrow(file: FileBytes, options: SourceOptions) -> pa.Table:
    """An Arrow file or stream (Feather is one), mapped into memory where it is not compressed."""
    options.refuse_others(("missing",), "an Arrow file")
    plain = file.plain()
    try:
        mapped = pa.memory_map(plain.path)
        opened = pa.ipc.open_file if plain.start().startswith(_ARROW_START) else pa.ipc.open_stream
        table = opened(mapped).read_all()
        table.validate(full=True)  # offsets and indices are used as they are, and may lead anywhere
        return table
    except (pa.ArrowException, OSError) as error:
        raise SourceError(
            f"{file.name} cannot be read as an Arrow file: {str(error).splitlines()[0]}",
            hint="is it damaged, or not whole? get it again from where it came",
        ) from error
