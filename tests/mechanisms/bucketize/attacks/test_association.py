"""What is learnt of columns and values: exclusions and naive Bayes beside loops."""

from __future__ import annotations

import numpy as np
import pytest

from dalenius.mechanisms.bucketize.attacks import association
from dalenius.mechanisms.bucketize.attacks.association import (
    Exclusions,
    NaiveBayes,
    attack_definetti,
    attack_negative_association,
    believe,
    cells_of,
    learn_exclusions,
    train,
)
from dalenius.mechanisms.bucketize.attacks.case import BucketCase, RowPairs
from tests.mechanisms.bucketize.attacks.cases import make_case

N = 6_000


def related(seed: int = 1, *, excluding: bool = True) -> tuple[list[int], list[str], list[int]]:
    """Six values in buckets of two, dealt without a plan; women never have value 5, where `excluding`."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], N)
    values = np.where((sex == "f") & excluding, rng.integers(0, 5, N), rng.integers(0, 6, N))
    sex[0], values[0] = "m", 5
    return values.tolist(), sex.tolist(), rng.permutation(np.arange(N) // 2).tolist()


def case_of(seed: int = 1, *, excluding: bool = True) -> BucketCase:
    values, sex, bucket = related(seed, excluding=excluding)
    return make_case(values, bucket, quasi={"uid": list(range(N)), "sex": sex})


def everything(case: BucketCase) -> RowPairs:
    return RowPairs.of(case, np.ones(case.n_buckets, dtype=bool))


def test_a_value_that_a_cell_never_has_is_excluded_and_no_other() -> None:
    case = case_of()
    found = learn_exclusions(case)
    sex = case.people.columns[1]
    names = sex.cells.to_pylist()
    excluded = {(names[c], v) for c, v in zip(*np.nonzero(found.tables[1]), strict=True)}
    assert excluded == {("f", 5)}
    assert not found.tables[0].any()  # everybody's own number teaches nothing
    assert (found.n, found.n_true) == (1, 1)
    assert learn_exclusions(case_of(excluding=False)).n == 0


def test_exclusions_hold_for_the_rows_that_have_the_cell() -> None:
    case = make_case([0, 1, 2], [0, 0, 0], quasi={"sex": ["f", "m", "f"], "age": [1, 2, 2]})
    sex, age = case.people.columns
    tables = tuple(np.zeros((column.n_cells, 3), dtype=bool) for column in (sex, age))
    tables[0][sex.cells.to_pylist().index("f"), 0] = True
    tables[1][age.cells.to_pylist().index(2), 2] = True
    exclusions = Exclusions(tables=tables, n_true=0)
    rows, values = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    by_hand = [
        (["f", "m", "f"][row] == "f" and value == 0) or ([1, 2, 2][row] == 2 and value == 2)
        for row, value in zip(rows.tolist(), values.tolist(), strict=True)
    ]
    assert exclusions.of_rows(case, rows, values).tolist() == by_hand
    assert exclusions.n == 2


def test_exclusions_are_true_where_the_original_has_less_than_a_fifth() -> None:
    """Of ten women one has value 0, of which a third of all people have: 1 < 0.2 · 10/3 is not so."""
    values = [0] + [1] * 9 + [0] * 9 + [1]
    sex = ["f"] * 10 + ["m"] * 10
    case = make_case(values, [row // 2 for row in range(20)], quasi={"sex": sex, "uid": list(range(20))})
    table = np.zeros((2, 2), dtype=bool)
    none = np.zeros((20, 2), dtype=bool)
    table[case.people.columns[0].cells.to_pylist().index("f"), 0] = True
    # expected 10·½ = 5, a fifth of which is 1: one is not less than one
    assert association._n_true(case, (table, none)) == 0
    fewer = make_case(
        [1, *values[1:]], [row // 2 for row in range(20)], quasi={"sex": sex, "uid": list(range(20))}
    )
    assert association._n_true(fewer, (table, none)) == 1


def test_guessing_without_what_is_excluded_is_better() -> None:
    case = case_of()
    found = attack_negative_association(case, everything(case), learn_exclusions(case))
    nothing = Exclusions(tables=tuple(np.zeros_like(t) for t in learn_exclusions(case).tables), n_true=0)
    plain = attack_negative_association(case, everything(case), nothing)
    assert plain.success == pytest.approx(plain.control or 0)
    assert found.success > plain.success
    assert found.control == plain.control
    assert found.advice is not None
    assert plain.advice is None


def test_what_is_learnt_of_a_column_is_a_smoothed_distribution() -> None:
    """Counts by belief, plus one person a cell, spread by how common the cell is."""
    case = make_case([0, 1, 0, 1], [0, 0, 1, 1], quasi={"sex": ["f", "m", "f", "f"]})
    pairs = everything(case)
    cell = cells_of(case, pairs, 0)
    belief = np.array([0.9, 0.1, 0.2, 0.8, 0.5, 0.5, 0.5, 0.5])
    table = association._learn(case, cell, belief, 0)
    counts = np.zeros((2, 2))
    for row, value, b in zip(pairs.row.tolist(), pairs.value.tolist(), belief.tolist(), strict=True):
        counts[case.people.columns[0].rows[row], value] += b
    prior = counts.sum(axis=1, keepdims=True) / counts.sum()
    expected = (counts + 2 * prior) / (counts + 2 * prior).sum(axis=0)
    assert np.exp(table) == pytest.approx(expected)
    assert np.exp(table).sum(axis=0) == pytest.approx([1, 1])


def test_beliefs_add_up_to_a_value_a_row_and_the_buckets_counts() -> None:
    case = make_case([0, 1, 1, 0, 2, 2], [0, 0, 0, 1, 1, 1])
    pairs = everything(case)
    evidence = np.random.default_rng(2).normal(size=len(pairs.row)) / 4
    belief = association._scale(case, pairs, evidence)
    assert np.bincount(pairs.row, belief) == pytest.approx(np.ones(6))
    assert np.bincount(pairs.entry, belief) == pytest.approx(case.st_count, abs=0.01)
    same = association._scale(case, pairs, np.zeros(len(pairs.row)))
    assert same == pytest.approx(pairs.share)


def test_a_models_likelihood_is_a_sum_over_its_columns() -> None:
    tables = (np.log([[0.2, 0.7], [0.8, 0.3]]), np.log([[0.5, 0.1], [0.5, 0.9]]))
    model = NaiveBayes(columns=(0, 1), tables=tables)
    cells = [np.array([0, 3], dtype=np.int32), np.array([2, 1], dtype=np.int32)]
    assert np.exp(model.log_likelihood(cells)) == pytest.approx([0.2 * 0.5, 0.3 * 0.1])


def test_learning_finds_who_has_what_where_columns_tell() -> None:
    """A column that is nearly the value: beliefs in the truth rise far above the bucket's shares."""
    rng = np.random.default_rng(3)
    values = rng.integers(0, 4, 800)
    values[:4] = np.arange(4)
    column = np.where(rng.random(800) < 0.9, values, rng.integers(0, 4, 800))
    bucket = rng.permutation(np.arange(800) // 4)
    case = make_case(
        values.tolist(), bucket.tolist(), quasi={"uid": list(range(800)), "ward": column.tolist()}
    )
    pairs = everything(case)
    belief = believe(case, pairs, train(case, pairs))
    is_true = pairs.value == case.row_truth()[pairs.row]
    assert belief[is_true].mean() > pairs.share[is_true].mean() + 0.2
    found = attack_definetti(case, pairs, np.random.default_rng(4))
    assert found.success > 0.6
    assert found.control is not None
    assert found.control > 0.6  # the model is right of people whose buckets it never saw
    assert found.advice is not None


def test_nothing_is_learnt_without_columns() -> None:
    case = make_case([0, 1, 1, 0], [0, 0, 1, 1])
    pairs = everything(case)
    model = train(case, pairs)
    assert model.columns == ()
    assert believe(case, pairs, model).tolist() == pairs.share.tolist()
    assert association._control(case, model, np.ones(2, dtype=bool), np.random.default_rng(1)) is None


def test_rare_values_beyond_the_most_are_taken_together(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case([0, 1, 1, 2, 2, 2], [0, 0, 1, 1, 2, 2])
    frequent, place = association._frequent_values(case)
    assert frequent.tolist() == [0, 1, 2]
    assert place.tolist() == case.st_value.tolist()
    monkeypatch.setattr(association, "_MOST_VALUES", 2)
    frequent, place = association._frequent_values(case)
    assert frequent.tolist() == [1, 2]
    assert place.tolist() == [{0: 2, 1: 0, 2: 1}[v] for v in case.st_value.tolist()]
