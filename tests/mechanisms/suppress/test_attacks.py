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
