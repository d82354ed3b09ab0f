"""An αβ view beside its original, as counts: how much of the table and of the noise it really shows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law, read
from dalenius.mechanisms.tuples.attacks import code_tuples, number_copies
from dalenius.mechanisms.tuples.config import COPY
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCase:
    """What the manifest states, and how many tuples of the table and of the noise a view shows."""

    law: ViewLaw
    """Of all views of the series."""
    d: Fraction
    gamma: Fraction
    domain_size: int
    n_table: int
    n_shown: int
    """Of the table's tuples."""
    n_noise: int
    index: int = 1
    """Which view of its series it is."""
    kept_stated: float | None = None
    """How many of the table's tuples should be shown, where noise is not uniform; None: it is."""
    noise_stated: float | None = None
    """How many others should be, where noise is not uniform."""

    @classmethod
    def load(cls, release: StoredRelease, original: pa.Table) -> ViewCase:
        """Compare a view's rows with the table's distinct ones."""
        view = read(release.manifest)
        own, shown = (np.unique(codes) for codes in code_tuples(original, [release], view.domain))
        n_shown = int(np.isin(shown, own, assume_unique=True).sum())
        kept, noise = _expect_shaped(view, original)
        return cls(
            law=view.law,
            d=view.d,
            gamma=view.gamma,
            domain_size=view.domain_size,
            n_table=len(own),
            n_shown=n_shown,
            n_noise=len(shown) - n_shown,
            index=view.index,
            kept_stated=kept,
            noise_stated=noise,
        )

    @property
    def own_law(self) -> ViewLaw:
        """The law of this view by itself: noise that earlier views have shown comes again more often."""
        return self.law if self.index == 1 else marginal_law(self.law, self.index)

    @property
    def outside(self) -> int:
        """How many tuples of the domain are not in the table."""
        return self.domain_size - self.n_table

    @property
    def kept_scale(self) -> float:
        """From the share of the table that is shown to the rate at the tuple that gets the most noise."""
        return 1.0 if self.kept_stated is None else self._retention * self.n_table / self.kept_stated

    @property
    def noise_scale(self) -> float:
        """The same for the share of all other tuples that is shown."""
        beta = float(self.own_law.beta)
        return 1.0 if self.noise_stated is None else beta * self.outside / self.noise_stated

    @property
    def _retention(self) -> float:
        return float(self.own_law.retention)


def _expect_shaped(view: PublishedView, original: pa.Table) -> tuple[float | None, float | None]:
    """How many tuples of the table, and of all others, noise by a declared distribution should show."""
    if view.noise is None:
        return None, None
    names = view.domain.names
    distinct = (number_copies(original) if COPY in names else original).select(names).group_by(names)
    share = view.noise.relative(view.domain.encode(distinct.aggregate([]).combine_chunks()))
    inserted = float(view.law.beta) * float(share.sum())
    kept = float(view.law.alpha) * len(share) + inserted
    return kept, float(view.noise_rows) - inserted
