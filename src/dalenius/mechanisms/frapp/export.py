"""The weights of FRAPP: of n rows each one is any other tuple with probability q = (1−γ_f)/(m−1)."""

from __future__ import annotations

import duckdb

from dalenius.mechanisms.alphabeta.published import PublishedView
from dalenius.mechanisms.tuples.export import TupleRates, weigh_tuples
from dalenius.question.weighting import Place, Weighting
from dalenius.release.folder import StoredRelease
from dalenius.sql import count


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """The shown rows count 1/(γ_f−q), and every tuple that could be −n·q/(γ_f−q)."""
    view = PublishedView.of(release.manifest)
    assert view.gamma_f is not None  # noqa: S101  (FRAPP's manifests state it)
    other = (1 - view.gamma_f) / (view.domain.size - 1)
    slope = view.gamma_f - other
    rates = TupleRates(
        domain=view.domain,
        noise=view.noise,
        shown=1 / slope,
        possible=-count(connection, "SELECT count(*) FROM view") * other / slope,
        counts_rows=view.counts_rows,
    )
    return weigh_tuples(rates, connection, place, columns)
