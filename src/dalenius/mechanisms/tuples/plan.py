"""What the plans and manifests of αβ and FRAPP share: a table as tuples of a domain, and hopeless cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

from dalenius.mechanisms.base import Batches, Coding, PolicyOf, PublishedTable, Scan
from dalenius.mechanisms.sharding import Census, Shards
from dalenius.mechanisms.tuples.apply import Reads, TupleSet, word_names
from dalenius.mechanisms.tuples.config import TupleConfig
from dalenius.mechanisms.tuples.declared import PublicDomain, describe_domain, find_domain
from dalenius.mechanisms.tuples.domain import Domain

Parameters = dict[str, str | int | float]
_NEAR_IMPOSSIBLE = 10  # k above √m/10 is named in a warning
_USELESS_SHARE = 0.5
ROW = "one row is one person"
CHANGED = "another view of the same table after it changed, or of a table about the same people"
CORRELATED = (
    "an attacker who knows that tuples go together (of two brothers both or neither are in the table): no "
    "mechanism covers that and stays useful"
)
PARTS = "what a part of a tuple tells: a value, or a combination of some columns, may be known to occur"
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

    public: PublicDomain
    reads: Reads
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
        public = find_domain(policy, scan, reads)
        coding = TupleSet.of(public.domain).coding()
        n_rows = scan.n_rows()
        return cls(
            public=public,
            reads=reads,
            coding=coding,
            n_rows=n_rows,
            n_tuples=scan.n_different(coding) if reads == "distinct" else n_rows,
        )

    @property
    def domain(self) -> Domain:
        """Every tuple that a row could be."""
        return self.public.domain

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ViewPlan(Generic[Law]):
    """The parameters of a table's views, with the domain that they were computed for."""

    law: Law
    source: TupleSource

    @property
    def n_rows(self) -> int:
        """How many records the source has."""
        return self.source.n_rows

    @property
    def outright(self) -> int:
        """Nobody: every row of a view may be one that was made up."""
        return 0

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
            "active_domains": list(self.source.public.active),
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
        "active_domains": list(source.public.active),
    }


def news_of_domains(source: TupleSource) -> tuple[str, ...]:
    """What is not covered where a domain was read off the data."""
    return (_ACTIVE,) if source.public.active else ()


def disclose_domains(source: TupleSource) -> tuple[str, ...]:
    """The domains, and which of them tell what occurs."""
    active = ", ".join(source.public.active)
    told = [f"active domain: which values occur in the table at all, for {active}"] if active else []
    return ("the domain of every column", *told)
