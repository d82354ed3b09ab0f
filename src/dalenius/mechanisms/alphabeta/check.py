"""Does a view keep its promise? From the published table and the manifest alone, in exact arithmetic."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa

from dalenius.mechanisms.alphabeta.frapp import FrappPlan
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law
from dalenius.mechanisms.base import Check
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.sql import count, identifier, identifiers

_DEVIATIONS = 9
"""A view this many standard deviations too small has lost noise (less than 1 in 10^18 by chance)."""


def check_view(connection: duckdb.DuckDBPyConnection, manifest: dict[str, Any]) -> Iterator[Check]:
    """The cells, the rows, the promise, and the amount of noise."""
    view = PublishedView.of(manifest)
    yield _check_domain(connection, view)
    if view.law is not None:
        yield _check_distinct(connection, view)
        yield _check_series(manifest, view)
        yield _check_law(manifest, view)
        yield _check_noise(connection, view)
    else:
        yield _check_frapp(connection, manifest, view)


def _check_domain(connection: duckdb.DuckDBPyConnection, view: PublishedView) -> Check:
    outside = []
    for column in view.domain.columns:
        connection.register("allowed", pa.table({"v": column.values}))
        n_rows = count(
            connection,
            f'SELECT count(*) FROM "view" ANTI JOIN allowed ON {identifier(column.name)} '
            "IS NOT DISTINCT FROM v",
        )
        connection.unregister("allowed")
        if n_rows:
            outside.append(f"{n_rows} rows hold a value outside the domain of {column.name!r}")
    return Check(
        name="domain",
        ok=not outside,
        detail="; ".join(outside) or f"every row is one of the domain's {view.domain.size:,} tuples",
    )


def _check_distinct(connection: duckdb.DuckDBPyConnection, view: PublishedView) -> Check:
    listed = identifiers(view.domain.names)
    repeated = count(
        connection,
        f'SELECT (SELECT count(*) FROM "view") - count(*) FROM (SELECT DISTINCT {listed} FROM "view")',
    )
    detail = f"{repeated} rows repeat another" if repeated else "no row is there twice"
    return Check(name="distinct rows", ok=repeated == 0, detail=detail)


def _check_series(manifest: dict[str, Any], view: PublishedView) -> Check:
    assert view.law is not None  # noqa: S101  (αβ views only)
    series = manifest["series"] or {"kind": "views", "index": 1, "of": 1}
    planned = view.law.views
    ok = series.get("kind") == "views" and 1 <= view.index <= series.get("of", 0) == planned
    detail = f"view {view.index} of the {planned} that the parameters are for"
    return Check(name="series", ok=ok, detail=detail)


def _check_law(manifest: dict[str, Any], view: PublishedView) -> Check:
    assert view.law is not None  # noqa: S101
    promise = manifest["promise"]
    d, gamma = Fraction(promise["d"]), Fraction(promise["gamma"])
    size_ok = int(manifest["parameters"]["domain_size"]) == view.domain.size
    ok = size_ok and view.law.keeps(d, gamma, promise["adversary"]) and view.law.views == promise["views"]
    worst = float(view.law.worst_posterior(d))
    detail = (
        f"a prior of at most {float(d):.4g} becomes at most {worst:.6g} over {view.law.views} view(s); "
        f"promised: {float(gamma):.4g}" + ("" if ok else "; the promise does not hold")
    )
    return Check(name="promise", ok=ok, detail=detail)


def _check_noise(connection: duckdb.DuckDBPyConnection, view: PublishedView) -> Check:
    """At least as many rows as the insertions alone give; whoever removes noise is found."""
    assert view.law is not None  # noqa: S101
    if view.index == 1:
        expected = float(view.noise_rows)
    else:
        expected = float(marginal_law(view.law, view.index).beta * view.domain.size)
    least = expected - _DEVIATIONS * math.sqrt(expected)
    n_rows = count(connection, 'SELECT count(*) FROM "view"')
    detail = f"{n_rows:,} rows, of which about {expected:,.0f} are insertions"
    return Check(name="noise", ok=n_rows >= least, detail=detail)


def _check_frapp(
    connection: duckdb.DuckDBPyConnection, manifest: dict[str, Any], view: PublishedView
) -> Check:
    plan = published_frapp(manifest, view, count(connection, 'SELECT count(*) FROM "view"'))
    worst, gamma, prior = plan.posterior(), plan.promise.gamma, plan.k / plan.domain_size
    size_ok = int(manifest["parameters"]["domain_size"]) == view.domain.size
    ok = size_ok and worst <= gamma and gamma * (1 - gamma) >= prior * (1 - prior)
    detail = (
        f"a record's prior of at most {float(prior):.4g} becomes at most {float(worst):.6g}; "
        f"promised: {float(gamma):.4g}"
    )
    return Check(name="promise", ok=ok, detail=detail)


def published_frapp(manifest: dict[str, Any], view: PublishedView, n_rows: int) -> FrappPlan:
    """The plan behind a FRAPP view, as its manifest states it."""
    assert view.gamma_f is not None  # noqa: S101  (FRAPP views only)
    promise = manifest["promise"]
    k = Fraction(promise["k"])
    return FrappPlan(
        promise=DGammaPrivacy(gamma=Fraction(promise["gamma"]), k=k),
        k=k,
        gamma_f=view.gamma_f,
        domain_size=view.domain.size,
        n_rows=n_rows,
    )
