"""What one machine tells of a table."""

from __future__ import annotations

import pyarrow as pa

from dalenius import Policy
from dalenius.engines.base import silent
from dalenius.engines.local.engine import LocalEngine


def test_a_sample_is_a_random_choice_of_about_so_many_records() -> None:
    table = pa.table({"number": range(50_000), "s": [i % 5 for i in range(50_000)]})
    columns = {"quasi": ["number"], "sensitive": ["s"]}
    policy = Policy.from_dict(
        {"source": table, "columns": columns, "promise": {"kind": "l-diversity", "l": 2}}
    )
    with LocalEngine().open(policy, None, silent) as scan:
        part = scan.sample(("number",), 10_000)["number"].to_pylist()
        assert sorted(scan.sample(("number",), 50_000)["number"].to_pylist()) == list(range(50_000))
    assert len(set(part)) == len(part)
    assert abs(len(part) - 10_000) < 600  # 6.7 standard deviations
    first_half = sum(number < 25_000 for number in part)
    assert abs(first_half - len(part) / 2) < 350  # 7
