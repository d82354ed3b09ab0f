"""Does a FRAPP view keep its promise? From the table and the manifest alone, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.frapp.published import PublishedFrapp, read
from dalenius.mechanisms.tuples.check import check_domain, scan_rows
from dalenius.release.manifest import Manifest


def check_records(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterator[Check]:
    """The cells, and the promise for one record."""
    view = read(manifest)
    rows = scan_rows(connection, view.domain, manifest)
    yield check_domain(rows, view.domain)
    if not rows.outside:
        yield _check_law(view)


def _check_law(view: PublishedFrapp) -> Check:
    worst, gamma, prior = view.law.posterior(), view.gamma, view.law.prior
    size_ok = view.domain_size == view.domain.size
    ok = size_ok and worst <= gamma and gamma * (1 - gamma) >= prior * (1 - prior)
    detail = (
        f"a record's prior of at most {float(prior):.4g} becomes at most {float(worst):.6g}; "
        f"promised: {float(gamma):.4g}"
    )
    return Check(name="promise", ok=ok, detail=detail)
