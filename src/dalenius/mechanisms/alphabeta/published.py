"""What the manifest of a view states, read back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, ViewLaw
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.plan import read_domain
from dalenius.promises.d_gamma_privacy import Adversary
from dalenius.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedView:
    """How a view was made, and what was promised of it."""

    domain: Domain
    law: ViewLaw
    """Of all views of its series."""
    noise: NoiseLaw | None
    d: Fraction
    gamma: Fraction
    adversary: Adversary
    promised_views: int
    """As many as the promise says that there may be; the law must be for these."""
    domain_size: int
    """m as it is stated; it must be the size of the domain."""
    index: int
    """Which view of its series it is."""
    counts_rows: bool
    """Whether a row that repeats another counts again."""
    may_change: bool = False
    """Whether the promise is for tables that change; the law must be one for these."""

    @property
    def is_changing(self) -> bool:
        """Whether the table may change between views, and each one is of the table as it was then."""
        return isinstance(self.law, ChangingLaw)

    @property
    def noise_rows(self) -> Fraction:
        """Σβ(t): how many tuples outside the table the first view is expected to get."""
        largest = Fraction(1, self.domain.size) if self.noise is None else self.noise.largest_share
        return self.law.beta / largest


def read(manifest: Manifest) -> PublishedView:
    """Read the parameters and the promise."""
    given, promise = manifest.parameters, manifest.promise
    try:
        domain = read_domain(given["domains"])
        shares = given.get("noise_shares")
        return PublishedView(
            domain=domain,
            law=_read_law(given),
            noise=None if shares is None else NoiseLaw.of(domain, shares),
            d=Fraction(promise["d"]),
            gamma=Fraction(promise["gamma"]),
            adversary=promise["adversary"],
            promised_views=int(promise.get("views", 1)),
            may_change=bool(promise.get("changing", False)),
            domain_size=int(given["domain_size"]),
            index=manifest.index,
            counts_rows=given["unit"] != "tuple",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseCorrupt(f"the manifest's parameters cannot be read: {error}") from error


def marginal_law(law: ViewLaw, index: int) -> ViewLaw:
    """The law of view i by itself, whatever the views before it have shown.

    For a tuple that is in the table at all dates up to then, or at none.
    """
    return ViewLaw(retention=law.retention, beta=law.noise_rate(index))


def _read_law(given: Mapping[str, Any]) -> ViewLaw:
    alpha, beta = Fraction(given["alpha"]), Fraction(given["beta"])
    kind = ChangingLaw if given.get("changing") else ViewLaw
    return kind(retention=alpha + beta, beta=beta, views=int(given["views"]), decay=Fraction(given["decay"]))
