"""What stands in for CENSUS: shapes, draws and the tables that describe them, on made-up data."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dalenius.randomness import Randomness
from dalenius.reproduce import census
from dalenius.reproduce.census import (
    FALLS,
    STATED,
    draw_rows,
    edu_like,
    in_stated_shape,
    kdd,
    occ_like,
    sensitive_codes,
    stated_shape,
    value_counts,
)
from tests.reproduce.conftest import EDUCATIONS, OCCUPATIONS

pytestmark = pytest.mark.usefixtures("made_up")


@pytest.mark.parametrize("fall", FALLS)
@pytest.mark.parametrize(("n_values", "most", "least"), [(50, 0.075, 0.0018), (14, 0.273, 0.0044)])
def test_a_stated_shape_falls_from_its_most_to_its_least(
    fall: str, n_values: int, most: float, least: float
) -> None:
    counts = stated_shape(100_000, n_values, most, least, fall)
    assert (len(counts), sum(counts)) == (n_values, 100_000)
    assert abs(counts[0] - most * 100_000) <= 1
    assert abs(counts[-1] - least * 100_000) <= 1
    # rows that rounding leaves over go to the sixth value and those after it, one each
    assert all(one >= two - 1 for one, two in pairwise(counts))


@pytest.mark.parametrize("fall", FALLS)
def test_falls_begin_and_end_where_they_should(fall: str) -> None:
    ends = FALLS[fall](0.5, 0.1, np.array([0.0, 1.0]))
    assert ends == pytest.approx([0.5, 0.1])
    middle = FALLS[fall](0.5, 0.1, np.array([0.5]))[0]
    # halfway: the geometric mean, the harmonic one, the arithmetic one
    expected = {"geometric": 0.05**0.5, "hyperbolic": 2 / (1 / 0.5 + 1 / 0.1), "straight": 0.3}
    assert middle == pytest.approx(expected[fall])


def test_the_made_up_tables_stand_in() -> None:
    workers, grown_up = kdd("OCC"), kdd("EDU")
    assert (workers.n_rows, grown_up.n_rows) == (300, 300)
    assert sorted(value_counts(workers), reverse=True) == list(OCCUPATIONS)
    assert sorted(value_counts(grown_up), reverse=True) == list(EDUCATIONS)
    assert workers.sensitive == ("occupation_code",)
    assert len(workers.table.column_names) == 8
    assert kdd("OCC") is workers  # read once
    assert np.bincount(sensitive_codes(workers)).tolist() == list(value_counts(workers))
    assert sensitive_codes(workers).dtype == np.int32


def test_rows_are_drawn_whole_and_with_replacement() -> None:
    drawn = draw_rows(kdd("OCC"), 1_000, Randomness.seeded(1).stream("x"))
    known = set(zip(*kdd("OCC").table.to_pydict().values(), strict=True))
    rows = list(zip(*drawn.table.to_pydict().values(), strict=True))
    assert len(rows) == 1_000
    assert set(rows) <= known
    again = draw_rows(kdd("OCC"), 1_000, Randomness.seeded(1).stream("x"))
    assert again.table.equals(drawn.table)


@pytest.mark.parametrize("source", ["OCC", "EDU"])
def test_the_stated_histogram_is_dealt_along_the_commonness_of_values(source: census.Source) -> None:
    """The commonest stated values go to records whose own value is the commonest; all by rank."""
    n = 3_000
    stream = Randomness.seeded(2)
    drawn = draw_rows(kdd(source), n, stream.stream("rows"))
    shaped = in_stated_shape(source, n, stream.stream("rows"))
    assert np.bincount(shaped.table.column(shaped.sensitive[0]).to_numpy()).tolist() == STATED[source](n)
    counts = np.array(value_counts(drawn))
    rank = np.argsort(np.argsort(-counts))[sensitive_codes(drawn)]
    value = shaped.table.column(shaped.sensitive[0]).to_numpy()
    # a record of a commoner value of its own never gets a rarer stated one than a record of a rarer value
    for common in range(int(rank.max())):
        assert value[rank == common].max() <= value[rank == common + 1].min()
    quasi = [name for name in shaped.table.column_names if name != shaped.sensitive[0]]
    assert shaped.table.select(quasi).equals(drawn.table.select(quasi))


def test_nothing_is_linked_where_everything_is_shuffled() -> None:
    """With 0 linked the values are independent of the ages, which otherwise follow them."""
    n = 4_000
    found = {}
    for linked in (0.0, 1.0):
        shaped = in_stated_shape("EDU", n, Randomness.seeded(3).stream("rows"), linked=linked)
        value = shaped.table.column("education").to_numpy()
        age = np.array([int(cell) for cell in shaped.table.column("age").to_pylist()])
        assert np.bincount(value).tolist() == edu_like(n)
        found[linked] = abs(float(np.corrcoef(value, age)[0, 1]))
    assert found[1.0] > 0.5
    assert found[0.0] < 5 / n**0.5


def test_the_figure_of_frequencies_has_every_rank_of_both_tables(made_up: Path) -> None:
    assert made_up.is_dir()
    outcome = census.BUCKETIZATION_FIGURE_2.run()
    shares: dict[tuple[object, object], list[float]] = {}
    for table, data, rank, share in outcome.rows:
        own = shares.setdefault((table, data), [])
        assert rank == len(own) + 1
        own.append(float(share))
    assert shares["OCC", "KDD"] == pytest.approx([100 * n / 300 for n in OCCUPATIONS])
    assert shares["EDU", "KDD"] == pytest.approx([100 * n / 300 for n in EDUCATIONS])
    assert shares["OCC", "stated shape"] == pytest.approx([n / 3_000 for n in occ_like(300_000)])
    assert all(sum(own) == pytest.approx(100) for own in shares.values())
    # 90 and 5 of 300; 150 and 10 of 300, of which one education (3.33 % is not below) is rare
    assert "occupations run from 30 % to 1.67 %" in outcome.differs
    assert "educations from 50 % to 3.33 % with 0 below 3.33 %" in outcome.differs


def test_rare_values_are_below_a_thirtieth_exactly() -> None:
    assert census._rare([29, 1]) == 0  # 1 of 30 is a thirtieth
    assert census._rare([30, 1]) == 1
    assert census._percent([1, 2, 5], -1) == "62.5 %"
    assert census._percent([1, 2, 5], 0) == "12.5 %"


def test_table_5_counts_the_values_of_the_stand_ins() -> None:
    rows = census.TABLE_5.run().rows
    assert len(rows) == 9
    by_column = {row[3]: row for row in rows}
    assert by_column["occupation_code"] == ("Occupation", 50, 50, "occupation_code", 8)
    assert by_column["age"][:4] == ("Age", 76, 77, "age")
    assert by_column["age"][4] == 8  # the made-up age goes with the occupation
    assert rows[-1][3].startswith("income")  # type: ignore[union-attr]
