"""The smallest tables and the largest leaks: nothing crashes, and every leak is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import DaleniusError
from dalenius.policy import Policy
from tests.auditing.releases import people, sign

SUBJECTS: dict[str, dict[str, Any]] = {
    "bucketize": {"promise": {"kind": "f-privacy", "default": "0.99"}},
    "fakes": {
        "promise": {"kind": "l-diversity", "l": 2},
        "mechanism": {"kind": "bucketize", "fakes": 1},
    },
    "suppress": {"promise": {"kind": "l-diversity", "l": 2}, "suppress": {"method": "safe"}},
    "perturb": {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "3/4"},
        "mechanism": {"kind": "perturb", "method": "uniform"},
    },
    "parts": {
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "3/4"},
        "mechanism": {"kind": "perturb"},
    },
    "alpha-beta": {
        "promise": {"kind": "d-gamma-privacy", "d": "1/100", "gamma": "1/4"},
        "mechanism": {"kind": "alpha-beta", "domains": "active"},
    },
    "frapp": {
        "promise": {"kind": "d-gamma-privacy", "d": "1/100", "gamma": "1/4"},
        "mechanism": {"kind": "alpha-beta", "method": "frapp", "domains": "active"},
    },
}


def policy(name: str, release: Path, table: pa.Table) -> Policy:
    columns = {"quasi": ["uid", "age", "sex"], "sensitive": ["disease"]}
    return Policy.from_dict({"source": table, "release": str(release), "columns": columns, **SUBJECTS[name]})


@pytest.mark.parametrize("name", SUBJECTS)
@pytest.mark.parametrize("n_rows", [1, 2, 3, 5])
def test_a_few_rows_are_published_and_audited_or_refused_in_plain_words(
    name: str, n_rows: int, tmp_path: Path
) -> None:
    table = people(200).slice(0, n_rows)
    try:
        release = dalenius.publish(policy(name, tmp_path / "r", table), seed=1)
    except DaleniusError as error:
        assert error.exit_code in (2, 3), error  # noqa: PT017
        return
    audit = dalenius.audit(release.path, table, seed=1)
    assert audit.ok, [attack.name for attack in audit.attacks if attack.holds is False]
    assert audit.to_dict()["private"]


def test_a_perfect_leak_beside_suppression_is_caught(tmp_path: Path) -> None:
    """The buckets of a thinned table, renumbered so that everybody has one."""
    table = people(400)
    release = dalenius.publish(policy("suppress", tmp_path / "r", table), seed=1)
    qit, truth = (
        pq.read_table(release.path / "qit.parquet"),
        dict(zip(*(table[name].to_pylist() for name in ("uid", "disease")), strict=True)),
    )
    number = pa.array(range(1, len(qit) + 1))
    own = pa.array([truth[uid] for uid in qit["uid"].to_pylist()])
    pq.write_table(
        qit.set_column(qit.column_names.index("bucket"), "bucket", number), release.path / "qit.parquet"
    )
    leak = pa.table({"bucket": number, "disease": own, "count": pa.array([1] * len(qit))})
    pq.write_table(leak, release.path / "st.parquet")
    sign(release.path)
    audit = dalenius.audit(release.path, table, seed=1)
    assert audit.named("linking").holds is False
    assert audit.named("linking").success == 1.0


def test_every_attack_that_finds_something_says_what_to_change(tmp_path: Path) -> None:
    """What is not covered and tells much more than linking, which is, has a recommendation.

    Negative leakage is measured by how much belief falls; within d/gamma that is what the promise allows.
    """
    table = people(4_000)
    for name in SUBJECTS:
        release = dalenius.publish(policy(name, tmp_path / name, table), seed=1)
        audit = dalenius.audit(release.path, table, seed=1)
        assert audit.ok
        allowed = audit.named("linking").success
        for attack in audit.attacks:
            least = max(1.1 * allowed + 0.05, 1.05 * (attack.control or 0.0))
            gains = attack.bound is None and attack.success > least and attack.name != "negative leakage"
            assert not gains or attack.recommendation, (name, attack)
