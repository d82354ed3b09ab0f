"""What the checks of all views begin with: one pass that finds every row in its domain."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, group_of
from dalenius.prefetch import map_parallel
from dalenius.release.manifest import Manifest
from dalenius.tables.reading import DictionaryColumns, read_batches


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedRows:
    """What one pass over a view tells."""

    outside: dict[str, int]
    """How many cells of a column are outside its domain, where there are any."""
    ascend: bool
    """Whether every row is in its file and above the one before it: so it is, unless somebody moved rows."""


def scan_rows(connection: duckdb.DuckDBPyConnection, domain: Domain, manifest: Manifest) -> ScannedRows:
    """One pass in the order of the files; a row is above another if its file is, or else its tuple."""
    outside: Counter[str] = Counter()
    ascend, last = True, None
    (n_files,) = (len(table.files) for table in manifest.tables if table.name == "view")
    # NULL, where it is no value of the domain, may well stand for all cells that are none
    allowed = {
        c.name: c.values
        for c in domain.columns
        if pa.types.is_string(c.values.type) and not c.values.null_count
    }
    columns = DictionaryColumns.of(connection, 'SELECT * FROM "view"', allowed)

    def look(coded: pa.RecordBatch) -> tuple[dict[str, int], Ints | None]:
        batch = columns.decode(coded)
        found = {c.name: c.find(batch.column(c.name)) for c in domain.columns}
        strange = {name: codes.null_count for name, codes in found.items() if codes.null_count}
        codes = tuple(codes.to_numpy(zero_copy_only=False) for codes in found.values())
        return strange, None if strange else _in_files(domain, codes, n_files)

    batches = read_batches(connection, columns.code('SELECT * FROM "view"'))
    for strange, words in map_parallel(look, batches):
        outside.update(strange)
        if words is None or outside or not ascend:
            continue
        together = words if last is None else np.concatenate([last, words])
        ascend, last = _all_ascend(together), together[-1:]
    return ScannedRows(outside=dict(outside), ascend=ascend)


def _in_files(domain: Domain, codes: TupleCodes, n_files: int) -> Ints:
    """The words of each tuple after the number of its file, which the tuple decides."""
    words = domain.pack(codes)
    if n_files == 1:
        return words
    own = [at for at, name in enumerate(domain.names) if name != COPY]
    tuples = Domain(columns=tuple(domain.columns[at] for at in own))
    files = group_of(tuples.pack(tuple(codes[at] for at in own)), n_files)
    return np.column_stack([files, words])


def _all_ascend(words: Ints) -> bool:
    above = np.zeros(1, dtype=np.bool_)  # equal rows do not ascend
    for word in reversed(words.T):  # the first word decides, then the second, …
        above = (word[1:] > word[:-1]) | ((word[1:] == word[:-1]) & above)
    return bool(above.all())


def check_domain(rows: ScannedRows, domain: Domain) -> Check:
    """Whether every cell is a value of its column's domain."""
    problems = [f"{n} rows hold a value outside the domain of {name!r}" for name, n in rows.outside.items()]
    return Check.of("domain", "; ".join(problems), f"every row is one of the domain's {domain.size:,} tuples")
