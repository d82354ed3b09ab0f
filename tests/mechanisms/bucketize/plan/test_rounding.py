"""Whole numbers near a relaxed answer: they meet every cut, and are the best where all can be tried."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dalenius.mechanisms.bucketize.plan import rounding
from dalenius.mechanisms.bucketize.plan.integer import Cuts, IntegerProblem, Master
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.plan.rounding import dives, settle_more
from tests.mechanisms.bucketize.plan.test_integer import (
    all_cuts,
    best_of_all,
    check_meets,
    integer_problems,
    source_of,
)
from tests.mechanisms.bucketize.problems import all_settings


@given(integer_problems())
@settings(max_examples=80)
def test_dives_end_in_settings_that_meet_every_cut(problem: IntegerProblem) -> None:
    """Few sizes: all of them are settled by enumeration, so the first dive is the best of all."""
    wanted = best_of_all(problem)
    losses = [check_meets(problem, b) for b in dives(problem, problem.origin.astype(float), None)]
    if wanted is None:
        assert losses == []
    else:
        assert losses[0] == wanted
        assert min(losses) >= wanted


@given(integer_problems(), st.data())
@settings(max_examples=60)
def test_sizes_that_are_set_free_again_are_settled_as_well_as_can_be(
    problem: IntegerProblem, data: st.DataObject
) -> None:
    """Few sizes: all are free, and wherever the search begins it ends in the best of all."""
    near = np.array([data.draw(st.integers(0, 4)) for _ in problem.sizes], dtype=np.float64)
    known = [np.array(b) for b in all_settings(problem.n_rows, problem.sizes.tolist())]
    start = data.draw(st.sampled_from([None, *(b for b in known if problem.is_met(b))]))
    wanted, found = best_of_all(problem), settle_more(problem, near, 0.9, by=near, known=start)
    assert (found is None) == (wanted is None)
    if found is not None:
        assert check_meets(problem, found) == wanted


def test_what_enumeration_cannot_settle_branch_and_bound_does() -> None:
    """The four sizes with the most buckets are even, the number of rows is odd: none of them comes out."""
    sizes = np.array([2, 3, 4, 6, 8])
    fractional = np.array([5.0, 0.5, 4.0, 3.0, 2.0])
    problem = IntegerProblem(
        sizes=sizes,
        n_rows=63,
        cuts=Master(sizes, 63).cuts,
        origin=np.floor(fractional).astype(np.int64),
    )
    assert list(dives(problem, fractional, None)) == []
    losses = [check_meets(problem, b) for b in dives(problem, fractional, 0.9)]
    assert min(losses) == best_of_all(problem)


def test_more_sizes_than_are_enumerated_are_fixed_one_by_one() -> None:
    """Nine sizes of which the four commonest are settled last; what comes out is within the relaxed bound."""
    problem = BucketProblem(
        counts=(61, 47, 33, 21, 13, 8, 5, 3, 2),
        thresholds=tuple(
            min(Fraction(1, 2), 2 * Fraction(o, 193) + Fraction(1, 10))
            for o in (61, 47, 33, 21, 13, 8, 5, 3, 2)
        ),
        max_bucket=12,
    )
    source = source_of(problem)
    cuts = all_cuts(source)
    master = Master(source.sizes, problem.n_rows)
    master.add(cuts)
    fractional = master.solve()
    assert fractional is not None
    whole = IntegerProblem(
        sizes=source.sizes, n_rows=193, cuts=master.cuts, origin=np.floor(fractional).astype(np.int64)
    )
    losses = [check_meets(whole, b) for b in dives(whole, fractional, None)]
    assert losses
    assert master.lower_bound() <= min(losses) <= 1.05 * master.lower_bound() + 1


@pytest.mark.parametrize(("least", "wanted"), [(0, [9, 4, 1]), (5, [6, 6, 1]), (8, [3, 8, 1]), (9, None)])
def test_the_last_sizes_are_settled_within_a_window(
    least: int, wanted: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """35 rows, one bucket of 5 fixed; 4 to 8 buckets of 3 are tried, and buckets of 2 take what is left."""
    monkeypatch.setattr(rounding, "_WINDOW", 2)
    problem = IntegerProblem(
        sizes=np.array([2, 3, 5]),
        n_rows=35,
        cuts=Cuts(coefficients=np.array([[0, 1, 1]]), needs=np.array([least + 1])),
        origin=np.array([0, 0, 0]),
    )
    found = rounding._settle(problem, np.array([0, 1]), np.array([5.2, 6.4, 1.1]))
    assert (None if found is None else found.tolist()) == wanted
