"""Phase 2: put the initial groups into orders in which neighbours share values (section 5.2).

The paper applies the reverse Cuthill–McKee algorithm to A·Aᵀ, A the groups × values counts. Its result
hangs on how ties are broken: on the paper's own example the other tie gives a worse optimum. So further
orders follow the paper's: the same algorithm from other starts, and the order of the Fiedler vector.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dalenius.mechanisms.perturb.bounds import BoolArray, IntArray

_MOST_STARTS = 24
_MANY_GROUPS, _STARTS_OF_MANY = 64, 4


def candidate_orders(groups: IntArray) -> Iterator[tuple[str, IntArray]]:
    """Named orders of the groups; the first is the paper's."""
    shares_values = _shares_values(groups)
    sizes = groups.sum(axis=1)
    yield "paper", cuthill_mckee_order(shares_values, sizes)
    n_starts = _MOST_STARTS if len(groups) <= _MANY_GROUPS else _STARTS_OF_MANY
    for start in np.unique(np.linspace(0, len(groups) - 1, n_starts).astype(int)):
        yield "rcm", cuthill_mckee_order(shares_values, sizes, start=int(start))
    yield "spectral", spectral_order(groups)


def paper_order(groups: IntArray) -> IntArray:
    """The reverse Cuthill–McKee order of the groups, as in the paper's example 3."""
    return cuthill_mckee_order(_shares_values(groups), groups.sum(axis=1))


def cuthill_mckee_order(adjacent: BoolArray, sizes: IntArray, start: int | None = None) -> IntArray:
    """Reverse Cuthill–McKee: breadth first, low degrees first, the whole reversed.

    Each component begins at its lowest degree, and at the smallest group among equals (that choice gives
    the paper's example 3); `start` begins the first component elsewhere.
    """
    degrees = adjacent.sum(axis=1)
    is_left = np.ones(len(sizes), dtype=bool)
    by_preference = np.lexsort((sizes, degrees))
    starts = by_preference if start is None else np.concatenate(([start], by_preference))
    order: list[int] = []
    for first in starts:
        if is_left[first]:
            is_left[first] = False
            order.append(int(first))
            _visit(order, len(order) - 1, adjacent, degrees, is_left)
    return np.array(order[::-1], dtype=np.int64)


def spectral_order(groups: IntArray) -> IntArray:
    """The groups by their entry in the Fiedler vector of the cosine similarities of their values."""
    rows = groups / np.linalg.norm(groups, axis=1, keepdims=True)
    similarity = rows @ rows.T
    laplacian = np.diag(similarity.sum(axis=1)) - similarity
    vectors = np.linalg.eigh(laplacian)[1]
    return np.argsort(vectors[:, min(1, len(groups) - 1)], kind="stable")


def _visit(
    order: list[int], position: int, adjacent: BoolArray, degrees: IntArray, is_left: BoolArray
) -> None:
    """Append everything that can be reached from `order[position]`."""
    while position < len(order):
        neighbours = np.flatnonzero(adjacent[order[position]] & is_left)
        is_left[neighbours] = False
        order.extend(neighbours[np.argsort(degrees[neighbours], kind="stable")].tolist())
        position += 1


def _shares_values(groups: IntArray) -> BoolArray:
    """The pattern of A·Aᵀ without its diagonal."""
    occurs = (groups > 0).astype(np.float64)
    shared = (occurs @ occurs.T) > 0
    np.fill_diagonal(shared, val=False)
    return shared
