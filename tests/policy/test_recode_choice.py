"""Recodings that are chosen from the table, and survey weights: what may decide them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dalenius
from dalenius import Policy, PolicyError

TABLE = pa.table(
    {
        "age": [20 + row % 50 for row in range(300)],
        "town": ["Ulm" if row % 3 else f"village {row % 40}" for row in range(300)],
        "w": [1.5 if row % 2 else 2.25 for row in range(300)],
        "disease": ["Flu", "Cold", "Cough", "Angina", "Gout"] * 60,
    }
)
COLUMNS = {"quasi": ["age", "town"], "weight": "w", "sensitive": ["disease"]}
DIVERSE = {"kind": "l-diversity", "l": 3}


def policy(release: Path | None = None, **changes: Any) -> Policy:
    data = {"source": TABLE, "columns": COLUMNS, "promise": DIVERSE, **changes}
    return Policy.from_dict(data if release is None else {**data, "release": str(release)})


def test_a_weight_is_published_and_summed(tmp_path: Path) -> None:
    release = dalenius.publish(
        policy(tmp_path / "r", recode={"town": {"rare": 50}, "age": {"quantiles": 5}}), seed=1
    )
    assert release.verify().ok
    (total,) = release.ask("SELECT SUM(w) FROM t").rows
    assert total.estimate == pytest.approx(150 * 1.5 + 150 * 2.25)
    (flu,) = release.ask("SELECT SUM(w) FROM t WHERE disease = 'Flu'").rows
    assert flu.low is not None
    assert flu.high is not None
    assert flu.low < 30 * 1.5 + 30 * 2.25 < flu.high
    towns = release.ask("SELECT town, COUNT(*) FROM t GROUP BY town")
    assert {dict(row.group)["town"] for row in towns.rows} == {"Ulm", "other"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recode": {"disease": {"rare": 20}}}, "a sensitive column must not decide it"),
        ({"recode": {"age": {"quantiles": 5}}, "series": {"kind": "batches"}}, "differ between batches"),
        (
            {
                "recode": {"age": {"quantiles": 5}},
                "columns": {"quasi": ["age", "town"], "dropped": ["w", "disease"], "sensitive": []},
                "promise": {"kind": "d-gamma-privacy", "k": 10, "gamma": 0.2},
            },
            "whose every row is protected",
        ),
        ({"promise": {"kind": "d-gamma-privacy", "k": 10, "gamma": 0.2}}, "protects whole rows"),
        ({"columns": {**COLUMNS, "weight": ["w"]}}, "weight must be the name of one column"),
        ({"columns": {**COLUMNS, "quasi": ["age", "town", "w"]}}, "named twice"),
    ],
)
def test_what_cannot_be_chosen_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(**changes)


def test_a_weight_that_is_no_number_is_refused() -> None:
    columns = {"quasi": ["age", "w"], "weight": "town", "sensitive": ["disease"]}
    with pytest.raises(PolicyError, match="'town' is not numeric"):
        dalenius.plan(policy(columns=columns))
