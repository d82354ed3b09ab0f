"""The ways of withholding records that the contract suite publishes."""

from __future__ import annotations

from tests.contract.subject import Subject


def _suppressed(method: str) -> Subject:
    """30 % of the people have one value: too many for l = 4."""
    return Subject(
        name=f"suppress {method}, bucketize",
        promise={"kind": "l-diversity", "l": 4},
        mechanism={"kind": "bucketize"},
        suppress={"method": method},
        record_table="qit",
        spark="contract" if method == "safe" else None,
        keeps_every_row=False,
        allows_certainty=False,
    )


SUBJECTS = [_suppressed("safe"), _suppressed("randomized"), _suppressed("exact")]
