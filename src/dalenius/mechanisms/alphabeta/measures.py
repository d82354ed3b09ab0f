"""What a comparison asks of alpha-beta."""

from __future__ import annotations

from dataclasses import dataclass

from dalenius.mechanisms.alphabeta.published import read
from dalenius.mechanisms.measures import Measures
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewMeasures(Measures):
    """A view shows some rows of the table among others that could be."""

    def retention(self, release: StoredRelease, n_rows: int) -> float | None:  # noqa: ARG002
        """The share of its rows that a view keeps, α+β."""
        return float(read(release.manifest).law.retention)


MEASURES = ViewMeasures(
    label="views",
    notes=(
        "alpha-beta (gamma): about the presence of a whole row that was believed with at most d before, not "
        "about the value of a person who is known to be in the table; FRAPP's bound is for one record",
    ),
    records="view",
)
