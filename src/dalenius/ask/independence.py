"""Whether two columns are independent: Pearson's χ² of a contingency table whose cells are estimates.

With E the products of the margins over n and d = T − E, Pearson's X² = Σ d²/E is χ²-distributed for
independent columns if the cells T are counts of a sample. Here they also have the release's noise, which
makes X² larger by chance. Of d, to first order, a covariance Σ is known, and X² is distributed as Σ λ_i·χ²₁
with λ_i = 1 + the eigenvalues of E^(−1/2)·Σ·E^(−1/2) (Rao and Scott, 1981). X² is divided by their mean, and
the degrees of freedom are lowered by how much they differ (Satterthwaite). Their sum needs the error of every
cell's d, that of their squares the errors of some random combinations (Hutchinson).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dalenius.arrays import Floats, Ints
from dalenius.ask.differences import ask_apart, is_in
from dalenius.ask.formulas import Estimated
from dalenius.errors import QueryError
from dalenius.question.answer import Independence
from dalenius.question.database import Request, Workspace
from dalenius.question.model import Combination, Estimation, Model
from dalenius.question.query import Aggregate
from dalenius.randomness import Randomness

_MOST_CELLS = 400
_LEAST_EXPECTED = 5.0
"""Where fewer are expected, the law of X² is none of χ²: categories are left out, the smallest first."""
_PROBES = 32


def measure_independence(
    model: Model, asked: Estimated, request: Request, workspace: Workspace
) -> Independence:
    """Of the two group keys of a question that counts."""
    query, question = asked.query, asked.question
    if len(query.groups) != 2 or query.aggregates != (Aggregate(kind="count"),):
        raise QueryError(
            "independence is of two columns, by their counts",
            hint="SELECT a, b, COUNT(*) FROM t [WHERE …] GROUP BY a, b",
        )
    sizes = [len(values) for values in question.key_values]
    if min(sizes) < 2 or sizes[0] * sizes[1] > _MOST_CELLS:
        raise QueryError(
            f"a table of {sizes[0]} by {sizes[1]} cells cannot be tested; both columns need at least two "
            f"values, and there may be {_MOST_CELLS} cells",
            hint="group by something coarser, e.g. CASE WHEN … THEN … END",
        )
    first, second = (values.to_pylist() for values in question.key_values)
    cells = [is_in(query, (one, two)) for one in first for two in second]
    apart, estimation = ask_apart(model, query, cells, request, workspace)
    table = np.nan_to_num(apart.totals[0]).reshape(sizes)
    kept = _keep(table)
    rows, columns = kept
    if min(len(rows), len(columns)) < 2:
        raise QueryError(
            f"fewer than {_LEAST_EXPECTED:g} people are expected in too many cells to test independence",
            hint="group by something coarser, or ask about more people",
        )
    found = _test(estimation, apart, table, kept)
    names = (query.groups[0].name, query.groups[1].name)
    return replace(found, columns=names, n_left_out=sum(sizes) - len(rows) - len(columns))


def _keep(table: Floats) -> tuple[Ints, Ints]:
    """Which rows and columns have enough people, by their margins alone."""
    kept = [np.arange(size) for size in table.shape]
    while min(len(part) for part in kept) > 1:
        own = table[np.ix_(*kept)]
        margins = [own.sum(axis=1), own.sum(axis=0)]
        if own.sum() > 0 and margins[0].min() * margins[1].min() / own.sum() >= _LEAST_EXPECTED:
            break
        shares = [margin.min() * len(margin) for margin in margins]  # beside what all alike would have
        axis = int(np.argmin(shares))
        kept[axis] = np.delete(kept[axis], int(margins[axis].argmin()))
    return kept[0], kept[1]


def _test(estimation: Estimation, asked: Estimated, table: Floats, kept: tuple[Ints, Ints]) -> Independence:
    own = table[np.ix_(*kept)]
    n, row, column = own.sum(), own.sum(axis=1), own.sum(axis=0)
    expected = np.outer(row, column) / n
    pearson = float(((own - expected) ** 2 / expected).sum())
    # derivatives of d by the cells, as far as these are kept
    by_cell = np.eye(own.size).reshape(*own.shape, *own.shape)
    by_cell -= np.eye(len(row))[:, None, :, None] * (column / n)[None, :, None, None]
    by_cell -= np.eye(len(column))[None, :, None, :] * (row / n)[:, None, None, None]
    by_cell += (expected / n)[:, :, None, None]
    scaled = by_cell.reshape(own.size, own.size) / np.sqrt(expected.ravel())[:, None]
    noise, squares = _noise(estimation, asked, scaled, np.ravel_multi_index(np.ix_(*kept), table.shape))
    freedom = (len(row) - 1) * (len(column) - 1)
    trace, square = freedom + noise, freedom + 2 * noise + squares
    larger, spread = trace / freedom, freedom * square / trace**2  # the mean of λ, and 1 + its variation²
    corrected, left = pearson / (larger * spread), freedom / spread
    from scipy.special import chdtrc

    association = max(pearson - trace, 0.0) / n / (min(own.shape) - 1)
    return Independence(
        columns=("", ""),
        statistic=corrected,
        freedom=left,
        p_value=float(chdtrc(left, corrected)),
        pearson=pearson,
        larger=larger,
        cramers_v=float(np.sqrt(min(association, 1.0))),
        n_left_out=0,
    )


def _noise(estimation: Estimation, asked: Estimated, scaled: Floats, places: Ints) -> tuple[float, float]:
    """The sum of the noise's eigenvalues, and that of their squares."""
    stream = Randomness.seeded(0).stream("independence", "probes")
    signs = np.where(stream.random((_PROBES, len(scaled))) < 0.5, -1.0, 1.0)
    wanted = np.concatenate([scaled, signs @ scaled])
    factors = np.zeros((len(wanted), asked.totals.shape[1]))
    factors[:, places.ravel()] = wanted
    combinations = [
        Combination(question=0, factors=one[None], totals=asked.totals, is_null=np.zeros(1, dtype=np.bool_))
        for one in factors
    ]
    variance = np.array([float(found.std_error[0]) ** 2 for found in estimation.combine(combinations)])
    if not np.isfinite(variance).all():
        raise QueryError("the release tells too little of these columns to test their independence")
    own, probed = variance[: len(scaled)], variance[len(scaled) :]
    # the variance of zᵀAz over random signs is 2·(‖A‖² − Σ A_ii²)
    squares = float((own**2).sum() + probed.var(ddof=1) / 2)
    return float(own.sum()), min(squares, float(own.sum()) ** 2)
