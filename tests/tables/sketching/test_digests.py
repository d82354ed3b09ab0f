"""Digests of many texts at once are those of one after the other, as ledgers keep them."""

from __future__ import annotations

from functools import partial
from hashlib import md5

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from dalenius.tables.sketching import digests, whole
from dalenius.tables.sketching.digests import digest_texts
from dalenius.tables.sketching.kept import digest_words
from dalenius.tables.sketching.whole import _hash_all


@pytest.mark.parametrize("n_before", [0, 5, 55, 63, 64, 70, 128])
def test_a_digest_is_md5_of_the_whole_message_unless_its_end_is_too_long(
    n_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "_AT_ONCE", 7)
    random, room = np.random.default_rng(n_before), max(0, 55 - n_before % 64)
    before, longest = random.bytes(n_before), room
    texts = ["left out", *("é" * (i % (longest // 2 + 1)) + "x" * (i % 2 * longest % 2) for i in range(60))]
    texts = [text for text in texts if len(text.encode()) <= longest]
    for more in ([], ["y" * longest], ["y" * (longest + 1)]):
        halves = digest_texts(before, pa.array([*texts, *more]).slice(1))
        own = [before + text.encode() for text in [*texts, *more][1:]]
        assert (halves is None) == (more == ["y" * (longest + 1)] or n_before % 64 > 55)
        if halves is not None:
            assert [half.tobytes() for half in halves] == [MD5(one).digest()[:8] for one in own]


MD5 = partial(md5, usedforsecurity=False)
WORDS = ["Anna", "zoë"[:2], "", "x y", "truest", ":", "o'hara-smith", "a" * 39]


ODD = ["12", "-1.5", " b", "b ", "True", "FALSE", "Ä", "1e3", "a" * 40, "12 Main Street"]


@pytest.mark.parametrize("texts", [[*WORDS, None], [*WORDS, *ODD, None], ODD], ids=["words", "both", "odd"])
def test_texts_have_the_numbers_that_duckdb_gives_them(
    texts: list[str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, key, connection = pa.array(texts), b"k" * 32, duckdb.connect()
    by_duckdb = _hash_all(connection, cells, "VARCHAR", key)
    assert digest_words(cells, key)[1].tolist() == [text not in ODD for text in texts]
    monkeypatch.setattr(whole, "MANY_TEXTS", 1)
    assert _hash_all(connection, cells, "VARCHAR", key).tolist() == by_duckdb.tolist()
