"""Kinds of people beside a dense row for each person."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.mechanisms.rows import kinds as module
from dalenius.mechanisms.rows.kinds import Kinds, find_kinds


@st.composite
def columns(draw: st.DrawFn) -> list[np.ndarray]:
    n = draw(st.integers(1, 30))
    widths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    return [np.array(draw(st.lists(st.integers(0, w - 1), min_size=n, max_size=n))) for w in widths]


@given(columns(), st.sampled_from([module._FAR, 4]))
def test_every_row_is_of_the_kind_that_has_its_codes(listed: list[np.ndarray], far: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FAR", far)  # numbered again and again, as very many columns are
        found, kind = find_kinds(listed)
    rows = np.stack(listed, axis=1)
    assert found[kind].tolist() == rows.tolist()
    assert len(found) == len({tuple(row) for row in rows.tolist()})


@given(columns(), st.sampled_from([0, 10**9]), st.sampled_from([1, 6, 1_000]))
def test_sums_over_kinds_are_those_over_people(listed: list[np.ndarray], dense: int, joined: int) -> None:
    found, kind = find_kinds(listed)
    widths = [int(column.max()) + 1 for column in listed]
    starts = np.cumsum([0, *widths])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_DENSE", dense)
        patch.setattr(module, "_JOINED", joined)
        kinds = Kinds.of(found + starts[:-1], int(starts[-1]))
    assert (kinds.dense is None) == (dense == 0)
    people = np.concatenate([np.eye(w)[column] for w, column in zip(widths, listed, strict=True)], axis=1)
    rng = np.random.default_rng(len(kind))
    effects, numbers = rng.normal(size=(starts[-1], 3)), rng.normal(size=(len(kind), 3))
    assert kinds.sum_effects(effects)[kind] == pytest.approx(people @ effects)
    by_kind = np.zeros((len(kinds), 3))
    np.add.at(by_kind, kind, numbers)
    for few_cells in (0, 10**9):  # with scipy, and without
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_FEW_CELLS", few_cells)
            assert kinds.add(by_kind) == pytest.approx(people.T @ numbers)
    assert kinds.cross(np.bincount(kind).astype(float)) == pytest.approx(people.T @ people)
    for chosen in (np.arange(0, len(kind), 3), np.tile(np.arange(len(kind)), 9)):  # few, and many
        for values in (None, rng.normal(size=len(chosen))):
            expected = (np.ones(len(chosen)) if values is None else values) @ people[chosen]
            assert kinds.add_some(kind[chosen], values) == pytest.approx(expected)
    some = kinds.take(np.arange(0, len(kinds), 2))
    assert some.sum_effects(effects) == pytest.approx(kinds.sum_effects(effects)[::2])


def test_rows_that_are_hardly_alike_are_told_from_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """By some of the rows: of different ones, of pairs, and where one in ten is of the same kind."""
    rng = np.random.default_rng(1)
    codes = rng.permutation(200_000)
    different = [codes // 500, codes % 500]
    pairs = [codes // 2 // 500, codes // 2 % 500]
    is_common = rng.random(200_000) < 0.1
    assert module.is_hardly_alike(different)
    assert not module.is_hardly_alike(pairs)
    assert not module.is_hardly_alike([np.where(is_common, 0, column) for column in different])
    monkeypatch.setattr(module, "_MANY_ROWS", 200_001)
    assert not module.is_hardly_alike(different)  # it is soon known who is like whom
