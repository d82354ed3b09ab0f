"""A subject of the contract suite that publishes whole tuples."""

from __future__ import annotations

from typing import Any

from tests.contract.subject import Subject


def view(name: str, promise: dict[str, Any], mechanism: dict[str, Any], **more: Any) -> Subject:
    return Subject(
        name=f"alpha-beta {name}",
        promise={"kind": "d-gamma-privacy", "gamma": 0.3, **promise},
        mechanism={"kind": "alpha-beta", **mechanism},
        record_table="view",
        keeps_every_row=False,
        is_sorted=True,
        group_rows=1_500,  # the noise decides how many groups there are
        allows_certainty=True,  # a value that everybody has is not a tuple that somebody has
        **more,
    )
