"""What a comparison asks of alpha-beta."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dalenius.mechanisms.alphabeta.published import read
from dalenius.mechanisms.measures import Measures, RowSample
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMeasures(Measures):
    """A view shows some rows of the table among others that could be."""

    label: str = "views"
    notes: tuple[str, ...] = (
        "alpha-beta (gamma): about the presence of a whole row that was believed with at most d before, not "
        "about the value of a person who is known to be in the table; FRAPP's bound is for one record",
    )

    def retention(self, release: StoredRelease, n_rows: int) -> float | None:  # noqa: ARG002
        """The share of its rows that a view keeps, α+β."""
        return float(read(release.manifest).law.retention)

    def training_rows(
        self, release: StoredRelease, quasi: Sequence[str], sensitive: Sequence[str], sample: RowSample
    ) -> pa.Table:
        """The rows as they are published."""
        return sample.read(release, "view", (*quasi, *sensitive))


MEASURES = ViewMeasures()
