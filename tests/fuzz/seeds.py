"""Small releases to start from: the kept ones of every format version, and one of every kind made here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import dalenius
from dalenius import Policy

_KEPT = Path(__file__).parents[1] / "releases"
N_ROWS = 120

_DIVERSE = {"kind": "l-diversity", "l": 3}
_DECLARED = {"age": "30..41", "sex": ["F", "M"], "ill": ["cold", "flu", "gout", "hiv", "none"]}
_HIDDEN = {"kind": "d-gamma-privacy", "d": "1/20", "gamma": "1/4"}
MADE: dict[str, dict[str, Any]] = {
    "diverse": {"promise": _DIVERSE},
    "anatomy": {"promise": _DIVERSE, "mechanism": {"kind": "bucketize", "method": "anatomy"}},
    "fakes": {"promise": _DIVERSE, "mechanism": {"kind": "bucketize", "fakes": 1}},
    "regions": {"promise": _DIVERSE, "mechanism": {"kind": "bucketize", "regions": True}},
    "safe": {"promise": {"kind": "l-diversity", "l": 4}, "suppress": {"method": "safe"}},
    "uniform": {
        "promise": {"kind": "rho-privacy", "rho1": "2/5", "rho2": "3/5"},
        "mechanism": {"kind": "perturb", "method": "uniform"},
    },
    "view": {"promise": _HIDDEN, "mechanism": {"kind": "alpha-beta", "duplicates": "distinct"}},
    "copies": {
        "promise": _HIDDEN,
        "mechanism": {"kind": "alpha-beta", "duplicates": "copies", "domains": "active"},
    },
    "frapp": {
        "promise": {"kind": "d-gamma-privacy", "k": 3, "gamma": "1/4"},
        "mechanism": {"kind": "alpha-beta", "method": "frapp"},
    },
}


def people() -> pa.Table:
    """A hundred people with an illness each."""
    rng = np.random.default_rng(7)
    shares = [0.28, 0.24, 0.2, 0.16, 0.12]
    ill = rng.choice(_DECLARED["ill"], N_ROWS, p=shares)
    return pa.table(
        {"age": rng.integers(30, 42, N_ROWS), "sex": rng.choice(["F", "M"], N_ROWS), "ill": ill.astype(str)}
    )


def make_seeds(folder: Path, *, kept: bool = True) -> dict[str, Path]:
    """Every seed release, by name; those that are in the folder already are taken as they are."""
    if folder.exists():
        return {path.name: path for path in sorted(folder.iterdir())}
    folder.mkdir()
    old = sorted(_KEPT.iterdir()) if kept else []
    found = {path.name: shutil.copytree(path, folder / path.name) for path in old}
    for number, (name, sections) in enumerate(MADE.items()):
        policy = {
            "source": people(),
            "release": str(folder / name),
            "columns": {"quasi": ["age", "sex"], "sensitive": ["ill"]},
            **sections,
        }
        if "d-gamma" in sections["promise"]["kind"]:
            policy["domains"] = _DECLARED
        found[name] = dalenius.publish(Policy.from_dict(policy), seed=number, yes=True).path
    return found
