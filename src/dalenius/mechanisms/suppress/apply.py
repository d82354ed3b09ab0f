"""Withholding records: which ones of a value, once it is decided how many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.mechanisms.dealing import Dealer
from dalenius.tables.codes import Encoder

_KEPT = 0


class Withholder:
    """Thins a stream of batches: of each value a uniformly random choice of records is kept."""

    def __init__(self, encoder: Encoder, kept: Ints, withheld: Ints, stream: np.random.Generator) -> None:
        self._encoder = encoder
        self._dealer = Dealer(np.stack([kept, withheld], axis=1))
        self._stream = stream

    def thin(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The kept records of each batch, in its order."""
        for batch in batches:
            dealt = self._dealer.deal(self._encoder.encode(batch), self._stream, self._stream)
            thinned = batch.filter(pa.array(dealt == _KEPT))
            if thinned.num_rows:
                yield thinned
        self._dealer.finish()
