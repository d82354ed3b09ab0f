"""What every mechanism offers: a plan from counts, a draft of what to write, a check of what was written.

Exports have a view `weighted`: rows with weights, so that SUM(weight) under any condition is an estimate. A
mechanism's weighting is a few small tables beside the release's own, and the SQL of the view over both. The
SQL is the same for DuckDB and PostgreSQL. Whatever has a name of its own (γ, a bucket's size) is in a table
without published columns or called `weight`, which no published column can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.plain import Plain
from dalenius.randomness import KEY_BITS, Randomness
from dalenius.release.manifest import Manifest
from dalenius.sql import identifier

if TYPE_CHECKING:  # what is published is checked without what reads a policy
    import duckdb

    from dalenius.policy import Columns
    from dalenius.tables.domains import DeclaredDomain
    from dalenius.tables.histogram import Histogram
    from dalenius.tables.recode import Recode

Batches = Iterator[pa.RecordBatch]
Counting = Callable[[pa.RecordBatch], pa.RecordBatch]
"""How often each key occurs in a batch of records: 64-bit columns `key` and `n`, each key at most once."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coding:
    """Records as a few whole numbers each, the same ones for the same record: to sort them, and to count."""

    encode: Callable[[pa.RecordBatch], pa.RecordBatch]
    """The numbers of a batch of records, 64 bits each, from 0."""
    names: tuple[str, ...]
    """The columns of the numbers; the first decides the order, then the second, …"""
    bits: int
    """The first number is below 2 to this power."""


class Scan(Protocol):
    """A policy's table as a mechanism sees it while planning: counts, not records."""

    @property
    def schema(self) -> pa.Schema:
        """Types of the published columns, after recoding."""

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        """How often each combination of cells of these columns occurs."""

    def n_rows(self) -> int:
        """How many records there are."""

    def n_different(self, coding: Coding) -> int:
        """How many different records there are; different ones have different codes."""

    def most_copies(self) -> int:
        """How often the most frequent record occurs."""

    def active_values(self, column: str) -> pa.Array:
        """The different values of a column in ascending order, NULL last."""

    def find_values(self, column: str, values: pa.Array) -> tuple[int, int]:
        """How many records have one of the values in the column, and the number of the first, from 1."""

    def tally(self, counting: Counting) -> pa.Table:
        """The counts of all batches of records added up: columns `key` and `n`, each key once."""


class Plan(Protocol):
    """What would be published, decided from counts alone. It prints itself, and it is private."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""

    @property
    def outright(self) -> int | None:
        """How many people's sensitive value the release will tell for certain; None: not known yet."""

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTable:
    """One table of a release, and how its rows come about."""

    name: str
    columns: tuple[str, ...]
    """What is written, in order; the rows may also hold sort keys, which are not."""
    rows: Callable[[Callable[[], Batches]], Batches]
    """From a function that scans the source, the rows in batches. It may leave the source unread. Text
    columns of few values come as dictionary arrays, and may leave so."""
    order_by: tuple[str, ...] = ()
    """Row order is information: rows are sorted by these columns of whole numbers from 0, random keys or
    codes of what is published. Empty: the rows come in an order that the plan alone decides."""
    order_bits: int = KEY_BITS
    """The first of these numbers is below 2 to this power."""
    reads: Coding | None = None
    """What the rows are made from: the records in source order (None), or their codes in ascending order, all
    copies of a record in one batch."""
    finish: Callable[[Batches], Batches] | None = None
    """From the sorted rows, what is written; None: the rows as they are. A sort of codes that become cells
    only afterwards moves a few bytes a row."""
    shards: Callable[[Census], Shards] | None = None
    """How the table comes about on many machines; None: it is made on one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a manifest says about the promise."""

    promise: dict[str, Any]
    assumes: tuple[str, ...]
    not_covered: tuple[str, ...]
    disclosed: tuple[str, ...]
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan with its coins tossed: everything that is needed to write the release."""

    method: str
    tables: tuple[PublishedTable, ...]
    statement: Statement
    n_published: int | None
    """None: as many rows as the first table turns out to have."""
    n_suppressed: int | None = 0
    """None: not known, or not to be told."""
    outright: int = 0
    """How many people's sensitive value the release tells for certain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPlace:
    """Which release of a series is being made, and what was published before it."""

    id: str
    """Of the series; random."""
    index: int
    """From 1."""
    of: int | None
    """How many releases the series may have; None: any number."""
    earlier: tuple[tuple[Path, ...], ...] = ()
    """The Parquet files of each earlier release's table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Plain):
    """One thing that `verify` looked at."""

    name: str
    ok: bool
    detail: str

    @classmethod
    def of(cls, name: str, problem: str | None, fine: str) -> Check:
        """What was found wrong, or else what was found."""
        return cls(name=name, ok=not problem, detail=problem or fine)


Config_co = TypeVar("Config_co", covariant=True)
Promise_co = TypeVar("Promise_co", covariant=True)


class PolicyOf(Protocol[Config_co, Promise_co]):
    """A policy as its own mechanism sees it: of its kind, and with a promise that it keeps."""

    @property
    def mechanism(self) -> Config_co:
        """The mechanism's section."""

    @property
    def promise(self) -> Promise_co:
        """What is to be kept."""

    @property
    def columns(self) -> Columns:
        """Which column is what."""

    @property
    def recode(self) -> tuple[tuple[str, Recode], ...]:
        """What is done to the columns before everything else."""

    @property
    def domains(self) -> tuple[tuple[str, DeclaredDomain], ...]:
        """Which values a column may take, where that is declared."""

    @property
    def folder(self) -> Path:
        """What the policy's paths are relative to."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptPeople:
    """The people of a table that is published again, and where they were published before."""

    bucket: Ints
    """Of every record, in the table's order: its bucket so far, NEW or WITHHELD."""
    cells: pa.Table
    """The sensitive cells of those who are new, in the table's order."""
    known: pa.Table
    """What was published of buckets so far: `bucket`, the sensitive columns, `count`."""
    n_changed: int
    """How many people have another sensitive value than the one they came with."""


NEW, WITHHELD = 0, -1
"""A record of somebody who was not published before; and of one who is not to be published."""


class Mechanism(Protocol):
    """One way of keeping a promise. It is given policies of its own kind (`PolicyOf`)."""

    @property
    def kind(self) -> str:
        """Its name in policies and manifests."""

    def plan(self, policy: Any, scan: Scan) -> Plan:
        """Decide everything that the counts decide; raise PromiseNotMet if no release can exist."""

    def draft(self, policy: Any, plan: Any, randomness: Randomness) -> Draft:
        """Toss the coins that need no records, and say how the tables come about."""

    def repeat(self, policy: Any, plan: Any, times: int) -> Repeated:
        """What that many independent releases by this plan would tell together."""

    def check(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterable[Check]:
        """Check the promise on published tables alone; they are views of the connection."""

    def count_outright(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:
        """How many people's sensitive value the published tables tell for certain."""


class SerialMechanism(Mechanism, Protocol):
    """A mechanism that can publish several releases of one table, each drawn in view of the ones before."""

    def draft_at(self, policy: Any, plan: Any, randomness: Randomness, place: SeriesPlace) -> Draft:
        """The draft of the release at that place of its series."""

    def planned_series(self, first: Manifest, index: int) -> PlannedSeries:
        """What the first release of a series tells about all of them, before release number `index`."""


class DatedMechanism(Mechanism, Protocol):
    """A mechanism that can publish a table again as people come and leave."""

    def plan_date(self, policy: Any, schema: pa.Schema, kept: KeptPeople) -> Plan:
        """The plan of the next date."""

    def draft_date(self, policy: Any, plan: Any, randomness: Randomness) -> tuple[Draft, Ints]:
        """The draft of the next date, and where every record of the table is then."""

    def check_dates(self, parts: Any) -> Iterable[Check]:
        """Whether the releases of all dates belong together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(Plain):
    """The worst that an attacker who joins the releases can come to believe, beside what one promises."""

    times: int
    """How many independent releases are joined."""
    posterior: float
    """The largest posterior, for the worst person, value or tuple."""
    promised: float
    """What one release promises for it."""
    about: str
    """What the posterior is of."""
    how: Literal["exact", "simulated"]
    success: float | None = None
    """How often the best guess of a person's value is right from all of them; None: nobody is guessed."""
    success_of_one: float | None = None
    """The same from one release."""

    def sentence(self) -> str:
        """For an error or a warning."""
        found = (
            f"{self.times} independent releases like this one, joined, give {self.about} a posterior of "
            f"{self.posterior:.4g} where {self.promised:.4g} is promised ({self.how})"
        )
        if self.success is None or self.success_of_one is None:
            return found
        return (
            f"{found}, and the best guess of a person's value is right {self.success:.1%} of the time "
            f"instead of {self.success_of_one:.1%}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """What a series of views was planned for, and what it would tell to go beyond that."""

    views: int
    """How many views there may be."""
    promised: float
    """What no posterior of a tuple exceeds after all of them."""
    if_one_more: float
    """The posterior of a tuple that appears in a view more than there may be."""
    if_changed: float
    """The largest posterior of a tuple that is new in the table, after all views that are to come."""
    may_change: bool = False
    """Whether the views are of the table as it is at the time of each."""


def repeat_evidence(prior: Fraction, ratio: Fraction, times: int) -> Fraction:
    """The posterior after independent evidence of that likelihood ratio, that many times.

    >>> repeat_evidence(Fraction(1, 10), Fraction(3), 2)
    Fraction(1, 2)
    """
    odds = prior / (1 - prior) * ratio**times
    return odds / (1 + odds)


VIEW = "weighted"
AS_IT_IS = "as it is in the table"
Place = Callable[[str], str]
"""From a table's name to how the view refers to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighting:
    """How the rows of a release become rows with weights, and what is in all its tables."""

    helpers: tuple[tuple[str, str], ...]
    """Name and meaning of the tables that were added to the release's own."""
    columns: tuple[tuple[str, str, str], ...]
    """Table, name and meaning of the columns of all tables, except for the published ones."""
    published: tuple[tuple[str, str, str], ...]
    """Table, role and meaning of the published columns; without an entry they hold what may be in them."""
    view: str
    """The view's SELECT."""
    weight: str
    """What a weight is."""
    note: str
    """What SUM(weight) estimates, and how well."""


def stage(connection: duckdb.DuckDBPyConnection, name: str, table: pa.Table) -> None:
    """Keep an Arrow table under a name."""
    connection.register("staged_rows", table)
    connection.execute(f"CREATE TABLE {identifier(name)} AS FROM staged_rows")
    connection.unregister("staged_rows")


def listed_columns(columns: tuple[str, ...], tables: dict[str, tuple[str, ...]]) -> str:
    """The view's columns, each with the alias of the table that it comes from."""
    alias = {name: table for table, names in tables.items() for name in names}
    return ", ".join(f"{alias[name]}.{identifier(name)}" for name in columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completion:
    """What `complete(release)` of a mechanism's room `export` gives: whole tables, drawn at random."""

    draw: Callable[[np.random.Generator], pa.Table]
    """A table with the published columns, a row per person."""
    assumes: str
    """What the draws take for granted, as a sentence."""
    too_many_values: bool = False
    """Whether there are too many sensitive values for what goes with them to be learned, and drawn."""
    draws_rows: bool = False
    """Whether every cell is drawn, and not the sensitive ones alone; and where it is not known, how many rows
    there are."""
