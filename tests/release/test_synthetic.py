"""The bundled table is about nobody, and known by its records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dalenius.demo_data import hospital, is_hospital
from dalenius.errors import PromiseNotMet
from dalenius.policy import Policy
from dalenius.publishing import write_release
from dalenius.tables.source import open_source


def test_the_bundled_table_is_known_by_its_records_and_never_refused(tmp_path: Path) -> None:
    """Its people never lived; of a table with one cell changed that is not known."""
    columns = {
        "identifiers": ["patient_id", "name"],
        "quasi": ["age", "sex", "district", "insurance"],
        "sensitive": ["disease"],
    }
    sections = {"columns": columns, "promise": {"kind": "l-diversity", "l": 4}}
    table = hospital()
    shuffled = table.take(np.random.default_rng(1).permutation(len(table)))
    for number, source in enumerate((table, shuffled, table.to_pandas())):
        made = write_release(
            Policy.from_dict({"source": source, "release": str(tmp_path / f"r{number}"), **sections})
        )
        assert made.synthetic
    ages = pa.array([*table["age"].to_pylist()[:-1], 117])
    changed = table.set_column(table.column_names.index("age"), "age", ages)
    for source in (changed, hospital(20_001), hospital(20_000, seed=2)):
        assert not is_hospital(open_source(source))
    policy = Policy.from_dict({"source": changed, "release": str(tmp_path / "c1"), **sections})
    assert not write_release(policy).synthetic
    with pytest.raises(PromiseNotMet):
        write_release(replace(policy, release=tmp_path / "c2"))
