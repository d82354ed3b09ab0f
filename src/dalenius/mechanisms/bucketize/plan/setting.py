"""A publisher's own setting: so many buckets of each size, checked by one flow (Valid(B, T, F′)).

By max-flow/min-cut the setting is valid iff for every set W of its sizes Σ_i min(o_i, Σ_{S∈W} ⌊f′_i·S⌋·b_S)
is at least Σ_{S∈W} S·b_S: the q-size form of Theorem 3, of which the paper checks single sizes only (its
example 5 passes those and is not valid). A flow that falls short shows the sizes, or with groups the values,
that it falls short for, and the message says how many records are missing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dalenius.arrays import Bools, Ints
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan, assign
from dalenius.mechanisms.bucketize.plan.groups import GroupTree
from dalenius.mechanisms.bucketize.plan.problem import (
    BucketProblem,
    NoSettingFits,
    ValueClasses,
    record_bound,
)

METHOD = "given"
_HINT = "`dalenius plan` without `buckets` finds a setting; method 'optimal' the best one"
Setting = Sequence[tuple[int, int]]
"""Sizes, and how many buckets there are of each."""


def plan_setting(problem: BucketProblem, setting: Setting) -> BucketPlan:
    """How the records go into exactly these buckets.

    Raises:
        NoSettingFits: they do not, and why.

    >>> from fractions import Fraction
    >>> problem = BucketProblem(counts=(2, 2, 2), thresholds=(Fraction(1, 2),) * 3, max_bucket=4)
    >>> plan_setting(problem, ((2, 1), (4, 1))).loads
    ((1, 1), (1, 1), (0, 2))
    """
    sizes, many = (tuple(column) for column in zip(*sorted(setting), strict=True))
    n_places = sum(size * b for size, b in setting)
    if n_places != problem.n_rows:
        raise NoSettingFits(
            f"[mechanism] buckets have {n_places} places and the table has {problem.n_rows} rows",
            hint=f"sizes times numbers must add up to {problem.n_rows}; {_HINT}",
        )
    classes = ValueClasses.of(problem)
    return BucketPlan(
        method=METHOD,
        sizes=sizes,
        n_buckets=many,
        loads=classes.to_loads(_loads(problem, classes, sizes, np.array(many, dtype=np.int64))),
        lower_bound=record_bound(problem),
    )


def _loads(problem: BucketProblem, classes: ValueClasses, sizes: tuple[int, ...], many: Ints) -> Ints:
    capacity = classes.capacity_table(sizes)
    limits, slots = capacity * many, np.array(sizes, dtype=np.int64) * many
    tree = GroupTree.of(problem.groups, classes, sizes)
    if tree is not None:
        found = tree.assign(classes.totals, limits, np.arange(len(sizes)), many, slots)
        if found.dtype == np.bool_:
            raise _values_lack_room(problem, int(found[classes.class_of].sum()))
        return np.asarray(found, dtype=np.int64)
    outcome = assign(classes.totals, limits, slots)
    if outcome.loads is not None:
        return outcome.loads
    alone = (problem.capacity_table(sizes) * many).sum(axis=1) < problem.count_array()
    if alone.any():
        raise _values_lack_room(problem, int(alone.sum()))
    raise _sizes_stay_empty(classes, sizes, limits, slots, outcome.violated)


def _values_lack_room(problem: BucketProblem, n_values: int) -> NoSettingFits:
    """Some values, alone or with others of their groups, have more records than the buckets may hold."""
    whose = "with the groups that they are in" if problem.groups else "each by itself"
    return NoSettingFits(
        f"[mechanism] buckets do not keep the thresholds: {n_values} of the {problem.n_values} values have "
        f"more records than these buckets may hold of them ({whose})",
        hint=f"larger buckets may hold more of a value; {_HINT}",
    )


def _sizes_stay_empty(
    classes: ValueClasses, sizes: tuple[int, ...], limits: Ints, slots: Ints, violated: Bools | None
) -> NoSettingFits:
    """The buckets of some sizes cannot be filled within the thresholds."""
    chosen = np.ones(len(sizes), dtype=np.bool_) if violated is None else violated
    can_hold = int(np.minimum(classes.totals, limits[:, chosen].sum(axis=1)).sum())
    listed = ", ".join(str(size) for size, is_in in zip(sizes, chosen, strict=True) if is_in)
    return NoSettingFits(
        f"[mechanism] buckets do not keep the thresholds: those of size {listed} have "
        f"{int(slots[chosen].sum())} places and may hold {can_hold} of these records",
        hint=f"fewer of these, or larger ones; {_HINT}",
    )
