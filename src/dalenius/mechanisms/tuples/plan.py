"""What the plans and manifests of αβ and FRAPP share: a table as tuples of a domain, and hopeless cases.

Which tuples a row could be follows from the policy's `[domains]`, its recodings, or the data itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from dalenius.display import PrivatePlan
from dalenius.errors import InputError, PolicyError, ReleaseCorrupt, SourceError
from dalenius.mechanisms.base import Batches, Coding, PolicyOf, PublishedTable, Scan
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.mechanisms.tuples.apply import Reads, TupleSet, word_names
from dalenius.mechanisms.tuples.config import COPY, TupleConfig
from dalenius.mechanisms.tuples.domain import Domain, DomainColumn
from dalenius.plain import Stated
from dalenius.release.manifest import Manifest
from dalenius.tables.codes import ascending
from dalenius.tables.domains import whole_range

_FARTHEST = 2**64 - 1
_MOST_VALUES = 50_000_000
"""Of a column's range; a domain's values are held in memory."""


def find_domain(
    policy: PolicyOf[TupleConfig, object], scan: Scan, reads: Reads
) -> tuple[Domain, tuple[str, ...]]:
    """The domain of the published columns (and of the copy number), every record inside it.

    And which of its columns were read off the data and so tell about it.
    """
    names = (*policy.columns.published, *((COPY,) if reads == "copies" else ()))
    declared = _read_declared(policy, scan)
    missing = [name for name in names if name not in declared]
    active = policy.mechanism.active_domains
    allowed = missing if active is None else active
    _refuse_missing([name for name in missing if name not in allowed])
    columns = []
    for name in names:
        if name in declared:
            values = declared[name]
            _refuse_outside(name, values, scan)
        else:
            values = _count_copies(scan) if name == COPY else scan.active_values(name)
        _refuse_type(name, values.type)
        # ascending, NULL last: rows in the order of their codes are then in the order of their cells
        columns.append(DomainColumn(name=name, values=ascending(values)))
    read_off = tuple(name for name in names if name not in declared)
    return Domain(columns=tuple(columns)), read_off


def _read_declared(policy: PolicyOf[TupleConfig, object], scan: Scan) -> dict[str, pa.Array]:
    """What `[domains]` says; else what a recoding can give."""
    found: dict[str, pa.Array] = {}
    for name, recode in policy.recode:
        values = recode.values()
        if values is not None:
            found[name] = pa.array(values, pa.string())
    for name, domain in policy.domains:
        kind = pa.int64() if name == COPY else scan.schema.field(name).type
        found[name] = domain.to_arrow(kind)
    return found


def _count_copies(scan: Scan) -> pa.Array:
    return pa.array(range(1, scan.most_copies() + 1), pa.int64())


def _refuse_missing(missing: list[str]) -> None:
    if missing:
        raise PolicyError(
            f"no domain is declared for {', '.join(map(repr, missing))}: noise must be able to look like any "
            "row that could be real",
            hint='declare each under [domains] ("17..90", a list, a file), or set domains = "active" under '
            "[mechanism], which tells everybody which values occur",
        )


def _refuse_type(name: str, kind: pa.DataType) -> None:
    """A domain is published as texts, which must give the same values back."""
    try:
        pa.array(["1"], pa.string()).slice(1).cast(_type_of(str(kind)))
        if pa.types.is_binary(kind):
            raise ValueError("not every sequence of bytes is a text")
    except (ValueError, pa.ArrowNotImplementedError) as error:
        raise PolicyError(
            f"column {name!r} is of type {kind}, which a published domain cannot describe",
            hint="recode it to a text, a number or a date",
        ) from error


def _refuse_outside(name: str, values: pa.Array, scan: Scan) -> None:
    """Every cell must be in its declared domain; the message never names the cell."""
    if name == COPY:
        if (most := scan.most_copies()) > len(values):
            raise SourceError(f"a row occurs {most} times; [domains] {COPY} allows {len(values)} copies")
        return
    active = scan.active_values(name)
    outside = active.filter(pc.invert(pc.is_in(active.cast(values.type), value_set=values)))
    if len(outside):
        n_rows, first = scan.find_values(name, outside)
        raise SourceError(
            f"column {name!r}: {n_rows} rows hold a value outside its declared domain, first in row {first}",
            hint="widen the domain under [domains], or recode the column (NULL must be listed too)",
        )


def describe_domain(domain: Domain) -> list[dict[str, Any]]:
    """The domain for a manifest: whole ranges by their ends, other values as texts."""
    return [_describe(column) for column in domain.columns]


def _describe(column: DomainColumn) -> dict[str, Any]:
    ends = whole_range(column.values)
    entry: dict[str, Any] = {"name": column.name, "type": str(column.values.type)}
    if ends is not None:
        return {**entry, "first": ends[0], "last": ends[1]}
    return {**entry, "values": column.values.cast(pa.string()).to_pylist()}


def read_domain(listed: Stated, manifest: Manifest) -> Domain:
    """The domain that a manifest describes: of its columns, and of the copy number where rows may repeat."""
    columns = listed.entries()
    names = [entry["name"].text() for entry in columns]
    published = [column.name for column in manifest.columns]
    if sorted(names) not in (sorted(published), sorted([*published, COPY])):
        raise ReleaseCorrupt("the manifest's domains are not those of its columns")
    try:
        return Domain(columns=tuple(_read(entry) for entry in columns))
    except InputError as error:
        raise ReleaseCorrupt(f"the manifest states a domain that cannot be: {error}") from error


def _read(entry: Stated) -> DomainColumn:
    try:
        kind = _type_of(entry["type"].text())
        if "first" in entry.section():
            first = entry["first"].integer(at_least=-_FARTHEST)
            last = entry["last"].integer(at_least=first, at_most=min(_FARTHEST, first + _MOST_VALUES))
            values = pa.array(range(first, last + 1), kind)
        else:
            values = pa.array(entry["values"].cells(), pa.string()).cast(kind)
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise ReleaseCorrupt(f"the manifest's {entry.place} cannot be read as values of its type") from error
    return DomainColumn(name=entry["name"].text(), values=values)


def _type_of(text: str) -> pa.DataType:
    found = re.fullmatch(r"decimal128\(([0-9]{1,2}), ?(-?[0-9]{1,2})\)", text)
    return pa.decimal128(int(found[1]), int(found[2])) if found else pa.type_for_alias(text)


Parameters = dict[str, str | int | float]
_NEAR_IMPOSSIBLE = 10  # k above √m/10 is named in a warning
_USELESS_SHARE = 0.5
ROW = "one row is one person"
CHANGED = "another view of the same table after it changed, or of a table about the same people"
OUTSIDE = "any view of these tables, or of tables about the same people, that is not of this series"
CORRELATED = (
    "an attacker who knows that tuples go together (of two brothers both or neither are in the table)"
)
PARTS = "what a part of a tuple tells: a value, or a combination of some columns, may be known to occur"
LIKELY = (
    "tuples that the attacker thinks likelier than that: who knows how often each column has each of its "
    "values, which a view tells too, thinks tuples of common values far likelier, and can tell most of those "
    "that a view shows from noise"
)
_ACTIVE = (
    "an attacker to whom it is news that a value of an active domain occurs: if only one tuple with it was "
    "thought possible, that tuple is certain; epsilon, too, is for tuples that leave the domain as it is"
)
_UNITS = {"records": "record", "distinct": "tuple", "copies": "copy"}


class LawPlan(Protocol):
    """The probabilities by which tuples are published, and what they cost for so many tuples."""

    @property
    def method(self) -> str:
        """Its name in policies and manifests."""

    @property
    def n_rows(self) -> int:
        """How many tuples or records the view is made from."""

    def warnings(self) -> tuple[str, ...]:
        """What the publisher should know before publishing; it names private numbers."""

    def to_dict(self) -> dict[str, object]:
        """The numbers of the plan for the publisher, private ones included."""


Law = TypeVar("Law", bound=LawPlan)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleSource:
    """A table as what a view is made from."""

    reads: Reads
    domain: Domain
    """Every tuple that a row could be."""
    active: tuple[str, ...]
    """Which columns of the domain were read off the data and so tell about it."""
    coding: Coding
    """Of records, where a view is made from different ones or from numbered copies."""
    n_rows: int
    """How many records the table has."""
    n_tuples: int
    """How many of them count: the different ones, or all."""

    @classmethod
    def of(cls, policy: PolicyOf[TupleConfig, object], scan: Scan, default: Reads) -> TupleSource:
        """Find the domain, every record inside it, and count; by default a view is made from these."""
        reads = policy.mechanism.duplicates or default
        domain, active = find_domain(policy, scan, reads)
        coding = TupleSet.of(domain).coding()
        n_rows = scan.n_rows()
        return cls(
            domain=domain,
            active=active,
            reads=reads,
            coding=coding,
            n_rows=n_rows,
            n_tuples=scan.n_different(coding) if reads == "distinct" else n_rows,
        )

    def publish_view(
        self,
        rows: Callable[[Callable[[], Batches]], Batches],
        finish: Callable[[Batches], Batches],
        shards: Callable[[Census], Shards] | None,
    ) -> PublishedTable:
        """The view as a table of packed words, which are decoded when they are in order."""
        return PublishedTable(
            name="view",
            columns=self.domain.names,
            rows=rows,
            order_by=word_names(self.domain),
            order_bits=self.domain.first_word_bits,
            reads=None if self.reads == "records" else self.coding,
            finish=finish,
            shards=shards,
        )


class NobodyOutright:
    """What mechanisms that publish tuples say of people who are published as they are."""

    __slots__ = ()

    def count_outright(self, connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> int:  # noqa: ARG002
        """Nobody: every row may be one that was made up."""
        return 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class ViewPlan(PrivatePlan, Generic[Law]):
    """The parameters of a table's views, with the domain that they were computed for."""

    law: Law
    source: TupleSource
    outright = 0
    """Nobody: every row of a view may be one that was made up."""

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.source.n_rows

    def warnings(self) -> tuple[str, ...]:
        """What the publisher should know before publishing."""
        repeated = self.n_rows - self.law.n_rows
        merged = f"{repeated:,} of {self.n_rows:,} rows repeat another; answers will count different rows"
        return (*([merged] if repeated else []), *self.law.warnings())

    def to_dict(self) -> dict[str, Any]:
        """The plan as `dalenius plan --json` prints it."""
        return {
            "mechanism": "alpha-beta",
            "method": self.law.method,
            "feasible": True,
            "rows": self.n_rows,
            **self.law.to_dict(),
            "warnings": list(self.warnings()),
            "private": True,
            "tuples": self.law.n_rows,
            "active_domains": list(self.source.active),
        }

    def __str__(self) -> str:
        texts = dict.fromkeys((*self.law.warnings(), *self.warnings()))  # those of the law come first
        return "\n".join([str(self.law), *(f"warning         {text}" for text in texts)])


def show_error(rho: float, n_rows: int, miss: float) -> str:
    """The line of a printed plan on how far off a count may be."""
    bound = rho * math.sqrt(n_rows)
    return (
        f"error           one count is within ±{bound:,.0f} with probability {1 - miss:g} (rho = {rho:.3g})"
    )


def warn_of_impossibility(
    d: Fraction, domain_size: int, n_rows: int, rho: float, miss: float
) -> tuple[str, ...]:
    """Theorem 3.3: nothing useful and private for k of the order of √m, up to an unknown constant."""
    k = d * domain_size / n_rows
    bound = rho * math.sqrt(n_rows)
    share = bound / n_rows
    near = k**2 * _NEAR_IMPOSSIBLE**2 >= domain_size
    if not near and share < _USELESS_SHARE:
        return ()
    reason = f"k = {float(k):.3g} is near √m = {math.sqrt(domain_size):.3g}; " if near else ""
    return (
        f"{reason}a count is only known to ±{bound:,.0f}, {share:.0%} of the table's {n_rows:,} rows, with "
        f"probability {1 - miss:g}; a lower k or larger domains would help",
    )


def unit_of(source: TupleSource) -> str:
    """What answers count."""
    return _UNITS[source.reads]


def describe_source(source: TupleSource) -> dict[str, Any]:
    """The parameters that tell what a view was made from."""
    return {
        "unit": unit_of(source),
        "domains": describe_domain(source.domain),
        "active_domains": list(source.active),
    }


def news_of_domains(source: TupleSource) -> tuple[str, ...]:
    """What is not covered where a domain was read off the data."""
    return (_ACTIVE,) if source.active else ()


def disclose_domains(source: TupleSource) -> tuple[str, ...]:
    """The domains, and which of them tell what occurs."""
    active = ", ".join(source.active)
    told = [f"active domain: which values occur in the table at all, for {active}"] if active else []
    return ("the domain of every column", *told)
