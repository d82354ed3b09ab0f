"""What a comparison asks of roulette."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dalenius.mechanisms.measures import Measures, RowSample
from dalenius.release.folder import StoredRelease
from tests.toy.published import read


@dataclass(frozen=True, slots=True, kw_only=True)
class RouletteMeasures(Measures):
    """A record keeps its value, or the wheel shows it by chance."""

    label: str = "wheel"
    notes: tuple[str, ...] = ("roulette (rho2): about values believed with at most prior_at_most before",)

    def retention(self, release: StoredRelease, n_rows: int) -> float:
        """1 − s + s/m."""
        wheel = read(release.manifest).wheel
        return float(1 - wheel.spin + wheel.spin / wheel.n_values)

    def training_rows(
        self, release: StoredRelease, quasi: Sequence[str], sensitive: Sequence[str], sample: RowSample
    ) -> pa.Table:
        """The records as they are published."""
        return sample.read(release, "data", (*quasi, *sensitive))


MEASURES = RouletteMeasures()
