"""What the manifest of a bucketized release says about its promise, and what the release tells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dalenius.mechanisms.base import Statement
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan
from dalenius.promises import BucketPromise
from dalenius.promises.proximity import Proximity
from dalenius.promises.sets import SetPrivacy

ASSUMES = (
    "one row is one person",
    "the attacker may know everybody's quasi-identifiers, and so a person's bucket, but takes every "
    "matching of a bucket's people with its sensitive values as equally likely",
)
CORRUPTION = "an attacker who knows the sensitive values of others in the bucket (corruption)"
SEVERAL = "several releases about the same people"
COMPOUND = "a single sensitive column: thresholds hold for combinations of cells"
NOT_COVERED = (
    "an attacker who learns from the release how quasi-identifiers and sensitive values go together "
    "(negative association, deFinetti)",
    "an attacker who knows that several people have the same value, as a household has one income: it is one "
    "that all of their buckets hold",
    "whether a person is in the table",
    SEVERAL,
)
SETS_NOT_COVERED = "sets of sensitive values: only each single value has a threshold"
OTHER_SETS_NOT_COVERED = "sets of sensitive values other than the groups that the promise lists"
_OTHER_DISTANCES_NOT_COVERED = (
    "guesses that may be farther off than the promise's distance, and ranges of numbers that are wider: they "
    "can hold more of a bucket"
)
_OTHER_SETS_OF_A_PERSON = (
    "that a person does not have a value, which values a person has together, and how many"
)
_KNOWN_SIZES = (
    "an attacker who knows how many values, or how many rows, a person has: nobody with one has two; the "
    "release tells it only where the promise says that the people of a bucket are alike in it"
)
_ONE_ROW_OF_SETS = "one row is one person, with all values that the person has"
_SETS_DISCLOSED = "which sets of values the people of each bucket have, and so how many values"
_ALIKE_DISCLOSED = "how often each set of values occurs among the people who are alike in {}"
DISCLOSED = (
    "the number of records",
    "how often each sensitive value occurs",
    "the size of every bucket and the sensitive values in it",
    "every record's quasi-identifiers",
)
_REGIONS_DISCLOSED = (
    "how often each sensitive value occurs in each region; every share is within its threshold",
    "where regions are cut, and that no further cut was sure to keep every threshold; both can be computed "
    "from the published quasi-identifiers and the regions' counts",
)
_REGIONS_NOT_COVERED = (
    "an attacker who knows why the publisher chose this policy (regions, their least rows, the thresholds), "
    "if it was chosen in view of the sensitive values",
)
_FAKES_DISCLOSED = ("how many values of each bucket are fakes, and the law that they were drawn by",)


def state_plan(promise: BucketPromise, plan: BucketizePlan) -> Statement:
    """What a release by this plan promises, and what it tells."""
    compound = len(plan.histogram.columns) > 1 and not plan.having
    parameters: dict[str, Any] = {"buckets": plan.to_dict()["buckets"]}
    if plan.is_varied:
        parameters["contents"] = "varied"
    corruption: str = CORRUPTION
    fakes_disclosed: tuple[str, ...] = ()
    if plan.fakes:
        parameters["fakes"] = plan.fakes.to_dict(plan.buckets, plan.histogram)
        corruption, fakes_disclosed = plan.fakes.statement(), _FAKES_DISCLOSED
    regions_disclosed: tuple[str, ...] = ()
    is_cut = plan.regions is not None and plan.regions.least_rows is not None
    if plan.regions:
        parameters["regions"] = plan.regions.to_manifest()
    if plan.regions and is_cut:
        parameters["region_least_rows"] = plan.regions.least_rows
        regions_disclosed = _REGIONS_DISCLOSED
    if isinstance(promise, SetPrivacy):
        regions_disclosed = _disclose_sets(promise)
    return Statement(
        promise=_as_planned(promise, plan).to_dict(plan.histogram),
        assumes=(_ONE_ROW_OF_SETS, *ASSUMES[1:]) if isinstance(promise, SetPrivacy) else ASSUMES,
        not_covered=(
            corruption,
            *NOT_COVERED,
            _sets_not_covered(promise),
            *([_KNOWN_SIZES] if isinstance(promise, SetPrivacy) else []),
            *(_REGIONS_NOT_COVERED if is_cut else ()),
            *([COMPOUND] if compound else []),
        ),
        disclosed=(*DISCLOSED, *fakes_disclosed, *regions_disclosed),
        parameters=parameters,
    )


def _as_planned(promise: BucketPromise, plan: BucketizePlan) -> BucketPromise:
    """With the limit of having no value that the plan keeps."""
    if not isinstance(promise, SetPrivacy):
        return promise
    return replace(promise, none_at_least=plan.having[-1].at_most)


def _disclose_sets(promise: SetPrivacy) -> tuple[str, ...]:
    named = (_ALIKE_DISCLOSED.format(", ".join(promise.alike)),) if promise.alike else ()
    return (_SETS_DISCLOSED, *named)


def _sets_not_covered(promise: BucketPromise) -> str:
    if isinstance(promise, SetPrivacy):
        return _OTHER_SETS_OF_A_PERSON
    if isinstance(promise, Proximity):
        return _OTHER_DISTANCES_NOT_COVERED
    return OTHER_SETS_NOT_COVERED if promise.groups else SETS_NOT_COVERED
