"""What a comparison asks of roulette."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.mechanisms.measures import Measures
from dalenius.release.folder import StoredRelease
from tests.toy.published import read


@dataclass(frozen=True, slots=True, kw_only=True)
class RouletteMeasures(Measures):
    """A record keeps its value, or the wheel shows it by chance."""

    def retention(self, release: StoredRelease, n_rows: int) -> float:
        """1 − s + s/m."""
        wheel = read(release.manifest).wheel
        return float(1 - wheel.spin + wheel.spin / wheel.n_values)


MEASURES = RouletteMeasures(
    label="wheel",
    notes=("roulette (rho2): about values believed with at most prior_at_most before",),
    records="data",
)
