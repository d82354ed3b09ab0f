"""Audits of releases with regions: a right one holds, one dealt in source order does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import dalenius
from dalenius import Policy
from dalenius.mechanisms.bucketize.attacks.case import BucketCase
from dalenius.mechanisms.bucketize.attacks.order import attack_dealing
from tests.auditing.releases import deal, people, write_release

REGIONS = [{"rows": 1_000, "buckets": 1, "where": [{"column": "sex", "in": [sex]}]} for sex in ("F", "M")]


def dealt_by_sex(folder: Path, rng: np.random.Generator | None) -> BucketCase:
    """A table sorted by sex, so that the source's order is the regions' order, in two regions."""
    table = people(2_000).sort_by("sex")
    halves = [table.filter(pc.equal(table["sex"], sex)) for sex in ("F", "M")]
    halves = [half.slice(0, len(half) // 10 * 10) for half in halves]
    own = [deal(half, 10, rng) for half in halves]
    bucket = np.concatenate([own[0], own[1] + own[0].max() + 1])
    whole = pa.concat_tables(halves)
    release = write_release(
        folder, whole, bucket, rng=np.random.default_rng(1), parameters={"regions": REGIONS}
    )
    return BucketCase.load(release, whole)


def test_dealing_is_judged_inside_regions(tmp_path: Path) -> None:
    (tmp_path / "fair").mkdir()
    (tmp_path / "unfair").mkdir()
    fair = dealt_by_sex(tmp_path / "fair", np.random.default_rng(3))
    assert sorted(set(fair.region.tolist())) == [0, 1]
    assert attack_dealing(fair).holds
    assert not attack_dealing(dealt_by_sex(tmp_path / "unfair", None)).holds


def test_a_release_with_regions_holds(tmp_path: Path) -> None:
    table = people(2_000)
    policy = Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["uid", "age", "sex"], "sensitive": ["disease"]},
            "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": "0.05"}},
            "mechanism": {"kind": "bucketize", "regions": True},
        }
    )
    release = dalenius.publish(policy, seed=2)
    assert len(release.manifest["parameters"]["regions"]) > 3
    audit = dalenius.audit(tmp_path / "r", policy)
    assert all(attack.holds is not False for attack in audit.attacks)
