"""Withholding records: which ones of a value, once it is decided how many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dalenius.errors import InternalError
from dalenius.histogram import Encoder
from dalenius.mechanisms.dealing import IntArray, deal, draw_quota

_KEPT = 0


class Withholder:
    """Thins a stream of batches: of each value a uniformly random choice of records is kept."""

    def __init__(
        self, encoder: Encoder, kept: IntArray, withheld: IntArray, stream: np.random.Generator
    ) -> None:
        self._encoder = encoder
        self._remaining = np.stack([kept, withheld], axis=1)
        self._stream = stream

    def thin(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The kept records of each batch, in its order."""
        for batch in batches:
            thinned = batch.filter(pa.array(self._is_kept(batch)))
            if thinned.num_rows:
                yield thinned
        if self._remaining.any():
            raise InternalError("the table changed between two passes over it: a value has fewer records")

    def _is_kept(self, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        codes = self._encoder.encode(batch)
        counts = np.bincount(codes, minlength=len(self._remaining))
        if (counts > self._remaining.sum(axis=1)).any():
            raise InternalError("the table changed between two passes over it: a value has more records")
        quota = draw_quota(self._remaining, counts, self._stream)
        self._remaining = self._remaining - quota
        return np.asarray(deal(codes, quota, self._stream) == _KEPT)
