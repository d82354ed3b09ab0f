"""Changes of a value that every bucket holds: the release does not say whose value has left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.mechanisms.bucketize.dates import answer
from dalenius.policy import Policy

N = 2_400


def series(folder: Path, *, by_value: bool) -> tuple[Path, int]:
    """Two dates of people of whom half have Flu, one in every bucket of two; and how Flu has changed."""
    rng = np.random.default_rng(5)
    disease = np.where(np.arange(N) % 2 == 0, "Flu", rng.choice(["Cold", "Gout", "Angina"], N))
    rate = np.where(disease == "Flu", 0.16, 0.04) if by_value else 0.1
    table = pa.table({"id": np.arange(N), "age": rng.integers(20, 60, N), "disease": disease.tolist()})
    stay = rng.random(N) >= rate
    for kept in (np.ones(N, dtype=bool), stay):
        policy = {
            "source": table.filter(pa.array(kept)),
            "release": "years",
            "columns": {"unit": "id", "quasi": ["age"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": 0.5},
            "series": {"kind": "dates"},
            "ledger": {"path": "ledger"},
        }
        dalenius.publish(Policy.from_dict(policy, folder=folder), seed=1)
    return folder / "years", -int((~stay & (disease == "Flu")).sum())


def interval(path: Path, question: str, estimator: str) -> tuple[float, float]:
    (row,) = dalenius.open_release(path).ask(question, estimator=estimator).rows
    assert row.low is not None
    assert row.high is not None
    return row.low, row.high


@pytest.mark.parametrize("by_value", [False, True])
def test_a_change_that_buckets_do_not_tell_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_value: bool
) -> None:
    path, truth = series(tmp_path, by_value=by_value)
    question = "SELECT COUNT(*) FROM t WHERE age >= 20 AND disease = 'Flu'"
    low, high = interval(path, question, "change-1-2")
    assert low <= truth <= high
    monkeypatch.setattr(answer, "OPEN", 0.0)  # the twin: as if others told of this value
    twin_low, twin_high = interval(path, question, "change-1-2")
    assert (twin_low <= truth <= twin_high) is not by_value
    assert twin_high - twin_low < high - low


def test_a_date_at_which_nobody_had_left_has_nothing_open(tmp_path: Path) -> None:
    path, _ = series(tmp_path, by_value=False)
    assert interval(path, "SELECT COUNT(*) FROM t WHERE disease = 'Flu'", "date-1") == (N / 2, N / 2)


def test_a_change_reaches_half_a_person_further(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _ = series(tmp_path, by_value=False)
    asked = "SELECT SUM(age) FROM t WHERE age >= 20 AND disease = 'Gout'"  # a count's ends are whole

    def lows() -> list[float | None]:
        """At a level at which nothing is cut to what is possible."""
        release = dalenius.open_release(path)
        answers = [release.ask(asked, estimator=name, confidence=0.3) for name in ("change-1-2", "date-1")]
        return [found.rows[0].low for found in answers]

    ends = lows()
    monkeypatch.setattr(answer, "_BEYOND", 0.0)
    change, date = lows()
    assert change is not None
    assert ends == [pytest.approx(change - 0.5, abs=0.01), date]
