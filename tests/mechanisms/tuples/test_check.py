"""Rows in their files and in order, so that none is there twice: on a few rows that can be read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dalenius.mechanisms.tuples.check import ScannedRows, _all_ascend, _in_files, check_domain, scan_rows
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, group_of
from dalenius.sql import connect_shared

DOMAIN = Domain.of({"age": range(5), "ill": pa.array(["cold", "flu", "hiv"])})


def scanned(rows: list[tuple[Any, Any]]) -> ScannedRows:
    manifest: Any = SimpleNamespace(tables=[SimpleNamespace(name="view", files=["f"])])
    table = pa.table(
        {"age": [row[0] for row in rows], "ill": pa.array([row[1] for row in rows], pa.string())}
    )
    with connect_shared() as connection:
        connection.register("view", table)
        return scan_rows(connection, DOMAIN, manifest)


@pytest.mark.parametrize(
    ("rows", "ascend"),
    [
        ([[1], [2], [5]], True),
        ([[1], [1]], False),
        ([[2], [1]], False),
        ([[1, 7], [1, 8], [2, 0]], True),
        ([[1, 7], [1, 7]], False),
        ([[1, 8], [1, 7]], False),
        ([[2, 0], [1, 9]], False),
        ([[4, 4]], True),
    ],
)
def test_rows_ascend_only_if_each_is_above_the_one_before(rows: list[list[int]], ascend: bool) -> None:
    assert _all_ascend(np.array(rows)) is ascend


def test_rows_that_repeat_or_go_down_are_seen() -> None:
    assert scanned([(0, "flu"), (0, "hiv"), (3, "cold")]).ascend
    assert not scanned([(0, "flu"), (0, "flu"), (3, "cold")]).ascend
    assert not scanned([(0, "flu"), (3, "cold"), (0, "hiv")]).ascend


@pytest.mark.parametrize("strange", [(9, "flu"), (1, "gout"), (1, None)])
def test_cells_outside_the_domain_are_counted(strange: tuple[int, str | None]) -> None:
    found = scanned([(0, "flu"), strange, strange])
    name = "age" if strange[0] == 9 else "ill"
    assert found.outside == {name: 2}
    assert not check_domain(found, DOMAIN).ok
    assert check_domain(scanned([(0, "flu")]), DOMAIN).ok


def test_a_tuple_decides_its_file_whichever_copy_it_is() -> None:
    with_copies = Domain.of({"age": range(5), COPY: range(1, 4)})
    codes = np.array([0, 0, 1, 2, 3, 4]), np.array([0, 2, 1, 1, 0, 2])
    words = with_copies.pack(codes)
    np.testing.assert_array_equal(_in_files(with_copies, codes, 1), words)
    for n_files in (2, 3):
        found = _in_files(with_copies, codes, n_files)
        np.testing.assert_array_equal(found[:, 1:], words)
        expected = group_of(Domain.of({"age": range(5)}).pack((codes[0],)), n_files)
        np.testing.assert_array_equal(found[:, 0], expected)
        assert found[0, 0] == found[1, 0]
        assert len(set(expected.tolist())) > 1
