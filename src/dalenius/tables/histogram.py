"""How often each sensitive value occurs: all that a plan ever sees of the records."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any
from unicodedata import category, normalize

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.plain import escape_controls
from dalenius.sql import identifiers
from dalenius.tables.codes import Encoder

if TYPE_CHECKING:
    import duckdb

Value = tuple[Any, ...]
"""One value of the sensitive attribute: a cell of each sensitive column. None is NULL."""

_LONGEST_SHOWN = 80


class Counted:
    """What holds a count of records for each sensitive value."""

    __slots__ = ()
    counts: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        """How many records were counted."""
        return sum(self.counts)

    @property
    def n_values(self) -> int:
        """How many sensitive values there are."""
        return len(self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram(Counted):
    """Counts of the sensitive values, in an order that the values alone decide.

    >>> h = Histogram.of(("disease",), {("HIV",): 1, ("Flu",): 3})
    >>> h.values, h.counts, h.frequency(1)
    ((('Flu',), ('HIV',)), (3, 1), Fraction(1, 4))
    """

    columns: tuple[str, ...]
    values: tuple[Value, ...]
    counts: tuple[int, ...]

    @classmethod
    def of(cls, columns: Sequence[str], counted: dict[Value, int]) -> Histogram:
        """A histogram of the values that occur."""
        values = sorted((value for value, count in counted.items() if count), key=_sort_key)
        counts = tuple(counted[value] for value in values)
        return cls(columns=tuple(columns), values=tuple(values), counts=counts)

    def __len__(self) -> int:
        """How many different values there are."""
        return len(self.values)

    def in_order(self, codes: Iterable[int]) -> Histogram:
        """The same with its values in another order."""
        order = list(codes)
        return Histogram(
            columns=self.columns,
            values=tuple(self.values[code] for code in order),
            counts=tuple(self.counts[code] for code in order),
        )

    def frequency(self, code: int) -> Fraction:
        """The share of the records that has the value."""
        return Fraction(self.counts[code], self.n_rows)

    @property
    def frequencies(self) -> tuple[Fraction, ...]:
        """The share of every value; the records are added up once, however many values there are."""
        n_rows = self.n_rows
        return tuple(Fraction(count, n_rows) for count in self.counts)

    def cells_by_column(self) -> tuple[Ints, ...]:
        """Of each column of a compound value, which of its cells each value has; of one column nothing.

        >>> counted = Histogram.of(("test", "stage"), {("HIV", 1): 2, ("HIV", 2): 3, ("none", 1): 4})
        >>> [column.tolist() for column in counted.cells_by_column()]
        [[0, 0, 1], [0, 1, 0]]
        """
        if len(self.columns) < 2:
            return ()
        found = []
        for cells in zip(*map(with_one_nan, self.values), strict=True):
            number: dict[Any, int] = {}
            found.append(np.array([number.setdefault(cell, len(number)) for cell in cells]))
        return tuple(found)

    @property
    def n_spelt_otherwise(self) -> int:
        """How many records have a value that others have too, written in another way.

        >>> Histogram.of(("test",), {("HIV",): 2, ("h.i.v. ",): 3, ("none",): 4}).n_spelt_otherwise
        5
        """
        if not any(isinstance(cell, str | float) for value in self.values for cell in value):
            return 0
        said, sorted_ = (
            [tuple(map(say, value)) for value in self.values] for say in (say_alike, _say_in_any_order)
        )
        ways, orders = Counter(said), Counter(sorted_)
        found = zip(self.counts, said, sorted_, strict=True)
        return sum(count for count, one, other in found if ways[one] > 1 or orders[other] > 1)

    def encoder(self, schema: pa.Schema) -> Encoder:
        """The codes of the values in a table of that schema."""
        by_column = list(zip(*self.values, strict=True)) or [()] * len(self.columns)
        return Encoder.of(
            {
                name: pa.array(cells, type=schema.field(name).type)
                for name, cells in zip(self.columns, by_column, strict=True)
            }
        )


_REPLACED = dict.fromkeys(range(0x300, 0x370)) | dict.fromkeys(range(0x2010, 0x2016), "-") | {0x2212: "-"}
"""Accents, which are left out, and dashes."""
_MARKS = r"[^\w+<>=%#-]+|_+"
_UNSAID = re.compile(
    rf"(?<![0-9])(?:{_MARKS})|(?:{_MARKS})(?![0-9])|(?<=\w)-+(?=[^\W\d])|(?<=[^\W\d])-+(?=\w)"
)
"""Spaces and marks, except signs and what stands between two digits: 1.5 is not 15, and -5 is not 5."""
_NUMBER = re.compile(r"([<>=]*[+-]?)0*([0-9]+)(?:(?:\.|,(?![0-9]{3}$))([0-9]*?)0*)?")
"""Three digits after a comma may be thousands."""
_CODE = re.compile(r"([a-z][0-9][0-9a-z])\.([0-9a-z]{1,4})")
"""Of a disease, as the ICD has it, with or without its point."""
_SHORT = {"y": "yes", "n": "no", "pos": "positive", "+": "positive", "neg": "negative", "-": "negative"}
_SHORT |= {"m": "male", "f": "female"}
_POSITIVE = re.compile(r"(?<=\w)[\s(_-]+pos(?:itive?)?[.)\s]*$")
_NEGATIVE = re.compile(r"(?<=\w)[\s(_-]+neg(?:ative?)?[.)\s]*$")
_LOOKS_LATIN = str.maketrans("АаЕеОоРрСсУуХхІіЅѕЈјΟο", "AaEeOoPpCcYyXxIiSsJjOo")
"""Cyrillic and Greek letters, of which nobody sees that they are not Latin …"""
_LOOKS_CAPITAL = str.maketrans("ВКМНТΑΒΕΖΗΙΚΜΝΡΤΥΧ", "BKMHTABEZHIKMNPTYX")
"""… and those of which that holds for the capital only: read so beside Latin letters."""
_LATIN = re.compile("[A-Za-z]")


def say_alike(cell: Any) -> Any:
    """A text as one would say it: without case, accents, spaces and marks; in full, and numbers as numbers.

    >>> [say_alike(text) for text in ("H.I.V. ", "Crohn’s", "Type-2", "pos.", "HIV +", "B20.1")]
    ['hiv', 'crohns', 'type2', 'positive', 'hiv+', 'b201']
    >>> [say_alike(text) for text in ("1.50", "1,5", "< 050", "-5", "1.5 mg", "15 mg", "O neg.")]
    ['1.5', '1.5', '<50', '-5', '1.5mg', '15mg', 'o-']
    """
    if isinstance(cell, float):
        return f"{cell:.12g}"  # 0.1 + 0.2 is not 0.3, but nobody means another number by it
    if not isinstance(cell, str):
        return cell
    plain = (cell if cell.isascii() else _as_seen(cell)).casefold()
    if not cell.isascii():
        shown = "".join(sign for sign in normalize("NFKD", plain) if category(sign) != "Cf")
        plain = normalize("NFKC", shown.translate(_REPLACED)).casefold()
    said = _UNSAID.sub("", _NEGATIVE.sub("-", _POSITIVE.sub("+", plain)))
    if (number := _NUMBER.fullmatch(said)) is not None:
        sign, whole, rest = number.groups()
        return f"{sign}{whole}" + (f".{rest}" if rest else "")
    if (code := _CODE.fullmatch(said)) is not None:
        return "".join(code.groups())
    return _SHORT.get(said, said) or plain


_BETWEEN_WORDS = re.compile(r"[\s,;:/()]+")
_ORDERS = frozenset({"no", "not", "without", "to", "from", "of", "ohne", "kein", "keine", "sans", "sin"})
"""Words that are about what comes after them."""
_MISSING = frozenset({"", "na", "nan", "null", "#na"})


def _say_in_any_order(cell: Any) -> Any:
    """The same of words in any order, and of what stands for no value beside NULL.

    >>> _say_in_any_order("Diabetes mellitus, type 2") == _say_in_any_order("Type 2 diabetes mellitus")
    True
    >>> _say_in_any_order("N/A") is None, _say_in_any_order("no pain, fever")
    (True, 'nopainfever')
    """
    said = say_alike(cell)
    if isinstance(cell, str):
        words = sorted(filter(None, _BETWEEN_WORDS.split(cell.casefold())))
        if said.strip() in _MISSING:
            return None
        if len(words) > 1 and _ORDERS.isdisjoint(words):
            return tuple(map(say_alike, words))
    return said


def _as_seen(text: str) -> str:
    """With Latin letters for those that look the same: somebody typed them on another keyboard."""
    seen = text.translate(_LOOKS_LATIN)
    return seen.translate(_LOOKS_CAPITAL) if _LATIN.search(text) else seen


def count_values(
    connection: duckdb.DuckDBPyConnection, relation: str, columns: Sequence[str], counted: str = "count(*)"
) -> Histogram:
    """How often each combination of cells of these columns occurs in a table to select from.

    Args:
        connection: Where the table is.
        relation: The table.
        columns: Its columns.
        counted: What is counted of each combination, if not the rows.
    """
    listed = identifiers(columns)
    found = connection.sql(f"SELECT {listed}, {counted} FROM {relation} GROUP BY {listed}")
    *cells, counts = (column.to_pylist() for column in found.to_arrow_table().columns)
    return Histogram.of(columns, dict(zip(zip(*cells, strict=True), counts, strict=True)))


def label(value: Value) -> str:
    """How messages and policies write a value: `Flu`, `NULL`, `Flu / ward A`."""
    return " / ".join(label_cell(cell) for cell in value)


def label_cell(cell: Any) -> str:
    """How messages and policies write a cell.

    >>> label_cell(None), label_cell(True), label_cell(3)
    ('NULL', 'true', '3')
    """
    if cell is None:
        return "NULL"
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def write_cells(value: Iterable[Any]) -> tuple[str | None, ...]:
    """The cells of a value as manifests write them.

    >>> write_cells(("Flu", 3, None))
    ('Flu', '3', None)
    """
    return tuple(None if cell is None else label_cell(cell) for cell in value)


def show_value(cells: Iterable[str | None]) -> str:
    """The labels of a value's cells as a page shows them, not longer than a line.

    >>> show_value(["Flu", None])
    'Flu / NULL'
    """
    text = " / ".join("NULL" if cell is None else escape_controls(cell) for cell in cells) or "(empty)"
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _sort_key(value: Value) -> tuple[tuple[int, Any], ...]:
    """NULL first and NaN, which no comparison puts anywhere, last."""
    return tuple((0, 0) if cell is None else (2, 0) if _is_nan(cell) else (1, cell) for cell in value)


def with_one_nan(value: Value) -> Value:
    """The same value with the one NaN that Python finds again among the keys of a dictionary.

    >>> len({with_one_nan((float("nan"),)), with_one_nan((float("nan"),))})
    1
    """
    return tuple(math.nan if _is_nan(cell) else cell for cell in value)


def _is_nan(cell: Any) -> bool:
    return isinstance(cell, float) and math.isnan(cell)
