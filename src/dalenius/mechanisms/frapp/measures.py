"""What a comparison asks of FRAPP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dalenius.mechanisms.frapp.config import FrappConfig
from dalenius.mechanisms.frapp.published import read
from dalenius.mechanisms.measures import Measures
from dalenius.policy import Policy
from dalenius.promises.bounds import Bound
from dalenius.promises.d_gamma_privacy import DGammaPrivacy
from dalenius.release.folder import StoredRelease

_USUAL_K = Fraction(10)
"""The k of the baseline where no policy has one: the αβ paper's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrappMeasures(Measures):
    """A record stays as it is with a probability that is the same for all."""

    def bound(self, policy: Policy, bound: Bound) -> Bound:  # noqa: ARG002
        """The attacker knows which published row is whose."""
        return replace(bound, meaning="a record's whole row")

    def baseline(self, table: Policy, bound: Fraction, others: Sequence[Policy], /) -> tuple[str, Policy]:
        """FRAPP with γ at the bound, and the k of one of the policies."""
        ks = [policy.promise.k for policy in others if isinstance(policy.promise, DGammaPrivacy)]
        promise = DGammaPrivacy(gamma=bound, k=next((k for k in ks if k), _USUAL_K))
        return "FRAPP", replace(table, promise=promise, mechanism=FrappConfig(active_domains=None))

    def retention(self, release: StoredRelease, n_rows: int) -> float | None:  # noqa: ARG002
        """A record is kept with probability γ_f."""
        return float(read(release.manifest).law.gamma_f)


MEASURES = FrappMeasures(
    label="views",
    records="view",
)
