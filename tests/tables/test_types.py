"""Every type is read unchanged, or refused by name with the way out."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from dalenius.errors import SourceError
from dalenius.tables.source import open_source
from tests.tables.type_table import ARROW, END, PAGE, START, look, page_table

REFUSED = ["decimal256, more digits", "time64, nanoseconds", "timestamp, nanoseconds", "duration", "interval"]


@pytest.mark.parametrize("name", [name for name in ARROW if name not in (*REFUSED, "list", "struct", "uuid")])
def test_cells_are_unchanged(name: str) -> None:
    found = look(pa.table({"x": ARROW[name]}))
    if "zone" in name:  # the same moments, shown in UTC
        assert found.published == pa.timestamp("us", "UTC")
    assert list(found.cells) == ARROW[name].to_pylist()


@pytest.mark.parametrize("name", [*REFUSED, "list", "struct"])
def test_what_would_change_is_refused_with_the_way_out(name: str) -> None:
    found = look(pa.table({"x": ARROW[name]}))
    assert found.error is not None
    assert "column 'x'" in found.error.message
    assert found.error.hint
    assert "1" * 40 not in found.error.message


def test_zero_has_no_sign_and_nan_stays() -> None:
    cells = look(pa.table({"x": [0.0, -0.0, math.nan]})).cells
    assert [math.copysign(1, cell) for cell in cells[:2]] == [1, 1]
    assert math.isnan(cells[2])


def test_missing_codes_are_of_every_source() -> None:
    source = open_source(pa.table({"x": [1, -99]}))
    assert source.column_names == ("x",)
    with pytest.raises(SourceError, match="holds intervals"):
        open_source(pa.table({"x": ARROW["duration"]}))


def test_the_documentation_lists_every_type() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(START)[2].partition(END)[0] == page_table(), "python -m tests.tables.type_table"
