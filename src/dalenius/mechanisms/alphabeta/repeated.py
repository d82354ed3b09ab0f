"""Independent views of one table beyond those that were planned: each multiplies the odds of a tuple.

The views of a series are drawn in view of each other; two series, or two single views, are not. A tuple of
prior d that every one of them shows in the strongest way has odds of d/(1−d)·r^k, r the largest likelihood
ratio of one series.
"""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.plan import AlphaBetaPlan
from dalenius.mechanisms.repeated import Repeated, repeat_evidence


def repeat_views(plan: AlphaBetaPlan, times: int) -> Repeated:
    """The largest posterior of a tuple after that many independent series of views."""
    return Repeated(
        times=times,
        posterior=float(repeat_evidence(plan.d, plan.law.largest_ratio(), times)),
        promised=float(plan.promise.gamma),
        about="a tuple",
        how="exact",
    )
