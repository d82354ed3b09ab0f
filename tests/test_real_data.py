"""Real microdata, published and checked by code that shares nothing with the planner or the writer."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow.csv

import dalenius


def test_kdd_workers_keep_46_thresholds_in_every_bucket(real_data: Path, tmp_path: Path) -> None:
    file = real_data / "kdd_workers.csv.gz"
    source = pd.read_csv(file, keep_default_na=False)  # "NA" is a text of this table
    quasi = [name for name in source.columns if name != "occupation_code"]
    policy = dalenius.Policy.from_dict(
        {
            "source": str(file),
            "release": str(tmp_path / "r"),
            "columns": {"quasi": quasi, "sensitive": ["occupation_code"]},
            "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}},
        }
    )
    release = dalenius.publish(policy)
    n = len(source)
    counts = Counter(source["occupation_code"].tolist())
    st = pd.read_parquet(release.path / "st.parquet")
    qit = pd.read_parquet(release.path / "qit.parquet")
    sizes = Counter(qit["bucket"].tolist())
    assert len(counts) == 46
    assert Counter(st.groupby("bucket")["count"].sum().to_dict()) == sizes
    assert st.groupby("occupation_code")["count"].sum().to_dict() == dict(counts)
    for bucket, value, count in zip(st["bucket"], st["occupation_code"], st["count"], strict=True):
        threshold = min(Fraction(1), 4 * Fraction(counts[value], n) + Fraction(1, 50))
        assert Fraction(count, sizes[bucket]) <= threshold
    assert Counter(qit[quasi].itertuples(index=False, name=None)) == Counter(
        source[quasi].itertuples(index=False, name=None)
    )


def test_adult_is_published_under_l_diversity(real_data: Path, tmp_path: Path) -> None:
    table = pyarrow.csv.read_csv(real_data / "adult.csv")
    quasi = [name for name in table.column_names if name != "occupation"]
    release = dalenius.publish(
        dalenius.Policy.from_dict(
            {
                "source": table,
                "release": str(tmp_path / "r"),
                "columns": {"quasi": quasi, "sensitive": ["occupation"]},
                "promise": {"kind": "l-diversity", "l": 7},
            }
        )
    )
    st = pd.read_parquet(release.path / "st.parquet")
    assert (st.groupby("bucket")["count"].max() * 7 <= st.groupby("bucket")["count"].sum()).all()
    assert release.verify(strict=True).ok
