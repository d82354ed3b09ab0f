"""Numbers are dealt to buckets in an order that mixes large with small, the same for every such table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from dalenius.mechanisms.bucketize.table_plan import mix_numbers
from dalenius.tables.histogram import Histogram


def salaries(n: int = 2_000) -> pa.Table:
    """Everybody earns something else; departments differ."""
    rng = np.random.default_rng(3)
    dept = rng.integers(0, 4, n)
    return pa.table(
        {"dept": [f"d{k}" for k in dept], "salary": 20_000.0 + 9_000 * dept + 10 * rng.permutation(n)}
    )


def policy(table: pa.Table, release: Path) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(release),
            "columns": {"quasi": ["dept"], "sensitive": ["salary"]},
            "promise": {"kind": "f-privacy", "default": {"times": 2, "plus": "1/20"}},
            "mechanism": {"kind": "bucketize"},
        }
    )


def test_buckets_hold_random_numbers_not_neighbours(tmp_path: Path) -> None:
    table = salaries()
    release = dalenius.publish(policy(table, tmp_path / "r"), seed=1)
    assert release.verify().ok
    held = pq.read_table(release.stored.files("st")[0]).to_pandas()
    means = held.groupby("bucket")["salary"].mean()
    salary = table["salary"].to_numpy()
    expected = salary.std() / np.sqrt(len(held) / len(means))
    assert 0.6 * expected < means.std() < 1.5 * expected  # in their own order: 0, or that of all salaries
    assert (held.groupby("bucket")["salary"].agg(np.ptp) > 0.4 * np.ptp(salary)).all()
    answer = release.ask("SELECT dept, AVG(salary) FROM t GROUP BY dept")
    for row, truth in zip(answer.rows, table.to_pandas().groupby("dept")["salary"].mean(), strict=True):
        assert row.low is not None
        assert row.high is not None
        assert row.low < truth < row.high


def test_the_order_is_a_function_of_the_number_of_values() -> None:
    schema, texts = pa.schema([("x", pa.int64())]), pa.schema([("x", pa.string())])
    many = Histogram.of(("x",), {(k,): 1 for k in range(500)})
    others = Histogram.of(("x",), {(10 * k,): 1 + k % 2 for k in range(500)})
    mixed = mix_numbers(many, schema)
    assert mixed == mix_numbers(many, schema)
    assert sorted(mixed.values) == list(many.values)
    assert [10 * k for (k,) in mixed.values] == [k for (k,) in mix_numbers(others, schema).values]
    assert mixed.values != many.values
    assert mix_numbers(many, texts) is many
    few = Histogram.of(("x",), {(k,): 1 for k in range(100)})
    assert mix_numbers(few, schema) is few
