"""Which thresholds buckets could keep, before a policy is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.exact import percent, show
from dalenius.mechanisms.bucketize.config import BucketizeConfig
from dalenius.mechanisms.bucketize.plan.methods import has_setting
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.regions.advice import RegionAdvice
from dalenius.mechanisms.bucketize.table_plan import cap_above
from dalenius.mechanisms.feasible import Finding, Proposal, TableFacts, Wish
from dalenius.promises.f_privacy import CAP, FPrivacy, LinearLimit
from dalenius.tables.histogram import Histogram
from dalenius.tables.uniqueness import toml_key

TIMES, PLUS, MAX_BUCKET = Fraction(4), Fraction(1, 50), 50
"""Of the default that a first policy has: rare values within buckets of 50, common ones below the cap."""
_SUGGESTION = """\
[promise]                     # in every bucket, a value that makes up f of the table makes up at most …
kind    = "f-privacy"
{why}default = {{ times = {times}, plus = {plus}, cap = {cap} }}   # … min(cap, {times} f + {plus})
# values = {{ "a value" = 0.05 }}                # stricter for one value; 1.0 where it is no secret
# kind = "l-diversity"        # instead: no value above 1/l of a bucket
{l}

[mechanism]
kind       = "bucketize"
method     = "optimal"        # optimal | two-size | multi-size | anatomy
max_bucket = {max_bucket}
"""


def find(facts: TableFacts) -> Finding:
    """The largest ℓ that a release can keep (Lemma 1); None without a histogram."""
    if facts.histogram is None:
        return Finding(data={"largest_l": None})
    largest = facts.n_rows // max(facts.histogram.counts)
    text = (
        f"\nfeasible: l-diversity up to l = {largest}; f-privacy with any thresholds that are not below the "
        "shares above"
    )
    return Finding(data={"largest_l": largest}, text=(text,))


@dataclass(frozen=True, slots=True, kw_only=True)
class SafeDefault:
    """A cap and a largest bucket with which a plan exists in which no bucket holds one value only."""

    cap: Fraction
    max_bucket: int


def find_safe_default(
    histogram: Histogram, times: Fraction = TIMES, least: Fraction = CAP
) -> SafeDefault | None:
    """The smallest buckets, from 50 people on, that keep a default; None: everybody has the same value.

    The cap is `least`, or what is just above the share of a value that is commoner. One bucket of all people
    keeps any, so that the search ends.
    """
    share = Fraction(max(histogram.counts), histogram.n_rows)
    if share == 1:
        return None
    max_bucket = MAX_BUCKET
    while True:
        for cap in (least, cap_above(share, max_bucket)):
            if cap is not None and cap >= least and _keeps(histogram, times, cap, max_bucket):
                return SafeDefault(cap=cap, max_bucket=max_bucket)
        max_bucket *= 2


def _keeps(histogram: Histogram, times: Fraction, cap: Fraction, max_bucket: int) -> bool:
    return has_setting(_problem(histogram, times, cap, max_bucket), "optimal", max_bucket)


def _problem(histogram: Histogram, times: Fraction, cap: Fraction, max_bucket: int) -> BucketProblem:
    promise = FPrivacy(default=LinearLimit(times=times, plus=PLUS, cap=cap))
    thresholds = promise.thresholds(histogram)
    return BucketProblem(counts=histogram.counts, thresholds=thresholds, max_bucket=max_bucket)


def suggest(facts: TableFacts) -> str:
    """Sections for a policy, with a default that gives nobody in this table away."""
    histogram = facts.histogram
    return _write(facts, histogram, None if histogram is None else find_safe_default(histogram), TIMES, CAP)


def _write(
    facts: TableFacts,
    histogram: Histogram | None,
    safe: SafeDefault | None,
    times: Fraction,
    least: Fraction,
) -> str:
    largest = find(facts).data["largest_l"]
    return _SUGGESTION.format(
        why="".join(f"# {line}\n" for line in _explain(histogram, safe, least)),
        times=times,
        plus=show(PLUS),
        cap=_toml(least if safe is None else safe.cap),
        max_bucket=MAX_BUCKET if safe is None else safe.max_bucket,
        l="# l = 2                       # or more"
        if largest is None
        else f"# l = {largest}                       # the largest this table allows"
        if largest >= 2
        else "# l = 2                       # with [suppress]: a value is too common for any l otherwise",
    )


_ALONE = """\
a value is all sensitive columns together: one by itself can be certain (`dalenius plan` says for how many),
and has a limit where a line below `default` says so, e.g.
groups = {{ ill = {{ values = [{{ {column} = "a value" }}], at_most = 0.5 }} }}"""
_STRICT = {"colleagues": (TIMES, CAP), "researchers": (TIMES, CAP), "public": (Fraction(2), Fraction(1, 3))}
"""How often its share a value may become, and the cap, by who gets the release."""
_REGIONS = "regions    = true            # buckets of people who are alike: mostly sharper, same promise\n"
_BATCHES = """
[series]                      # each publication is about other people, and is one batch
kind = "batches"
"""


def propose(facts: TableFacts, wish: Wish) -> Proposal | None:
    """Buckets, for counts about people's values; the same people cannot be published in buckets twice."""
    if wish.hide != "value" or wish.questions != "counts" or wish.again == "same":
        return None
    histogram = facts.histogram
    share = None if histogram is None else Fraction(max(histogram.counts), histogram.n_rows)
    series = _BATCHES if wish.again == "others" else ""
    reasons = [
        "bucketize: what is asked are counts, and the other columns are published as they are, so that "
        "counts of them are exact",
    ]
    if wish.again == "others":
        reasons.append("[series]: each publication is about other people; nobody may be in two of them")
    if wish.withhold and share is not None and share > CAP and len(histogram or ()) > 1:
        reasons.append(
            f"l-diversity with [suppress]: one value makes up {percent(share)} of the table; leaving some of "
            "its records out keeps everybody at one half, and hides which value it was"
        )
        text = '[promise]\nkind = "l-diversity"\nl    = 2\n\n[suppress]\nmethod = "safe"\n'
        return Proposal(
            sections=text + '\n[mechanism]\nkind = "bucketize"\n' + series, reasons=tuple(reasons)
        )
    times, least = _STRICT[wish.recipients]
    safe = None if histogram is None else find_safe_default(histogram, times, least)
    if wish.recipients == "public":
        reasons.append("twice its share at most, for anybody's value: the public cannot be held to rules")
    else:
        reasons.append("four times its share at most: recipients are bound by rules that you can enforce")
    regions = ""
    if histogram is not None and safe is not None:
        advice = RegionAdvice.of(_problem(histogram, times, safe.cap, safe.max_bucket))
        reasons.append(advice.reason)
        regions = _REGIONS if advice.is_for else ""
    return Proposal(
        sections=_write(facts, histogram, safe, times, least) + regions + series,
        reasons=tuple(reasons),
    )


def _explain(histogram: Histogram | None, safe: SafeDefault | None, least: Fraction) -> tuple[str, ...]:
    if histogram is None:
        return (
            "with a cap below 1 nobody's value is certain in any bucket; `dalenius plan` says what it takes",
        )
    column, share = " × ".join(histogram.columns), max(histogram.counts) / histogram.n_rows
    if safe is None:
        return (
            f"NO default can protect {column}: everybody in the table has the same value, and every",
            "release tells it. If it is no secret the column is quasi; else there is nothing to publish.",
        )
    found = "computed for this table: in no bucket is anybody's value certain"
    alone = _ALONE.format(column=toml_key(histogram.columns[0]))
    lines = alone.splitlines() if len(histogram.columns) > 1 else ()
    if safe.cap == least and safe.max_bucket == MAX_BUCKET:
        return found, *lines
    return (
        f"{found}; but the commonest makes up {percent(share)},",
        f"and nobody can be kept from guessing it. Buckets of up to {safe.max_bucket} can keep this cap.",
        *lines,
    )


def _toml(number: Fraction) -> str:
    """A decimal, or a fraction in quotes where none is exact."""
    text = show(number)
    return text if text.replace(".", "").isdigit() else f'"{number}"'


def match(facts: TableFacts, promise: Mapping[str, Any]) -> dict[str, Any] | None:
    """How buckets would keep a promise about values: the sections of a policy."""
    if promise.get("kind") not in BucketizeConfig.promises or facts.histogram is None:
        return None
    safe = find_safe_default(facts.histogram)
    largest = MAX_BUCKET if safe is None else safe.max_bucket
    return {"promise": dict(promise), "mechanism": {"kind": "bucketize", "max_bucket": largest}}
