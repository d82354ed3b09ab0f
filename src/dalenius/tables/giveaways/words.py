"""Texts that hardly anybody shares, and in which a word tells: a note that names the disease, a case code."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.arrays import Bools, Ints, different
from dalenius.tables.codes import encode
from dalenius.tables.giveaways.cells import MOST, MUCH, SEVERAL, CellTable, CodedColumn

_BETWEEN_WORDS = r"[^\pL\pN]+"
_BETWEEN_LETTERS = r"\PL+"
_IN_ONE_WORD = r"\pL\pN|\pN\pL"
"""Letters beside figures: 2024B0017 may have a code in it although no blank is around it."""
_FIRST_LETTERS = (1, 2, 3, 4)
"""Of a cell, which may be a code although no blank follows."""
_LAST_LETTERS = (1, 2)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordTable:
    """The people in whose cells is a word, or whose cells begin with letters, that nearly always tell."""

    secret: CodedColumn
    is_told: Bools
    """By person."""
    is_right: Bools
    """By person: the value that a word tells is theirs."""

    @classmethod
    def of(cls, column: CodedColumn, secret: CodedColumn) -> WordTable:
        """Take the people who share a word for people who share a cell."""
        row, word = _find_words(column.texts, column.codes)
        n_rows = len(secret.codes)
        is_told, is_right = np.zeros(n_rows, dtype=np.bool_), np.zeros(n_rows, dtype=np.bool_)
        if len(row):
            n_words, own = int(word.max()) + 1, secret.codes[row]
            groups = CellTable.of(
                CodedColumn(codes=word, n_values=n_words), CodedColumn(codes=own, n_values=secret.n_values)
            )
            frequency = np.bincount(secret.codes, minlength=secret.n_values) / n_rows
            tells = replace(groups, frequency=frequency, n_rows=n_rows).is_told()[word]
            is_told[row[tells]] = True
            is_right[row[tells & (groups.value[word] == own)]] = True
        return cls(secret=secret, is_told=is_told, is_right=is_right)

    @property
    def people(self) -> int:
        """How many these are."""
        return int(self.is_told.sum())

    def tell_most(self) -> bool:
        """Whether these are much of the table, or most of the people who have some value."""
        n_rows, all_of = len(self.is_told), np.bincount(self.secret.codes)
        held = np.bincount(self.secret.codes[self.is_right], minlength=len(all_of))
        is_most = (held >= MOST * all_of) & (held >= SEVERAL * n_rows)
        return bool(is_most.any() or self.people >= MUCH * n_rows)


def _find_words(cells: pa.Array, codes: Ints) -> tuple[Ints, Ints]:
    """Who has which word in the cell, or which first letters; of those that several people have."""
    texts = pc.utf8_lower(cells.fill_null("")).take(pa.array(codes))
    between = [_BETWEEN_WORDS]
    if pc.any(pc.match_substring_regex(texts, _IN_ONE_WORD)).as_py():
        between.append(_BETWEEN_LETTERS)
    lists = [pc.split_pattern_regex(texts, one) for one in between]
    # no word has a blank in it
    parts = [
        *((" ", pc.utf8_slice_codeunits(texts, 0, n), "") for n in _FIRST_LETTERS),
        *((pc.utf8_slice_codeunits(texts, -n), " ", "") for n in _LAST_LETTERS),
    ]
    ends = [pc.binary_join_element_wise(*part) for part in parts]
    words = pa.chunked_array([*map(pc.list_flatten, lists), *ends]).combine_chunks()
    rows = np.concatenate([*map(pc.list_parent_indices, lists), *[np.arange(len(texts))] * len(ends)])
    word, listed = encode(words)
    # every list of words is in the order of the rows
    row, found = np.divmod(different(rows.astype(np.int64) * len(listed) + word, in_runs=True), len(listed))
    is_shared = np.bincount(found, minlength=len(listed)) > 1
    new_number = np.cumsum(is_shared) - 1
    return row[is_shared[found]], new_number[found[is_shared[found]]]
