"""Which thresholds buckets could keep, before a policy is written."""

from __future__ import annotations

from dalenius.mechanisms.feasible import Finding, TableFacts

_SUGGESTION = """\
[promise]                     # in every bucket, a value that makes up f of the table makes up at most …
kind    = "f-privacy"
default = {{ times = 4, plus = 0.02 }}           # … min(1, 4 f + 0.02); or one number for all values
# values = {{ "a value" = 0.05 }}                # stricter, or 1.0 where it is not sensitive
# kind = "l-diversity"        # instead: no value above 1/l of a bucket
# l = {l}                       # the largest this table allows

[mechanism]
kind       = "bucketize"
method     = "optimal"        # optimal | two-size | multi-size | anatomy
max_bucket = 50
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


def suggest(facts: TableFacts) -> str:
    """Sections for a policy, with thresholds that most tables allow."""
    return _SUGGESTION.format(l=find(facts).data["largest_l"] or 2)
