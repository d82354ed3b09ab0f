"""The tables of the perturbation paper come out as far as it says how."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.perturbation import compare_partitions, compare_retentions


def test_table_1_to_the_digits_printed() -> None:
    rows = EXPERIMENTS["perturbation-table1"].run().rows
    for _, p, stated_p, q, stated_q in rows[:-1]:
        assert (round(float(p)), round(float(q))) == (stated_p, stated_q)
    assert f"{float(rows[-1][3]) / 100:.1e}" == "6.7e-05"


def test_table_2_and_our_partitions_beside_it() -> None:
    assert EXPERIMENTS["perturbation-table2"].run is compare_retentions
    for _, uniform, stated_uniform, parts, stated_parts, *_ in compare_retentions([3]).rows:
        assert uniform == pytest.approx(stated_uniform, abs=0.1)
        assert parts == pytest.approx(stated_parts, rel=0.03)


def test_table_3_has_the_stated_numbers_of_groups() -> None:
    for _, groups, stated, *_ in EXPERIMENTS["perturbation-table3"].run().rows:
        assert abs(int(groups) - int(stated)) <= 1


def test_epsilon_falls_on_both_histograms(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))
    assert EXPERIMENTS["perturbation-partition"].run is compare_partitions
    outcome = compare_partitions([3])
    assert {row[0] for row in outcome.rows} == {"OCC-like 300k", "KDD"}
    for _, _, paper, ours, fall, _, *errors in outcome.rows:
        assert float(ours) < 0.8 * float(paper)
        assert float(fall) == pytest.approx(100 * (1 - float(ours) / float(paper)))
        assert min(map(float, errors)) == errors[-1]  # least-variance
