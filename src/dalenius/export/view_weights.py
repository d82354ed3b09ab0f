"""The weights of αβ and FRAPP views, where every tuple that could be counts, not only those shown.

An estimate is (n_V − β·n_D)/α: a row of the view counts 1/α, and every tuple of the domain −β/α. The domain
is not written out: its columns' values are small tables, and the view crosses them. Columns that the view
leaves out multiply the weight instead, by Σ β(t)/β over their values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import pyarrow as pa

from dalenius.errors import InputError
from dalenius.export.weights import Place, Weighting, stage
from dalenius.mechanisms import registry
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.release.folder import StoredRelease
from dalenius.sql import count, identifier, identifiers

MOST_TUPLES = 10_000_000
"""How many tuples the view may cross: two seconds in PostgreSQL, 0.2 in DuckDB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rates:
    """What one row of the view and one tuple of the domain count."""

    shown: Fraction
    possible: Fraction


def weigh_view(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """The shown rows, and less weight for every row that could be."""
    view = registry.room(release.mechanism, release.method, "published").read(release.manifest)
    _refuse_large(view, columns)
    rates = _rates(view, count(connection, "SELECT count(*) FROM view"))
    helpers, left_out = _stage_domain(view, connection, columns)
    factors = " * ".join([_double(rates.possible * left_out), *(f"{table}.weight" for table, _ in helpers)])
    listed = ", ".join(f"{table}.{identifier(name)}" for table, name in helpers)
    crossed = " CROSS JOIN ".join(f"{place(table)} AS {table}" for table, _ in helpers)
    shown = identifiers(name for _, name in helpers)
    counted = "rows" if view.counts_rows else "different rows: a row that repeats another counts once"
    return Weighting(
        helpers=tuple((table, f"what column {name} may hold") for table, name in helpers),
        columns=tuple(
            (table, "weight", "how likely noise has the value, the likeliest being 1") for table, _ in helpers
        ),
        view=f"SELECT {shown}, {_double(rates.shown)} AS weight FROM {place('view')}\n"
        f"UNION ALL\nSELECT {listed}, {factors} AS weight\nFROM {crossed}",
        weight="1/alpha for a row that the view shows; below 0 for every row that could be, which takes the "
        "random insertions away",
        note="SUM(weight) is the unbiased estimate that `dalenius ask` gives for this view alone. A small "
        f"count can come out negative. It counts {counted}.",
    )


def _stage_domain(
    view: PublishedView | PublishedFrapp, connection: duckdb.DuckDBPyConnection, columns: tuple[str, ...]
) -> tuple[list[tuple[str, str]], Fraction]:
    """A table per column of the view, as (table, column); and the factor of the columns left out."""
    relative = _relative_noise(view)
    helpers: list[tuple[str, str]] = []
    left_out = Fraction(1)
    for column in view.domain.columns:
        if column.name not in columns:
            left_out *= sum(relative[column.name])
            continue
        table = f"domain_{len(helpers) + 1}"
        weights = pa.array([float(share) for share in relative[column.name]])
        stage(connection, table, pa.table({column.name: column.values, "weight": weights}))
        helpers.append((table, column.name))
    return helpers, left_out


def _refuse_large(view: PublishedView | PublishedFrapp, columns: tuple[str, ...]) -> None:
    sizes = {column.name: len(column.values) for column in view.domain.columns if column.name in columns}
    n_tuples = math.prod(sizes.values())
    if n_tuples > MOST_TUPLES:
        listed = ", ".join(f"{name} ({size:,})" for name, size in sizes.items())
        raise InputError(
            f"{n_tuples:,} different rows could be in this view, and its weights add all of them up; at most "
            f"{MOST_TUPLES:,} are possible",
            hint=f"choose the columns to be asked about: --column NAME --column NAME …; of {listed}",
        )


def _rates(view: PublishedView | PublishedFrapp, n_rows: int) -> _Rates:
    if isinstance(view, PublishedView):
        law = marginal_law(view.law, view.index)
        return _Rates(shown=1 / law.alpha, possible=-law.beta / law.alpha)
    slope = view.law.slope
    return _Rates(shown=1 / slope, possible=-n_rows * view.law.other_rate / slope)


def _relative_noise(view: PublishedView | PublishedFrapp) -> dict[str, tuple[Fraction, ...]]:
    """Per column, how likely noise has each value, the likeliest being 1."""
    if isinstance(view, PublishedFrapp) or view.noise is None:
        return {c.name: (Fraction(1),) * len(c.values) for c in view.domain.columns}
    return {
        name: tuple(share / max(shares) for share in shares)
        for name, shares in zip(view.domain.names, view.noise.shares, strict=True)
    }


def _double(number: Fraction) -> str:
    return f"CAST({float(number)!r} AS DOUBLE PRECISION)"
