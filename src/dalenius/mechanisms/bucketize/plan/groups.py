"""Sets of values with a threshold together, in the search for buckets.

The sets are nested or disjoint runs of values, so their capacities are those of a tree: of a set J of values
one bucket of size S takes at most g_J(S), where a group takes no more than ⌊f′_G·S⌋ of what its parts take.
For given numbers of buckets b_S the records flow from the values through the groups of each size to its
places. A cut of that network chooses a set J of values that it leaves on the side of the source, and below
them, size by size, the narrowest places of the tree: Σ_S g_J(S)·b_S. So a setting is valid iff it has room
for every set of values, Σ_S g_J(S)·b_S ≥ o(J) (max-flow/min-cut): the cuts of `integer.py` with another g.

That the size as a whole keeps ⌊f′_G·S⌋·b_S is enough: dealt round-robin in the order of the values, a run of
x records gives each of b buckets ⌊x/b⌋ or ⌈x/b⌉ of them, for values and groups alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dalenius.arrays import Bools, Floats, Ints
from dalenius.mechanisms.bucketize.plan.problem import Run, ValueClasses, capacity_table

_SOURCE, _SINK, _FIRST = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTree:
    """The groups over classes of values, the inner ones first."""

    parent: tuple[int, ...]
    """The next group outwards; −1: none."""
    inner: Ints
    """The innermost group of each class; −1: none."""
    capacity: Ints  # groups × sizes

    @classmethod
    def of(cls, groups: tuple[Run, ...], classes: ValueClasses, sizes: tuple[int, ...]) -> GroupTree | None:
        """The tree of a problem's groups, which come inner ones first; None without groups."""
        if not groups:
            return None
        return cls(
            parent=tuple(
                next((k for k in range(g + 1, len(groups)) if groups[k].holds(group)), -1)
                for g, group in enumerate(groups)
            ),
            inner=classes.inner,
            capacity=capacity_table([group.threshold for group in groups], sizes),
        )

    @property
    def by_size(self) -> Floats:
        """Sizes × groups: the capacities of one bucket."""
        return np.ascontiguousarray(self.capacity.T, dtype=np.float64)

    def narrow(self, held: Floats, limits: Floats) -> tuple[Floats, Bools]:
        """What is left of amounts of the classes (rows × classes) under the groups' limits (rows × groups).

        Returns:
            The totals, and the classes that are below a group that takes no more.
        """
        n_groups = len(self.parent)
        own = np.zeros(
            (len(held), n_groups + 1)
        )  # the last column is of what is in no group, or none outwards
        np.add.at(own.T, self.inner, held.T)
        full = np.zeros(own.shape, dtype=np.bool_)
        for g, parent in enumerate(self.parent):
            full[:, g] = limits[:, g] <= own[:, g]
            own[:, parent] += np.minimum(own[:, g], limits[:, g])
        for g in reversed(range(n_groups)):
            full[:, g] |= full[:, self.parent[g]]
        return own[:, -1], full[:, self.inner]

    def assign(self, counts: Ints, limits: Ints, used: Ints, n_buckets: Ints, slots: Ints) -> Ints | Bools:
        """The loads (classes × used sizes) of a valid setting; otherwise the classes that lack room.

        Args:
            counts: The records of each class.
            limits: Classes × used sizes, the most records that the buckets of a size may hold.
            used: Which sizes there are buckets of.
            n_buckets: How many, of the used sizes.
            slots: The places of each used size.
        """
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        n_classes, n_sizes = limits.shape
        n_nodes = _FIRST + n_classes + (len(self.parent) + 1) * n_sizes
        edges = np.stack(self._edges(counts, limits, self.capacity[:, used] * n_buckets, slots))
        # scipy's flows are of 32 bits, and its older ones' places too; a problem with groups has no more
        start, end, room = edges[:, edges[2] > 0].astype(np.int32)
        network = csr_array((room, (start, end)), shape=(n_nodes, n_nodes))
        found = maximum_flow(network, _SOURCE, _SINK)
        if found.flow_value < counts.sum():
            left = csr_array(network - found.flow)
            left.data = np.maximum(left.data, 0)
            left.eliminate_zeros()
            reached = breadth_first_order(left, _SOURCE, return_predecessors=False)
            return np.isin(np.arange(_FIRST, _FIRST + n_classes), reached)
        flow = found.flow.tocsr()[_FIRST : _FIRST + n_classes].toarray()
        below = flow[:, _FIRST + n_classes :].reshape(n_classes, -1, n_sizes)
        return np.asarray(below.sum(axis=1), dtype=np.int64)

    def _edges(self, counts: Ints, limits: Ints, group_limits: Ints, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """Source → classes → innermost groups, size by size → outwards → places of the size."""
        (n_classes, n_sizes), n_groups = limits.shape, len(self.parent)
        classes = np.arange(_FIRST, _FIRST + n_classes)
        nodes = np.arange((n_groups + 1) * n_sizes).reshape(n_groups + 1, n_sizes) + _FIRST + n_classes
        edges = [
            (np.full(n_classes, _SOURCE), classes, counts),
            (
                np.repeat(classes, n_sizes),
                nodes[self.inner].ravel(),
                np.minimum(limits, counts[:, None]).ravel(),
            ),
            (nodes[:-1].ravel(), nodes[list(self.parent)].ravel(), np.minimum(group_limits, slots).ravel()),
            (nodes[-1], np.full(n_sizes, _SINK), slots),
        ]
        start, end, room = (np.concatenate(parts) for parts in zip(*edges, strict=True))
        return start, end, room
