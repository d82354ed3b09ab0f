"""The weights of FRAPP: of n rows each one is any other tuple with probability q = (1−γ_f)/(m−1)."""

from __future__ import annotations

import duckdb

from dalenius.mechanisms.base import Completion, Place, Weighting
from dalenius.mechanisms.frapp.published import read
from dalenius.mechanisms.tuples.answer.estimation import read_codes
from dalenius.mechanisms.tuples.drawing.evidence import Replacements
from dalenius.mechanisms.tuples.drawing.tables import complete_records
from dalenius.mechanisms.tuples.export import TupleRates, weigh_tuples
from dalenius.release.folder import StoredRelease
from dalenius.sql import count


def weigh(
    release: StoredRelease, connection: duckdb.DuckDBPyConnection, place: Place, columns: tuple[str, ...]
) -> Weighting:
    """The shown rows count 1/(γ_f−q), and every tuple that could be −n·q/(γ_f−q)."""
    view = read(release.manifest)
    n_rows = count(connection, "SELECT count(*) FROM view")
    rates = TupleRates(
        domain=view.domain,
        noise=None,
        shown=1 / view.law.slope,
        possible=-n_rows * view.law.other_rate / view.law.slope,
        counts_rows=view.counts_rows,
    )
    return weigh_tuples(rates, connection, place, columns)


def complete(release: StoredRelease) -> Completion:
    """Fit a law of people to the records once; every draw has a law of its own."""
    view = read(release.manifest)
    codes = read_codes(release, view.domain)
    names = tuple(column.name for column in release.manifest.columns)
    kept, other, n = float(view.law.gamma_f), float(view.law.other_rate), float(len(codes[0]))
    evidence = Replacements(n_people=n, kept=kept, other=other)
    return complete_records(view.domain, codes, evidence, names)
