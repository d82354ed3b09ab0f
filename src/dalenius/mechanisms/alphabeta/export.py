"""The weights of αβ views: 1/α for a row that is shown, −β/α for every tuple that could be."""

from __future__ import annotations

import duckdb

from dalenius.errors import InputError
from dalenius.mechanisms.alphabeta.published import marginal_law, read
from dalenius.mechanisms.base import Place, Weighting
from dalenius.mechanisms.tuples.export import TupleRates, weigh_tuples
from dalenius.release.folder import StoredRelease


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """The shown rows, and less weight for every row that could be."""
    view = read(release.manifest)
    if view.is_changing and view.index > 1:
        raise InputError(
            "a later view of a table that changes has no weights of its own: what a row counts hangs on "
            "whether an earlier view has shown it",
            hint="export the first view, or ask the folder of the series",
        )
    law = marginal_law(view.law, view.index)
    rates = TupleRates(
        domain=view.domain,
        noise=view.noise,
        shown=1 / law.alpha,
        possible=-law.beta / law.alpha,
        counts_rows=view.counts_rows,
    )
    return weigh_tuples(rates, connection, place, columns)
