"""Who would be exposed by a release that keeps its promise: told before anything is published.

People whose value is certain in their bucket or part; values that are written in several ways, each of which
a mechanism takes for a value of its own; and columns that are published and tell the value. One word lets all
of it pass, so all of it is told at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from dalenius.engines.base import OpenedTable
from dalenius.errors import PromiseNotMet
from dalenius.exact import percent
from dalenius.plain import plain_fields
from dalenius.policy import Policy
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.promises.f_privacy import FPrivacy
from dalenius.promises.sets import SetPrivacy
from dalenius.release.belonging import Belonging, find_belonging
from dalenius.release.verify import tell_outright
from dalenius.tables.codes import encode
from dalenius.tables.giveaways import LOOKED_AT, Giveaway, find_giveaways
from dalenius.tables.histogram import say_alike
from dalenius.tables.uniqueness import toml_key

_IN_PAIRS = 4
"""Of the identifiers that repeat, so many with the most different cells are looked at two by two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIdentifier:
    """A column of identifiers in which cells stand in several rows: perhaps people with several rows.

    >>> print(SharedIdentifier(column="name", several=1, rows=3).sentence(("disease",)))
    1 cell of 'name' stands in several rows, 3 in all: if that is a person with several rows, no promise \
holds for all of them together, since each is for one row. One row a person is to be published: `persons` \
under `source` makes that of several, and `unit = "name"` refuses people with more
    """

    column: str
    several: int
    """How many different cells."""
    rows: int
    beside: str | None = None
    """A second column of identifiers: the cells are those of both together, as of first and last names."""
    is_person: bool = False
    """The rows of a cell are alike in most of what is published too."""
    sharing: float | None = None
    """Of the people who share a cell, those who all have one sensitive value; None: as chance has it."""

    def sentence(self, sensitive: tuple[str, ...]) -> str:
        """What it may mean, and what would do."""
        one = self.several == 1
        if self.sharing is not None and not self.is_person:
            return (
                f"{percent(self.sharing)} of the people who share a cell of {self._say_columns()} share "
                f"{' × '.join(map(repr, sensitive))} too: who knows that they belong together, as households "
                "do, looks for the value that all of their buckets hold, and no promise is about that. One "
                "row for all of them is to be published then, e.g. by `persons` under `source`"
            )
        who = "that is a person" if one else "these are people"
        return (
            f"{self._say_rows()}: if {who} with several rows, no promise holds for all of them together, "
            f"since each is for one row. {self.remedy()}"
        )

    def reason(self) -> str:
        """That rows are not people, where there is no doubt of it."""
        return (
            f"{self._say_rows()}, which are alike in most of the published columns, as the rows of one "
            "person are: no promise holds for several rows of a person together, since each is for one row"
        )

    def remedy(self) -> str:
        """What would do."""
        unit = "a column that numbers people, as `unit`," if self.beside else f'`unit = "{self.column}"`'
        return (
            "One row a person is to be published: `persons` under `source` makes that of several, and "
            f"{unit} refuses people with more"
        )

    def _say_rows(self) -> str:
        one = self.several == 1
        cells = "1 cell" if one else f"{self.several:,} cells"
        stand = "stands" if one else "stand"
        return f"{cells} of {self._say_columns()} {stand} in several rows, {self.rows:,} in all"

    def _say_columns(self) -> str:
        return f"{self.column!r} and {self.beside!r} together" if self.beside else repr(self.column)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposures:
    """What was found in a table beside its plan. Private: it is made from records."""

    columns: tuple[str, ...] = ()
    """The sensitive ones."""
    spellings: int = 0
    """How many people have a sensitive value that is written in several ways."""
    spelt_columns: tuple[str, ...] = ()
    """Of sets, the columns of values that are one value, written in several ways."""
    giveaways: tuple[Giveaway, ...] = ()
    """Columns that would be published and tell the sensitive value."""
    shared: tuple[SharedIdentifier, ...] = ()
    """Identifiers of which some stand in several rows; beside a `unit`, only those of evident persons, or of
    people who share the sensitive value."""
    spelt_units: int = 0
    """How many people's `unit` is written in several ways, and so in several rows."""
    likely: float | None = None
    """Of a promise about rows: the share of rows that are likelier than it assumes to who knows how often
    each column has each value; None: it is about values, or declares a distribution."""
    renumbered: int = 0
    """Of a series of dates, how many would be new who probably were there under another `unit`."""

    def to_dict(self) -> dict[str, Any]:
        """As `plan --json` and `publish --json` print it."""
        return {
            "spellings": self.spellings,
            "spelt_columns": [*self.spelt_columns],
            "giveaways": [plain_fields(one) for one in self.giveaways],
            "shared_identifiers": [plain_fields(one) for one in self.shared],
            "spelt_units": self.spelt_units,
            "likely_rows": self.likely,
            "renumbered": self.renumbered,
        }

    def notes(self) -> Iterator[str]:
        """What only the publisher can judge, and is told without asking."""
        for found in self.giveaways:
            if found.is_loose:
                yield found.sentence(self.columns)
        for one in self.shared:
            if not one.is_person:
                yield one.sentence(self.columns)
        if self.likely:
            yield (
                f"{percent(self.likely)} of the rows are likelier than the promise assumes to whoever knows "
                "how often each column has each value, which the view tells too: nothing is promised about "
                "these rows, and those that the view shows may be told from noise"
            )

    def lines(self) -> Iterator[str]:
        """In words, one line each: what is refused without a word."""
        if self.spellings:
            yield tell_spellings(self.spellings, self.columns)
        if self.spelt_columns:
            yield tell_spelt_columns(self.spelt_columns)
        for one in self.giveaways:
            if not one.is_loose:
                yield one.sentence(self.columns)
        if self.spelt_units:
            yield tell_units(self.spelt_units)
        if self.renumbered:
            yield tell_renumbered(self.renumbered)
        for person in self.shared:
            if person.is_person:
                yield person.reason()

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
        if self.spelt_columns:
            yield (
                f"{tell_spelt_columns(self.spelt_columns)}: each way would have a limit of its own, and a "
                "bucket may hold all of them",
                "write values alike in the source, or make one column of these",
            )
        for one in self.giveaways:
            if one.is_loose:
                continue
            yield (
                f"{one.sentence(self.columns)}: {one.meaning()}, whatever is promised",
                f"move {one.column!r} into `dropped` or `sensitive`, or make it coarser under [recode]",
            )
        if self.spelt_units:
            yield (
                f"{tell_units(self.spelt_units)}: each way would count as a person of its own, and no "
                "promise holds for several rows of one person together",
                "write every unit in one way in the source, and keep one row a person",
            )
        if self.renumbered:
            yield (
                f"{tell_renumbered(self.renumbered)}: a person with two buckets has a value that both hold",
                "give everybody the unit of the earlier dates, or leave these people out for good",
            )
        for person in self.shared:
            if person.is_person:
                yield person.reason(), person.remedy()


def find_exposures(policy: Policy, table: OpenedTable) -> Exposures:
    """Look at the values and at what is published beside them."""
    quasi, sensitive, unit = policy.columns.quasi, policy.columns.sensitive, policy.columns.unit
    found = Exposures(
        columns=sensitive,
        shared=tuple(_shared_identifiers(policy, table)),
        # a unit that stands in several rows as it is written was refused
        spelt_units=0 if unit is None else table.count_repeated(unit)[0],
    )
    if isinstance(policy.promise, DGammaPrivacy) and getattr(policy.mechanism, "noise", None) is None:
        return replace(found, likely=_likelier(table.sample((*quasi, *sensitive), LOOKED_AT), policy.promise))
    if policy.promise.protects != "value" or not sensitive:
        return found
    giveaways: tuple[Giveaway, ...] = ()
    if policy.mechanism.publishes_quasi:
        alike = getattr(policy.promise, "alike", ())
        giveaways = find_giveaways(table.sample((*quasi, *sensitive), LOOKED_AT), quasi, sensitive, alike)
    return replace(
        found,
        spellings=table.histogram(sensitive).n_spelt_otherwise,
        spelt_columns=_spelt_alike(sensitive) if policy.promise.kind == SetPrivacy.kind else (),
        giveaways=giveaways,
    )


def _likelier(records: pa.Table, promise: DGammaPrivacy) -> float:
    """The share of rows whose prior is above d, or k·n/m, if columns have their shares and are independent.

    A column's domain has the values that occur, or more, which makes rows likelier still.
    """
    prior = np.zeros(len(records))
    for cells in records.columns:
        codes, values = encode(cells)
        share = np.bincount(codes) / max(len(records), 1)
        prior += np.log(share[codes] * (1 if promise.k is None else len(values)))
    most = float(promise.k) if promise.k is not None else float(promise.d or 1) / max(len(records), 1)
    return float(np.mean(prior > np.log(most))) if len(prior) else 0.0


def _spelt_alike(names: tuple[str, ...]) -> tuple[str, ...]:
    """The values of sets are names of columns."""
    said = [say_alike(name) for name in names]
    return tuple(name for name, one in zip(names, said, strict=True) if said.count(one) > 1)


def _shared_identifiers(policy: Policy, table: OpenedTable) -> Iterator[SharedIdentifier]:
    """Identifiers are dropped, but where they repeat, rows may not be people.

    A `unit` says whose rows are whose, unless it is the number of a case: rows of one person are alike.
    """
    repeated: list[tuple[SharedIdentifier, Belonging]] = []
    for column in policy.columns.identifiers:
        several, rows = table.count_repeated(column)
        if several:
            found = _belonging(policy, table, (column,))
            one = SharedIdentifier(
                column=column,
                several=several,
                rows=rows,
                is_person=found.is_person,
                sharing=found.sharing,
            )
            repeated.append((one, found))
            if policy.columns.unit is None or _is_telling(one):
                yield one
    yield from _shared_pairs(policy, table, [one for one in repeated if not _is_telling(one[0])])


def _shared_pairs(
    policy: Policy, table: OpenedTable, repeated: Sequence[tuple[SharedIdentifier, Belonging]]
) -> Iterator[SharedIdentifier]:
    """Two columns that tell who somebody is together, as first and last names do, and neither by itself."""
    least = min(nlargest(_IN_PAIRS, (one.several for one, _ in repeated)), default=0)
    finest = [one for one in repeated if one[0].several >= least][:_IN_PAIRS]
    for (one, alone), (other, too) in combinations(finest, 2):
        columns = (one.column, other.column)
        several, rows = table.count_repeated(*columns)
        found = _belonging(policy, table, columns, (alone, too)) if several else None
        if found is not None and (found.is_person or found.sharing is not None):
            yield SharedIdentifier(
                column=one.column,
                beside=other.column,
                several=several,
                rows=rows,
                is_person=found.is_person,
                sharing=found.sharing,
            )


def _belonging(
    policy: Policy, table: OpenedTable, columns: Sequence[str], apart: Sequence[Belonging] = ()
) -> Belonging:
    quasi, sensitive = policy.columns.quasi, policy.columns.sensitive
    records = table.sample_cells(columns, (*quasi, *sensitive), LOOKED_AT)
    return find_belonging(records, columns, quasi, sensitive, apart)


def _is_telling(one: SharedIdentifier) -> bool:
    return one.is_person or one.sharing is not None


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
        helping = "lower the limits, or keep one column"
        if len(sensitive) == 1:
            helping = "give no value a threshold of 1"
        elif policy.promise.kind == FPrivacy.kind:
            helping = "lower the limits, give cells of one column a limit by `groups`, or keep one column"
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


def tell_spelt_columns(names: tuple[str, ...]) -> str:
    """In plain words.

    >>> tell_spelt_columns(("HIV", "H.I.V."))
    "the sensitive columns 'HIV', 'H.I.V.' are of values that are written in several ways"
    """
    return (
        f"the sensitive columns {', '.join(map(repr, names))} are of values that are written in several ways"
    )


def tell_units(n_people: int) -> str:
    """In plain words.

    >>> tell_units(1)
    "1 person's unit is written in several ways (in case, spaces, zeros before it or a decimal point)"
    """
    who = "1 person's unit is" if n_people == 1 else f"the units of {n_people:,} people are"
    return f"{who} written in several ways (in case, spaces, zeros before it or a decimal point)"


def tell_renumbered(n_people: int) -> str:
    """In plain words.

    >>> tell_renumbered(40)
    '40 people would be new who have all identifiers (without any: columns) of people who have left'
    """
    who = "1 person" if n_people == 1 else f"{n_people:,} people"
    return f"{who} would be new who have all identifiers (without any: columns) of people who have left"
