"""Published columns that give the secret away: a code of the diagnosis beside the diagnosis.

Whoever has a cell of such a column has one value, so that no limit on what buckets or coins tell is of use.
Groups of few people agree by chance as well, above all on a common value. A column is told of if far more
people are in groups that agree than that explains; if a cell goes with one value nearly always, for more
people than chance explains (those who take a medicine against one disease); and if it is a number that
follows the secret one, as a net salary follows the gross. So are two columns that tell together, and a column
of texts, all different, in which a word tells: a note that names the disease, a prescription, a case number
that begins with a code. And so is one whose order tells: row numbers of a table that was sorted, or a
measurement that only people with one disease have. Two numbers can make the secret one, as the days of coming
and leaving do; and what the value decides, as a disease decides the ward, rules out other values of a bucket.

Most tables have cells that nearly always go with one value: hardly anybody under 20 has married. Such columns
are told of, and only one that tells the value of many people, or of most who have it, is taken for a giveaway
that nobody should publish by accident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import pyarrow as pa

from dalenius.exact import percent
from dalenius.tables.giveaways.cells import MUCH, CellTable, CodedColumn, follows
from dalenius.tables.giveaways.kinds import Halves, common_or_not, shares_cells
from dalenius.tables.giveaways.order import OrderTable
from dalenius.tables.giveaways.pairs import PairScreen
from dalenius.tables.giveaways.sums import find_formula, read_numbers
from dalenius.tables.giveaways.words import WordTable

How = Literal["agree", "nearly", "follows", "words", "order", "kinds", "sums"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Giveaway:
    """A published column, or two of them, whose cells tell sensitive values."""

    column: str
    share: float
    """Of the people who share their cell with others, those whose cell tells the value."""
    people: int
    """How many these are, among those looked at."""
    looked_at: int
    """How many people were looked at."""
    beside: str | None = None
    """The column that it tells the value together with; None: it does so by itself."""
    told: str | None = None
    """Which of several sensitive columns it tells; None: all of them."""
    how: How = "agree"
    """Cells have one value only; or one value nearly always; or they are numbers that follow the secret; or
    people who have a word in their cells have one value nearly always; or those between two people of one
    value do, in the order of the cells; or the value nearly always tells the cell; or numbers make one."""
    is_loose: bool = False
    """Few people are concerned, and few of those who have the value: told of, and no reason to refuse."""

    def sentence(self, sensitive: Sequence[str]) -> str:
        """In plain words.

        >>> Giveaway(column="icd", share=0.98, people=98, looked_at=100).sentence(("diagnosis",))
        "'icd' gives 'diagnosis' away: 98 % of the people who share a cell of it share the value too"
        >>> Giveaway(column="rx", share=0.1, people=6, looked_at=60, how="nearly").sentence(("hiv",))
        "'rx' gives 'hiv' away: 6 of 60 people looked at have a cell of it that nearly always tells the value"
        """
        what = " × ".join(map(repr, sensitive)) if self.told is None else repr(self.told)
        names, give, it = (
            (f"{self.column!r}", "gives", "it")
            if self.beside is None
            else (f"{self.column!r} and {self.beside!r} together", "give", "both")
        )
        found = {
            "agree": f"{percent(self.share)} of the people who share a cell of {it} share the value too",
            "nearly": f"{self.people:,} of {self.looked_at:,} people looked at have a cell of {it} that "
            "nearly always tells the value",
            "follows": "who has more of the one has more of the other, or less, nearly without exception",
            "words": f"{self.people:,} of {self.looked_at:,} people looked at have a word in {it}, or first "
            "or last letters, that nearly always tell the value",
            "order": f"in its order {self.people:,} of {self.looked_at:,} people looked at are between two "
            f"of one value, and {percent(self.share)} of them have it too (was the table sorted by it, or "
            "is the cell empty for all others?)",
            "kinds": f"{self.people:,} of {self.looked_at:,} people looked at have a cell of {it} that goes "
            "with few of the values, which nearly always go with it",
            "sums": "the value is nearly a sum, difference, product or ratio of them"
            if self.beside is not None
            else "it is nearly a sum, difference, product or ratio of secret numbers",
        }
        return f"{names} {give} {what} away: {found[self.how]}"

    def meaning(self) -> str:
        """What that is to who knows a person's cell."""
        if self.how == "kinds" or (self.how == "sums" and self.beside is None):
            return "whoever knows the cell of a person rules out most other values of the person's bucket"
        return "whoever knows such a cell of a person reads the value off it"


LOOKED_AT = 20_000
"""Of more records a random choice is looked at: what a column gives away shows in any part of a table."""


def find_giveaways(
    records: pa.Table, quasi: Sequence[str], sensitive: Sequence[str], alike: Sequence[str] = ()
) -> tuple[Giveaway, ...]:
    """The columns that give the sensitive ones away, or one of them.

    One in which all people of a bucket are alike tells nothing by itself that the bucket does not.

    >>> code = ["E11", "E11", "J10", "J10", "B20", "B20"] * 10
    >>> value = ["Diabetes", "Diabetes", "Flu", "Flu", "HIV", "HIV"] * 10
    >>> records = pa.table({"icd": code, "sex": ["F", "M"] * 30, "diagnosis": value})
    >>> [found.column for found in find_giveaways(records, ["icd", "sex"], ["diagnosis"])]
    ['icd']
    """
    if not len(records):
        return ()
    known = {name: CodedColumn.of(records[name]) for name in quasi}
    parts = [CodedColumn.of(records[name]) for name in sensitive]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.beside(part)
    secrets: dict[str | None, CodedColumn] = {None: whole}
    if len(parts) > 1:
        secrets |= dict(zip(sensitive, parts, strict=True))
    halves = {told: Halves.of(secret) for told, secret in secrets.items()}
    alone = [found for name, column in known.items() for found in _tells(name, column, halves)]
    told = {found.column for found in alone if not found.is_loose}
    told -= {found.column for found in alone if found.column in alike and found.how == "kinds"}
    others = {name: column for name, column in known.items() if name not in told}
    together = [*_tell_together(others, secrets)]
    pairs = {(found.column, found.beside) for found in together}
    made = _make_numbers(records, [*others], sensitive)
    all_found = (*alone, *together, *(found for found in made if (found.column, found.beside) not in pairs))
    return tuple(found for found in all_found if found.column not in alike or found.beside is not None)


def _tells(name: str, column: CodedColumn, halves: Mapping[str | None, Halves]) -> Iterator[Giveaway]:
    """What one column tells: all of a value, or else one column of it. What is loose hides nothing else."""
    loose: Giveaway | None = None
    ways = _OF_SHARED_CELLS if shares_cells(column) else _OF_OWN_CELLS
    for way, (told, half) in product(ways, halves.items()):
        for how, people, share, is_loose in way(column, half):
            found = Giveaway(
                column=name,
                share=share,
                people=people,
                looked_at=len(half.asked if how == "kinds" else column.codes),
                told=told,
                how=how,
                is_loose=is_loose,
            )
            if not is_loose:
                yield found
                return
            loose = loose or found
    if loose is not None:
        yield loose


_Found = tuple[How, int, float, bool]
"""How cells tell, how many people's values, which share that is, and whether these are few."""


def _by_cells(column: CodedColumn, half: Halves) -> Iterator[_Found]:
    groups = CellTable.of(column, half.secret)
    if groups.may_tell():
        if (agreeing := groups.agreeing()) is not None:
            yield "agree", *agreeing, False
        together = groups.telling_together()
        if (nearly := max(filter(None, (together, groups.telling())), default=None)) is not None:
            yield "nearly", *nearly, together is None and not groups.tell_most()
    if follows(column, half.secret):
        yield "follows", len(column.codes), 1.0, False


def _by_letters(column: CodedColumn, half: Halves) -> Iterator[_Found]:
    if column.texts is not None:
        words = WordTable.of(column, half.secret)
        if words.people:
            yield "words", words.people, words.people / len(column.codes), not words.tell_most()
    if column.last_digits is not None:
        for n_last in (10, 100):
            last = CodedColumn(codes=column.last_digits % n_last, n_values=n_last)
            groups = CellTable.of(last, half.secret)
            if (found := groups.telling()) is not None:
                yield "words", *found, not groups.tell_most()


def _by_order(column: CodedColumn, half: Halves) -> Iterator[_Found]:
    ordered = OrderTable.of(column, half.secret)
    if ordered is not None and (between := ordered.telling()) is not None:
        yield "order", *between, False


def _by_kinds(column: CodedColumn, half: Halves) -> Iterator[_Found]:
    for people, share, is_loose in half.telling(column):
        yield "kinds", people, share, is_loose


def _by_presence(column: CodedColumn, half: Halves) -> Iterator[_Found]:
    yield from _by_kinds(common_or_not(column), half)


_OF_SHARED_CELLS = (_by_cells, _by_letters, _by_kinds, _by_order)
_OF_OWN_CELLS = (_by_cells, _by_letters, _by_order, _by_presence)


def _make_numbers(records: pa.Table, quasi: list[str], sensitive: Sequence[str]) -> Iterator[Giveaway]:
    """Two published numbers that make a secret one, and published ones that two secret ones make."""
    known, secret = read_numbers(records, quasi), read_numbers(records, [*sensitive])
    n_rows, several = len(records), len(sensitive) > 1
    for name, numbers in secret.items():
        if (pair := find_formula(known, numbers)) is not None:
            one, beside = pair
            told = name if several else None
            yield Giveaway(
                column=one, beside=beside, share=1.0, people=n_rows, looked_at=n_rows, told=told, how="sums"
            )
    for name, numbers in known.items() if len(secret) > 1 else ():
        if find_formula(secret, numbers) is not None:
            yield Giveaway(column=name, share=1.0, people=n_rows, looked_at=n_rows, how="sums")


def _tell_together(
    columns: Mapping[str, CodedColumn], secrets: Mapping[str | None, CodedColumn]
) -> Iterator[Giveaway]:
    """Two columns that tell much of the table, where neither does so by itself."""
    names, coded = [*columns], [*columns.values()]
    candidates = {told: set(PairScreen.of(secret).passed(coded)) for told, secret in secrets.items()}
    for i, j in sorted(set().union(*candidates.values())):
        one, other, n_rows = coded[i], coded[j], len(coded[i].codes)
        # few enough to be counted without numbering those that occur
        n_both = one.n_values * other.n_values
        both = CodedColumn(codes=one.codes * other.n_values + other.codes, n_values=n_both)
        for told, secret in secrets.items():
            found = CellTable.of(both, secret).telling() if (i, j) in candidates[told] else None
            if found is not None and found[0] >= MUCH * n_rows:
                yield Giveaway(
                    column=names[i],
                    share=found[1],
                    people=found[0],
                    looked_at=n_rows,
                    beside=names[j],
                    told=told,
                    how="nearly",
                )
                break
