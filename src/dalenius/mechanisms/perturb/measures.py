"""What a comparison asks of perturb."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dalenius.mechanisms.measures import Measures
from dalenius.mechanisms.perturb import published
from dalenius.mechanisms.perturb.answer import PerturbedRows
from dalenius.mechanisms.perturb.channel import reconstruct
from dalenius.mechanisms.perturb.config import PerturbConfig
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.promises.rho_privacy import RhoPrivacy
from dalenius.release.folder import StoredRelease


@dataclass(frozen=True, slots=True, kw_only=True)
class PerturbMeasures(Measures):
    """A record keeps its value with a probability that is its part's."""

    def bound(self, policy: Policy, bound: Bound) -> Bound:
        """What the attacker may believe before depends on the method."""
        is_uniform = policy.mechanism.method == "uniform" or policy.promise.kind == "f-privacy"
        prior = "any belief" if is_uniform else "the part's histogram as belief"
        return replace(bound, meaning=f"{bound.meaning}, from {prior}")

    def baseline(self, table: Policy, bound: Fraction, _others: Sequence[Policy], /) -> tuple[str, Policy]:
        """Uniform perturbation with ρ2 at the bound."""
        promise = RhoPrivacy(rho1=None, rho2=bound)
        return "UP", replace(table, promise=promise, mechanism=PerturbConfig(method="uniform"))

    def retention(self, release: StoredRelease, n_rows: int) -> float:
        """A perturbed record keeps its value with γ/(m−1+γ), or as its value's weight says."""
        rows = PerturbedRows.load(release)
        seen = np.bincount(rows.cells, minlength=len(rows.laws.code))
        channels = published.read(release.manifest).channels
        by_part = zip(channels, np.split(seen, rows.laws.first[1:]), strict=True)
        return float(sum(channel.kept() @ reconstruct(own, channel) for channel, own in by_part)) / n_rows


MEASURES = PerturbMeasures(
    label="perturbation",
    notes=(
        "perturb (rho2): about values believed with at most rho1 before; for `uniform` whatever else the "
        "attacker believes, for the other methods only if the belief is the histogram of the person's part",
    ),
    records="data",
)
