"""A FRAPP view: each record kept or replaced, on codes, and its rows in batches."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dalenius.errors import InputError
from dalenius.mechanisms.base import Batches
from dalenius.mechanisms.tuples.apply import as_batch
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, uniform_words
from dalenius.randomness import Randomness, toss


def frapp_view(
    domain: Domain, table: TupleCodes, gamma_f: Fraction, stream: np.random.Generator
) -> TupleCodes:
    """Each row kept with probability γ_f, else replaced by a uniform other tuple of D; a multiset."""
    if domain.size < 2:
        raise InputError("the domain has a single tuple; there is nothing to replace it with")
    result = tuple(column.copy() for column in table)
    replaced = np.flatnonzero(~toss(gamma_f, len(table[0]), stream))
    while len(replaced):
        drawn = domain.unpack(uniform_words(domain, len(replaced), stream))
        for column, codes in zip(result, drawn, strict=True):
            column[replaced] = codes
        # A draw that gives the row's own tuple is drawn again: uniform over the other tuples.
        pairs = zip(result, table, strict=True)
        is_own = np.all([column[replaced] == original[replaced] for column, original in pairs], axis=0)
        replaced = replaced[is_own]
    words = domain.pack(result)
    return domain.unpack(words[np.lexsort(words.T[::-1])])


def frapp_rows(
    tables: Iterator[TupleCodes], domain: Domain, gamma_f: Fraction, randomness: Randomness
) -> Batches:
    """Every row, kept or replaced."""
    stream = randomness.stream("alphabeta", "frapp")
    for table in tables:
        yield as_batch(domain.pack(frapp_view(domain, table, gamma_f, stream)))
