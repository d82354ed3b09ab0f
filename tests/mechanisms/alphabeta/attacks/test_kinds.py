"""Audits of every kind of view: FRAPP, declared noise, copies, later views; tables in several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import InputError
from dalenius.policy import Policy
from dalenius.release.folder import sha256
from dalenius.threats.result import Audit
from tests.auditing.releases import sign

DOMAINS = {"uid": "0..2999", "age": "0..49", "ill": ["cold", "flu", "hiv", "none"]}
N_ROWS = 3_000


def people(seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    ill = rng.choice(DOMAINS["ill"], size=N_ROWS, p=[0.6, 0.25, 0.05, 0.1])
    return pa.table({"uid": np.arange(N_ROWS), "age": rng.integers(50, size=N_ROWS), "ill": ill})


def policy(release: Path, table: pa.Table | None = None, **mechanism: Any) -> Policy:
    gamma = mechanism.pop("gamma", 0.2)
    return Policy.from_dict(
        {
            "source": people() if table is None else table,
            "release": str(release),
            "columns": {"quasi": ["uid", "age"], "sensitive": ["ill"]},
            "domains": {**DOMAINS, **mechanism.pop("more_domains", {})},
            "promise": {"kind": "d-gamma-privacy", "k": 10, "gamma": gamma},
            "mechanism": {"kind": "alpha-beta", **mechanism},
        }
    )


def broken(audit: Audit) -> set[str]:
    return {attack.name for attack in audit.attacks if attack.holds is False}


def rewrite(release: Path, table: pa.Table) -> None:
    """The same release with another view in it."""
    pq.write_table(table, release / "view.parquet", store_schema=False)
    sign(release)


def halve_noise(release: Path, table: pa.Table) -> None:
    view = pq.read_table(release / "view.parquet")
    keys = [name for name in view.column_names if name != "copy"]
    own = set(zip(*(table[name].to_pylist() for name in keys), strict=True))
    rows = list(zip(*(view[name].to_pylist() for name in keys), strict=True))
    coins = np.random.default_rng(5).random(len(rows)) < 0.5
    rewrite(
        release, view.filter(pa.array([row in own or coin for row, coin in zip(rows, coins, strict=True)]))
    )


def noise_file(folder: Path) -> str:
    (folder / "noise.toml").write_text("[ill]\ncold = 60\nflu = 25\nhiv = 5\nnone = 10\n")
    return str(folder / "noise.toml")


def test_declared_noise_passes_and_half_of_it_is_caught(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", noise=noise_file(tmp_path)), seed=1).path
    audit = dalenius.audit(release, people(), seed=1)
    assert audit.ok
    found = audit.named("linking")
    assert found.detail["kept"] == pytest.approx(found.detail["kept_stated"], rel=0.1)
    assert found.detail["inserted"] == pytest.approx(found.detail["inserted_stated"], rel=0.1)
    halve_noise(release, people())
    assert broken(dalenius.audit(release, people(), seed=1)) == {"linking", "law of noise"}


def test_copies_are_numbered_in_the_original_too(tmp_path: Path) -> None:
    table = pa.concat_tables([people(), people().slice(0, 500)])
    rules = policy(tmp_path / "r", table, duplicates="copies", more_domains={"copy": "1..3"})
    release = dalenius.publish(rules, seed=1).path
    found = dalenius.audit(release, table, seed=1).named("linking")
    assert found.holds
    assert found.detail["kept"] == pytest.approx(found.detail["kept_stated"], rel=0.1)
    halve_noise(release, table)
    assert dalenius.audit(release, table, seed=1).named("linking").holds is False


def test_every_view_of_a_series_is_audited(tmp_path: Path) -> None:
    rules = policy(tmp_path / "s", views=3)
    for _ in range(3):
        dalenius.publish(rules)
    for index in (1, 2, 3):
        audit = dalenius.audit(tmp_path / "s" / f"view-{index}", people(), seed=1)
        assert audit.ok, broken(audit)
        found = audit.named("linking").detail
        assert found["view"] == index
        assert found["inserted"] == pytest.approx(found["inserted_stated"], rel=0.05)
        assert ("every view" in [attack.name for attack in audit.attacks]) == (index > 1)
    whole = dalenius.audit(tmp_path / "s", people(), seed=1)
    assert whole.named("every view").threat.knows.startswith("3 views")
    assert whole.named("every view").success == pytest.approx(0.2, abs=0.06)  # of 270 tuples: 6 sd


def test_a_view_that_was_not_drawn_in_view_of_the_first_is_caught(tmp_path: Path) -> None:
    """Independent second noise: what both views show is hardly ever noise."""
    rules = policy(tmp_path / "s", views=2)
    for _ in range(2):
        dalenius.publish(rules)
    alone = dalenius.publish(policy(tmp_path / "alone"), again=True).path
    rewrite(tmp_path / "s" / "view-2", pq.read_table(alone / "view.parquet"))
    assert "every view" in broken(dalenius.audit(tmp_path / "s", people(), seed=1))


def test_independent_views_multiply_and_reused_coins_are_caught(tmp_path: Path) -> None:
    first, second = (dalenius.publish(policy(tmp_path / name), again=True).path for name in "ab")
    audit = dalenius.audit(first, people(), also=[second], seed=1)
    assert broken(audit) == {"two releases"}  # the promise was for one view
    # one view takes the odds of d = 1/20 to those of 0.2 or a little less
    assert (
        0.5 < audit.named("two releases").success < (1 / 19) * (19 / 4) ** 2 / (1 + (1 / 19) * (19 / 4) ** 2)
    )
    seeded = [dalenius.publish(policy(tmp_path / name), seed=4).path for name in "cd"]
    assert broken(dalenius.audit(seeded[0], people(), also=[seeded[1]], seed=1)) == {
        "two releases",
        "shared coins",
    }


def test_frapp_passes_and_too_much_retention_is_caught(tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method="frapp"), seed=1).path
    audit = dalenius.audit(release, people(), seed=1)
    assert audit.ok
    assert audit.named("linking").success == pytest.approx(0.2, abs=0.05)
    assert audit.named("repeated tuples").bound is None
    view, table = pq.read_table(release / "view.parquet"), people()
    rewrite(release, pa.concat_tables([table.slice(0, 200).cast(view.schema), view.slice(0, N_ROWS - 200)]))
    assert {"linking", "law of keeping", "law of order"} <= broken(dalenius.audit(release, people(), seed=1))


@pytest.mark.parametrize("method", ["alpha-beta", "frapp"])
def test_a_perfect_leak_is_caught_and_one_row_crashes_nothing(method: str, tmp_path: Path) -> None:
    release = dalenius.publish(policy(tmp_path / "r", method=method), seed=1).path
    rewrite(release, people())
    leak = dalenius.audit(release, people(), seed=1)
    assert leak.named("linking").holds is False
    assert leak.named("linking").success == pytest.approx(1.0, abs=1e-3)
    one = people().slice(0, 1)
    single = dalenius.publish(policy(tmp_path / "one", one, method=method), seed=1).path
    assert dalenius.audit(single, one, seed=1).ok


def split_files(release: Path) -> None:
    """Every table in three part files, as an engine on several machines writes them."""
    manifest = json.loads((release / "manifest.json").read_text())
    for entry in manifest["tables"]:
        whole = pq.read_table(release / f"{entry['name']}.parquet")
        (release / f"{entry['name']}.parquet").unlink()
        entry["files"] = []
        for part in range(3):
            cut = whole.slice(part * len(whole) // 3, (part + 1) * len(whole) // 3 - part * len(whole) // 3)
            name = f"{entry['name']}-{part}.parquet"
            pq.write_table(cut, release / name, store_schema=False)
            entry["files"].append({"file": name, "sha256": sha256(release / name)})
    (release / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("promise", "mechanism"),
    [
        ({"kind": "l-diversity", "l": 2}, {"kind": "bucketize"}),
        ({"kind": "rho-privacy", "rho1": "max", "rho2": "3/4"}, {"kind": "perturb", "method": "uniform"}),
        ({"kind": "d-gamma-privacy", "k": 10, "gamma": 0.2}, {"kind": "alpha-beta"}),
    ],
    ids=["bucketize", "perturb", "alpha-beta"],
)
def test_several_files_are_one_table(promise: Any, mechanism: Any, tmp_path: Path) -> None:
    table = people()
    even = np.random.default_rng(2).choice(DOMAINS["ill"], size=N_ROWS)
    table = table.set_column(2, "ill", pa.array(even))
    rules = Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["uid", "age"], "sensitive": ["ill"]},
            **({"domains": DOMAINS} if mechanism["kind"] == "alpha-beta" else {}),
            "promise": promise,
            "mechanism": mechanism,
        }
    )
    release = dalenius.publish(rules, seed=1).path
    whole = dalenius.audit(release, table, seed=1)
    split_files(release)
    parts = dalenius.audit(release, table, seed=1)
    assert parts.ok, broken(parts)
    for one, two in zip(whole.attacks, parts.attacks, strict=True):
        assert one.name == two.name
        assert one.success == pytest.approx(two.success)


def test_a_folder_of_batches_is_audited_batch_by_batch(tmp_path: Path) -> None:
    for seed in (1, 2):
        table = people(seed).set_column(
            2, "ill", pa.array(np.random.default_rng(seed).choice(list("ab"), N_ROWS))
        )
        dalenius.publish(
            Policy.from_dict(
                {
                    "source": table,
                    "release": str(tmp_path / "days"),
                    "columns": {"quasi": ["uid", "age"], "sensitive": ["ill"]},
                    "promise": {"kind": "f-privacy", "default": 0.6},
                    "series": {"kind": "batches"},
                }
            )
        )
    with pytest.raises(InputError, match="2 batches"):
        dalenius.audit(tmp_path / "days", table)
    assert dalenius.audit(tmp_path / "days" / "batch-2", table, seed=1).ok
