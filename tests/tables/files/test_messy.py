"""Messy files are read rightly, or refused with what helps; the documentation says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import SourceError
from tests.tables.files.messy import CASES, END, PAGE, START, TABLE, Messy, page_table, read


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.what)
def test_it_is_read_rightly_or_refused_with_what_helps(case: Messy, tmp_path: Path) -> None:
    if case.refused is None:
        expected = TABLE if case.expected is None else case.expected
        assert read(case, tmp_path).to_pydict() == expected.to_pydict()
        return
    with pytest.raises(SourceError) as caught:
        read(case, tmp_path)
    told = caught.value
    assert case.refused in told.message
    assert case.helps is not None
    assert case.helps in (told.hint or "")
    cells = [str(cell) for row in TABLE.to_pylist() for cell in row.values()]
    assert not any(cell in told.message + (told.hint or "") for cell in cells if len(cell) > 2)


def test_the_documentation_says_what_happens() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = page.partition(START)[2].partition(END)[0]
    assert shown == page_table(), "python -m tests.tables.files.messy writes the page again"
