"""Which values a column may take, as the publisher declares them: every row of the domain could be real.

::

    age    = "17..90"                      whole numbers from 17 to 90
    zip    = ["61234", "61434", "NULL"]    these values, and NULL
    score  = ["0..100", "NULL"]            ranges and values may be mixed
    street = "streets.csv"                 a file with one column under a header; an empty field is NULL
"""

from __future__ import annotations

import csv
import datetime
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius.errors import PolicyError

NULL = "NULL"
MOST_VALUES = 2**25
"""The largest domain of one column; a larger one could not be asked about."""
_RANGE = re.compile(r"\s*(-?\d{1,18})\s*\.\.\s*(-?\d{1,18})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDomain:
    """Values as texts and ranges of whole numbers, in the order in which they were declared."""

    column: str
    parts: tuple[range | str | None, ...]

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        """The values in the column's own type.

        >>> DeclaredDomain(column="age", parts=(range(1, 3), None)).to_arrow(pa.int64()).to_pylist()
        [1, 2, None]
        """
        texts = [part for part in self.parts if not isinstance(part, range)]
        ranges = [pa.array(part, pa.int64()) for part in self.parts if isinstance(part, range)]
        try:
            arrays = [
                *(_cast(numbers, kind) for numbers in ranges),
                _cast(pa.array(texts, pa.string()), kind),
            ]
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise PolicyError(
                f"[domains] {self.column}: not every value is of the column's type, {kind}",
                hint="write the values as they stand in the source",
            ) from error
        values = pa.concat_arrays(arrays)
        n_repeated = len(values) - len(values.unique())
        if n_repeated:
            raise PolicyError(f"[domains] {self.column}: {n_repeated} values are listed twice")
        return values


def parse_domain(column: str, spec: Any, folder: Path) -> DeclaredDomain:
    """One entry of the policy's `[domains]` section.

    >>> parse_domain("age", "17..90", Path()).parts
    (range(17, 91),)
    """
    where = f"[domains] {column}"
    if isinstance(spec, str) and not _RANGE.fullmatch(spec):
        parts: tuple[range | str | None, ...] = _read_file(where, folder / spec)
    elif isinstance(spec, list | tuple | str):
        listed = [spec] if isinstance(spec, str) else spec
        parts = tuple(_part(where, item) for item in listed)
    else:
        raise PolicyError(f"{where} must be a range, a list or the name of a file", hint='e.g. "17..90"')
    n_values = sum(len(part) if isinstance(part, range) else 1 for part in parts)
    if not n_values:
        raise PolicyError(f"{where} declares no value")
    if n_values > MOST_VALUES:
        raise PolicyError(
            f"{where} has {n_values:,} values; at most {MOST_VALUES:,} are possible",
            hint="recode the column, or split it into two",
        )
    return DeclaredDomain(column=column, parts=parts)


def parse_domains(
    section: Any, published: tuple[str, ...], folder: Path
) -> tuple[tuple[str, DeclaredDomain], ...]:
    """The `[domains]` section; only published columns have domains."""
    if not isinstance(section, Mapping):
        raise PolicyError("[domains] must be a section", hint='[domains] age = "17..90"')
    for name in section:
        if name not in published:
            raise PolicyError(f"[domains] {name!r} is not published; known: {', '.join(published)}")
    return tuple((name, parse_domain(name, spec, folder)) for name, spec in section.items())


def _part(where: str, item: Any) -> range | str | None:
    if isinstance(item, str) and (found := _RANGE.fullmatch(item)):
        first, last = int(found[1]), int(found[2])
        if first > last:
            raise PolicyError(f"{where}: the range {item!r} is empty")
        return range(first, last + 1)
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, str | int | float | Decimal | datetime.date | datetime.time):
        return None if item == NULL else str(item)
    raise PolicyError(f"{where}: {item!r} is not a value", hint="list numbers and texts")


def _read_file(where: str, path: Path) -> tuple[str | None, ...]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))[1:]
    except (OSError, ValueError, csv.Error) as error:
        raise PolicyError(
            f"{where}: file {path} cannot be read", hint='a range is written "17..90", a list in brackets'
        ) from error
    for line, row in enumerate(rows, start=2):
        if len(row) > 1:
            raise PolicyError(f"{path}, line {line}: expected 1 field, found {len(row)}")
    return tuple(row[0] if row and row[0] else None for row in rows)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    return values if values.type == kind else values.cast(kind)


def whole_range(values: pa.Array) -> tuple[int, int] | None:
    """First and last of whole numbers that rise by one; None for anything else.

    >>> whole_range(pa.array([3, 4, 5])), whole_range(pa.array([3, 5]))
    ((3, 5), None)
    """
    if not pa.types.is_integer(values.type) or values.null_count or not len(values):
        return None
    first, last = values[0].as_py(), values[-1].as_py()
    if last - first != len(values) - 1:
        return None
    numbers = values.to_numpy()
    return (first, last) if bool((numbers[1:] - numbers[:-1] == 1).all()) else None
