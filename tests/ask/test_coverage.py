"""Intervals hold the truth as often as they say, over the publisher's coins: fakes, suppression, batches.

Hits on one release are not independent, releases are: the shares of held intervals of n releases have a mean
that is Student's. Below the level by more than its quantile of 1 - 1e-6 is a failure; intervals of half the
width must be one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dalenius
from dalenius.ask import ask_many
from tests.chance import FALSE_ALARM

N_RELEASES = 16
VALUES = ["Angina", "Cold", "Flu", "Gout", "Ulcer", "Warts"]
CONDITIONS = [f"{where} and disease == '{value}'" for where in ("sex == 'F'", "age < 50") for value in VALUES]
QUESTIONS = [
    f"SELECT COUNT(*), SUM(age), AVG(age) FROM t WHERE {condition.replace('==', '=')}"
    for condition in CONDITIONS
]


def people(n: int = 480) -> pa.Table:
    """Diseases that go with age and sex; a number for each person, which tells who was published."""
    rng = np.random.default_rng(11)
    age, female = rng.integers(20, 80, n), rng.random(n) < 0.5
    lean = np.outer((age - 50) / 17, [0.9, -0.6, 0.0, 0.7, -0.9, 0.1]) + np.outer(
        female, [0.0, 1, -1, 0, 0.5, 0]
    )
    disease = (lean + rng.gumbel(size=(n, len(VALUES))) + np.linspace(0.9, 0, len(VALUES))).argmax(axis=1)
    return pa.table(
        {
            "uid": np.arange(n),
            "age": age,
            "sex": np.where(female, "F", "M"),
            "disease": np.array(VALUES)[disease],
        }
    )


def publish(table: pa.Table, folder: Path, seed: int, **rest: object) -> set[int]:
    """The numbers of those who were published."""
    policy = {
        "source": table,
        "release": "r",
        "columns": {"quasi": ["age", "sex", "uid"], "sensitive": ["disease"]},
        "promise": {"kind": "l-diversity", "l": 3},
        **rest,
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy, folder=folder), seed=seed)
    return set(pq.read_table(release.path / "qit.parquet")["uid"].to_pylist())


SUBJECTS: dict[str, dict[str, object]] = {
    "fakes": {"mechanism": {"kind": "bucketize", "fakes": 1}},
    "suppression": {"promise": {"kind": "l-diversity", "l": 5}, "suppress": {"method": "safe"}},
    "batches": {
        "promise": {"kind": "l-diversity", "l": 4},
        "suppress": {"method": "safe"},
        "series": {"kind": "batches"},
        "ledger": {"path": "ledger"},
    },
}


def held_shares(folder: Path, rest: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """The share of 95 % intervals that hold the truth in each release, and that of intervals half as wide."""
    table, shares = people(), []
    halves = [table.slice(0, 240), table.slice(240)] if "series" in rest else [table]
    for seed in range(N_RELEASES):
        own = folder / str(seed)
        own.mkdir()
        kept = set().union(*(publish(part, own, seed, **rest) for part in halves))
        assert len(kept) < table.num_rows or "suppress" not in rest, "nobody was withheld: not what is meant"
        published = table.filter(pa.array([uid in kept for uid in range(table.num_rows)])).to_pandas()
        ends, truth = [], []
        for answer, condition in zip(
            ask_many(dalenius.open_release(own / "r").stored, QUESTIONS), CONDITIONS, strict=True
        ):
            ages = published.query(condition).age
            ends += [(row.low, row.high) for row in answer.rows]
            truth += [len(ages), ages.sum(), ages.mean()]
        (low, high), true = np.array(ends, dtype=float).T, np.array(truth)
        middle, reach = (low + high) / 2, (high - low) / 2
        shares.append([(np.abs(true - middle) <= part * reach + 1e-6).mean() for part in (1.0, 0.5)])
    full, half = np.array(shares).T
    return full, half


@pytest.mark.parametrize("subject", SUBJECTS)
def test_intervals_hold_over_releases(subject: str, tmp_path: Path) -> None:
    full, half = held_shares(tmp_path, SUBJECTS[subject])
    reach = stats.t.ppf(1 - FALSE_ALARM, N_RELEASES - 1) / np.sqrt(N_RELEASES)
    assert full.mean() + reach * full.std(ddof=1) >= 0.95
    assert half.mean() + reach * half.std(ddof=1) < 0.95, "the control: half the width must not pass"
