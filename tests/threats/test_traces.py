"""What order and files tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dalenius.randomness import Randomness
from dalenius.threats.original import People, Subject
from dalenius.threats.traces import attack_metadata, attack_table_order
from tests.auditing.releases import deal, people, write_release


def ordered(order: np.ndarray) -> People:
    table = pa.table({"uid": np.arange(len(order))})
    return People.find(table, table.take(order), ["uid"])


@pytest.mark.parametrize("order", [np.arange(200), np.arange(200)[::-1], np.roll(np.arange(200), 20)])
def test_the_sources_order_and_its_reverse_are_seen(order: np.ndarray) -> None:
    found = attack_table_order(ordered(order))
    assert found.holds is False
    assert found.recommendation is not None


def test_a_random_order_and_a_few_rows_are_not_accused() -> None:
    rng = np.random.default_rng(5)
    assert all(attack_table_order(ordered(rng.permutation(200))).holds for _ in range(50))
    assert attack_table_order(ordered(np.arange(20))).holds
    assert attack_table_order(ordered(np.arange(1))).holds


def test_cells_that_are_nobodys_count_only_where_cells_must_be_somebodys(tmp_path: Path) -> None:
    table = people(400)
    stranger = pa.table({"disease": ["d99"], "bucket": [1]})
    rng = np.random.default_rng(1)
    release = write_release(tmp_path, table, deal(table, 5, rng), rng=rng, extra=stranger)
    subject = Subject(release=release, original=table, also=(), randomness=Randomness.seeded(1))
    assert attack_metadata(subject, genuine=()).holds
    found = attack_metadata(subject, genuine=["disease"])
    assert found.holds is False
    assert found.detail["leaks"] == ["st: 1 different cells of 'disease' are nobody's in the original"]
    assert found.low == pytest.approx(1 / 3)
