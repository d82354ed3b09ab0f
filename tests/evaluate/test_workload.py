"""Workloads: true answers beside DuckDB's on the same table, and the laws that questions are drawn by."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, comb, prod

import duckdb
import numpy as np
import pytest

from dalenius.errors import InputError
from dalenius.evaluate.original import Original
from dalenius.evaluate.workload import AnatomyWorkload, EqualityPool, Marginals, Workload
from dalenius.randomness import Randomness
from tests.evaluate.tables import awkward_original

WORKLOADS: list[Workload] = [
    AnatomyWorkload(n_questions=60, selectivity=0.1, most_quasi=4),
    EqualityPool(n_conditions=25, least_selectivity=0.01),
    Marginals(most_columns=2),
]


def stream(name: str = "test") -> np.random.Generator:
    return Randomness.seeded(5).stream(name)


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_true_answers_are_those_of_a_database(workload: Workload) -> None:
    original = awkward_original()
    asked = workload.questions(original, stream())
    connection = duckdb.connect()
    connection.register("t", original.table)
    for sql, answer in zip(asked.sqls, asked.answers, strict=True):
        rows = connection.execute(sql).fetchall()
        slow = {(tuple(keys), "n"): float(n) for *keys, n in rows}
        assert {key: n for key, n in answer.cells.items() if n or not key[0]} == slow


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_a_workload_repeats_and_no_replaced_record_changes_more_than_is_said(workload: Workload) -> None:
    original = awkward_original()
    asked, again = (workload.questions(original, stream()) for _ in range(2))
    assert asked.sqls == again.sqls
    replaced = original.table.slice(1).to_pylist()
    moved = Original.of(type(original.table).from_pylist([*replaced, replaced[7]]), original.sensitive)
    connection = duckdb.connect()
    changed = 0.0
    connection.register("before", original.table)
    connection.register("after", moved.table)
    for sql in asked.sqls:
        counts = [
            {
                tuple(row[:-1]): row[-1]
                for row in connection.execute(sql.replace(" t", f" {name}", 1)).fetchall()
            }
            for name in ("before", "after")
        ]
        keys = counts[0].keys() | counts[1].keys()
        changed += sum(abs(counts[0].get(key, 0) - counts[1].get(key, 0)) for key in keys)
    assert asked.most_changed is not None
    assert 0 < changed <= asked.most_changed


def test_anatomys_questions_have_as_many_values_as_its_rule_says() -> None:
    original = awkward_original()
    workload = AnatomyWorkload(n_questions=400, selectivity=0.05, most_quasi=3)
    drawn = workload.draw(original, stream())
    for question in drawn:
        share = 0.05 ** (1 / len(question.conditions))
        assert question.conditions[-1][0] == "disease"
        for column, chosen in question.conditions:
            assert len(set(chosen)) == len(chosen) == ceil(len(original.cells[column]) * share)
    n_columns = np.bincount([len(question.conditions) - 1 for question in drawn])
    assert n_columns[0] == 0
    # uniform in 1..3: 400 draws are within 5.3 standard deviations (false alarms below 1e-6)
    assert np.all(np.abs(n_columns[1:] - 400 / 3) < 5.3 * np.sqrt(400 * 2 / 9))
    every = {column for question in drawn for column, _ in question.conditions}
    assert every == set(original.cells)


def test_the_pool_keeps_what_is_selective_enough_and_nothing_else() -> None:
    original = awkward_original()
    loose = EqualityPool(n_conditions=40, least_selectivity=0.0).questions(original, stream())
    strict = EqualityPool(n_conditions=40, least_selectivity=0.02).questions(original, stream())
    truth = dict(zip(loose.sqls, loose.truth.tolist(), strict=True))
    assert set(strict.sqls) == {sql for sql, n in truth.items() if n >= 0.02 * original.n_rows}
    with pytest.raises(InputError, match=r"99\.00%"):
        EqualityPool(n_conditions=5, least_selectivity=0.99).questions(original, stream())


def test_marginals_hold_every_combination_also_those_that_do_not_occur() -> None:
    original = awkward_original()
    asked = Marginals(most_columns=2).questions(original, stream())
    sizes = [len(cells) for cells in original.cells.values()]
    pairs = [prod(pair) for i, a in enumerate(sizes) for pair in [(a, b) for b in sizes[i + 1 :]]]
    assert asked.n_cells == sum(sizes) + sum(pairs)
    assert asked.truth.sum() == original.n_rows * (len(sizes) + comb(len(sizes), 2))


def test_workloads_that_ask_nothing_or_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dalenius.evaluate.workload.MOST_CELLS", 100)
    alone = Original.of(awkward_original().table.select(["disease"]), ["disease"])
    wrong: list[Callable[[], object]] = [
        lambda: AnatomyWorkload(n_questions=0),
        lambda: AnatomyWorkload(selectivity=0),
        lambda: EqualityPool(n_conditions=0),
        lambda: Marginals(most_columns=0),
        lambda: Marginals(most_columns=2).questions(awkward_original(), stream()),
        lambda: AnatomyWorkload().questions(alone, stream()),
    ]
    for ask in wrong:
        with pytest.raises(InputError):
            ask()
