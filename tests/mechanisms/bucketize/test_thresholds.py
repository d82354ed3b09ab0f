"""Thresholds on real tables: what a default lets a plan do, and what only the policy's own word does."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalenius
from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.bucketize.table_plan import cap_above
from dalenius.policy import Policy


def policy(diseases: list[str], **promise: Any) -> Policy:
    table = pa.table({"age": [20 + row % 50 for row in range(len(diseases))], "disease": diseases})
    return Policy.from_dict(
        {
            "source": table,
            "columns": {"quasi": ["age"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", **promise},
        }
    )


def smallest_bucket(diseases: list[str], **promise: Any) -> int:
    sizes: list[int] = [
        entry["size"] for entry in dalenius.plan(policy(diseases, **promise)).to_dict()["buckets"]
    ]
    return min(sizes)


def test_a_generous_default_puts_nobody_into_a_bucket_of_one_value() -> None:
    """Of 300 people with two values, 20 f is far above 1."""
    diseases = ["HIV"] * 120 + ["none"] * 180
    assert smallest_bucket(diseases, default={"times": 20, "plus": 1, "cap": "0.99"}) > 1
    named = {"HIV": 1, "none": 1}
    assert smallest_bucket(diseases, default={"times": 20, "plus": 1}, values=named) == 1


def test_one_value_for_all_is_refused_unless_it_is_named_with_1(tmp_path: Path) -> None:
    with pytest.raises(PromiseNotMet, match="everybody in the table has the same value of 'disease'"):
        dalenius.plan(policy(["Flu"] * 50, default={"times": 4, "plus": 0.02}))
    assert smallest_bucket(["Flu"] * 50, default={"times": 4, "plus": 0.02}, values={"Flu": 1}) == 1


def test_a_share_above_the_cap_says_which_cap_leaves_room() -> None:
    """601 of 1,001: no bucket of up to 50 people has just that share."""
    diseases = ["Flu"] * 601 + ["Cold"] * 400
    with pytest.raises(PromiseNotMet, match="max_bucket = 1001 would do") as caught:
        dalenius.plan(policy(diseases, default={"times": 4, "plus": 0.02}))
    hint = caught.value.hint or ""
    assert "makes up" in hint
    found = re.search(r"cap = ([\d.]+)$", hint)
    assert found is not None
    assert smallest_bucket(diseases, default={"times": 4, "plus": 0.02, "cap": found[1]}) > 1
    assert "Flu" not in str(caught.value) + hint


@given(share=st.fractions(0, Fraction(99_999, 100_000)), max_bucket=st.integers(2, 5_000))
def test_a_cap_with_room_is_above_the_share_and_below_1(share: Fraction, max_bucket: int) -> None:
    cap = cap_above(share, max_bucket)
    if cap is None:
        assert share >= Fraction(max_bucket - 1, max_bucket)
    else:
        assert share < cap < 1
        assert int(cap * max_bucket) > share * max_bucket
