"""What `inspect` tells a publisher of a mechanism before there is a policy.

A mechanism's own is the function `find(facts)` of its room `feasible`, and so is that of a stage before it.
The room may also have a function `suggest(facts)`: the text of a policy's sections that `init` writes, and
`propose(facts, wish)`: the sections and the reasons for them where the mechanism suits what was answered to
the questions of `choose`; None where it does not. And `match(facts, promise)`:
how it would keep a promise about values, or the nearest that it has to it, as the sections of a policy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from dalenius.tables.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What a column looks like."""

    name: str
    type: str
    n_distinct: int = field(metadata={"json": "distinct"})
    """NULL counts as a value."""
    n_null: int = field(metadata={"json": "nulls"})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFacts:
    """What a table looks like. Private: it holds counts."""

    n_rows: int
    columns: tuple[ColumnFacts, ...]
    histogram: Histogram | None
    """Of the sensitive columns; None: there are none."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns of the histogram."""
        return () if self.histogram is None else self.histogram.columns

    @property
    def domain_size(self) -> int:
        """How many different rows the columns' values could form."""
        return math.prod(column.n_distinct for column in self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextTable:
    """A table on a terminal."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Which promises could be kept, and at which cost."""

    data: Mapping[str, Any]
    """As `inspect --json` prints it."""
    text: tuple[str | TextTable, ...] = ()
    """What a terminal shows."""


Recipients = Literal["colleagues", "researchers", "public"]
Questions = Literal["counts", "records"]
Hide = Literal["value", "presence"]
Again = Literal["no", "others", "same"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What a publisher answered to the five questions of `choose`."""

    recipients: Recipients
    """Who gets it: people under your own rules, under a contract, or anybody."""
    questions: Questions
    """What is asked: counts, sums and averages; or a table of single records, for other programs."""
    hide: Hide
    """What must not be known: somebody's sensitive value, or that a row is in the table at all."""
    withhold: bool
    """Whether records may be left out."""
    again: Again
    """Whether it is published again: never, about other people, or about the same ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A policy's promise and mechanism, and why."""

    sections: str
    reasons: tuple[str, ...]


def one_limit(promise: Mapping[str, Any]) -> Fraction:
    """How sure anybody may become of a secret, by a policy's section `[promise]`, as one number for all.

    It is the strictest that is named, so that a limit of one value is not lost to a promise without such.

    >>> one_limit({"kind": "l-diversity", "l": 4}), one_limit({"kind": "f-privacy", "default": "1/3"})
    (Fraction(1, 4), Fraction(1, 3))
    >>> one_limit({"kind": "f-privacy", "default": {"times": 4}, "values": {"HIV": "1/30", "Flu": 1}})
    Fraction(1, 30)
    """
    stated = [promise[name] for name in ("at_most", "rho2", "gamma") if name in promise]
    if promise.get("kind") == "l-diversity":
        stated = [Fraction(1, int(promise["l"]))]
    if not stated:
        default, named = promise.get("default", {}), promise.get("values", {})
        stated = [default.get("cap", "1/2") if isinstance(default, Mapping) else default]
        stated += named.values() if isinstance(named, Mapping) else [one["at_most"] for one in named]
    return min(Fraction(str(limit)) for limit in stated)
