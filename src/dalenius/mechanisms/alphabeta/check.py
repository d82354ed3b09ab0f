"""Does a view keep its promise? From the published table and the manifest alone, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator

import duckdb

from dalenius.mechanisms.alphabeta.published import PublishedView, read
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.tuples.check import ScannedRows, check_domain, scan_rows
from dalenius.release.manifest import Manifest
from dalenius.sql import count, identifiers

_DEVIATIONS = 9
"""A view this many standard deviations too small has lost noise (less than 1 in 10^18 by chance)."""


def check_view(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterator[Check]:
    """The cells, the rows, the promise, and the amount of noise."""
    view = read(manifest)
    rows = scan_rows(connection, view.domain, manifest)
    yield check_domain(rows, view.domain)
    if rows.outside:
        return
    yield _check_distinct(connection, view, rows)
    yield _check_series(manifest, view)
    yield _check_law(view)
    yield _check_noise(connection, view)


def _check_distinct(connection: duckdb.DuckDBPyConnection, view: PublishedView, rows: ScannedRows) -> Check:
    listed = identifiers(view.domain.names)
    repeated = 0
    if not rows.ascend:
        repeated = count(
            connection,
            f'SELECT (SELECT count(*) FROM "view") - count(*) FROM (SELECT DISTINCT {listed} FROM "view")',
        )
    problem = f"{repeated} rows repeat another" if repeated else None
    return Check.of("distinct rows", problem, "no row is there twice")


def _check_series(manifest: Manifest, view: PublishedView) -> Check:
    series, planned = manifest.series, view.law.views
    kind, of = ("views", 1) if series is None else (series.kind, series.of or 0)
    ok = kind == "views" and 1 <= view.index <= of == planned
    detail = f"view {view.index} of the {planned} that the parameters are for"
    return Check(name="series", ok=ok, detail=detail)


def _check_law(view: PublishedView) -> Check:
    law, d, gamma = view.law, view.d, view.gamma
    size_ok = view.domain_size == view.domain.size
    as_promised = law.views == view.promised_views and view.is_changing == view.may_change
    ok = size_ok and law.keeps(d, gamma, view.adversary) and as_promised
    worst = float(law.worst_posterior(d))
    detail = (
        f"a prior of at most {float(d):.4g} becomes at most {worst:.6g} over {law.views} view(s)"
        f"{' of a table that may change' if view.is_changing else ''}; "
        f"promised: {float(gamma):.4g}" + ("" if ok else "; the promise does not hold")
    )
    return Check(name="promise", ok=ok, detail=detail)


def _check_noise(connection: duckdb.DuckDBPyConnection, view: PublishedView) -> Check:
    """At least as many rows as the insertions alone give; whoever removes noise is found."""
    if view.index == 1:
        expected = float(view.noise_rows)
    elif view.is_changing:
        # shown noise comes again more often than fresh, but how much was shown is for the earlier views
        expected = float(min(view.law.beta, view.law.seen_rate) * view.domain.size)
    else:
        expected = float(view.law.noise_rate(view.index) * view.domain.size)
    least = expected - _DEVIATIONS * math.sqrt(expected)
    n_rows = count(connection, 'SELECT count(*) FROM "view"')
    about = "at least about" if view.is_changing and view.index > 1 else "about"
    detail = f"{n_rows:,} rows, of which {about} {expected:,.0f} are insertions"
    return Check(name="noise", ok=n_rows >= least, detail=detail)
