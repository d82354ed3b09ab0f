"""Does a view keep its promise? From the published table and the manifest alone, in exact arithmetic."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.alphabeta.frapp import FrappPlan
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law
from dalenius.mechanisms.base import Check
from dalenius.mechanisms.tuples.config import COPY
from dalenius.mechanisms.tuples.domain import Codes, Domain, group_of
from dalenius.prefetch import map_parallel
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.release.manifest import Manifest
from dalenius.sql import count, identifiers
from dalenius.tables.reading import BATCH_ROWS, DictionaryColumns

_DEVIATIONS = 9
"""A view this many standard deviations too small has lost noise (less than 1 in 10^18 by chance)."""


def check_view(connection: duckdb.DuckDBPyConnection, manifest: Manifest) -> Iterator[Check]:
    """The cells, the rows, the promise, and the amount of noise."""
    view = PublishedView.of(manifest)
    rows = _read_rows(connection, view, _n_files(manifest))
    yield _check_domain(rows, view)
    if rows.outside:
        return
    if view.law is not None:
        yield _check_distinct(connection, view, rows)
        yield _check_series(manifest, view)
        yield _check_law(manifest, view)
        yield _check_noise(connection, view)
    else:
        yield _check_frapp(connection, manifest, view)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What one pass over a view tells."""

    outside: dict[str, int]
    """How many cells of a column are outside its domain, where there are any."""
    ascend: bool
    """Whether every row is in its file and above the one before it: so it is, unless somebody moved rows."""


def _n_files(manifest: Manifest) -> int:
    (files,) = (table.files for table in manifest.tables if table.name == "view")
    return len(files)


def _read_rows(connection: duckdb.DuckDBPyConnection, view: PublishedView, n_files: int) -> _Rows:
    """One pass in the order of the files; a row is above another if its file is, or else its tuple."""
    outside: Counter[str] = Counter()
    ascend, last = True, None
    # NULL, where it is no value of the domain, may well stand for all cells that are none
    allowed = {
        c.name: c.values
        for c in view.domain.columns
        if pa.types.is_string(c.values.type) and not c.values.null_count
    }
    columns = DictionaryColumns.of(connection, 'SELECT * FROM "view"', allowed)

    def look(coded: pa.RecordBatch) -> tuple[dict[str, int], Ints | None]:
        batch = columns.decode(coded)
        found = {c.name: c.find(batch.column(c.name)) for c in view.domain.columns}
        strange = {name: codes.null_count for name, codes in found.items() if codes.null_count}
        codes = tuple(codes.to_numpy(zero_copy_only=False) for codes in found.values())
        return strange, None if strange else _in_files(view, codes, n_files)

    batches = connection.sql(columns.code('SELECT * FROM "view"')).to_arrow_reader(BATCH_ROWS)
    for strange, words in map_parallel(look, batches):
        outside.update(strange)
        if words is None or outside or not ascend:
            continue
        together = words if last is None else np.concatenate([last, words])
        ascend, last = _all_ascend(together), together[-1:]
    return _Rows(outside=dict(outside), ascend=ascend)


def _in_files(view: PublishedView, codes: Codes, n_files: int) -> Ints:
    """The words of each tuple after the number of its file, which the tuple decides."""
    words = view.domain.pack(codes)
    if n_files == 1:
        return words
    own = [at for at, name in enumerate(view.domain.names) if name != COPY]
    tuples = Domain(columns=tuple(view.domain.columns[at] for at in own))
    files = group_of(tuples.pack(tuple(codes[at] for at in own)), n_files)
    return np.column_stack([files, words])


def _all_ascend(words: Ints) -> bool:
    above = np.zeros(max(len(words) - 1, 0), dtype=np.bool_)
    for word in reversed(words.T):  # the first word decides, then the second, …
        above = (word[1:] > word[:-1]) | ((word[1:] == word[:-1]) & above)
    return bool(above.all())


def _check_domain(rows: _Rows, view: PublishedView) -> Check:
    problems = [f"{n} rows hold a value outside the domain of {name!r}" for name, n in rows.outside.items()]
    return Check(
        name="domain",
        ok=not problems,
        detail="; ".join(problems) or f"every row is one of the domain's {view.domain.size:,} tuples",
    )


def _check_distinct(connection: duckdb.DuckDBPyConnection, view: PublishedView, rows: _Rows) -> Check:
    listed = identifiers(view.domain.names)
    repeated = 0
    if not rows.ascend:
        repeated = count(
            connection,
            f'SELECT (SELECT count(*) FROM "view") - count(*) FROM (SELECT DISTINCT {listed} FROM "view")',
        )
    detail = f"{repeated} rows repeat another" if repeated else "no row is there twice"
    return Check(name="distinct rows", ok=repeated == 0, detail=detail)


def _check_series(manifest: Manifest, view: PublishedView) -> Check:
    assert view.law is not None  # noqa: S101  (αβ views only)
    series, planned = manifest.series, view.law.views
    kind, of = ("views", 1) if series is None else (series.kind, series.of or 0)
    ok = kind == "views" and 1 <= view.index <= of == planned
    detail = f"view {view.index} of the {planned} that the parameters are for"
    return Check(name="series", ok=ok, detail=detail)


def _check_law(manifest: Manifest, view: PublishedView) -> Check:
    assert view.law is not None  # noqa: S101
    promise = manifest.promise
    d, gamma = Fraction(promise["d"]), Fraction(promise["gamma"])
    size_ok = int(manifest.parameters["domain_size"]) == view.domain.size
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


def _check_frapp(connection: duckdb.DuckDBPyConnection, manifest: Manifest, view: PublishedView) -> Check:
    plan = published_frapp(manifest, view, count(connection, 'SELECT count(*) FROM "view"'))
    worst, gamma, prior = plan.posterior(), plan.promise.gamma, plan.k / plan.domain_size
    size_ok = int(manifest.parameters["domain_size"]) == view.domain.size
    ok = size_ok and worst <= gamma and gamma * (1 - gamma) >= prior * (1 - prior)
    detail = (
        f"a record's prior of at most {float(prior):.4g} becomes at most {float(worst):.6g}; "
        f"promised: {float(gamma):.4g}"
    )
    return Check(name="promise", ok=ok, detail=detail)


def published_frapp(manifest: Manifest, view: PublishedView, n_rows: int) -> FrappPlan:
    """The plan behind a FRAPP view, as its manifest states it."""
    assert view.gamma_f is not None  # noqa: S101  (FRAPP views only)
    promise = manifest.promise
    k = Fraction(promise["k"])
    return FrappPlan(
        promise=DGammaPrivacy(gamma=Fraction(promise["gamma"]), k=k),
        k=k,
        gamma_f=view.gamma_f,
        domain_size=view.domain.size,
        n_rows=n_rows,
    )
