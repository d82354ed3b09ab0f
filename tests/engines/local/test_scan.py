"""What one machine tells of a table."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dalenius import Policy
from dalenius.engines.base import silent
from dalenius.engines.local import scan as scan_module
from dalenius.engines.local.engine import LocalEngine
from dalenius.tables.sketching import records


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


def test_a_small_table_has_the_same_fingerprint_from_codes_as_from_its_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which ledgers keep: numbers of several widths, texts beyond ASCII, longer than a word, and NULL."""
    random, n_rows, key = np.random.default_rng(3), 9_000, b"k" * 32
    texts = ["", "é", "a\x00b", "longer than a word", "12345678", "\x1f", "日本"]
    table = pa.table(
        {
            "small": pa.array(random.integers(-5, 120, n_rows), pa.int32()),
            "wide": pa.array(random.integers(10**12, 10**12 + 40, n_rows), mask=random.random(n_rows) < 0.1),
            "text": pa.array(random.choice(texts, n_rows), mask=random.random(n_rows) < 0.1),
            "one": pa.array(["1"] * n_rows),
            "unsigned": pa.array(random.integers(0, 9, n_rows), pa.uint16()),
            "s": pa.array(random.integers(0, 5, n_rows)),
        }
    )
    columns = {"quasi": table.column_names[:-1], "sensitive": ["s"]}
    policy = Policy.from_dict(
        {"source": table, "columns": columns, "promise": {"kind": "l-diversity", "l": 2}}
    )
    with LocalEngine().open(policy, None, silent) as scan:
        assert not scan._can_be_joined()
        by_records = scan.fingerprint(key)
        monkeypatch.setattr(scan_module, "_MANY_CELLS", 1)
        assert scan._can_be_joined()
        monkeypatch.setattr(scan_module, "record_sums", None)
        monkeypatch.setattr(records, "_ROWS_AT_ONCE", 1000)
        assert scan.fingerprint(key) == by_records
        assert scan.fingerprint(b"other key") != by_records
