"""Parquet files that tasks read themselves, each its part: columns go from the file to Arrow as they are.

Spark would make rows of them, and Arrow columns of these. Parts follow from the files alone, not from the
number of machines, so that two passes see the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dalenius.tables.reading import BATCH_ROWS

MOST_BYTES = 2**27
"""Of a part, as Spark's own; a part has at least one row group."""
USUAL_PARTS = 256
"""For as many cores; every part works its share of the quotas out, so that more would cost more."""
_FEWEST_ROWS = 2**18

Part = tuple[tuple[str, tuple[int, ...]], ...]
"""Files and the numbers of their row groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileParts:
    """A table of Parquet files, cut at row groups into parts of about the same size."""

    parts: tuple[Part, ...]

    @classmethod
    def cut(cls, files: Iterable[str], schema: pa.Schema) -> FileParts | None:
        """None if a file does not hold every column as one machine would see it: then Spark must read it."""
        footers = {str(Path(file).absolute()): pq.read_metadata(file) for file in files}
        if not all(_holds(footer.schema.to_arrow_schema(), schema) for footer in footers.values()):
            return None
        groups = [
            (file, number, footer.row_group(number))
            for file, footer in footers.items()
            for number in range(footer.num_row_groups)
        ]
        n_rows = sum(group.num_rows for _, _, group in groups)
        most_rows = max(_FEWEST_ROWS, -(-n_rows // USUAL_PARTS))
        parts: list[list[tuple[str, int]]] = []
        rows = size = 0
        for file, number, group in groups:
            group_size = sum(group.column(i).total_compressed_size for i in range(group.num_columns))
            if not parts or rows + group.num_rows > most_rows or size + group_size > MOST_BYTES:
                parts.append([])
                rows = size = 0
            parts[-1].append((file, number))
            rows, size = rows + group.num_rows, size + group_size
        return cls(parts=tuple(map(_by_file, parts)))

    def read(self, numbers: Iterable[int], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Some columns of the parts with these numbers."""
        for number in numbers:
            for file, row_groups in self.parts[number]:
                with pq.ParquetFile(file) as opened:
                    for batch in opened.iter_batches(
                        BATCH_ROWS, row_groups=list(row_groups), columns=schema.names, use_threads=False
                    ):
                        yield batch.select(schema.names).cast(schema)


def _holds(found: pa.Schema, schema: pa.Schema) -> bool:
    return all(
        len(found.get_all_field_indices(field.name)) == 1
        and _plain(found.field(field.name).type) == field.type
        for field in schema
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """As one machine reads it: without dictionaries, texts as texts."""
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(value, value)


def _by_file(groups: list[tuple[str, int]]) -> Part:
    files = dict.fromkeys(file for file, _ in groups)
    return tuple((file, tuple(number for of, number in groups if of == file)) for file in files)
