"""Counts with OpenDP's discrete Laplace noise, whose draws cannot be seeded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dalenius.errors import InputError


def noisy_counts(counts: Sequence[int], scale: float) -> NDArray[np.float64]:
    """Every count with fresh noise of that scale."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise InputError(
            "the Laplace mechanism needs OpenDP", hint='pip install "dalenius[evaluate]"'
        ) from error
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    measurement: Any = dp.m.make_laplace(*space, scale=scale)
    return np.array(measurement(list(counts)), dtype=np.float64)
