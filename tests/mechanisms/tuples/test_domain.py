"""Domains: codes and words go there and back, whatever the size."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.errors import InputError
from dalenius.mechanisms.tuples.domain import Domain, are_among, distinct_words, word_ids
from dalenius.randomness import Randomness

HUGE = Domain.of({f"c{i}": range(10_000) for i in range(7)})  # 10^28 tuples


def random_codes(domain: Domain, n_rows: int, seed: int) -> tuple[np.ndarray, ...]:
    stream = Randomness.seeded(seed).stream("codes")
    return tuple(stream.integers(size, size=n_rows) for size in domain.sizes)


@given(sizes=st.lists(st.integers(1, 3_000), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_packing_is_reversible_and_keeps_the_order(sizes: list[int], seed: int) -> None:
    domain = Domain.of({f"c{i}": range(size) for i, size in enumerate(sizes)})
    codes = random_codes(domain, 50, seed)
    words = domain.pack(codes)
    assert words.shape[1] == 1 or domain.size >= 2**63
    np.testing.assert_array_equal(np.stack(domain.unpack(words)), np.stack(codes))
    by_words = np.lexsort(words.T[::-1])
    by_codes = np.lexsort(np.stack(codes)[::-1])
    np.testing.assert_array_equal(by_words, by_codes)


@pytest.mark.parametrize("domain", [HUGE, Domain.of({"a": range(7), "b": range(3)})])
def test_words_are_compared_as_tuples(domain: Domain) -> None:
    codes = random_codes(domain, 40, 3)
    words = np.concatenate([domain.pack(codes)] * 2)
    tuples = list(zip(*(np.concatenate([c, c]).tolist() for c in codes), strict=True))
    assert list(zip(*(c.tolist() for c in domain.unpack(distinct_words(words))), strict=True)) == sorted(
        set(tuples)
    )
    ranks = {t: i for i, t in enumerate(sorted(set(tuples)))}
    assert word_ids(words).tolist() == [ranks[t] for t in tuples]
    others = words[:9]
    assert are_among(words, others).tolist() == [t in set(tuples[:9]) for t in tuples]
    assert not are_among(words, words[:0]).any()


def test_sizes_are_exact_beyond_64_bits() -> None:
    assert HUGE.size == 10**28
    assert HUGE.pack(random_codes(HUGE, 5, 1)).shape == (5, 2)


def test_rows_are_encoded_and_decoded_with_null_as_a_value() -> None:
    domain = Domain.of({"sex": pa.array(["F", "M"]), "ill": pa.array(["flu", None, "hiv"])})
    table = pa.table(
        {
            "ill": pa.chunked_array([["hiv"], [None, "flu"]]),
            "sex": pa.array(["M", "F", "M"]).dictionary_encode(),
        }
    )
    codes = domain.encode(table)
    assert [c.tolist() for c in codes] == [[1, 0, 1], [2, 1, 0]]
    assert domain.decode(codes).to_pydict() == {"sex": ["M", "F", "M"], "ill": ["hiv", None, "flu"]}
    assert math.prod(domain.sizes) == domain.size == 6
    assert list(domain.arrays()) == ["sex", "ill"]


def test_a_value_outside_the_domain_is_counted_and_not_shown() -> None:
    domain = Domain.of({"ill": ["flu", "cold"]})
    with pytest.raises(InputError, match="'ill': 2 rows") as caught:
        domain.encode(pa.table({"ill": ["flu", "secret", None]}))
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "at least one"),
        ({"a": []}, "empty"),
        ({"a": [1, 1]}, "twice"),
        ({"a": [1], "A": [2]}, "same name"),
    ],
)
def test_what_is_no_domain_is_refused(values: dict[str, list[int]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Domain.of(values)


def test_a_domain_that_floating_point_cannot_count_is_refused() -> None:
    assert Domain.of({f"c{k}": range(1_000) for k in range(100)}).size == 10**300
    with pytest.raises(InputError, match=r"more than 10\^300 tuples"):
        Domain.of({f"c{k}": range(1_000) for k in range(101)})
