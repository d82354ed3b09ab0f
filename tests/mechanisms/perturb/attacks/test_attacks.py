"""Attacks on perturbed data: right releases pass, too much retention and shared coins are caught."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.auditing import audit_release
from dalenius.mechanisms.perturb.attacks.laws import PerturbCase
from dalenius.threats.result import Audit
from tests.auditing.releases import people, sign

N_ROWS = 20_000


def publish(
    folder: Path,
    table: pa.Table,
    name: str = "r",
    method: str = "small-domain",
    rho1: str = "max",
    **more: int,
) -> Path:
    policy = dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(folder / name),
            "columns": {"quasi": ["uid", "age", "sex"], "sensitive": ["disease"]},
            "promise": {"kind": "rho-privacy", "rho1": rho1, "rho2": "1/3"},
            "mechanism": {"kind": "perturb", "method": method},
        }
    )
    return dalenius.publish(policy, seed=more.get("seed"), again=True).path


def broken(audit: Audit) -> set[str]:
    return {attack.name for attack in audit.attacks if attack.holds is False}


def keep_more(path: Path, table: pa.Table, share: float) -> None:
    """Give this share of all records their own value back, whatever the coins said."""
    data = pq.read_table(path / "data.parquet")
    truth = np.array(table["disease"].to_pylist())[np.argsort(table["uid"].to_numpy())][
        data["uid"].to_numpy()
    ]
    lucky = np.random.default_rng(5).random(len(truth)) < share
    published = np.where(lucky, truth, np.array(data["disease"].to_pylist()))
    column = data.column_names.index("disease")
    pq.write_table(
        data.set_column(column, "disease", pa.array(published)), path / "data.parquet", store_schema=False
    )
    sign(path)


@pytest.mark.parametrize("method", ["small-domain", "uniform"])
def test_a_right_release_passes(method: str, tmp_path: Path) -> None:
    for seed in range(3):
        table = people(N_ROWS, seed=seed)
        audit = dalenius.audit(publish(tmp_path, table, str(seed), method), table, seed=1)
        assert audit.ok, broken(audit)
        found = audit.named("linking")
        assert found.bound == pytest.approx(1 / 3)
        assert found.success > 0.2 > (found.baseline or 0)


@pytest.mark.parametrize("method", ["small-domain", "uniform"])
def test_two_per_cent_too_much_retention_is_caught(method: str, tmp_path: Path) -> None:
    table = people(2 * N_ROWS)
    path = publish(tmp_path, table, method=method, seed=1)
    assert dalenius.audit(path, table, seed=1).ok
    keep_more(path, table, 0.025)  # of those not kept already: about 2 % of all
    assert broken(dalenius.audit(path, table, seed=1)) == {"retention", "law of values"}


def test_a_perfect_leak_is_caught_everywhere(tmp_path: Path) -> None:
    table = people(N_ROWS)
    path = publish(tmp_path, table)
    keep_more(path, table, 1.0)
    audit = dalenius.audit(path, table, seed=1)
    assert {"retention", "linking"} <= broken(audit)
    assert audit.named("linking").success > 0.9


def test_unshuffled_rows_are_caught(tmp_path: Path) -> None:
    table = people(2_000)
    path = publish(tmp_path, table)
    data = pq.read_table(path / "data.parquet")
    place = np.empty(len(table), dtype=np.int64)
    place[table["uid"].to_numpy()] = np.arange(len(table))
    order = np.argsort(place[data["uid"].to_numpy()])
    pq.write_table(data.take(order), path / "data.parquet", store_schema=False)
    sign(path)
    assert broken(dalenius.audit(path, table, seed=1)) == {"source order", "law of order"}


def test_two_releases_add_up_and_shared_coins_are_caught(tmp_path: Path) -> None:
    table = people(N_ROWS)
    first, second = (publish(tmp_path, table, f"r{i}", "uniform") for i in range(2))
    audit = dalenius.audit(first, table, also=[second], seed=1)
    assert audit.ok
    both = audit.named("two releases")
    assert both.control is not None
    assert both.success > both.control + 0.03
    seeded = [publish(tmp_path, table, f"s{i}", "uniform", seed=4) for i in range(2)]
    assert broken(dalenius.audit(seeded[0], table, also=[seeded[1]], seed=1)) == {"shared coins"}


def test_another_prior_is_bounded_by_uniform_perturbation_and_not_by_parts(tmp_path: Path) -> None:
    counts = (12, 8, 6, 5, 4, 3, 1, 1, 1, 1)
    disease = np.repeat([f"d{i}" for i in range(10)], np.array(counts) * 60)
    rng = np.random.default_rng(1)
    table = pa.table({"uid": rng.permutation(len(disease)), "age": rng.integers(20, 60, len(disease))})
    table = table.append_column("sex", pa.array(["F"] * len(disease))).append_column(
        "disease", pa.array(disease)
    )
    parts = dalenius.audit(publish(tmp_path, table, "parts"), table, seed=1)
    uniform = dalenius.audit(publish(tmp_path, table, "uniform", "uniform"), table, seed=1)
    found = parts.named("another prior")
    assert found.bound is None
    assert found.detail["largest_posterior"] == 1.0  # the paper's example 1: the part rules a value out
    assert found.detail["certain"] > 0
    safe = uniform.named("another prior")
    assert safe.holds is True
    assert safe.detail["certain"] == 0
    assert safe.detail["largest_posterior"] == pytest.approx(1 / 3, abs=1e-9)


def test_gamma_tells_the_commonest_count_to_who_knows_all_others(tmp_path: Path) -> None:
    table = people(N_ROWS)
    audit = dalenius.audit(publish(tmp_path, table, method="uniform"), table, seed=1)
    found = audit.named("corruption")
    assert found.bound is None
    assert found.detail["people_known_for_certain"] == int(0.15 * N_ROWS)  # all that have the commonest value


def test_the_list_of_values_tells_who_has_one_alone(tmp_path: Path) -> None:
    table = people(2_000, unique=True)
    disease = table["disease"].to_pylist()
    disease[:2] = ["Kuru", "Plague"]
    table = table.set_column(table.column_names.index("disease"), "disease", pa.array(disease))
    path = publish(tmp_path, table, method="uniform", rho1="1/5")
    found = dalenius.audit(path, table, seed=1).named("corruption")
    assert found.detail["people_known_for_certain"] == 2
    assert found.bound is None


def test_the_case_numbers_values_as_the_manifest_does(tmp_path: Path) -> None:
    table = people(2_000, unique=True)
    release = dalenius.open_release(publish(tmp_path, table))
    case = PerturbCase.load(release.stored, table)
    names = [value[0] for value in release.manifest["parameters"]["values"]]
    assert case.labels == tuple(names)
    assert [names[code] for code in case.value] == table["disease"].to_pylist()
    guesses = audit_release(release.stored, table, seed=1).named("linking").detail["values"]
    assert {guess["value"] for guess in guesses} <= set(names)
    assert case.rho2 == Fraction(1, 3)
    assert len(case.known) == len(table)
    truth = dict(zip(table["uid"].to_pylist(), table["disease"].to_pylist(), strict=True))
    uids = pq.read_table(release.path / "data.parquet")["uid"].to_pylist()
    assert [names[code] for code in case.row_truth] == [truth[uid] for uid in uids]


def test_without_unique_people_nothing_is_claimed(tmp_path: Path) -> None:
    table = (
        people(2_000).set_column(0, "uid", pa.array([0] * 2_000)).set_column(1, "age", pa.array([1] * 2_000))
    )
    release = dalenius.open_release(publish(tmp_path, table))
    audit = audit_release(release.stored, table, seed=1)
    assert audit.ok
    assert audit.named("retention").n_trials == 0
    assert audit.named("retention").n_failed == 2_000
