"""Packed tuples on their way: as batches, to their groups, and each once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dalenius.errors import PolicyError
from dalenius.mechanisms.tuples.apply import TupleGroups, as_batch, as_words, decode_distinct
from dalenius.mechanisms.tuples.domain import Domain, group_of
from dalenius.mechanisms.tuples.noise import NoiseLaw

SMALL = Domain.of({"a": range(5), "b": range(3)})
HUGE = Domain.of({f"c{i}": range(10_000) for i in range(7)})  # two words
CODES = [0, 0, 1, 1, 1, 2, 4, 4]


@pytest.mark.parametrize("domain", [SMALL, HUGE])
def test_words_travel_and_arrive(domain: Domain) -> None:
    codes = tuple(
        np.array(CODES)[::step] % size for step, size in zip([1, -1] * 4, domain.sizes, strict=False)
    )
    words = domain.pack(codes)
    np.testing.assert_array_equal(as_words(as_batch(words)), words)
    groups, copies = TupleGroups(domain=domain, n_groups=3), np.arange(len(words))
    numbers, sent = groups.send(words, copies)
    np.testing.assert_array_equal(numbers, group_of(words, 3))
    arrived = groups.receive(pa.Table.from_batches([sent]))
    np.testing.assert_array_equal(arrived[0], words)
    np.testing.assert_array_equal(arrived[1], copies)


@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2], [4, 4], [3, 5, 7]])
@pytest.mark.parametrize("domain", [SMALL, HUGE])
def test_a_tuple_that_goes_on_in_the_next_batch_is_published_once(domain: Domain, cuts: list[int]) -> None:
    """Ordered tuples with repetitions, cut into batches anywhere, also into empty ones."""
    zeros = [np.zeros(len(CODES), dtype=np.int64)] * (len(domain.sizes) - 1)
    for place in (0, len(domain.sizes) - 1):  # in the first word, or in the last one
        columns = [*zeros[:place], np.array(CODES) % domain.sizes[place], *zeros[place:]]
        words = domain.pack(tuple(columns))
        words = words[np.lexsort(words.T[::-1])]
        batches = (as_batch(part) for part in np.split(words, cuts))
        rows = pa.Table.from_batches(decode_distinct(batches, domain)).to_pylist()
        expected = sorted(
            {tuple(row) for row in zip(*(c.tolist() for c in domain.unpack(words)), strict=True)}
        )
        assert [tuple(row.values()) for row in rows] == expected


def test_shares_of_noise_name_the_column_that_is_wrong() -> None:
    """Each column adds up to 1, and no value is without noise."""
    right = (Fraction(1, 3), Fraction(2, 3))
    assert NoiseLaw(shares=(right, right)).largest_share == Fraction(4, 9)
    assert NoiseLaw(shares=(right, right)).smallest_share == Fraction(1, 9)
    for wrong in (
        (Fraction(1, 2), Fraction(1, 3)),
        (Fraction(1), Fraction(0)),
        (Fraction(3, 2), Fraction(-1, 2)),
    ):
        with pytest.raises(PolicyError, match="column 2 must be above 0 and add up to 1"):
            NoiseLaw(shares=(right, wrong))
