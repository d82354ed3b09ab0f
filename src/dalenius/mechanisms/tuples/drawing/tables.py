"""Whole tables drawn given a view: which rows are people's, and who was not shown.

The law of people is what the view teaches. With it given, tuples are independent, and every table is drawn as
likely as it is. No tuple of the domain is looked at that is neither shown nor drawn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats, Ints
from dalenius.errors import InputError
from dalenius.mechanisms.base import Completion
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Domain, TupleCodes, are_among, distinct_words
from dalenius.mechanisms.tuples.drawing.evidence import Insertions, Replacements, hidden_share
from dalenius.mechanisms.tuples.drawing.fitting import FittedPeople, People
from dalenius.mechanisms.tuples.noise import NoiseLaw

ASSUMES = (
    "a person's columns depend on each other by a main effect of each on each (along numbers a smooth curve) "
    "of a size that the release teaches; the law is drawn anew for every copy, and given it who was deleted, "
    "and which rows are nobody's. Interactions beyond that come out too weak"
)
_HINT = (
    "`dalenius ask` answers questions about it, with error bars; complete a view of a sample of the people"
)
Absent = Callable[[TupleCodes], Floats]
"""How much likelier a tuple is not to be shown if it is in the table than if it is not."""


MOST_PEOPLE = 5_000_000
"""Of whom a view may leave it open that they are in the table."""
MOST_ROWS = 10_000_000
"""That a view may show: every copy looks at each of them some times."""


def draw_table(
    domain: Domain,
    codes: TupleCodes,
    people: People,
    evidence: Insertions,
    absent: Absent,
    stream: np.random.Generator,
) -> TupleCodes:
    """The table's tuples, given a view by deletions and insertions that shows these."""
    words = domain.pack(codes)
    real = words[evidence.draw_real(people.shown_rates(codes), stream)]
    hit = people.draw(int(stream.poisson(people.n)), stream)
    kept = stream.random(len(hit[0])) < hidden_share(people.rates(hit), absent(hit))
    hidden = distinct_words(domain.pack(tuple(code[kept] for code in hit)))
    hidden = hidden[~are_among(hidden, words)]
    return domain.unpack(distinct_words(np.concatenate([real, hidden])))


def draw_records(
    codes: TupleCodes, people: People, evidence: Replacements, stream: np.random.Generator
) -> TupleCodes:
    """The records as they were before some of them were replaced, in the same order."""
    found = tuple(code.astype(np.int64) for code in codes)
    replaced: Ints = np.flatnonzero(~evidence.draw_real(people.rates(codes) / people.n, stream))
    while len(replaced):
        drawn = people.draw(len(replaced), stream)
        for code, own in zip(found, drawn, strict=True):
            code[replaced] = own
        # whoever was replaced was another tuple than what is shown
        same = np.all([own == code[replaced] for own, code in zip(drawn, codes, strict=True)], axis=0)
        replaced = replaced[same]
    return found


def complete_view(
    domain: Domain,
    codes: TupleCodes,
    evidence: Insertions,
    absent: Absent,
    noise: NoiseLaw | None,
    names: tuple[str, ...],
) -> Completion:
    """Whole tables given a view by deletions and insertions."""
    _refuse_too_many(len(codes[0]))
    if evidence.n_people > MOST_PEOPLE:
        raise InputError(
            f"the view leaves open whether the table has {evidence.n_people:,.0f} rows; at most "
            f"{MOST_PEOPLE:,} are drawn",
            hint=_HINT,
        )
    fitted = FittedPeople.of(domain, codes, _noise_shares(domain, noise), evidence)

    def draw(stream: np.random.Generator) -> pa.Table:
        people = fitted.redrawn(stream)
        return as_table(domain, draw_table(domain, codes, people, evidence, absent, stream), names)

    return Completion(draw=draw, assumes=ASSUMES, draws_rows=True)


def complete_records(
    domain: Domain, codes: TupleCodes, evidence: Replacements, names: tuple[str, ...]
) -> Completion:
    """Whole tables given a view of replaced records."""
    _refuse_too_many(len(codes[0]))
    fitted = FittedPeople.of(domain, codes, _noise_shares(domain, None), evidence)

    def draw(stream: np.random.Generator) -> pa.Table:
        people = fitted.redrawn(stream)
        return as_table(domain, draw_records(codes, people, evidence, stream), names)

    return Completion(draw=draw, assumes=ASSUMES, draws_rows=True)


def _refuse_too_many(n_shown: int) -> None:
    if n_shown > MOST_ROWS:
        raise InputError(
            f"the view shows {n_shown:,} rows; tables are drawn of at most {MOST_ROWS:,}", hint=_HINT
        )


def as_table(domain: Domain, codes: TupleCodes, names: tuple[str, ...]) -> pa.Table:
    """The rows of these tuples: whoever is a copy of another is a person like any other."""
    cells = {
        column.name: column.values.take(pa.array(code))
        for column, code in zip(domain.columns, codes, strict=True)
    }
    return pa.table({name: cells[name] for name in names if name != COPY})


def _noise_shares(domain: Domain, noise: NoiseLaw | None) -> list[Floats]:
    if noise is None:
        return [np.full(size, 1 / size) for size in domain.sizes]
    return [np.array([float(share) for share in column]) for column in noise.shares]
