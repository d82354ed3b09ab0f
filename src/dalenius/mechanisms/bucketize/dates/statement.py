"""What the manifest of a table that is published again and again says about its promise."""

from __future__ import annotations

from dalenius.mechanisms.base import Statement
from dalenius.mechanisms.bucketize.dates.plan import DatePlan
from dalenius.mechanisms.bucketize.statement import (
    ASSUMES,
    COMPOUND,
    CORRUPTION,
    DISCLOSED,
    NOT_COVERED,
    OTHER_SETS_NOT_COVERED,
    SETS_NOT_COVERED,
    SEVERAL,
)
from dalenius.promises import BucketPromise
from dalenius.tables.histogram import Histogram

_DATES_ASSUMES = (
    "who comes to the table and who leaves it says nothing about the values: whoever takes every matching of "
    "a bucket's people with its values as equally likely does so whoever of them is still there",
    "a person has the same identifier at every date",
)
_DATES_NOT_COVERED = (
    "releases about the same people outside this series",
    "an attacker who knows how coming and leaving go with values (who dies, of what)",
    "an attacker who knows that people had come before the date at which they are first published, if it was "
    "their values that they waited for: that they could not have buckets can tell these",
)
_DATES_DISCLOSED = (
    "who of a bucket's people are in the table at which date, and which people came together",
    "how many of a bucket's values are of people who are not in the table, but not which values",
)
_LEAVING_DISCLOSED = ("whose sensitive value has changed, to who knows that the person is still there",)
_LEAVING_NOT_COVERED = (
    "an attacker who knows how often which value changes: that a person's has changed speaks for the values "
    "that change most, and against them for those who stay",
)
_STAYING_ASSUMES = ("values are those of the date at which a person came; later ones are not published",)


def state_date(promise: BucketPromise, plan: DatePlan, values: Histogram, changed: str | None) -> Statement:
    """What the table of a date promises, together with those of all other dates, and what it tells."""
    return Statement(
        promise=promise.to_dict(values),
        assumes=(*ASSUMES, *_DATES_ASSUMES, *(_STAYING_ASSUMES if changed == "stays" else ())),
        not_covered=(
            CORRUPTION,
            *(text for text in NOT_COVERED if text != SEVERAL),
            *_DATES_NOT_COVERED,
            *(_LEAVING_NOT_COVERED if changed == "leaves" else ()),
            OTHER_SETS_NOT_COVERED if promise.groups else SETS_NOT_COVERED,
            *([COMPOUND] if len(values.columns) > 1 else []),
        ),
        disclosed=(
            "the number of records",
            "how often each sensitive value occurs among those who came at each date",
            *DISCLOSED[2:],
            *_DATES_DISCLOSED,
            *(_LEAVING_DISCLOSED if changed == "leaves" else ()),
        ),
        parameters={
            "buckets": plan.sizes(),
            "dates": {
                "last_bucket": plan.last_bucket + plan.n_new_buckets,
                "absent": plan.buckets.n_absent,
                "new": plan.n_new,
                "withheld": plan.n_withheld,
            },
            **({} if changed is None else {"changed": changed}),
        },
    )
