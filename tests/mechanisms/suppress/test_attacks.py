"""Guessing the value that was too common."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.mechanisms.suppress.attacks import attack_eligibility


def test_eligibility_safe_holds_and_r_suppression_is_not_promised() -> None:
    safe, printed = (attack_eligibility([10, 4, 2, 1, 1], 3, method) for method in ("safe", "randomized"))
    assert safe.holds is True
    assert safe.success <= 1 / 3 + 1e-12
    assert printed.bound is None
    assert printed.success > 1 / 3
    assert attack_eligibility([3, 3, 3], 3, "safe").detail["how"] == "no suppression"


def test_a_suppressed_release_is_asked_for_its_commonest_value(tmp_path: Path) -> None:
    disease = np.random.default_rng(1).permutation(np.repeat(list("abcde"), [160, 60, 60, 60, 60]))
    table = pa.table({"uid": np.arange(400), "disease": disease})
    policy = dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["uid"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 3},
            "suppress": {"method": "safe"},
        }
    )
    audit = dalenius.audit(dalenius.publish(policy).path, table, seed=1)
    assert audit.ok
    assert audit.named("eligibility").bound == pytest.approx(1 / 3)
    assert audit.named("eligibility").success <= 1 / 3


@pytest.mark.parametrize("quasi", [["uid", "sex"], ["sex"]], ids=["all differ", "many are alike"])
def test_who_sees_who_was_withheld_passes_the_bound_and_nothing_is_promised_against_her(
    tmp_path: Path, quasi: list[str]
) -> None:
    """Nine of ten with the commonest value are women, of the others four: the withheld people tell it."""
    coins = np.random.default_rng(3)
    disease = coins.permutation(np.repeat(list("abcde"), [1_000, 300, 300, 250, 150]))
    is_woman = coins.random(len(disease)) < np.where(disease == "a", 0.9, 0.4)
    table = pa.table(
        {"uid": np.arange(len(disease)), "sex": np.where(is_woman, "f", "m"), "disease": disease}
    )
    policy = dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": quasi, "sensitive": ["disease"], "dropped": [*({"uid"} - {*quasi})]},
            "promise": {"kind": "l-diversity", "l": 3},
            "suppress": {"method": "safe"},
        }
    )
    release = dalenius.publish(policy, seed=1)
    assert any("sees who is withheld" in text for text in release.manifest["not_covered"])
    audit = dalenius.audit(release.path, table, seed=1)
    found = audit.named("withheld people")
    assert audit.ok
    assert found.bound is None
    assert found.detail["finds_the_commonest"]
    assert found.success > 0.8  # where 1/3 is the bound for who sees the counts alone
