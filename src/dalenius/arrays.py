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
