"""People whose number is another one at a later date: nobody gets a second bucket unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.errors import PromiseNotMet
from dalenius.policy import Policy

N = 240
stream = np.random.default_rng(4)
NAME = [f"{first} {last}" for first, last in stream.integers(0, 16, (N, 2)).tolist()]
DISEASE = stream.choice(["Flu", "Cold", "Gout", "HIV"], N).tolist()
AGE = stream.integers(20, 90, N)


def people(number: list[int], who: np.ndarray, older: int = 0) -> pa.Table:
    names = [NAME[one] for one in who]
    disease = [DISEASE[one] for one in who]
    return pa.table({"id": number, "name": names, "age": AGE[who] + older, "disease": disease})


def policy(folder: Path, table: pa.Table, identifiers: list[str]) -> Policy:
    described: dict[str, Any] = {
        "source": table,
        "release": "years",
        "columns": {
            "unit": "id",
            "identifiers": identifiers,
            "quasi": ["age"] if identifiers else ["age", "name"],
            "sensitive": ["disease"],
        },
        "promise": {"kind": "f-privacy", "default": 0.5},
        "series": {"kind": "dates"},
        "ledger": {"path": "ledger"},
    }
    return Policy.from_dict(described, folder=folder)


@pytest.mark.parametrize("identifiers", [["name"], []], ids=["by name", "by all columns"])
def test_people_with_another_number_are_not_new(tmp_path: Path, identifiers: list[str]) -> None:
    """Of 94 such people, 26 were certain where 1/2 is promised: the only value that both buckets hold."""
    first = np.arange(160)
    dalenius.publish(policy(tmp_path, people(first.tolist(), first), identifiers))
    older = 1 if identifiers else 0
    again = people([1000 + one if one < 40 else one for one in range(160)], first, older)
    with pytest.raises(PromiseNotMet, match="40 people would be new who have all identifiers"):
        dalenius.publish(policy(tmp_path, again, identifiers))
    others = np.arange(40, 200)
    dalenius.publish(policy(tmp_path, people(others.tolist(), others, older), identifiers))
    assert (tmp_path / "years" / "date-2").is_dir()
