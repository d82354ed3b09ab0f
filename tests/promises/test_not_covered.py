"""What the promises say that they do not cover is really so: each statement with the case that shows it."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius import Policy
from dalenius.mechanisms.perturb.published import read
from dalenius.mechanisms.suppress.plan import METHODS, plan_suppression

TABLE = pa.table({"age": [20 + i % 50 for i in range(400)], "disease": list("abcd") * 100})


def publish(tmp_path: Path, **sections: Any) -> dalenius.Release:
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    return dalenius.publish(
        Policy.from_dict({"source": TABLE, "release": str(tmp_path / "out"), "columns": columns, **sections}),
        seed=1,
    )


def test_two_values_of_a_bucket_together_exceed_their_threshold(tmp_path: Path) -> None:
    release = publish(tmp_path, promise={"kind": "l-diversity", "l": 4})
    buckets: dict[int, dict[str, int]] = defaultdict(dict)
    for row in pq.read_table(release.path / "st.parquet").to_pylist():
        buckets[row["bucket"]][row["disease"]] = row["count"]
    shares = [[Fraction(n, sum(held.values())) for n in held.values()] for held in buckets.values()]
    assert all(max(share) <= Fraction(1, 4) for share in shares)
    assert all(sum(sorted(share)[-2:]) > Fraction(1, 4) for share in shares)


def test_two_values_after_a_perturbation_together_exceed_rho2(tmp_path: Path) -> None:
    """Exact Bayes in the part, whose four values are equally frequent."""
    release = publish(tmp_path, promise={"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"})
    for channel in read(release.stored.manifest).channels:
        likelihood = {x: channel.diagonal if x == 0 else channel.replacement for x in range(channel.n_values)}
        posterior = {x: p / sum(likelihood.values()) for x, p in likelihood.items()}
        assert posterior[0] <= Fraction(1, 2)
        assert posterior[0] + posterior[1] > Fraction(1, 2)


@pytest.mark.parametrize(
    ("table", "promise"),
    [
        ("qit", {"kind": "l-diversity", "l": 4}),
        ("data", {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}),
    ],
)
def test_who_is_in_the_table_is_told(tmp_path: Path, table: str, promise: dict[str, Any]) -> None:
    """Quasi-identifiers are published as they are, each as often as it occurs."""
    release = publish(tmp_path, promise=promise)
    shown = pq.read_table(release.path / f"{table}.parquet").column("age").to_pylist()
    assert Counter(shown) == Counter(TABLE.column("age").to_pylist())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("counts", [(7, 2, 1), (6, 2, 2), (5, 4, 1), (9, 1, 1)])
def test_no_release_points_to_no_value(method: str, counts: tuple[int, ...]) -> None:
    """It is as likely whichever value has which count, so that names that are alike stay so."""
    plans = [plan_suppression(list(order), 3, method) for order in permutations(counts)]
    assert len({plan.probability_of_no_release for plan in plans}) == 1
