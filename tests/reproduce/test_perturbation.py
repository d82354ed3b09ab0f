"""The tables of the perturbation paper come out as far as it says how."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from dalenius.mechanisms.perturb.plan.methods import plan_as_in_paper
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.reproduce import perturbation
from dalenius.reproduce.catalogue import EXPERIMENTS
from dalenius.reproduce.perturbation import compare_partitions, compare_retentions


def test_table_1_to_the_digits_printed() -> None:
    rows = EXPERIMENTS["perturbation-table1"].run().rows
    for _, p, stated_p, q, stated_q in rows[:-1]:
        assert (round(float(p)), round(float(q))) == (stated_p, stated_q)
    assert f"{float(rows[-1][3]) / 100:.1e}" == "6.7e-05"


def test_table_2_and_our_partitions_beside_it() -> None:
    """UP to the digits printed; PP as near as the shapes between the stated ends are to each other."""
    assert EXPERIMENTS["perturbation-table2"].run is compare_retentions
    digit = 0.05
    for _, uniform, stated_uniform, parts, least, most, stated_parts, *_ in compare_retentions([4]).rows:
        assert uniform == pytest.approx(stated_uniform, abs=digit)
        assert parts == pytest.approx(stated_parts, abs=float(most) - float(least) + digit)


def test_table_3_has_as_many_groups_as_stated() -> None:
    """The shape between the ends decides which of the stated 17 to 20 groups a table has."""
    for _, groups, *_ in EXPERIMENTS["perturbation-table3"].run().rows:
        assert 17 <= int(groups) <= 20


def test_epsilon_falls_on_both_histograms(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DALENIUS_DATA", str(real_data))
    assert EXPERIMENTS["perturbation-partition"].run is compare_partitions
    outcome = compare_partitions([3])
    assert {row[0] for row in outcome.rows} == {"OCC-like 300k", "KDD"}
    for _, _, paper, ours, fall, _, *errors in outcome.rows:
        assert float(ours) < float(paper)
        assert float(fall) == pytest.approx(100 * (1 - float(ours) / float(paper)))
        assert min(map(float, errors)) == errors[-1]  # least-variance


def test_balancing_and_merging_of_the_example() -> None:
    outcome = EXPERIMENTS["perturbation-fig1"].run()
    assert all(ours == stated for _, ours, stated in outcome.rows[:5])
    assert [row[1] for row in outcome.rows[5:]] == [
        "6 values, gamma 4, p+q 4/9",
        "6 values, gamma 10, p+q 2/3",
    ]
    assert "β = 3" in outcome.differs
    assert "0.52577" in outcome.differs


def test_table_1_is_the_formula_of_m_and_gamma() -> None:
    """p = (γ−1)/(m−1+γ) and q = 1/(m−1+γ) with γ = 5, in per cent."""
    for m, p, _, q, _ in EXPERIMENTS["perturbation-table1"].run().rows[:-1]:
        assert p == pytest.approx(100 * 4 / (int(m) + 4))
        assert q == pytest.approx(100 / (int(m) + 4))
        # a value is kept, or replaced by any of the m, itself among them
        assert float(p) + int(m) * float(q) == pytest.approx(100)


def test_averages_are_over_parts_and_not_over_records() -> None:
    plan = plan_as_in_paper((12, 8, 6, 5, 4, 3, 1, 1, 1, 1), RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
    # examples 1 and 2: parts of six and six values, γ of 4 and 10
    sizes = [len(part.codes) for part in plan.parts]
    found = perturbation._averages(plan)
    assert found == pytest.approx((sum(sizes) / len(sizes), 7.0))
    assert sorted(part.gamma for part in plan.parts) == [4, 10]
