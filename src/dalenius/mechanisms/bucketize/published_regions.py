"""What a manifest says about regions, as those who read a release need it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def regions_of(parameters: dict[str, Any], buckets: NDArray[np.integer]) -> NDArray[np.int64] | None:
    """The region of each bucket, by its published number; None: there are no regions.

    >>> regions_of({"regions": [{"buckets": [1, 2]}, {"buckets": [3, 9]}]}, np.array([1, 2, 3])).tolist()
    [0, 0, 1]
    """
    stated = parameters.get("regions")
    if stated is None:
        return None
    first = np.array([region["buckets"][0] for region in stated])
    return np.asarray(np.searchsorted(first, buckets, side="right") - 1)
