"""What the manifest of a FRAPP view says: its promise is per record, and weaker than for a tuple."""

from __future__ import annotations

from dalenius.mechanisms.base import Statement
from dalenius.mechanisms.frapp.plan import FrappPlan
from dalenius.mechanisms.tuples.plan import (
    CHANGED,
    CORRELATED,
    LIKELY,
    PARTS,
    ROW,
    ViewPlan,
    describe_source,
    disclose_domains,
    news_of_domains,
)

_ASSUMES = (
    ROW,
    "before the release the attacker gives each tuple of the domain a probability of at most k/m for one "
    "record, independently of the other records",
)
_NOT_COVERED = (
    "whether a tuple is in the table: the promise is per record, and a tuple that the release shows j "
    "times has odds of about 1/(1−gamma)^j − 1, or of j·gamma/(1−gamma) if it can be there only once",
    CORRELATED,
    LIKELY,
    PARTS,
    "another release of this table",
    CHANGED,
)


def state_plan(plan: ViewPlan[FrappPlan]) -> Statement:
    """What a view by this plan promises, and what it tells; it has as many rows as there are records."""
    own, source = plan.law, plan.source
    counted = "different records" if source.reads == "distinct" else "records"
    return Statement(
        promise={
            **own.promise.to_dict(),
            "unit": "record",
            "k": str(own.law.k),
            "d": str(own.law.prior),
            "views": 1,
        },
        assumes=_ASSUMES,
        not_covered=(*_NOT_COVERED, *news_of_domains(source)),
        disclosed=(*disclose_domains(source), f"the number of {counted}"),
        parameters={**own.public_parameters(), **describe_source(source)},
    )
