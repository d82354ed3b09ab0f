"""A first look at a table: its columns, the sensitive histogram, which promises are feasible."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from dalenius.errors import InputError, did_you_mean
from dalenius.mechanisms.alphabeta.feasible import Feasible, feasible_region
from dalenius.mechanisms.suppress.config import SuppressConfig
from dalenius.mechanisms.suppress.plan import costs
from dalenius.plain import plain
from dalenius.sql import connect, identifier, one_row
from dalenius.tables.histogram import Histogram, count_values, label
from dalenius.tables.source import Source

_SENSITIVE_WORDS = (
    "disease",
    "diagnos",
    "condition",
    "illness",
    "salary",
    "income",
    "occupation",
    "religion",
)
_MOST_VALUES = 1_000
DIVERSITIES = range(2, 11)
"""The l for which an inspection says whether suppression is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnFacts:
    """What a column looks like."""

    name: str
    type: str
    n_distinct: int = field(metadata={"json": "distinct"})
    """NULL counts as a value."""
    n_null: int = field(metadata={"json": "nulls"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionNeed:
    """What ℓ-diversity would cost for one ℓ."""

    l: int  # noqa: E741  (the policy's own name)
    withheld: dict[str, float] | None
    """By method, how many records are withheld on average; None: no suppression is needed."""

    @classmethod
    def of(cls, counts: tuple[int, ...], ell: int) -> SuppressionNeed:
        """From the counts of the sensitive values."""
        if max(counts) * ell <= sum(counts):
            return cls(l=ell, withheld=None)
        found = costs(counts, ell)
        return cls(l=ell, withheld={method: float(found[method]) for method in SuppressConfig.methods})

    def to_dict(self) -> dict[str, Any]:
        """As `inspect --json` prints it."""
        return {"l": self.l, "needed": self.withheld is not None, "withheld": self.withheld}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What a publisher sees of a table before writing a policy. Private: it holds counts."""

    source: str
    n_rows: int
    columns: tuple[ColumnFacts, ...]
    histogram: Histogram | None

    @property
    def domain_size(self) -> int:
        """How many different rows the columns' values could form."""
        return math.prod(column.n_distinct for column in self.columns)

    @property
    def largest_l(self) -> int | None:
        """The largest ℓ that a release can keep (Lemma 1); None without a histogram."""
        return None if self.histogram is None else self.n_rows // max(self.histogram.counts)

    @property
    def tuple_columns(self) -> tuple[str, ...]:
        """The columns that alpha-beta could publish: those whose values repeat."""
        return tuple(column.name for column in self.columns if column.n_distinct < max(self.n_rows, 2))

    @property
    def tuple_domain(self) -> int:
        """How many different rows the values of these columns could form."""
        return math.prod(column.n_distinct for column in self.columns if column.name in self.tuple_columns)

    @property
    def d_gamma(self) -> tuple[Feasible, ...]:
        """Which (d,γ) a view of these columns could keep, and at which error."""
        return feasible_region(self.n_rows, self.tuple_domain) if self.n_rows and self.tuple_columns else ()

    def suppression(self) -> tuple[SuppressionNeed, ...]:
        """For l = 2..10, whether `[suppress]` is needed, and how many records each method withholds."""
        if self.histogram is None:
            return ()
        counts = self.histogram.counts
        possible = [ell for ell in DIVERSITIES if ell <= len(counts)]
        return tuple(SuppressionNeed.of(counts, ell) for ell in possible)

    def to_dict(self) -> dict[str, Any]:
        """As `inspect --json` prints it."""
        return {
            "private": True,
            "source": self.source,
            "rows": self.n_rows,
            "columns": plain(self.columns),
            "domain_size": self.domain_size,
            "sensitive": None if self.histogram is None else _histogram_dict(self.histogram),
            "feasible": {
                "largest_l": self.largest_l,
                "d_gamma": {
                    "columns": list(self.tuple_columns),
                    "domain_size": self.tuple_domain,
                    "region": plain(self.d_gamma),
                },
            },
            "suppression": plain(self.suppression()),
        }


def look_at(source: Source, sensitive: tuple[str, ...] | None = None) -> Inspection:
    """Count the columns' values; the sensitive column is guessed if it is not given."""
    with connect() as connection:
        scan = source.scan(connection)
        described = connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()
        counted = one_row(
            connection,
            "SELECT count(*), "
            + ", ".join(
                f"count(DISTINCT {identifier(name)}) + max(({identifier(name)} IS NULL)::INT), "
                f"count(*) - count({identifier(name)})"
                for name, *_ in described
            )
            + f" FROM {scan}",
        )
        n_rows, *numbers = (number or 0 for number in counted)
        columns = tuple(
            ColumnFacts(name=name, type=kind.lower(), n_distinct=numbers[2 * i], n_null=numbers[2 * i + 1])
            for i, (name, kind, *_) in enumerate(described)
        )
        chosen = _known(sensitive, columns, source) if sensitive else guess_sensitive(columns, n_rows)
        histogram = count_values(connection, scan, chosen) if chosen and n_rows else None
    return Inspection(source=source.name, n_rows=n_rows, columns=columns, histogram=histogram)


def guess_sensitive(columns: tuple[ColumnFacts, ...], n_rows: int) -> tuple[str, ...]:
    """The column that a person would most likely call sensitive: by name, else the last with few values."""
    named = [c for c in columns if any(word in c.name.lower() for word in _SENSITIVE_WORDS)]
    few_values = [c for c in columns if 1 < c.n_distinct <= min(_MOST_VALUES, max(2, n_rows // 2))]
    return tuple(column.name for column in (named[:1] or few_values[-1:]))


def _known(names: tuple[str, ...], columns: tuple[ColumnFacts, ...], source: Source) -> tuple[str, ...]:
    known = [column.name for column in columns]
    for name in names:
        if name not in known:
            raise InputError(f"{source.name} has no column {name!r}; {did_you_mean(name, known)}")
    return names


def _histogram_dict(histogram: Histogram) -> dict[str, Any]:
    by_count = sorted(range(len(histogram)), key=lambda code: -histogram.counts[code])
    return {
        "columns": list(histogram.columns),
        "values": [
            {
                "value": label(histogram.values[code]),
                "count": histogram.counts[code],
                "frequency": float(histogram.frequency(code)),
            }
            for code in by_count
        ],
    }
