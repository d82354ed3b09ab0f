"""People found again by their quasi-identifiers, against the definition, person by person."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.threats.original import CommonCodes, People, known_values

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["F", "M", None])), min_size=1, max_size=12)


@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=30)
)
def test_profiles_are_equal_rows_and_known_values_are_those_that_all_share(
    rows: list[tuple[int, int, int]],
) -> None:
    table = pa.table({"a": [r[0] for r in rows], "b": [r[1] for r in rows]})
    (profile,) = CommonCodes.of(["a", "b"], [table]).of_rows(["a", "b"])
    value = np.array([r[2] for r in rows])
    known = known_values(profile, value, int(profile.max()) + 1)[profile]
    for i, one in enumerate(rows):
        same = {r[2] for r in rows if r[:2] == one[:2]}
        assert known[i] == (one[2] if len(same) == 1 else -1)
        assert all((profile[i] == profile[j]) == (one[:2] == r[:2]) for j, r in enumerate(rows))


def quasi(rows: list[tuple[int, str | None]]) -> pa.Table:
    ages, sexes = zip(*rows, strict=True)
    return pa.table({"age": pa.array(ages, pa.int64()), "sex": pa.array(sexes, pa.string())})


@given(original=ROWS, published=ROWS)
def test_a_row_is_known_by_what_only_one_person_has(
    original: list[tuple[int, str | None]], published: list[tuple[int, str | None]]
) -> None:
    value = np.arange(len(original)) % 2
    if not set(original) & set(published):
        with pytest.raises(InputError, match="no published row"):
            People.find(quasi(original), quasi(published), ["age", "sex"])
        return
    people = People.find(quasi(original), quasi(published), ["age", "sex"])
    for row, cells in enumerate(published):
        same = [person for person, theirs in enumerate(original) if theirs == cells]
        values = {int(value[person]) for person in same}
        assert people.value_of_row(value)[row] == (values.pop() if len(values) == 1 else -1)
        assert people.position_of_row()[row] == (same[0] if len(same) == 1 else -1)
    for person, cells in enumerate(original):
        rows = [row for row, theirs in enumerate(published) if theirs == cells]
        is_known = len(rows) == 1 and original.count(cells) == 1
        assert people.row_of_person()[person] == (rows[0] if is_known else -1)


def test_without_quasi_identifiers_everybody_is_like_everybody_else() -> None:
    people = People.find(quasi([(1, "F"), (2, "M")]), quasi([(3, None)] * 3), [])
    assert people.n_profiles == 1
    assert people.position_of_row().tolist() == [-1] * 3
    assert people.value_of_row(np.array([7, 7])).tolist() == [7] * 3
