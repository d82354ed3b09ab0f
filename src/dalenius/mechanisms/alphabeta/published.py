"""The parameters of a view as its manifest states them, read back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.alphabeta.law import ViewLaw
from dalenius.mechanisms.tuples.declared import read_domain
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedView:
    """What a manifest says about how its view was made."""

    domain: Domain
    law: ViewLaw | None
    """None: a FRAPP view."""
    gamma_f: Fraction | None
    noise: NoiseLaw | None
    index: int
    """Which view of its series it is."""
    counts_rows: bool
    """Whether a row that repeats another counts again."""

    @classmethod
    def of(cls, manifest: Manifest) -> PublishedView:
        """Read the manifest's parameters."""
        given = manifest.parameters
        try:
            domain = read_domain(given["domains"])
            frapp = given["method"] == "frapp"
            shares = given.get("noise_shares")
            return cls(
                domain=domain,
                law=None if frapp else _law(given),
                gamma_f=Fraction(given["gamma_f"]) if frapp else None,
                noise=None if shares is None else NoiseLaw.of(domain, shares),
                index=manifest.index,
                counts_rows=given["unit"] != "tuple",
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ReleaseCorrupt(f"the manifest's parameters cannot be read: {error}") from error

    @property
    def noise_rows(self) -> Fraction:
        """Σβ(t): how many tuples outside the table the first view is expected to get."""
        assert self.law is not None  # noqa: S101  (asked of αβ views only)
        largest = Fraction(1, self.domain.size) if self.noise is None else self.noise.largest_share
        return self.law.beta / largest


def marginal_law(law: ViewLaw, index: int) -> ViewLaw:
    """The law of view i by itself, whatever the views before it have shown.

    >>> law = ViewLaw(retention=Fraction(1, 2), beta=Fraction(1, 10), views=2, decay=Fraction(3, 5))
    >>> marginal_law(law, 2).beta == Fraction(1, 10) * Fraction(3, 10) + Fraction(9, 10) * Fraction(1, 20)
    True
    """
    unseen = math.prod((1 - law.fresh_rate(view) for view in range(1, index)), start=Fraction(1))
    outside = unseen * law.fresh_rate(index) + (1 - unseen) * law.seen_rate
    return ViewLaw(retention=law.retention, beta=outside)


def _law(given: Mapping[str, Any]) -> ViewLaw:
    alpha, beta = Fraction(given["alpha"]), Fraction(given["beta"])
    return ViewLaw(
        retention=alpha + beta, beta=beta, views=int(given["views"]), decay=Fraction(given["decay"])
    )
