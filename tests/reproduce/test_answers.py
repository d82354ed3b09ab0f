"""Releases in memory answer as the definitions say, and pools ask what the papers ask."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from dalenius.demo_data import hospital
from dalenius.evaluate.original import Original
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.perturb.channel import reconstruct
from dalenius.mechanisms.perturb.plan.methods import plan_perturbation
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.randomness import Randomness
from dalenius.reproduce.answers import (
    Bucketized,
    Perturbed,
    QuestionPool,
    TrueCounts,
    anatomy,
    anatomy_pool,
    equality_pool,
)
from dalenius.reproduce.census import draw_rows, sensitive_codes, value_counts

SEED = Randomness.seeded(1)


@pytest.fixture(scope="module")
def patients() -> Original:
    return Original.of(hospital(3_000).select(["age", "sex", "district", "disease"]), ["disease"])


def conditions(n_rows: int) -> list[np.ndarray]:
    return [np.arange(n_rows), np.arange(0, n_rows, 7), np.array([], dtype=int), np.array([5])]


def test_buckets_answer_bucket_by_bucket(patients: Original) -> None:
    codes, counts = sensitive_codes(patients), value_counts(patients)
    problem = BucketProblem(counts=counts, thresholds=(Fraction(1, 2),) * len(counts), max_bucket=20)
    release = Bucketized.of(plan_buckets(problem), codes, SEED)
    home = release.buckets.row_bucket
    held = np.zeros((home.max() + 1, len(counts)))
    np.add.at(held, (home, codes), 1)  # what is in the buckets, counted from the records themselves
    share = held / held.sum(axis=1, keepdims=True)
    asked = conditions(patients.n_rows)
    expected = np.stack([share[home[rows]].sum(axis=0) for rows in asked], axis=1)
    np.testing.assert_allclose(release.by_value(asked), expected, atol=1e-9)
    np.testing.assert_allclose(release.by_value(asked)[:, 0], counts)
    truth = TrueCounts(sensitive=codes, n_values=len(counts)).by_value(asked)
    assert truth[:, 0].tolist() == list(counts)
    assert not np.allclose(truth[:, 1], expected[:, 1])


def test_perturbed_records_answer_part_by_part(patients: Original) -> None:
    codes, counts = sensitive_codes(patients), value_counts(patients)
    plan = plan_perturbation(counts, RhoPrivacy(rho1=None, rho2=Fraction(2, 3)))
    release = Perturbed.of(plan, codes, SEED)
    parts, published = release.laws.part[release.cells], release.laws.code[release.cells]
    asked = conditions(patients.n_rows)
    expected = np.zeros((len(counts), len(asked)))
    for column, rows in enumerate(asked):
        for number, channel in enumerate(plan.channels):
            seen = published[rows][parts[rows] == number]
            observed = [int((seen == code).sum()) for code in channel.codes]
            expected[list(channel.codes), column] += reconstruct(observed, channel)
    np.testing.assert_allclose(release.by_value(asked), expected, atol=1e-6)


@pytest.mark.parametrize(("ell", "n_withheld"), [(2, 0), (4, 24)])
def test_anatomy_withholds_no_more_than_it_must_and_keeps_l_values_apart(ell: int, n_withheld: int) -> None:
    # {30, 12, 8, 6}: 4-eligibility needs the top two cut to 8 (30 at most needs 56 ≥ 4·max)
    table = pa.table({"x": list(range(56)), "s": list("a" * 30 + "b" * 12 + "c" * 8 + "d" * 6)})
    if ell == 2:
        table = table.slice(4)  # {26, 12, 8, 6}: just eligible
    original = Original.of(table, ["s"])
    release = anatomy(original, ell, SEED)
    codes, home = sensitive_codes(original), release.buckets.row_bucket
    published = codes[release.place >= 0]
    assert (release.place < 0).sum() == (n_withheld if ell == 2 else 56 - 4 * 6)
    assert sorted(release.place[release.place >= 0]) == list(range(len(published)))
    for bucket in range(home.max() + 1):
        inside = published[home == bucket]
        assert len(set(inside.tolist())) == len(inside) >= ell
    everything = release.by_value([np.arange(original.n_rows)])
    assert everything.sum() == pytest.approx(len(published))


def test_pools_ask_what_the_papers_ask(patients: Original) -> None:
    truth = TrueCounts(sensitive=sensitive_codes(patients), n_values=len(value_counts(patients)))
    pool = anatomy_pool(patients, 60, SEED.stream("pool"))
    cells = pool.cells(truth)
    assert np.array_equal(cells.truth, cells.estimate)
    assert 0.002 < (cells.truth / patients.n_rows).mean() < 0.1  # expected selectivity 1 %, rounded up
    equal = equality_pool(patients, 40, SEED.stream("pool"))
    assert equal.cells(truth).truth.shape == (40 * len(value_counts(patients)),)
    every = equal.cells(truth).truth.reshape(-1, 40).sum(axis=0)
    assert every.tolist() == [len(rows) for rows in equal.conditions]


def test_drawing_records_keeps_columns_together(patients: Original) -> None:
    more = draw_rows(patients, 9_000, SEED.stream("drawn"))
    assert more.n_rows == 9_000
    known = set(zip(*patients.table.to_pydict().values(), strict=True))
    assert set(zip(*more.table.to_pydict().values(), strict=True)) <= known


def test_answers_of_a_pool_are_those_of_its_conditions_value_by_value() -> None:
    """Six people by hand: conditions of rows 0, 1, 2 and of rows 3, 4, each with every value."""
    table = pa.table({"x": [1, 1, 1, 2, 2, 3], "s": list("aabbcc")})
    original = Original.of(table, ["s"])
    asked = [np.array([0, 1, 2]), np.array([3, 4])]
    truth = TrueCounts(sensitive=sensitive_codes(original), n_values=3)
    each = QuestionPool(conditions=asked, is_counted=None, original=original).cells(truth)
    assert each.truth.tolist() == [2, 0, 1, 1, 0, 1]  # a, b and c, in both conditions
    wanted = np.array([[True, False], [True, True], [False, True]])
    together = QuestionPool(conditions=asked, is_counted=wanted, original=original).cells(truth)
    assert together.truth.tolist() == [3, 2]  # a or b among the first three; b or c among the others
    assert together.scale.tolist() == [6, 6]


def test_withheld_records_count_for_nothing() -> None:
    """Of six people the last two are withheld: a condition on them alone is answered with 0."""
    table = pa.table({"x": list(range(6)), "s": list("ababaa")})
    original = Original.of(table, ["s"])
    release = anatomy(original, 2, SEED)
    withheld = np.flatnonzero(release.place < 0)
    assert len(withheld) == 2
    assert release.by_value([withheld]).tolist() == [[0.0], [0.0]]
    assert release.by_value([np.arange(6)]).sum() == pytest.approx(4)
