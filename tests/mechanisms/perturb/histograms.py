"""Histograms that the tests of this folder share."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st

from dalenius.arrays import Ints
from dalenius.mechanisms.perturb.plan.layout import Objective

EXAMPLE = (12, 8, 6, 5, 4, 3, 1, 1, 1, 1)  # example 1; the paper's text prints zeros for the ones
EDU_LIKE = (273, 204, 180, 97, 53, 33, 30, 27, 25, 22, 20, 18, 14, 4)  # 14 values, 27.3 % … 0.4 %; 9 ≤ 1/30


def kdd_occupations() -> list[int]:
    """The counts of occupation_code in KDD Census-Income, standing in for CENSUS."""
    path = (
        Path(__file__).parents[3] / os.environ.get("DALENIUS_DATA", "../shared/data") / "kdd_workers.csv.gz"
    )
    if not path.exists():
        pytest.skip(f"no real data at {path}; set DALENIUS_DATA")
    with gzip.open(path, "rt") as lines:
        column = next(lines).rstrip("\n").split(",").index("occupation_code")
        return sorted(Counter(line.rstrip("\n").split(",")[column] for line in lines).values())


def everything_protected(n_values: int, rho2: Fraction) -> Objective:
    return Objective(protected=np.ones(n_values, dtype=bool), rho2=float(rho2))


def array(counts: object) -> Ints:
    return np.array(counts, dtype=np.int64)


counts_lists = st.lists(st.integers(1, 60), min_size=2, max_size=14)
"""Histograms in which every value occurs."""


@st.composite
def histograms_with_unprotected(draw: st.DrawFn) -> tuple[Ints, np.ndarray]:
    """Counts and SA′: the rarest values, at least two of them, but not all."""
    counts = sorted(draw(st.lists(st.integers(1, 80), min_size=4, max_size=14)))
    n_protected = draw(st.integers(2, len(counts) - 1))
    highest = counts[n_protected - 1]
    protected = np.array(counts) <= highest
    return array(counts), protected
