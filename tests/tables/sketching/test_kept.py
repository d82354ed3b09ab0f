"""The smallest sums of a table, counted as they come."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dalenius.tables.sketching.kept import Smallest, high


@given(
    st.lists(st.lists(st.integers(0, 400), max_size=300), max_size=8),
    st.integers(1, 5),
    st.booleans(),
)
def test_the_smallest_sums_and_every_copy_of_them_are_kept(
    parts: list[list[int]], kept: int, is_counted: bool
) -> None:
    found = Smallest(kept)
    for part in parts:
        sums = high(np.array(part, dtype=np.int64))
        if is_counted:
            found.add_counted(sums, np.ones(len(sums), dtype=np.int64))
        else:
            found.add(sums)
    every = Counter(number for part in parts for number in part)
    smallest = sorted(every)[:kept]
    told = found.combination(2, is_whole=False)
    assert told.sums.tolist() == smallest
    assert told.counts.tolist() == [every[number] for number in smallest]
    assert told.complete == (len(every) <= kept)
