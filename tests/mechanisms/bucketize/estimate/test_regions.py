"""Estimates from regions: the regions' own assignments, and what goes wrong if regions are ignored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius import Policy
from dalenius.ask import ask_many
from dalenius.mechanisms.bucketize.estimate import make_estimator
from dalenius.mechanisms.bucketize.estimate.buckets import Buckets, ScoreSums
from dalenius.mechanisms.bucketize.estimate.regions import RegionalRegression, RegionalShrinkage, Regions
from dalenius.question.targets import Score, Targets
from tests.chance import Z
from tests.mechanisms.bucketize.estimate.test_estimate import buckets_of

N_REGIONS, N_ROWS, N_VALUES = 3, 1800, 4


def table(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Region, sensitive value and a 0/1 column: the regions differ in both, and in how they go together."""
    rng = np.random.default_rng(seed)
    region = rng.integers(N_REGIONS, size=N_ROWS)
    value = (rng.random(N_ROWS) ** (1 + region) * N_VALUES).astype(int)
    mean = 0.15 + 0.3 * region + 0.2 * (value == 1) * (region != 1)
    return region, value, rng.random(N_ROWS) < mean


def dealt(region: np.ndarray, value: np.ndarray, seed: int) -> tuple[Buckets, np.ndarray]:
    """About 5 records a bucket, by chance inside each region: contents vary from bucket to bucket."""
    rng = np.random.default_rng(7)
    bucket, first = np.empty(N_ROWS, dtype=np.int64), 0
    for r in range(N_REGIONS):
        own = np.flatnonzero(region == r)
        places = np.sort(rng.integers(len(own) // 5, size=len(own)))
        places = np.unique(places, return_inverse=True)[1].ravel()
        rng.shuffle(places)  # the same contents for every seed; which record takes a place is random
        for v in range(N_VALUES):
            of_value = np.flatnonzero(value[own] == v)
            places[of_value] = np.random.default_rng([seed, r, v]).permutation(places[of_value])
        bucket[own] = first + places
        first += int(places.max()) + 1
    buckets = buckets_of(bucket, value)
    region_of_bucket = np.empty(first, dtype=np.int64)
    region_of_bucket[bucket] = region
    return buckets, region_of_bucket


WEIGHTS = np.array([0.0, 1.0, 0.0, 0.0])


def test_regression_per_region_is_unbiased_and_over_all_buckets_it_is_not() -> None:
    region, value, holds = table(1)
    truth = float((holds & (value == 1)).sum())
    found: dict[str, list[float]] = {"regions": [], "ignored": []}
    errors = []
    for seed in range(80):
        buckets, region_of_bucket = dealt(region, value, seed)
        sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(holds))])
        targets = Targets.of([[(0, WEIGHTS)]])
        own = make_estimator("regression", buckets, [], region_of_bucket).estimate(sums, targets)
        found["regions"].append(own.estimate[0])
        errors.append(own.std_error[0])
        whole = make_estimator("regression", buckets, []).estimate(sums, targets)
        found["ignored"].append(whole.estimate[0])
    spread = {name: np.std(values, ddof=1) for name, values in found.items()}
    bias = {name: abs(np.mean(values) - truth) / (spread[name] / 80**0.5) for name, values in found.items()}
    assert bias["regions"] < Z
    assert bias["ignored"] > 2 * Z
    assert 0.8 < np.mean(errors) / spread["regions"] < 1.3


def test_parts_of_a_release_are_releases() -> None:
    region, value, holds = table(2)
    buckets, region_of_bucket = dealt(region, value, 0)
    regions = Regions.of(buckets, region_of_bucket)
    age = np.arange(N_ROWS, dtype=float)
    scores = [Score(rows=np.flatnonzero(holds)), Score(rows=np.arange(N_ROWS), values=age)]
    for r, sums in enumerate(regions.sums(scores)):
        here = region == r
        assert sums.total.tolist() == [float((holds & here).sum()), float(age[here].sum())]
        assert sums.buckets.n_rows == here.sum()
        counts = np.zeros(N_VALUES)
        counts[regions.values[r]] = sums.buckets.counts
        assert counts.tolist() == np.bincount(value[here], minlength=N_VALUES).tolist()


def test_what_is_known_exactly_has_no_error() -> None:
    """All values together: a region's total is published."""
    region, value, holds = table(3)
    buckets, region_of_bucket = dealt(region, value, 0)
    sums = ScoreSums.of(buckets, [Score(rows=np.flatnonzero(holds))])
    targets = Targets.of([[(0, np.ones(N_VALUES))]])
    regions = Regions.of(buckets, region_of_bucket)
    for estimator in (RegionalShrinkage.of(regions, [holds.astype(int)]), RegionalRegression.of(regions)):
        found = estimator.estimate(sums, targets)
        assert found.estimate[0] == pytest.approx(holds.sum())
        assert found.std_error[0] < 1e-4


def test_one_region_is_a_release_without_regions() -> None:
    region, value, holds = table(4)
    buckets, _ = dealt(region, value, 0)
    codes = [holds.astype(int)]
    one = np.zeros(len(buckets.size), dtype=np.int64)
    assert type(make_estimator("shrinkage", buckets, codes, one)) is type(
        make_estimator("shrinkage", buckets, codes)
    )


def people(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    age, sex, town = rng.integers(20, 80, n), rng.integers(0, 2, n), rng.integers(0, 4, n)
    disease = (rng.integers(0, 12, n) + 2 * sex * (rng.random(n) < 0.5) + age // 30) % 12
    cells = {"age": age, "sex": np.array(["f", "m"])[sex], "town": np.array(list("abcd"))[town]}
    return pa.table({**cells, "disease": [f"d{code:02d}" for code in disease]})


def policy(source: pa.Table, release: Path, **more: object) -> Policy:
    return Policy.from_dict(
        {
            "source": source,
            "release": str(release),
            "columns": {"quasi": ["age", "sex", "town"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": "0.05"}},
            "mechanism": {"kind": "bucketize", "max_bucket": 20, "regions": 100},
            **more,
        }
    )


def questions() -> list[str]:
    return [
        f"SELECT COUNT(*) FROM t WHERE sex = '{sex}' AND age < {age} AND disease IN ('d{code:02d}', 'd11')"
        for sex in "fm"
        for age in (35, 50, 65)
        for code in range(11)
    ]


def test_intervals_of_the_default_hold_and_the_other_estimators_answer(tmp_path: Path) -> None:
    source = people(3000, 1)
    release = dalenius.publish(policy(source, tmp_path / "r"), seed=1)
    assert len(release.manifest["parameters"]["regions"]) > 5
    rows, texts, truths = source.to_pylist(), questions(), []
    for text in texts:
        sex, limit, codes = text.split("'")[1], int(text.split("<")[1].split()[0]), text.split("IN")[1]
        truths.append(sum(r["sex"] == sex and r["age"] < limit and r["disease"] in codes for r in rows))
    assert min(truths) > 20
    answers = ask_many(release.stored, texts)
    found = [answer.rows[0] for answer in answers]
    held = [row.low <= truth <= row.high for row, truth in zip(found, truths, strict=True)]
    assert np.mean(held) > 0.85
    assert "main effect" in str(answers[0].assumption)
    for estimator in ("anatomy", "regression"):
        assert all(
            a.rows[0].estimate is not None for a in ask_many(release.stored, texts, estimator=estimator)
        )


def test_batches_with_regions_are_asked_together(tmp_path: Path) -> None:
    folder = tmp_path / "series"
    more = {"series": {"kind": "batches"}, "ledger": {"path": str(tmp_path / "ledger")}}
    days = [people(1200, seed) for seed in (1, 2)]
    for number, day in enumerate(days):
        dalenius.publish(policy(day, folder, **more), seed=number)
    release = dalenius.open_release(folder)
    (answer,) = release.ask("SELECT COUNT(*) FROM t WHERE sex = 'f'").rows
    women = sum(cell == "f" for day in days for cell in day["sex"].to_pylist())
    assert (answer.estimate, answer.std_error) == (women, 0)
    text = "SELECT COUNT(*) FROM t WHERE age < 50 AND disease = 'd03'"
    truth = sum(r["age"] < 50 and r["disease"] == "d03" for day in days for r in day.to_pylist())
    (answer,) = release.ask(text).rows
    assert answer.low <= truth <= answer.high
