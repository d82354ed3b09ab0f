"""The ways of bucketizing that the contract suite publishes."""

from __future__ import annotations

from typing import Any, Literal

from tests.contract.subject import Subject

LINEAR = {"kind": "f-privacy", "default": {"times": 2, "plus": 0.05}}
DIVERSE = {"kind": "l-diversity", "l": 2}


def _bucketize(
    method: str, promise: dict[str, Any], spark: Literal["contract"] | None = None, **more: Any
) -> Subject:
    return Subject(
        name=f"bucketize {method} {promise['kind']}{' regions' if more else ''}",
        promise=promise,
        mechanism={"kind": "bucketize", "method": method, **more},
        record_table="qit",
        spark=spark,
        allows_certainty=False,
    )


SUBJECTS = [
    _bucketize("optimal", LINEAR, spark="contract"),
    _bucketize("optimal", DIVERSE),
    _bucketize("two-size", LINEAR),
    _bucketize("multi-size", LINEAR),
    _bucketize("anatomy", DIVERSE),
    _bucketize("optimal", LINEAR, regions=True),
    _bucketize("two-size", DIVERSE, regions=60),
]
