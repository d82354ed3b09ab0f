"""Independent FRAPP views: each one that shows a record's own tuple in its place multiplies its odds."""

from __future__ import annotations

from dalenius.mechanisms.base import Repeated, repeat_evidence
from dalenius.mechanisms.frapp.plan import FrappPlan


def repeat_records(plan: FrappPlan, times: int) -> Repeated:
    """The largest posterior of a record's tuple after that many independent views."""
    return Repeated(
        times=times,
        posterior=float(repeat_evidence(plan.law.prior, plan.law.largest_ratio(), times)),
        promised=float(plan.promise.gamma),
        about="a record's own tuple",
        how="exact",
    )
