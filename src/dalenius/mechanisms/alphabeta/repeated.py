"""Independent views of one table beyond those that were planned: each multiplies the odds of a tuple.

The views of a series are drawn in view of each other; two series, or two single views, are not. A tuple of
prior d that every one of them shows in the strongest way has odds of d/(1−d)·r^k, r the largest likelihood
ratio of one series.
"""

from __future__ import annotations

from dalenius.mechanisms.alphabeta.plan.views import AlphaBetaPlan
from dalenius.mechanisms.alphabeta.published import PublishedView
from dalenius.mechanisms.base import PlannedSeries, Repeated, repeat_evidence


def repeat_views(plan: AlphaBetaPlan, times: int) -> Repeated:
    """The largest posterior of a tuple after that many independent series of views."""
    return Repeated(
        times=times,
        posterior=float(repeat_evidence(plan.d, plan.law.largest_ratio(), times)),
        promised=float(plan.promise.gamma),
        about="a tuple",
        how="exact",
    )


def plan_series(first: PublishedView, index: int) -> PlannedSeries:
    """The limits of a series, from its first view; view number `index` is the next."""
    law, d = first.law, first.d
    # Appearing once more: the likelihood ratio grows by 1/e, the smallest rate at which noise comes again.
    once_more = law.largest_ratio() / law.decay
    # A tuple that joins at view i and appears: s against b_i, which has decayed since the first view. Then in
    # every later view, where noise that was shown comes again e times as often as a tuple of the table.
    to_come = range(min(index, law.views), law.views + 1)
    joined = max(law.retention / law.fresh_rate(i) / law.decay ** (law.views - i) for i in to_come)
    return PlannedSeries(
        views=law.views,
        promised=float(first.gamma),
        if_one_more=float(repeat_evidence(d, once_more, 1)),
        if_changed=float(repeat_evidence(d, joined, 1)),
        may_change=first.is_changing,
    )
