"""Workbooks (Excel, OpenDocument) and files of SPSS, Stata and SAS: read whole, into memory.

By a process of its own, where systems have cheap ones: a workbook of a kilobyte with one cell far from the
others wants all memory there is, and a native library that gets none ends its process.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa

from dalenius import system
from dalenius.errors import InputError, SourceError, did_you_mean
from dalenius.tables.files.bytes import FileBytes
from dalenius.tables.files.cells import needs_extra, table_of_rows, to_arrow, without_missing
from dalenius.tables.files.options import SourceOptions

WORKBOOK_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
_READERS = {
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".dta": "read_dta",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
STATISTICS_SUFFIXES = tuple(_READERS)
_MEMORY, _SECONDS = 2**32, 600


def read_workbook(file: FileBytes, options: SourceOptions) -> tuple[str, pa.Table]:
    """What messages call the sheet, and its rows."""
    table = _read_apart(file.name, partial(_workbook, file, options))
    name = table.schema.metadata[b"name"].decode("utf-8", "surrogateescape")
    return name, table.replace_schema_metadata()


def read_statistics(file: FileBytes, options: SourceOptions) -> pa.Table:
    """The variables of a file of SPSS, Stata or SAS, as their codes or their labels."""
    return _read_apart(file.name, partial(_statistics, file, options))


def _read_apart(name: str, read: Callable[[], pa.Table]) -> pa.Table:
    told = system.run_apart(partial(_tell, read), memory=_MEMORY, seconds=_SECONDS)
    if told is None:
        raise SourceError(
            f"{name} cannot be read: it takes more than {_MEMORY >> 20:,} MB or {_SECONDS} seconds,"
            " or is damaged",
            hint="a workbook may have a cell far from the others: delete the rows and columns between;"
            " or save the table as CSV",
        )
    if told.startswith(b"{"):
        error = json.loads(told)
        raise (SourceError if error["is_source"] else InputError)(error["message"], hint=error["hint"])
    return pa.ipc.open_stream(told).read_all()


def _tell(read: Callable[[], pa.Table]) -> bytes:
    """In the other process: the table, or what is wrong with it."""
    try:
        table = read()
    except InputError as error:
        is_source = isinstance(error, SourceError)
        found = {"is_source": is_source, "message": error.message, "hint": error.hint}
        return json.dumps(found).encode()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _workbook(file: FileBytes, options: SourceOptions) -> pa.Table:
    options.refuse_others(("sheet", "header", "missing"), "a workbook")
    try:
        from python_calamine import CalamineWorkbook, PasswordError
    except ImportError as error:
        raise needs_extra("a workbook", error) from error
    try:
        with file.plain().reading() as opened, CalamineWorkbook.from_filelike(opened) as book:
            name, rows = _read_sheet(file.name, book, options.sheet)
    except PasswordError as error:
        raise SourceError(f"{file.name} is encrypted", hint="save it without a password first") from error
    except SourceError:
        raise
    except Exception as error:  # the library has no common base of its errors
        raise _damage_error(file.name, "a workbook", error) from error
    told = {"name": name.encode("utf-8", "surrogateescape")}
    return table_of_rows(name, rows, options).replace_schema_metadata(told)


def _read_sheet(name: str, book: Any, wanted: str | None) -> tuple[str, list[list[Any]]]:
    if wanted is not None and wanted not in book.sheet_names:
        raise SourceError(f"{name} has no sheet {wanted!r}; {did_you_mean(wanted, book.sheet_names)}")
    names = [wanted] if wanted is not None else book.sheet_names
    found = {title: book.get_sheet_by_name(title).to_python() for title in names}
    filled = {title: rows for title, rows in found.items() if rows} or found
    if len(filled) != 1:
        listed = ", ".join(map(repr, filled))
        raise SourceError(
            f"{name} has {len(filled)} sheets with cells: {listed}",
            hint="say which one is the table: --sheet NAME, or `sheet` in the policy's source",
        )
    ((title, rows),) = filled.items()
    return (name if len(book.sheet_names) == 1 else f"{name}, sheet {title!r}"), rows


def _statistics(file: FileBytes, options: SourceOptions) -> pa.Table:
    options.refuse_others(("labels", "missing", "encoding"), "a file of a statistics package")
    try:
        import pyreadstat
    except ImportError as error:
        raise needs_extra("a file of SPSS, Stata or SAS", error) from error
    read: Callable[..., Any] = getattr(pyreadstat, _READERS[file.suffix])
    encoding = {} if options.encoding is None else {"encoding": options.encoding}
    try:
        columns, about = read(file.plain().path, output_format="dict", **encoding)
    except Exception as error:
        raise _damage_error(file.name, "a file of a statistics package", error) from error
    arrays = []
    for name, column in columns.items():
        listed = (
            column.tolist() if hasattr(column, "tolist") else column
        )  # older versions give NumPy's arrays
        cells = [None if cell != cell else cell for cell in listed]  # noqa: PLR0124  (not a number: missing)
        if options.labels == "labels":
            labels = about.variable_value_labels.get(name, {})
            cells = [_label(cell, labels) for cell in cells]
        arrays.append(to_arrow(f"{file.name}: column {name!r}", without_missing(cells, options.missing)))
    return pa.Table.from_arrays(arrays, names=list(columns))


def _label(cell: Any, labels: dict[Any, str]) -> Any:
    """Packages keep whole numbers as decimals, and their labels' numbers not always."""
    return cell if cell is None else labels.get(cell, cell)


def _damage_error(name: str, what: str, error: Exception) -> SourceError:
    return SourceError(
        f"{name} cannot be read as {what} ({type(error).__name__})",
        hint="is it damaged, not whole, or something else under this ending?",
    )
