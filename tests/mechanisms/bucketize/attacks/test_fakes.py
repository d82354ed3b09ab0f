"""Fakes that quasi-identifiers exclude: how many are, and why fakes that suit everybody are worse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.auditing import read_original
from dalenius.mechanisms.bucketize.attacks.association import Exclusions, learn_exclusions
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.fakes import attack_fakes_by_exclusion
from dalenius.policy import Policy

# A bucket of one woman and one man, with different values, and one fake.
WOMENS, MENS, COMMON = {0, 1}, {2, 3}, {4, 5}
VALUES = WOMENS | MENS | COMMON


def success_of_last(fakes_of: Callable[[set[int]], set[int]]) -> Fraction:
    """The best attacker knows one person's value, the law and who excludes what: exact Bayes."""
    cases = [(w, m) for w, m in product(WOMENS | COMMON, MENS | COMMON) if w != m]
    weight: dict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    for w, m in cases:
        possible = fakes_of({w, m})
        for fake in possible:
            p = Fraction(1, len(cases) * len(possible))
            weight["man known", m, frozenset({w, fake}), w] += p / 2
            weight["woman known", w, frozenset({m, fake}), m] += p / 2
    best: dict[tuple[object, ...], Fraction] = defaultdict(Fraction)
    for (*seen, _), p in weight.items():
        best[tuple(seen)] = max(best[tuple(seen)], p)
    return sum(best.values(), Fraction(0))


def test_fakes_that_nobody_in_the_bucket_excludes_tell_more_than_free_ones() -> None:
    """Where a fake is always a common value, a woman's or a man's value is real for certain."""
    free = success_of_last(lambda real: VALUES - real)
    suited = success_of_last(lambda real: (COMMON - real) or (VALUES - real))
    assert free == Fraction(19, 28)
    assert suited == Fraction(11, 14)
    assert suited > free > Fraction(1, 2)


def ward(n_rows: int = 24_000) -> pa.Table:
    """Six diseases of which sex excludes four."""
    rng = np.random.default_rng(1)
    sex = rng.choice(["F", "M"], n_rows)
    disease = np.where(sex == "F", rng.choice(list("abef"), n_rows), rng.choice(list("cdef"), n_rows))
    return pa.table({"uid": rng.permutation(n_rows), "sex": sex, "disease": disease})


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> BucketCase:
    policy = Policy.from_dict(
        {
            "source": ward(),
            "release": str(tmp_path_factory.mktemp("ward") / "r"),
            "columns": {"quasi": ["uid", "sex"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 2},
            "mechanism": {"kind": "bucketize", "fakes": 1},
        }
    )
    release = dalenius.publish(policy, seed=1).stored
    return BucketCase.load(release, read_original(policy, release))


def test_exclusions_are_learnt_through_fakes(case: BucketCase) -> None:
    """All four pairs of sex and disease that do not occur, and no other, from buckets of two and a fake."""
    found = learn_exclusions(case)
    assert (found.n, found.n_true) == (4, 4)
    assert [table.sum() for table in found.tables] == [0, 4]


def share_of_other_sex(case: BucketCase) -> float:
    """Of all pairs of a person and a fake of the bucket, those whose disease the person's sex cannot have."""
    qit, st = (pq.read_table(case.release.files(name)[0]).to_pylist() for name in ("qit", "st"))
    disease = dict(zip(*(ward()[name].to_pylist() for name in ("uid", "disease")), strict=True))
    real = {(row["bucket"], disease[row["uid"]]) for row in qit}
    fake = {row["bucket"]: row["disease"] for row in st if (row["bucket"], row["disease"]) not in real}
    return float(np.mean([fake[row["bucket"]] in {"F": "cd", "M": "ab"}[row["sex"]] for row in qit]))


def test_the_attack_counts_what_is_excluded_and_gains_by_it(case: BucketCase) -> None:
    found = attack_fakes_by_exclusion(case, learn_exclusions(case))
    assert found.detail["fakes_excluded"] == pytest.approx(share_of_other_sex(case))
    assert found.control == pytest.approx(0.5, abs=0.03)
    assert found.success == pytest.approx((found.control or 0) + found.detail["fakes_excluded"] / 2, abs=0.03)
    assert found.bound is None
    assert found.recommendation is not None


def test_without_exclusions_it_is_the_corruption_attack(case: BucketCase) -> None:
    nothing = Exclusions(
        tables=tuple(np.zeros((c.n_cells, case.n_values), dtype=bool) for c in case.people.columns), n_true=0
    )
    found = attack_fakes_by_exclusion(case, nothing)
    assert found.success == pytest.approx(found.control)
    assert found.detail["fakes_excluded"] == 0
    assert found.recommendation is None


def test_people_whom_nothing_tells_apart_are_no_trials(tmp_path: Path) -> None:
    table = pa.table({"sex": ["F", "M"] * 300, "disease": [f"d{i % 9}" for i in range(600)]})
    source = {"source": table, "release": str(tmp_path / "r")}
    columns = {"quasi": ["sex"], "sensitive": ["disease"]}
    promise = {"kind": "l-diversity", "l": 3}
    policy = {**source, "columns": columns, "promise": promise, "mechanism": {"fakes": 1}}
    release = dalenius.publish(Policy.from_dict(policy))
    audit = dalenius.audit(release.path, table, seed=1)
    assert audit.ok
    assert audit.named("fakes excluded").n_trials == 0
    assert audit.named("fakes excluded").n_failed == 600
