"""What is said about regions before anything is cut, beside what cutting then does."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import dalenius
from dalenius.mechanisms.bucketize.feasible import propose
from dalenius.mechanisms.feasible import TableFacts, Wish
from dalenius.tables.histogram import Histogram

N_ROWS = 4_000


def plan(times: int, **changes: Any) -> Any:
    table = pa.table(
        {
            "age": [18 + row * 7 % 60 for row in range(N_ROWS)],
            "sex": ["F" if row % 3 else "M" for row in range(N_ROWS)],
            "disease": [f"d{(row * 5 + row // 7) % 9}" for row in range(N_ROWS)],
        }
    )
    parts: dict[str, Any] = {
        "columns": {"quasi": ["age", "sex"], "sensitive": ["disease"]},
        "promise": {"kind": "f-privacy", "default": {"times": times, "plus": "0.02"}},
        "mechanism": {"kind": "bucketize"},
    }
    return dalenius.plan(dalenius.Policy.from_dict({"source": table, **parts, **changes}))


def test_regions_are_advised_where_the_rule_cuts_and_not_where_it_does_not() -> None:
    for times, is_advised in ((6, True), (1, False)):
        said = plan(times).to_dict()["regions_advice"]
        assert said["advised"] == is_advised
        assert (said["at_most_about"] > 1) == is_advised
        assert said["reason"] in str(plan(times))
        cut = plan(times, mechanism={"kind": "bucketize", "regions": True}).to_dict()
        assert (cut["regions"]["count"] > 1) == is_advised
        assert "regions_advice" not in cut


@pytest.mark.parametrize(
    "changes",
    [
        {"mechanism": {"kind": "bucketize", "fakes": 1}},
        {"mechanism": {"kind": "bucketize", "method": "anatomy"}, "promise": {"kind": "l-diversity", "l": 3}},
        {"mechanism": {"kind": "bucketize", "min_bucket": 2}},
        {"columns": {"quasi": [], "sensitive": ["disease"], "dropped": ["age", "sex"]}},
    ],
)
def test_nothing_is_said_about_regions_that_cannot_be(changes: dict[str, Any]) -> None:
    found = plan(6, **changes)
    assert "regions_advice" not in found.to_dict()
    assert "regions" not in str(found)


def test_choose_writes_regions_where_they_help_and_says_why_where_not() -> None:
    histogram = Histogram(columns=("d",), values=tuple((f"d{i}",) for i in range(9)), counts=(444,) * 9)
    facts = TableFacts(n_rows=histogram.n_rows, columns=(), histogram=histogram)
    few = Histogram(columns=("d",), values=histogram.values, counts=(30,) * 9)
    small = TableFacts(n_rows=few.n_rows, columns=(), histogram=few)
    wish = Wish(recipients="researchers", questions="counts", hide="value", withhold=False, again="no")
    for table, is_written in ((facts, True), (small, False)):
        found = propose(table, wish)
        assert found is not None
        assert ("\nregions    = true" in found.sections) == is_written
        assert any(reason.startswith("regions = true would") for reason in found.reasons)
