"""Digests of many texts at once are those of one after the other, as ledgers keep them."""

from __future__ import annotations

from functools import partial
from hashlib import md5

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dalenius.tables.sketching import digests
from dalenius.tables.sketching.digests import digest_texts
from dalenius.tables.sketching.kept import digest_cells
from dalenius.tables.sketching.whole import _hash_all


@pytest.mark.parametrize("n_before", [0, 5, 55, 63, 64, 70, 128])
def test_a_digest_is_md5_of_the_whole_message_unless_its_end_is_too_long(
    n_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_AT_ONCE", 7)
    random, room = np.random.default_rng(n_before), max(0, 55 - n_before % 64)
    before, behind = random.bytes(n_before), random.bytes(int(random.integers(room // 2 + 1)))
    longest = room - len(behind)
    texts = ["left out", *("é" * (i % (longest // 2 + 1)) + "x" * (i % 2 * longest % 2) for i in range(60))]
    texts = [text for text in texts if len(text.encode()) <= longest]
    for more in ([], ["y" * longest], ["y" * (longest + 1)]):
        words = digest_texts(before, pa.array([*texts, *more]).slice(1), behind)
        own = [before + text.encode() + behind for text in [*texts, *more][1:]]
        assert (words is None) == (more == ["y" * (longest + 1)] or n_before % 64 > 55)
        if words is not None:
            assert [words[:, i].tobytes() for i in range(len(own))] == [MD5(one).digest() for one in own]


MD5 = partial(md5, usedforsecurity=False)
WORDS = ["Anna", "zoë"[:2], "", "x y", "truest", ":", "o'hara-smith", "a" * 39]


def test_plain_words_have_the_numbers_that_duckdb_gives_them() -> None:
    texts, key = pa.array([*WORDS, None]), b"k" * 32
    words = digest_cells(texts, key)
    assert words is not None
    assert words.tolist() == _hash_all(duckdb.connect(), texts, "VARCHAR", key).tolist()
    assert len(np.unique(words)) == len(WORDS)  # nothing is said by an empty text, and by NULL


@pytest.mark.parametrize("odd", ["12", "-1.5", " b", "b ", "True", "FALSE", "Ä", "a" * 40])
def test_texts_that_may_say_something_else_are_left_to_duckdb(odd: str) -> None:
    assert digest_cells(pa.array([*WORDS, odd, None]), b"k" * 32) is None
