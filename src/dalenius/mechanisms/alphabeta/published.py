"""What the manifest of a view states, read back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.alphabeta.plan.law import ViewLaw
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
            domain_size=int(given["domain_size"]),
            index=manifest.index,
            counts_rows=given["unit"] != "tuple",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseCorrupt(f"the manifest's parameters cannot be read: {error}") from error


def marginal_law(law: ViewLaw, index: int) -> ViewLaw:
    """The law of view i by itself, whatever the views before it have shown.

    >>> law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10), views=2, decay=Fraction(3, 5))
    >>> marginal_law(law, 2).beta == Fraction(1, 10) * Fraction(3, 10) + Fraction(9, 10) * Fraction(1, 20)
    True
    """
    unseen = math.prod((1 - law.fresh_rate(view) for view in range(1, index)), start=Fraction(1))
    outside = unseen * law.fresh_rate(index) + (1 - unseen) * law.seen_rate
    return ViewLaw(retention=law.retention, beta=outside)


def _read_law(given: Mapping[str, Any]) -> ViewLaw:
    alpha, beta = Fraction(given["alpha"]), Fraction(given["beta"])
    return ViewLaw(
        retention=alpha + beta, beta=beta, views=int(given["views"]), decay=Fraction(given["decay"])
    )
