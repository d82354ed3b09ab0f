"""Answers: their shape, groups, intervals, formulas and consistency."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dalenius
from dalenius.ask import ask
from dalenius.ask.finishing import project
from dalenius.errors import InputError, QueryError
from dalenius.release.folder import StoredRelease
from tests.ask.releases import write_release


def test_json_has_the_agreed_shape(release: StoredRelease) -> None:
    answer = ask(
        release, "SELECT sex, COUNT(*) AS n FROM t WHERE disease = 'Flu' GROUP BY sex", confidence=0.9
    )
    found = json.loads(json.dumps(answer.to_dict()))
    assert set(found) == {"rows", "confidence", "assumption", "notes"}
    assert found["confidence"] == 0.9
    assert isinstance(found["assumption"], str)
    assert [row["group"] for row in found["rows"]] == [{"sex": "F"}, {"sex": "M"}]
    assert all(
        list(row) == ["group", "column", "estimate", "std_error", "low", "high"] for row in found["rows"]
    )
    assert {row["column"] for row in found["rows"]} == {"n"}


def test_arrow_has_a_row_per_group_and_aggregate(release: StoredRelease) -> None:
    question = "SELECT sex, COUNT(*), AVG(age) FROM t WHERE severity > 1 GROUP BY sex"
    table = ask(release, question).to_arrow()
    assert table.column_names == ["sex", "column", "estimate", "std_error", "low", "high", "status"]
    assert table.column("column").to_pylist() == ["COUNT(*)", "AVG(age)"] * 2


@pytest.mark.parametrize("estimator", ["shrinkage", "matching"])
def test_an_average_lies_where_its_sum_can(tmp_path: Path, estimator: str) -> None:
    """Nine of 1,800 people in buckets of 200 have it: the release tells next to nothing of their ages."""
    rng = np.random.default_rng(8)
    buckets, size = 9, 200
    ill = np.where(np.arange(buckets * size) % size == 0, "rare", rng.choice(["Flu", "Cold"], buckets * size))
    age = 5 * np.arange(buckets)[:, None] + rng.integers(0, 50, (buckets, size))
    people = pa.table({"age": age.ravel(), "ill": ill})
    release = write_release(tmp_path, people, ["ill"], np.arange(buckets * size) // size)
    question = "SELECT AVG(age), SUM(age), COUNT(*) FROM t WHERE ill = 'rare'"
    average, total, count = ask(release, question, estimator=estimator).to_dict()["rows"]
    assert (count["low"], count["high"]) == (9, 9)
    assert average["low"] >= age.min(axis=1).mean() - 1e-9
    assert average["high"] <= age.max(axis=1).mean() + 1e-9
    assert 0 < total["std_error"] <= (total["high"] - total["low"]) / 2


def test_empty_groups_of_sensitive_values_are_shown(release: StoredRelease) -> None:
    answer = ask(release, "SELECT disease, COUNT(*) FROM t WHERE age = 20 OR age = 21 GROUP BY disease")
    assert [dict(row.group)["disease"] for row in answer.rows] == ["Cold", "Flu", "Gout", None]


def test_a_tuple_is_no_group_key(release: StoredRelease) -> None:
    with pytest.raises(QueryError, match="is not one value"):
        ask(release, "SELECT COUNT(*) FROM t GROUP BY (sex, age)")


def test_nan_is_counted_neither_alone_nor_beside_a_sum(tmp_path: Path) -> None:
    table = pa.table({"weight": [1.0, 2.0, math.nan, None], "ill": ["flu", "cold", "flu", "cold"]})
    release = write_release(tmp_path, table, ["ill"], np.array([0, 0, 1, 1]))
    (alone,) = ask(release, "SELECT COUNT(weight) FROM t").rows
    beside, total = ask(release, "SELECT COUNT(weight), SUM(weight) FROM t").rows
    assert (alone.estimate, beside.estimate, total.estimate) == (2, 2, 3)


def test_wider_with_confidence_and_whole_for_counts(release: StoredRelease) -> None:
    question = "SELECT COUNT(*) FROM t WHERE age > 40 AND disease IN ('Flu', 'Gout')"
    widths = []
    for confidence in (0.5, 0.9, 0.99):
        row = ask(release, question, confidence=confidence).rows[0]
        assert row.low is not None
        assert row.high is not None
        assert (row.low % 1, row.high % 1) == (0, 0)
        widths.append(row.high - row.low)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@pytest.mark.parametrize("aggregate", ["COUNT(*)", "SUM(age)"])
def test_a_number_that_is_added_moves_the_interval(release: StoredRelease, aggregate: str) -> None:
    question = f"SELECT sex, {aggregate}, {aggregate} + 500, {aggregate} - 500, 1 + {aggregate} - 1 FROM t"
    rows = ask(release, f"{question} WHERE disease = 'Flu' AND age > 40 GROUP BY sex").rows
    for plain, *moved in (rows[:4], rows[4:]):
        for row, added in zip(moved, (500, -500, 0), strict=True):
            for end in ("estimate", "low", "high"):
                assert getattr(row, end) == pytest.approx(getattr(plain, end) + added)


@pytest.mark.parametrize("estimator", ["matching", "shrinkage", "anatomy", "regression"])
def test_formulas_agree_with_their_parts(release: StoredRelease, estimator: str) -> None:
    question = """SELECT COUNT(*) AS n, 2 * COUNT(*) AS twice, COUNT(*) + COUNT(*) AS sum,
                  COUNT(*) - COUNT(*) AS zero, COUNT(*) / 0 AS nothing,
                  1 - COUNT(*) FILTER (WHERE TRUE) AS less
                  FROM t WHERE age > 40 AND disease = 'Flu'"""
    rows = {row.column: row for row in ask(release, question, estimator=estimator).rows}
    n, error = rows["n"].estimate, rows["n"].std_error
    assert n is not None
    assert error is not None
    assert rows["twice"].estimate == pytest.approx(2 * n)
    assert rows["twice"].std_error == pytest.approx(2 * error)
    assert rows["sum"].std_error == pytest.approx(2 * error)
    assert (rows["zero"].estimate, rows["zero"].std_error) == pytest.approx((0, 0), abs=1e-6)
    assert rows["nothing"].estimate is None
    assert rows["less"].estimate == pytest.approx(1 - n)
    assert rows["less"].std_error == pytest.approx(error)


def test_a_share_of_what_is_known_has_the_error_of_its_part(release: StoredRelease) -> None:
    """COUNT(*) over quasi-identifiers is exact: the share's error is the part's, divided."""
    question = """SELECT COUNT(*) FILTER (WHERE disease = 'Flu') AS part, COUNT(*) AS all,
                  COUNT(*) FILTER (WHERE disease = 'Flu') / COUNT(*) AS share FROM t WHERE sex = 'F'"""
    for estimator in ("anatomy", "regression"):
        part, whole, share = ask(release, question.replace(" all,", ' "all",'), estimator=estimator).rows
        assert part.std_error is not None
        assert whole.estimate is not None
        assert share.std_error == pytest.approx(part.std_error / whole.estimate)


def test_explain_names_formula_weights_and_what_was_read(release: StoredRelease) -> None:
    text = ask(release, "SELECT COUNT(*) FROM t WHERE disease = 'Flu'").explain
    for word in ("matching", "240 rows", "50 buckets", "count/|bucket|", "SELECT COUNT(*)", "rests on"):
        assert word in text


# --- consistent tables ---

CELLS = st.lists(
    st.tuples(st.floats(-20, 40), st.floats(0.1, 9), st.integers(0, 5), st.integers(0, 20)),
    min_size=1,
    max_size=6,
)


@given(cells=CELLS, share=st.floats(0, 1))
def test_projection_is_feasible_and_nearest(cells: list[tuple[float, float, int, int]], share: float) -> None:
    estimate, error = np.array([c[0] for c in cells]), np.array([c[1] for c in cells])
    low = np.array([float(c[2]) for c in cells])
    high = low + np.array([float(c[3]) for c in cells])
    total = float(low.sum() + share * (high - low).sum())
    found = project(estimate, error, low, high, total)
    assert (found >= low - 1e-9).all()
    assert (found <= high + 1e-9).all()
    assert found.sum() == pytest.approx(total, abs=1e-5)
    # no shift of a little from one free cell to another comes nearer
    slope = (found - estimate) / error**2
    can_grow, can_fall = found < high - 1e-4, found > low + 1e-4
    if can_grow.any() and can_fall.any():
        assert slope[can_fall].max() <= slope[can_grow].min() + 1e-3


@pytest.mark.parametrize("estimator", ["matching", "shrinkage", "regression", "anatomy"])
def test_consistent_tables_add_up_and_are_not_negative(release: StoredRelease, estimator: str) -> None:
    question = "SELECT disease, severity, sex, COUNT(*) AS n FROM t WHERE age < 30 GROUP BY ALL"
    plain = ask(release, question, estimator=estimator)
    answer = ask(release, question, estimator=estimator, consistent=True)
    if estimator == "regression":
        assert min(row.estimate for row in plain.rows if row.estimate is not None) < 0, (
            "the control is negative"
        )
    for sex in ("F", "M"):
        whole = ask(release, f"SELECT COUNT(*) FROM t WHERE age < 30 AND sex = '{sex}'").rows[0].estimate
        cells = [row.estimate for row in answer.rows if dict(row.group)["sex"] == sex]
        assert None not in cells
        assert min(cell for cell in cells if cell is not None) >= 0
        assert sum(cell for cell in cells if cell is not None) == pytest.approx(whole, abs=1e-4)
    assert {row.status for row in answer.rows} <= {"consistent", "exact", "undetermined"}
    assert answer.assumption is not None
    assert "no longer unbiased" in answer.assumption


def test_an_answer_is_a_data_frame_too(release: StoredRelease) -> None:
    answer = ask(release, "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex")
    table = answer.to_arrow()
    assert answer.to_pandas()["estimate"].tolist() == table["estimate"].to_pylist()
    assert pl.DataFrame(answer).equals(pl.DataFrame(table))


def test_what_a_release_cannot_tell_is_said_with_what_would(tmp_path: Path) -> None:
    """Everybody in two buckets of the same contents: who has which value is open."""
    table = pa.table({"sex": ["F", "M"] * 20, "d": ["a", "a", "b", "b"] * 10})
    release = write_release(tmp_path, table, ["d"], np.arange(40) // 20)
    answer = ask(release, "SELECT COUNT(*) FROM t WHERE sex = 'F' AND d = 'a'", estimator="regression")
    assert answer.notes[0].startswith("this release cannot tell this: the interval is nearly all that is")
    assert "regions = true" in answer.notes[0]
    several = ask(
        release, "SELECT d, COUNT(*) AS n FROM t WHERE sex = 'F' GROUP BY d", estimator="regression"
    )
    assert "cannot tell a, n; b, n:" in several.notes[0]
    known = ask(release, "SELECT sex, COUNT(*) FROM t GROUP BY sex")
    assert not known.notes
    assert known.sentence == "exact: the release tells it for certain"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("confidense", "did you mean 'confidence'?"), ("seconds", "limits=Limits(seconds=…)"), ("x", "known: ")],
)
def test_an_option_that_there_is_not_is_refused_by_name(release: StoredRelease, name: str, hint: str) -> None:
    with pytest.raises(InputError, match=f"no option '{name}'") as refused:
        ask(release, "SELECT COUNT(*) FROM t", **{name: 0.9})  # type: ignore[arg-type]
    assert hint in str(refused.value.hint)


def test_no_group_that_is_left_is_not_called_exact(release: StoredRelease) -> None:
    nobody = ask(release, "SELECT sex, COUNT(*) AS n FROM t GROUP BY sex HAVING n > 1000000000")
    assert nobody.sentence.startswith("no group is left")


def test_estimates_of_noisy_releases_are_in_their_intervals_and_deviations_within_the_numbers(
    tmp_path: Path,
) -> None:
    """Of perturbed records, where an unbiased count of few people is often below 0."""
    rng = np.random.default_rng(3)
    table = pa.table({"age": rng.integers(20, 60, 2_000), "s": rng.choice(list("aaaaabbbcd"), 2_000)})
    policy = {
        "source": table,
        "release": str(tmp_path / "r"),
        "columns": {"quasi": ["age"], "sensitive": ["s"]},
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "3/5"},
        "mechanism": {"kind": "perturb"},
    }
    stored = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1).stored
    counts = ask(stored, "SELECT age, s, COUNT(*) FROM t GROUP BY age, s").rows
    assert any((row.estimate or 0) < 0 for row in counts)
    assert all(row.low <= row.estimate <= row.high for row in counts)  # type: ignore[operator]
    spread = ask(stored, "SELECT s, VAR_POP(age) FROM t WHERE age % 9 = 0 GROUP BY s", confidence=0.9999).rows
    assert max(row.high or 0 for row in spread) == pytest.approx((59 - 20) ** 2 / 4)
