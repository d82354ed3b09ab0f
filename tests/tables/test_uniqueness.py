"""Who is alone with what: by hand, beside a slow twin, and from a random choice of very many."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.policy import Policy
from dalenius.sql import connect
from dalenius.tables import uniqueness
from dalenius.tables.uniqueness import Rarity, Uniqueness, count_rare, study_uniqueness

CELLS = st.one_of(st.none(), st.integers(0, 3))
ROWS = st.lists(st.tuples(CELLS, CELLS, st.sampled_from(["a", "b", None])), min_size=1, max_size=40)


def study(table: pa.Table, columns: list[str], **options: Any) -> Uniqueness:
    with connect() as connection:
        connection.register("t", table)
        found = study_uniqueness(connection, "t", columns, **options)
        left = connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone()
        assert left == (0,)
        assert found.rarity == count_rare(connection, "t", columns, options.get("few", 5))
    return found


def by_hand(rows: list[tuple[Any, ...]], places: tuple[int, ...], few: int = 5) -> Rarity:
    sizes = Counter(tuple(row[i] for i in places) for row in rows)
    return Rarity(
        n_alone=sum(size == 1 for size in sizes.values()),
        n_few=sum(size for size in sizes.values() if size < few),
    )


def least_by_hand(rows: list[tuple[Any, ...]], n_columns: int) -> int:
    """How many columns leave nine of ten rare people rare."""
    enough = 0.9 * by_hand(rows, tuple(range(n_columns))).n_few
    return next(
        size
        for size in range(1, n_columns + 1)
        if any(by_hand(rows, places).n_few >= enough for places in combinations(range(n_columns), size))
    )


@settings(max_examples=60)
@given(rows=ROWS)
def test_everything_that_is_counted_agrees_with_a_slow_twin(rows: list[tuple[Any, ...]]) -> None:
    columns = ["a", "b", "c"]
    types = [pa.int64(), pa.int64(), pa.string()]
    cells = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), types, strict=True)]
    found = study(pa.table(dict(zip(columns, cells, strict=True))), columns)
    assert found.rarity == by_hand(rows, (0, 1, 2))
    assert not found.estimated
    if not found.rarity.n_few:
        assert (found.least, found.without, found.coarser) == (None, (), ())
        return
    for i, change in enumerate(found.without):
        assert change.columns == (columns[i],)
        assert change.rarity == by_hand(rows, tuple(j for j in range(3) if j != i))
    assert found.least is not None
    assert found.least.rarity == by_hand(rows, tuple(columns.index(name) for name in found.least.columns))
    assert found.least.rarity.n_few >= 0.9 * found.rarity.n_few
    assert len(found.least.columns) == least_by_hand(rows, 3)


def people(n: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    start = datetime.date(1950, 1, 1)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "zip": [f"{code:05d}" for code in rng.integers(0, 700, n)],
            "born": [start + datetime.timedelta(int(day)) for day in rng.integers(0, 20_000, n)],
            "height": rng.normal(170, 10, n),
            "sex": rng.choice(["f", "m"], n),
            "town": rng.choice(["Old Town", "Mills"], n),
            "disease": rng.choice(["a", "b", "c", "d"], n),
        }
    )


@pytest.mark.parametrize(
    ("columns", "recodes"),
    [
        (["age", "sex"], ["age = { round = 5 }", "age = { round = 10 }"]),
        (["zip", "sex"], ["zip = { prefix = 4 }", "zip = { prefix = 3 }"]),
        (["born", "sex"], ['born = { date = "month" }', 'born = { date = "year" }']),
        (["height"], ["height = { round = 5 }", "height = { round = 10 }"]),
        (["sex", "town"], []),
    ],
)
def test_coarser_columns_are_counted_as_the_policy_would_make_them(
    columns: list[str], recodes: list[str]
) -> None:
    """Every suggestion is one that a policy takes, and its numbers are those of the recoded table."""
    import tomllib

    table = people(400)
    found = study(table.select(columns), columns)
    assert [change.recode for change in found.coarser] == (recodes if found.rarity.n_few else [])
    for change in found.coarser:
        assert change.recode is not None
        policy = Policy.from_dict(
            {
                "source": table.select([*columns, "disease"]),
                "columns": {"quasi": columns, "sensitive": ["disease"]},
                "recode": tomllib.loads(change.recode),
                "promise": {"kind": "l-diversity", "l": 2},
            }
        )
        with connect() as connection:
            connection.register("t", table)
            recoded = dict(policy.recode)
            listed = ", ".join(
                f"{recoded[name].expression(name)} AS {name}" if name in recoded else name for name in columns
            )
            assert change.rarity == count_rare(connection, f"(SELECT {listed} FROM t)", columns)


def test_all_columns_that_can_be_are_made_coarser_together() -> None:
    found = study(people(400), ["age", "zip", "sex"])
    last = found.coarser[-1]
    assert (last.columns, last.recode) == (("age", "zip"), "age = { round = 10 }; zip = { prefix = 3 }")
    assert last.rarity.n_few <= min(change.rarity.n_few for change in found.coarser[:-1])
    assert not study(people(400), ["age", "zip"], fixed=["age", "zip"]).coarser


def test_of_many_columns_one_after_the_other_is_left_out() -> None:
    """Six columns, of which two make everybody unique."""
    table = pa.table(
        {"x": [i % 50 for i in range(2_000)], "y": [i // 50 for i in range(2_000)]}
        | {f"c{j}": [i % 2 for i in range(2_000)] for j in range(4)}
    )
    found = study(table, table.column_names)
    assert found.least is not None
    assert found.least.columns == ("x", "y")
    assert found.rarity == Rarity(n_alone=2_000, n_few=2_000)


def test_of_very_many_rare_people_a_random_choice_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right within six standard deviations of the choice; false alarms below 1e-6."""
    table = people(30_000)
    columns = ["age", "zip", "sex"]
    exact = study(table, columns)
    monkeypatch.setattr(uniqueness, "_MOST_GROUPS", 4_000)
    found = study(table, columns)
    assert (exact.estimated, found.estimated) == (False, True)
    assert found.rarity == exact.rarity
    for true, guess in zip((*exact.without, *exact.coarser), (*found.without, *found.coarser), strict=True):
        share = true.rarity.n_few / exact.rarity.n_few
        # a group has up to four people, and groups are drawn
        reach = 6 * 4 * math.sqrt(share * (1 - share) / 4_000) + 1e-3
        assert abs(guess.rarity.n_few - true.rarity.n_few) <= reach * exact.rarity.n_few


@settings(max_examples=40)
@given(numbers=st.lists(st.sampled_from([-2.0, 0.0, 0.5, 3.0, 1e9]), min_size=1, max_size=60))
def test_tenths_of_counted_numbers_are_those_of_all_of_them(numbers: list[float]) -> None:
    values, counts = np.unique(np.array(numbers), return_counts=True)
    tenths = ", ".join(f"{tenth / 10}" for tenth in range(11))
    with connect() as connection:
        found = connection.execute(
            f"SELECT quantile_disc(x, [{tenths}]) FROM (SELECT unnest(?::DOUBLE[]) AS x)", [numbers]
        ).fetchone()
    assert found == (uniqueness._find_tenths(values, counts),)


def test_cells_of_two_columns_that_are_swapped_are_another_combination() -> None:
    found = study(pa.table({"a": [1, 2, 1, 2], "b": [2, 1, 1, 2]}), ["a", "b"])
    assert found.rarity == Rarity(n_alone=4, n_few=4)
    assert [change.rarity.n_alone for change in found.without] == [0, 0]


def test_odd_cells_break_nothing() -> None:
    n = 40
    table = pa.table(
        {
            "float": [math.nan, math.inf, -math.inf, 1e300, None, *map(float, range(n - 5))],
            "nothing": pa.array([None] * n, pa.int64()),
            'the "zip"': [f"{i:03d}" for i in range(n)],
            "flag": [True, False] * (n // 2),
            "blob": pa.array([bytes([i]) for i in range(n)]),
        }
    )
    found = study(table, table.column_names)
    assert found.rarity.n_alone == n
    assert '"the \\"zip\\"" = { prefix = 2 }' in [change.recode for change in found.coarser]
    assert study(table, []).rarity == Rarity(n_alone=0, n_few=0)
    assert study(table.slice(0, 3), []).rarity == Rarity(n_alone=0, n_few=3)


def test_the_sentences_say_it_plainly() -> None:
    table = people(400)
    assert study(table, ["sex", "town"]).sentence() == (
        "nobody is alone with their sex and town, nor among fewer than 5"
    )
    found = study(table, ["age", "zip", "sex"])
    assert "of 400 people" in found.sentence()
    assert "are alone with their age, zip and sex" in found.sentence()
    best = found.best_change()
    assert best is not None
    assert "leaves" in best
    assert " out leaves " in best
