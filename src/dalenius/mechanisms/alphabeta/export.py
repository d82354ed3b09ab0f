"""The weights of αβ views: 1/α for a row that is shown, −β/α for every tuple that could be."""

from __future__ import annotations

import duckdb
import numpy as np

from dalenius.arrays import Floats
from dalenius.errors import InputError
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law, read
from dalenius.mechanisms.base import Completion, Place, Weighting
from dalenius.mechanisms.tuples.answer.estimation import read_codes
from dalenius.mechanisms.tuples.domain import TupleCodes
from dalenius.mechanisms.tuples.drawing.evidence import Insertions
from dalenius.mechanisms.tuples.drawing.number import ViewSize
from dalenius.mechanisms.tuples.drawing.tables import complete_view
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


def complete(release: StoredRelease) -> Completion:
    """Fit a law of people to the view once; every draw has a law of its own."""
    view = read(release.manifest)
    if view.is_changing and view.index > 1:
        raise InputError(
            "a later view of a table that changes cannot be completed: what a row tells hangs on whether an "
            "earlier view has shown it",
            hint="complete the first view, or ask the folder of the series",
        )
    law, codes = marginal_law(view.law, view.index), read_codes(release, view.domain)
    names = tuple(column.name for column in release.manifest.columns)
    return complete_view(
        view.domain,
        codes,
        view_evidence(view, law, codes),
        lambda tuples: _absent(view, law, tuples),
        view.noise,
        names,
    )


def view_evidence(view: PublishedView, law: ViewLaw, codes: TupleCodes) -> Insertions:
    """A tuple t of the table is shown with α + β(t), another one with β(t)."""
    beta = _rates(view, law, codes)
    absent = _absent(view, law, codes)
    n_noise = float(law.beta if view.noise is None else law.beta / view.noise.largest_share)
    n_noise *= view.domain.size if view.noise is None else 1
    alpha, beta_of_all = float(law.alpha), n_noise / view.domain.size
    size = ViewSize(n_shown=len(beta), n_noise=n_noise, retention=alpha + beta_of_all, beta=beta_of_all)
    n_people, deviation = size.number()
    return Insertions(
        n_people=n_people,
        deviation=deviation,
        shown=alpha + beta,
        n_noise=n_noise,
        ratio=(alpha + beta) / beta,
        absent=absent,
        cost=float((1 - absent).mean()) if len(absent) else alpha,
    )


def _absent(view: PublishedView, law: ViewLaw, codes: TupleCodes) -> Floats:
    """How much likelier each tuple is not to be shown if it is in the table."""
    beta = _rates(view, law, codes)
    return np.asarray((1 - float(law.alpha) - beta) / (1 - beta))


def _rates(view: PublishedView, law: ViewLaw, codes: TupleCodes) -> Floats:
    """β(t)."""
    if view.noise is None:
        return np.full(len(codes[0]), float(law.beta))
    return np.asarray(float(law.beta) * view.noise.relative(codes))
