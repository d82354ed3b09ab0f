"""What arrays hold: one name for each kind, the same in every room; sparse tables, and the normal law.

scipy takes a quarter of a second to load, longer than most questions take. So a few numbers are worked out
without it; where there are many it is loaded, and is faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, inf, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import scipy.sparse

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Codes = NDArray[np.integer[Any]]
"""Which of a list of values, or of rows, each one is: whole numbers from 0, in as few bytes as will do."""
Bools = NDArray[np.bool_]
Bits = NDArray[np.uint8]
"""One bit per row, packed."""
_Whole = TypeVar("_Whole", bound=np.integer[Any])


def divide(above: Floats, below: Floats) -> Floats:
    """The quotients; 0 where there is nothing to divide by.

    >>> divide(np.array([1.0, 1.0, np.inf]), np.array([4.0, 0.0, 2.0])).tolist()
    [0.25, 0.0, 0.0]
    """
    usable = np.isfinite(above) & np.isfinite(below) & (below > 0)
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=usable))


def different(numbers: NDArray[_Whole], *, in_runs: bool = False) -> NDArray[_Whole]:
    """Each number once, in ascending order.

    `np.unique` hashes them: a million different ones take it ten times as long. Runs that ascend, or nearly,
    are merged in a tenth of the time that sorting takes.

    >>> different(np.array([3, 1, 3])).tolist(), different(np.array([1, 3, 2, 3]), in_runs=True).tolist()
    ([1, 3], [1, 2, 3])
    """
    ordered = np.sort(numbers, kind="stable" if in_runs else None)
    is_new = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


def rank_within(codes: Codes) -> Ints:
    """How many of the same code stand before each.

    >>> rank_within(np.array([2, 0, 2, 2])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rank


_FEW = 4_096
"""Up to so many numbers the normal law is worked out one by one."""
_SMALL = 4_000_000
"""Up to so many products a sparse table is multiplied without scipy."""
_ERFC = np.frompyfunc(erfc, 1, 1)
_QUANTILE = np.frompyfunc(
    lambda p: NormalDist().inv_cdf(p) if 0 < p < 1 else {0: -inf, 1: inf}.get(p, np.nan), 1, 1
)


def normal_cdf(x: Floats) -> Floats:
    """The standard normal distribution function.

    >>> normal_cdf(np.array([-np.inf, 0.0, np.inf])).tolist()
    [0.0, 0.5, 1.0]
    """
    if x.size <= _FEW:
        return np.asarray(_ERFC(-x / sqrt(2.0)), dtype=np.float64) / 2
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


def normal_quantiles(p: Floats) -> Floats:
    """Its inverse.

    >>> normal_quantiles(np.array([0.0, 0.5])).tolist()
    [-inf, 0.0]
    """
    if p.size <= _FEW:
        with np.errstate(invalid="ignore"):  # of what is not a number
            return np.asarray(_QUANTILE(p), dtype=np.float64)
    from scipy.special import ndtri

    return np.asarray(ndtri(p))


def normal_quantile(p: float) -> float:
    """The same for one number."""
    return float(_QUANTILE(p))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sparse:
    """A table of numbers most of which are 0, row by row (CSR)."""

    starts: Ints
    """Where each row's entries begin, and at the end how many there are."""
    columns: Ints
    data: Floats
    n_columns: int

    @classmethod
    def of(cls, row: Ints, column: Ints, data: Floats, shape: tuple[int, int]) -> Sparse:
        """From entries in any order; those of one place are added up.

        >>> Sparse.of(np.array([1, 0, 1]), np.array([0, 1, 0]), np.ones(3), (2, 2)).to_dense().tolist()
        [[0.0, 1.0], [2.0, 0.0]]
        """
        place = row.astype(np.int64) * shape[1] + column
        if not (np.diff(place) > 0).all():
            place, inverse = np.unique(place, return_inverse=True)
            data = np.bincount(inverse.ravel(), data, len(place)).astype(np.float64)
        starts = np.searchsorted(place, np.arange(shape[0] + 1) * shape[1])
        return cls(starts=starts, columns=place % shape[1], data=data, n_columns=shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.starts) - 1, self.n_columns

    @property
    def rows(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(self.shape[0]), np.diff(self.starts))

    def sum_rows(self) -> Floats:
        """The sum of each row."""
        return np.asarray(np.bincount(self.rows, self.data, self.shape[0]), dtype=np.float64)

    def take(self, rows: Codes) -> Sparse:
        """Some rows, in this order."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        entries = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return Sparse(
            starts=starts, columns=self.columns[entries], data=self.data[entries], n_columns=self.n_columns
        )

    def transpose(self) -> Sparse:
        """Rows as columns."""
        order = np.argsort(self.columns, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.columns, minlength=self.n_columns))])
        return Sparse(starts=starts, columns=self.rows[order], data=self.data[order], n_columns=self.shape[0])

    def scale_columns(self, factors: Floats) -> Sparse:
        """Each column times a number."""
        data = self.data * factors[self.columns]
        return Sparse(starts=self.starts, columns=self.columns, data=data, n_columns=self.n_columns)

    def __matmul__(self, dense: Floats) -> Floats:
        """Times a dense vector or table."""
        if len(self.data) * (dense.size // max(len(dense), 1)) > _SMALL:
            return np.asarray(to_scipy(self) @ dense)
        filled = np.flatnonzero(np.diff(self.starts))
        product = np.zeros((self.shape[0], *dense.shape[1:]))
        if len(filled):
            data = self.data if dense.ndim == 1 else self.data[:, None]
            product[filled] = np.add.reduceat(data * dense[self.columns], self.starts[filled], axis=0)
        return product

    def gram(self, weights: Floats) -> Floats:
        """AᵀWA, for a weight of each row."""
        if self.shape[0] * self.n_columns <= _SMALL:
            dense = self.to_dense()
            return np.asarray(dense.T @ (weights[:, None] * dense))
        own = to_scipy(self)
        return np.asarray((own.T @ own.multiply(weights[:, None]).tocsr()).toarray())

    def to_dense(self) -> Floats:
        """With all its zeros."""
        dense = np.zeros(self.shape)
        dense[self.rows, self.columns] = self.data
        return dense


def to_scipy(table: Sparse) -> scipy.sparse.csr_array:
    """As scipy has it."""
    from scipy.sparse import csr_array

    return csr_array((table.data, table.columns, table.starts), shape=table.shape)
