"""The amount of noise and the series of a view, by hand."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from dalenius.mechanisms.alphabeta.check import _check_distinct, _check_noise, _check_series
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.tuples.check import ScannedRows
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.sql import connect_shared

LAW = SimpleNamespace(
    beta=Fraction(1, 10), seen_rate=Fraction(1, 40), noise_rate=lambda index: Fraction(1, 10 * index)
)


def noise(n_rows: int, **view: Any) -> Check:
    given = {"index": 1, "noise_rows": Fraction(100), "is_changing": False, "law": LAW}
    stated: Any = SimpleNamespace(**given | view, domain=SimpleNamespace(size=4_000))
    with connect_shared() as connection:
        connection.register("view", pa.table({"age": list(range(n_rows))}))
        return _check_noise(connection, stated)


@pytest.mark.parametrize(
    ("view", "expected", "least"),
    [
        ({}, 100, 10),
        ({"noise_rows": Fraction(400)}, 400, 220),
        ({"index": 2}, 200, 73),
        ({"index": 4}, 100, 10),
        ({"index": 4, "is_changing": True}, 100, 10),
        ({"index": 1, "is_changing": True, "noise_rows": Fraction(400)}, 400, 220),
    ],
)
def test_a_view_with_nine_deviations_less_than_its_noise_has_lost_some(
    view: dict[str, Any], expected: int, least: int
) -> None:
    """100 insertions have a deviation of 10: 10 rows may be chance, 9 are not."""
    assert noise(least, **view).ok
    assert not noise(least - 1, **view).ok
    assert f"about {expected:,} are insertions" in noise(least, **view).detail
    later = view.get("is_changing", False) and view["index"] > 1
    assert ("at least about" in noise(least, **view).detail) == later


@pytest.mark.parametrize(
    ("series", "index", "planned", "ok"),
    [
        (None, 1, 1, True),
        (None, 1, 2, False),
        (None, 2, 1, False),
        (("views", 3), 3, 3, True),
        (("views", 3), 1, 3, True),
        (("views", 3), 4, 3, False),
        (("views", 3), 0, 3, False),
        (("views", 3), 1, 4, False),
        (("views", None), 1, 1, False),
        (("batches", 3), 1, 3, False),
    ],
)
def test_a_view_is_one_of_those_that_its_parameters_are_for(
    series: tuple[str, int | None] | None, index: int, planned: int, ok: bool
) -> None:
    stated = None if series is None else SimpleNamespace(kind=series[0], of=series[1])
    view: Any = SimpleNamespace(index=index, law=SimpleNamespace(views=planned))
    manifest: Any = SimpleNamespace(series=stated)
    assert _check_series(manifest, view).ok is ok


@pytest.mark.parametrize(("ages", "repeated"), [([1, 2, 3], 0), ([1, 2, 1, 1], 2)])
def test_rows_that_are_out_of_order_are_counted_for_repetitions(ages: list[int], repeated: int) -> None:
    view: Any = SimpleNamespace(domain=Domain.of({"age": range(9)}))
    with connect_shared() as connection:
        connection.register("view", pa.table({"age": ages}))
        found = _check_distinct(connection, view, ScannedRows(outside={}, ascend=False))
    assert found.ok == (repeated == 0)
    assert found.detail == (f"{repeated} rows repeat another" if repeated else "no row is there twice")
