"""Independent views of one table beyond those that were planned: each multiplies the odds of a tuple.

The views of a series are drawn in view of each other; two series, or two single views, are not. A tuple of
prior d that every one of them shows in the strongest way has odds of d/(1−d)·r^k, r the largest likelihood
ratio of one series.
"""

from __future__ import annotations

from fractions import Fraction

from dalenius.mechanisms.alphabeta.frapp import FrappPlan
from dalenius.mechanisms.alphabeta.plan import AlphaBetaPlan
from dalenius.mechanisms.repeated import Repeated


def repeat_views(plan: AlphaBetaPlan | FrappPlan, times: int) -> Repeated:
    """The largest posterior of a tuple (FRAPP: of a record's tuple) after that many independent releases."""
    if isinstance(plan, FrappPlan):
        prior, ratio = plan.k / plan.domain_size, plan.gamma_f / plan.other_rate
        about = "a record's own tuple"
    else:
        prior, ratio = plan.d, plan.law.largest_ratio()
        about = "a tuple"
    return Repeated(
        times=times,
        posterior=float(repeated_ratio(prior, ratio, times)),
        promised=float(plan.promise.gamma),
        about=about,
        how="exact",
    )


def repeated_ratio(prior: Fraction, ratio: Fraction, times: int) -> Fraction:
    """The posterior after independent evidence of that likelihood ratio, that many times.

    >>> repeated_ratio(Fraction(1, 10), Fraction(3), 2)
    Fraction(1, 2)
    """
    odds = prior / (1 - prior) * ratio**times
    return odds / (1 + odds)
