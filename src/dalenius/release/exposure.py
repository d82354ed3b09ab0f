"""Who would be exposed by a release that keeps its promise: told before anything is published.

People whose value is certain in their bucket or part; values that are written in several ways, each of which
a mechanism takes for a value of its own; and columns that are published and tell the value. One word lets all
of it pass, so all of it is told at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dalenius.engines.base import OpenedTable
from dalenius.errors import PromiseNotMet
from dalenius.plain import plain_fields
from dalenius.policy import Policy
from dalenius.release.verify import tell_outright
from dalenius.tables.giveaways import LOOKED_AT, Giveaway, find_giveaways
from dalenius.tables.uniqueness import toml_key


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIdentifier:
    """A column of identifiers in which cells stand in several rows: perhaps people with several rows.

    >>> print(SharedIdentifier(column="name", several=1, rows=3).sentence())
    1 cell of 'name' stands in several rows, 3 in all: if that is a person with several rows, no promise \
holds for all of them together, since each is for one row. One row a person is to be published: `persons` \
under `source` makes that of several, and `unit = "name"` refuses people with more
    """

    column: str
    several: int
    """How many different cells."""
    rows: int

    def sentence(self) -> str:
        """What it may mean, and what would do."""
        one = self.several == 1
        cells = "1 cell" if one else f"{self.several:,} cells"
        who = "that is a person" if one else "these are people"
        return (
            f"{cells} of {self.column!r} {'stands' if one else 'stand'} in several rows, {self.rows:,} in all"
            f": if {who} with several rows, no promise holds for all of them together, since each is for one "
            "row. One row a person is to be published: `persons` under `source` makes that of several, and "
            f'`unit = "{self.column}"` refuses people with more'
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposures:
    """What was found in a table beside its plan. Private: it is made from records."""

    columns: tuple[str, ...] = ()
    """The sensitive ones."""
    spellings: int = 0
    """How many people have a sensitive value that is written in several ways."""
    giveaways: tuple[Giveaway, ...] = ()
    """Columns that would be published and tell the sensitive value."""
    shared: tuple[SharedIdentifier, ...] = ()
    """Identifiers of which some stand in several rows, where the policy names no `unit`."""

    def to_dict(self) -> dict[str, Any]:
        """As `plan --json` and `publish --json` print it."""
        return {
            "spellings": self.spellings,
            "giveaways": [plain_fields(one) for one in self.giveaways],
            "shared_identifiers": [plain_fields(one) for one in self.shared],
        }

    def notes(self) -> Iterator[str]:
        """What only the publisher can judge, and is told without asking."""
        for one in self.shared:
            yield one.sentence()

    def lines(self) -> Iterator[str]:
        """In words, one line each."""
        if self.spellings:
            yield tell_spellings(self.spellings, self.columns)
        for one in self.giveaways:
            yield one.sentence(self.columns)

    def reasons(self) -> Iterator[tuple[str, str]]:
        """What nobody should publish by accident, with what it means and what helps."""
        if self.spellings:
            key = toml_key(self.columns[0])
            yield (
                f"{tell_spellings(self.spellings, self.columns)}: each way would count as a value of its "
                "own, and people whose bucket holds nothing else would be published outright",
                f'write values alike: {key} = {{ map = "values.csv" }} under [recode], a file with columns '
                "from and to",
            )
        for one in self.giveaways:
            if one.is_loose:
                continue
            yield (
                f"{one.sentence(self.columns)}: whoever knows such a cell of a person reads the value off "
                "it, whatever is promised",
                f"move {one.column!r} into `dropped` or `sensitive`, or make it coarser under [recode]",
            )


def find_exposures(policy: Policy, table: OpenedTable) -> Exposures:
    """Look at the values and at what is published beside them."""
    quasi, sensitive = policy.columns.quasi, policy.columns.sensitive
    shared = tuple(_shared_identifiers(policy, table))
    if policy.promise.protects != "value" or not sensitive:
        return Exposures(shared=shared)
    giveaways: tuple[Giveaway, ...] = ()
    if policy.mechanism.publishes_quasi:
        giveaways = find_giveaways(table.sample((*quasi, *sensitive), LOOKED_AT), quasi, sensitive)
    spellings = table.histogram(sensitive).n_spelt_otherwise
    return Exposures(columns=sensitive, spellings=spellings, giveaways=giveaways, shared=shared)


def _shared_identifiers(policy: Policy, table: OpenedTable) -> Iterator[SharedIdentifier]:
    """Identifiers are dropped, but where they repeat, rows may not be people; a `unit` was checked."""
    if policy.columns.unit is not None:
        return
    for column in policy.columns.identifiers:
        several, rows = table.count_repeated(column)
        if several:
            yield SharedIdentifier(column=column, several=several, rows=rows)


def refuse_exposures(policy: Policy, outright: int, found: Exposures) -> None:
    """Nobody is exposed by accident: all of it is told at once, since one word lets all of it pass."""
    reasons = [] if policy.outright_allowed else [*_tell_outright(policy, outright)]
    reasons += found.reasons()
    if reasons:
        told, hints = zip(*reasons, strict=True)
        raise PromiseNotMet(
            f"nothing was published. With this policy {'; and '.join(told)}",
            hint=f"{'; '.join(hints)}; if all of this is what you want, `dalenius publish --yes`",
        )


def _tell_outright(policy: Policy, n_people: int) -> Iterator[tuple[str, str]]:
    sensitive = policy.columns.sensitive
    if n_people:
        one = len(sensitive) == 1
        helping = "give no value a threshold of 1" if one else "lower the limits, or keep one column"
        allowed = 'or outright = "allowed" at the top of the policy'
        yield tell_outright(n_people, sensitive), f"{helping} (`dalenius plan` shows the count), {allowed}"


def tell_spellings(n_people: int, columns: tuple[str, ...]) -> str:
    """In plain words.

    >>> tell_spellings(7, ("test",))
    "7 people have a value of 'test' that is written in several ways (in case, spaces, marks or a short form)"
    """
    people = "1 person has" if n_people == 1 else f"{n_people:,} people have"
    what = " × ".join(map(repr, columns))
    ways = "that is written in several ways (in case, spaces, marks or a short form)"
    return f"{people} a value of {what} {ways}"
