"""What arrays hold: one name for each kind, the same in every room."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Int32s = NDArray[np.int32]
Codes = NDArray[np.integer[Any]]
"""Which of a list of values, or of rows, each one is: whole numbers from 0, in as few bytes as will do."""
Bools = NDArray[np.bool_]
Bits = NDArray[np.uint8]
"""One bit per row, packed."""


def divide(above: Floats, below: Floats) -> Floats:
    """The quotients; 0 where there is nothing to divide by.

    >>> divide(np.array([1.0, 1.0, np.inf]), np.array([4.0, 0.0, 2.0])).tolist()
    [0.25, 0.0, 0.0]
    """
    usable = np.isfinite(above) & np.isfinite(below) & (below > 0)
    return np.asarray(np.divide(above, below, out=np.zeros_like(above), where=usable))
