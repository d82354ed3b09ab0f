"""What arrays hold: one name for each kind, the same in every room."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bits = NDArray[np.uint8]
"""One bit per row, packed."""
