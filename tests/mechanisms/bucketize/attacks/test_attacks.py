"""Attacks on buckets: right releases pass, every broken one is caught, and gains are what they should be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.auditing import audit_release, read_original
from dalenius.demo_data import hospital
from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.bucketize.attacks.association import learn_exclusions
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.order import attack_dealing
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.regression import Geometry, Regression
from dalenius.question.targets import Score, Targets
from dalenius.release.folder import StoredRelease
from dalenius.threats.result import Audit
from tests.auditing.releases import codes_of, deal, people, restate_hashes, write_release


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def audit_of(folder: Path, table: pa.Table, bucket: np.ndarray, shuffled: bool = True) -> Audit:
    release = write_release(folder, table, bucket, rng=rng(77) if shuffled else None)
    return audit_release(release, table, seed=1)


def broken(audit: Audit) -> set[str]:
    return {attack.name for attack in audit.attacks if attack.holds is False}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("unique", [True, False])
def test_a_right_release_passes(seed: int, unique: bool, tmp_path: Path) -> None:
    table = people(unique=unique, seed=seed)
    release = write_release(tmp_path, table, deal(table, 5, rng(seed + 100)), rng=rng(seed + 200))
    audit = audit_release(release, table, seed=seed)
    assert audit.ok, broken(audit)
    assert audit.named("linking").success == pytest.approx(0.2)


def test_one_broken_threshold_is_caught(tmp_path: Path) -> None:
    table = people()
    bucket, codes = deal(table, 5, rng(7)), codes_of(table)
    mine = np.flatnonzero(bucket == 0)
    same = np.flatnonzero((bucket != 0) & (codes == codes[mine[0]]))[:1]
    bucket[mine[1]], bucket[same] = bucket[same][0], 0  # bucket 0 now has one value twice
    assert broken(audit_of(tmp_path, table, bucket)) == {"linking"}


def test_round_robin_in_file_order_is_caught_whatever_the_numbers(tmp_path: Path) -> None:
    table = people()
    numbers = rng().permutation(len(table) // 5)
    renumbered = numbers[deal(table, 5, None)]
    assert broken(audit_of(tmp_path, table, renumbered)) == {"dealing", "law of dealing"}


def test_numbers_in_file_order_are_caught(tmp_path: Path) -> None:
    table = people()
    bucket = deal(table, 5, rng(7))
    first = np.full(len(table) // 5, len(table))
    np.minimum.at(first, bucket, np.arange(len(table)))
    numbers = np.argsort(np.argsort(first))
    assert broken(audit_of(tmp_path, table, numbers[bucket])) >= {"bucket numbers", "law of numbers"}


def test_unshuffled_rows_are_caught(tmp_path: Path) -> None:
    table = people()
    in_order = table.take(np.argsort(codes_of(table), kind="stable"))
    assert broken(audit_of(tmp_path, in_order, deal(in_order, 5, rng(7)), shuffled=False)) == {
        "row order",
        "source order",
        "law of places",
    }
    (tmp_path / "again").mkdir()
    assert broken(audit_of(tmp_path / "again", table, deal(table, 5, rng(7)), shuffled=False)) == {
        "source order",
        "law of places",
    }


def test_metadata_and_stray_files_are_caught(tmp_path: Path) -> None:
    table = people(400)
    release = write_release(tmp_path, table, deal(table, 5, rng(7)), rng=rng())
    pq.write_table(
        pq.read_table(release.files("qit")[0]).replace_schema_metadata({"from": "ward 7"}),
        release.files("qit")[0],
    )
    (release.path / "notes.txt").write_text("see ward 7")
    with pytest.raises(ReleaseCorrupt, match="SHA-256 differs"):
        audit_release(release, table, seed=1)
    restate_hashes(release.path)
    found = audit_release(StoredRelease.open(release.path), table, seed=1).named("metadata")
    assert found.holds is False
    assert found.detail["leaks"] == [
        "notes.txt is not part of the release",
        "qit.parquet has key-value metadata (2 entries)",
    ]


def test_a_perfect_leak_is_caught_and_crashes_nothing(tmp_path: Path) -> None:
    table = people(200)
    audit = audit_of(tmp_path, table, rng().permutation(200))  # every person a bucket
    assert audit.named("linking").success == 1.0
    assert audit.named("linking").holds is False


def test_one_row_crashes_nothing(tmp_path: Path) -> None:
    table = people(200).slice(0, 1)
    release = dalenius.publish(
        dalenius.Policy.from_dict(
            {
                "source": table,
                "release": str(tmp_path / "r"),
                "columns": {"quasi": ["uid", "age", "sex"], "sensitive": ["disease"]},
                "promise": {"kind": "f-privacy", "values": {table["disease"][0].as_py(): 1}},
            }
        ),
        yes=True,
    )
    audit = dalenius.audit(release.path, table)
    assert audit.ok
    assert audit.to_dict()["private"] is True


def hospital_policy(folder: Path, table: pa.Table, times: int, **no_secrets: int) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(folder / "r"),
            "columns": {"quasi": ["age", "sex", "district", "insurance"], "sensitive": ["disease"]},
            "promise": {
                "kind": "f-privacy",
                "default": {"times": times, "plus": 0.02},
                "values": no_secrets,
            },
        }
    )


def test_definetti_gains_where_columns_go_with_values_and_not_where_they_do_not(tmp_path: Path) -> None:
    table = hospital(12_000).drop_columns(["patient_id", "name"])
    policy = hospital_policy(tmp_path, table, 4)
    found = dalenius.audit(dalenius.publish(policy, seed=1).path, policy, seed=1).named("deFinetti")
    assert found.low > found.detail["linking_by_profile"] + 0.03
    assert found.control is not None
    assert found.control > 0.28  # of people whose buckets it did not see; 0.2 is guessing
    assert found.bound is None
    assert found.holds is None
    scrambled = table
    for i in range(4):
        cells = table.column(i).take(pa.array(rng(i).permutation(len(table))))
        scrambled = scrambled.set_column(i, table.column_names[i], cells)
    (tmp_path / "scrambled").mkdir()
    policy = hospital_policy(tmp_path / "scrambled", scrambled, 4)
    nothing = dalenius.audit(dalenius.publish(policy, seed=1).path, policy, seed=1).named("deFinetti")
    assert nothing.low < nothing.detail["linking_by_profile"] + 0.01
    assert nothing.control is not None
    assert nothing.control < 0.23


def test_negative_association_excludes_what_is_excluded(tmp_path: Path) -> None:
    table = hospital(12_000).drop_columns(["patient_id", "name"])
    policy = hospital_policy(tmp_path, table, 8, Flu=1, Hypertension=1, Diabetes=1)
    release = dalenius.publish(policy, seed=1, yes=True)
    found = dalenius.audit(release.path, policy, seed=1).named("negative association")
    assert found.detail["exclusions"] >= 5
    assert found.detail["exclusions"] == found.detail["exclusions_true"]
    case = BucketCase.load(release.stored, read_original(policy, release.stored))
    tables = learn_exclusions(case).tables
    ages = np.array(case.people.columns[0].cells.to_pylist())
    young = np.flatnonzero(tables[0][:, case.labels.index("Hypertension")])
    assert len(young) >= 3
    assert ages[young].max() < 40  # its mean age is 63


def test_corruption_rises_to_certainty(tmp_path: Path) -> None:
    table = people()
    found = audit_of(tmp_path, table, deal(table, 5, rng(7))).named("corruption")
    curve = {entry["known"]: entry["success"] for entry in found.detail["curve"]}
    assert curve == pytest.approx({"0": 1 / 5, "1": 1 / 4, "2": 1 / 3, "all others": 1.0})
    assert found.bound is None


def test_an_original_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    table = people(400)
    release = write_release(tmp_path, table, deal(table, 5, rng(7)), rng=rng())
    with pytest.raises(InputError, match="no column 'uid'"):
        read_original(table.drop_columns(["uid"]), release)
    moved = table.set_column(0, "uid", pa.array(np.arange(400) + 10_000))
    with pytest.raises(InputError, match="quasi-identifiers"):
        audit_release(release, moved)


def test_a_policy_as_original_applies_its_recoding(tmp_path: Path) -> None:
    policy = dalenius.Policy.from_dict(
        {
            "source": hospital(2_000),
            "release": str(tmp_path / "r"),
            "columns": {
                "unit": "patient_id",
                "identifiers": ["name"],
                "quasi": ["age", "sex", "district", "insurance"],
                "sensitive": ["disease"],
            },
            "recode": {"age": {"bins": [0, 18, 30, 45, 65, 120]}},
            "promise": {"kind": "f-privacy", "default": {"times": 3, "plus": 0.02}},
        }
    )
    release = dalenius.publish(policy)
    assert dalenius.audit(release.path, policy, seed=1).ok
    with pytest.raises(InputError):
        dalenius.audit(release.path, hospital(2_000), seed=1)


def test_dealing_is_calibrated_on_small_tables(tmp_path: Path) -> None:
    """A hundred right releases: the statistic stays near its expectation, so the limit is no accident."""
    table = people(200)
    ratios = []
    for seed in range(100):
        (tmp_path / str(seed)).mkdir()
        release = write_release(tmp_path / str(seed), table, deal(table, 5, rng(seed)), rng=rng(seed + 500))
        found = attack_dealing(BucketCase.load(release, table))
        assert found.holds
        ratios.append((found.success, found.baseline or 0.0))
    observed, expected = np.mean(ratios, axis=0)
    assert 0.5 * expected < observed < 1.1 * expected  # it counts pairs, and three of a kind are three pairs


def test_two_releases_are_intersected_and_shared_coins_are_caught(tmp_path: Path) -> None:
    table = people()
    first, second = (
        write_release(tmp_path, table, deal(table, 5, rng(7 + i)), rng=rng(20 + i), name=f"r{i}")
        for i in range(2)
    )
    audit = audit_release(first, table, also=[second], seed=1)
    assert audit.ok
    both = audit.named("two releases")
    assert both.low > 0.3 > (both.control or 1.0)
    again = write_release(tmp_path, table, deal(table, 5, rng(7)), rng=rng(30), name="again")
    assert broken(audit_release(first, table, also=[again], seed=1)) == {"shared coins"}


def test_every_values_estimate_is_that_of_its_own_target() -> None:
    """The short way that exclusions are learnt by, against the regression that answers questions."""
    stream = rng(3)
    bucket = np.repeat(np.arange(60), 3)
    value = np.concatenate([stream.choice(5, 3, replace=False) for _ in range(60)])
    buckets = Buckets.of(bucket, bucket, value, np.ones(180, dtype=np.int64))
    scores = [Score(rows=np.sort(stream.choice(180, 60, replace=False))) for _ in range(4)]
    regression, sums = Regression(geometry=Geometry.of(buckets)), ScoreSums.of(buckets, scores)
    targets = Targets.of([[(s, row)] for s in range(4) for row in np.eye(5)])
    long = regression.estimate(sums, targets)
    estimate, variance = regression.estimate_values(sums)
    assert estimate.ravel() == pytest.approx(long.estimate)
    assert np.sqrt(variance).ravel() == pytest.approx(long.std_error)


def test_thresholds_that_differ_keep_values_together_without_shared_coins(tmp_path: Path) -> None:
    """Rare values meet in the same few buckets each time, also where dealings are independent."""
    counts = np.array([3000, 2000, 1000, 300, 100, 60, 30, 20])
    disease = rng(4).permutation(np.repeat([f"d{i}" for i in range(8)], counts))
    table = pa.table({"uid": np.arange(len(disease)), "disease": disease})
    releases = []
    for seed, name in ((1, "a"), (2, "b"), (1, "c")):
        policy = dalenius.Policy.from_dict(
            {
                "source": table,
                "release": str(tmp_path / name),
                "columns": {"quasi": ["uid"], "sensitive": ["disease"]},
                "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}},
            }
        )
        releases.append(dalenius.publish(policy, seed=seed).path)
    first, second, again = releases
    found = dalenius.audit(first, table, also=[second], seed=1).named("shared coins")
    assert found.holds
    assert found.success == pytest.approx(found.baseline, rel=0.3)
    assert dalenius.audit(first, table, also=[again], seed=1).named("shared coins").holds is False
