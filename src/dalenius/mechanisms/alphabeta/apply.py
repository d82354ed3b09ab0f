"""Views of a table: algorithms 1 to 5 and FRAPP, on codes.

Every view comes out in the order of its codes, which says nothing about the table's own order. The kernels
work on sets; `distinct` and `copies` turn a table with duplicates into one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.errors import InputError
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.tuples.domain import Codes, Domain, are_among, distinct_words, word_ids
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.sampling import shaped_hits, toss, uniform_hits, uniform_words


def first_view(domain: Domain, table: Codes, law: ViewLaw, stream: np.random.Generator) -> Codes:
    """The αβ view: t in the table with α+β, any other t with β.

    Insert every t of D with probability β and keep each t of the table with α/(1−β): their union has
    1 − (1−β)(1 − α/(1−β)) = α+β for the table's tuples, and no insertion is looked up in the table.
    """
    _refuse_duplicates(domain.pack(table))
    kept = kept_rows(table, law, stream)
    return _joined(domain, kept, uniform_hits(domain, law.beta, stream))


def kept_rows(table: Codes, law: ViewLaw, stream: np.random.Generator) -> Codes:
    """The rows of a batch that stay, each with probability α/(1−β)."""
    return _select(table, toss(law.alpha / (1 - law.beta), len(table[0]), stream))


def shaped_view(
    domain: Domain, table: Codes, law: ViewLaw, noise: NoiseLaw, stream: np.random.Generator
) -> Codes:
    """The view whose noise follows declared distributions: t in the table with α+β(t), else with β(t)."""
    _refuse_duplicates(domain.pack(table))
    kept = kept_shaped(table, law, noise, stream)
    return _joined(domain, kept, shaped_hits(domain, noise, law.beta, stream))


def kept_shaped(table: Codes, law: ViewLaw, noise: NoiseLaw, stream: np.random.Generator) -> Codes:
    """The rows of a batch that stay, each with probability α/(1−β(t))."""
    return _select(table, shaped_coins(table, law, noise, stream))


def shaped_coins(table: Codes, law: ViewLaw, noise: NoiseLaw, stream: np.random.Generator) -> Bools:
    """Whether each row stays, with probability α/(1−β(t))."""
    beta = float(law.beta) * noise.relative(table)
    return np.asarray(stream.random(len(beta)) * (1 - beta) < float(law.alpha))


def next_view(
    domain: Domain, table: Codes, earlier: Iterable[Codes], law: ViewLaw, stream: np.random.Generator
) -> Codes:
    """The next of a series of views of one unchanged table, given the earlier ones (algorithm 4)."""
    views = list(earlier)
    if len(views) >= law.views:
        raise InputError(f"all {law.views} views that the promise was planned for are published")
    own = domain.pack(table)
    _refuse_duplicates(own)
    shown = distinct_words(np.concatenate([own[:0], *(domain.pack(view) for view in views)]))
    shown_noise = shown[~are_among(shown, own)]
    known = np.concatenate([own, shown])
    fresh_rate = law.fresh_rate(len(views) + 1)
    fresh = np.concatenate(list(uniform_hits(domain, fresh_rate, stream)))
    parts = [
        own[toss(law.retention, len(own), stream)],
        shown_noise[toss(law.seen_rate, len(shown_noise), stream)],
        fresh[~are_among(fresh, known)],
    ]
    return domain.unpack(distinct_words(np.concatenate(parts)))


def frapp_view(domain: Domain, table: Codes, gamma_f: Fraction, stream: np.random.Generator) -> Codes:
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


def union(domain: Domain, parts: Iterable[Codes]) -> Codes:
    """The different tuples of all parts, in order; of one part: its distinct rows."""
    return domain.unpack(distinct_words(np.concatenate([domain.pack(part) for part in parts])))


def _joined(domain: Domain, kept: Codes, hits: Iterable[Ints]) -> Codes:
    return domain.unpack(distinct_words(np.concatenate([domain.pack(kept), *hits])))


def number_copies(words: Ints) -> Ints:
    """0, 1, … for the copies of each packed tuple: one more column that makes the rows a set."""
    ids = word_ids(words)
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.searchsorted(ordered, ordered, side="left")
    copies = np.empty_like(ids)
    copies[order] = np.arange(len(ids)) - starts
    return copies


def _select(codes: Codes, chosen: Bools) -> Codes:
    return tuple(column[chosen] for column in codes)


def _refuse_duplicates(words: Ints) -> None:
    n_repeated = len(words) - len(distinct_words(words))
    if n_repeated:
        raise InputError(
            f"{n_repeated} rows repeat another row, and a view is a set of tuples",
            hint='duplicates = "distinct" counts different tuples under the full promise; "copies" counts '
            "rows, and the promise is for one copy: how often a tuple occurs then shows",
        )
