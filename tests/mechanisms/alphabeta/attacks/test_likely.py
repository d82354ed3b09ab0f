"""Who knows how often each column has each value: found out where values are common, and not where even."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.publishing import preview

_COLUMNS = ("a", "b", "c", "d")


def table(power: float) -> pa.Table:
    """1,500 different rows of four columns; the larger the power, the commoner are their first values."""
    rng = np.random.default_rng(1)
    rows = np.unique((20 * rng.random((1_500, 4)) ** power).astype(int), axis=0)
    return pa.table({name: rows[:, i] for i, name in enumerate(_COLUMNS)})


def policy(source: pa.Table, folder: Path, **promise: Any) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": source,
            "release": str(folder / "view"),
            "columns": {"quasi": [*_COLUMNS], "sensitive": []},
            "domains": dict.fromkeys(_COLUMNS, "0..19"),
            "promise": {"kind": "d-gamma-privacy", "gamma": 0.2, **promise},
            "mechanism": {"kind": "alpha-beta"},
        }
    )


@pytest.mark.parametrize("promise", [{"k": 3}, {"d": "0.025"}])
@pytest.mark.parametrize(("power", "is_found"), [(4.0, True), (1.0, False)])
def test_rows_of_common_values_are_told_from_noise(
    power: float, is_found: bool, promise: dict[str, Any], tmp_path: Path
) -> None:
    source = table(power)
    given = policy(source, tmp_path, **promise)
    exposures = preview(given).exposures
    assert exposures is not None
    likely = exposures.likely or 0.0
    assert likely > 0.3 if is_found else likely < 0.05
    release = dalenius.publish(given, seed=1)
    assert any("thinks likelier" in text for text in release.stored.manifest.not_covered)
    attack = dalenius.audit(release.path, source, seed=1).named("likely tuples")
    assert attack.bound is None
    assert (attack.success > 0.5 and attack.n_trials > 300) == is_found
    assert (attack.recommendation is not None) == is_found
