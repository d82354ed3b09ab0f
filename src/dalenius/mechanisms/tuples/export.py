"""The weights of published tuples, where every tuple that could be counts, not only those shown.

An estimate is (n_V − b·n_D)/a: a row of the view counts 1/a, and every tuple of the domain −b/a. The domain
is not written out: its columns' values are small tables, and the view crosses them. Columns that the view
leaves out multiply the weight instead, by Σ b(t)/b over their values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import pyarrow as pa

from dalenius.errors import InputError
from dalenius.mechanisms.base import Place, Weighting, stage
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.sql import identifier, identifiers

MOST_TUPLES = 10_000_000
"""How many tuples the view may cross: two seconds in PostgreSQL, 0.2 in DuckDB."""
_MIXED = "as published: some rows are real, some random"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TupleRates:
    """What is counted when published tuples are added up."""

    domain: Domain
    noise: NoiseLaw | None
    """How likely noise is each tuple; None: all are equally likely."""
    shown: Fraction
    """What one row of the view counts."""
    possible: Fraction
    """What one tuple of the domain counts, if it is the likeliest noise."""
    counts_rows: bool
    """Whether a row that repeats another counts again."""


def weigh_tuples(
    rates: TupleRates, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """The shown rows, and less weight for every row that could be."""
    _refuse_large(rates.domain, columns)
    helpers, left_out = _stage_domain(rates, connection, columns)
    factors = " * ".join([_double(rates.possible * left_out), *(f"{table}.weight" for table, _ in helpers)])
    listed = ", ".join(f"{table}.{identifier(name)}" for table, name in helpers)
    crossed = " CROSS JOIN ".join(f"{place(table)} AS {table}" for table, _ in helpers)
    shown = identifiers(name for _, name in helpers)
    counted = "rows" if rates.counts_rows else "different rows: a row that repeats another counts once"
    return Weighting(
        helpers=tuple((table, f"what column {name} may hold") for table, name in helpers),
        columns=(
            ("view", "copy", "which copy of a row that the table has several times"),
            *(
                (table, "weight", "how likely noise has the value, the likeliest being 1")
                for table, _ in helpers
            ),
        ),
        published=(("view", "quasi", _MIXED), ("view", "sensitive", _MIXED)),
        view=f"SELECT {shown}, {_double(rates.shown)} AS weight FROM {place('view')}\n"
        f"UNION ALL\nSELECT {listed}, {factors} AS weight\nFROM {crossed}",
        weight="1/alpha for a row that the view shows; below 0 for every row that could be, which takes the "
        "random insertions away",
        note="SUM(weight) is the unbiased estimate that `dalenius ask` gives for this view alone. A small "
        f"count can come out negative. It counts {counted}.",
    )


def _stage_domain(
    rates: TupleRates, connection: duckdb.DuckDBPyConnection, columns: tuple[str, ...]
) -> tuple[list[tuple[str, str]], Fraction]:
    """A table per column of the view, as (table, column); and the factor of the columns left out."""
    relative = _relative_noise(rates)
    helpers: list[tuple[str, str]] = []
    left_out = Fraction(1)
    for column in rates.domain.columns:
        if column.name not in columns:
            left_out *= sum(relative[column.name])
            continue
        table = f"domain_{len(helpers) + 1}"
        weights = pa.array([float(share) for share in relative[column.name]])
        stage(connection, table, pa.table({column.name: column.values, "weight": weights}))
        helpers.append((table, column.name))
    return helpers, left_out


def _refuse_large(domain: Domain, columns: tuple[str, ...]) -> None:
    sizes = {column.name: len(column.values) for column in domain.columns if column.name in columns}
    n_tuples = math.prod(sizes.values())
    if n_tuples > MOST_TUPLES:
        listed = ", ".join(f"{name} ({size:,})" for name, size in sizes.items())
        raise InputError(
            f"{n_tuples:,} different rows could be in this view, and its weights add all of them up; at most "
            f"{MOST_TUPLES:,} are possible",
            hint=f"choose the columns to be asked about: --column NAME --column NAME …; of {listed}",
        )


def _relative_noise(rates: TupleRates) -> dict[str, tuple[Fraction, ...]]:
    """Per column, how likely noise has each value, the likeliest being 1."""
    if rates.noise is None:
        return {c.name: (Fraction(1),) * len(c.values) for c in rates.domain.columns}
    return {
        name: tuple(share / max(shares) for share in shares)
        for name, shares in zip(rates.domain.names, rates.noise.shares, strict=True)
    }


def _double(number: Fraction) -> str:
    return f"CAST({float(number)!r} AS DOUBLE PRECISION)"
