"""What the manifest of a FRAPP view states, read back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.frapp.plan import FrappLaw
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.plan import read_domain
from dalenius.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedFrapp:
    """How a view was made, and what was promised of it."""

    domain: Domain
    law: FrappLaw
    gamma: Fraction
    """What the posterior of a record's tuple is promised to stay within."""
    domain_size: int
    """m as it is stated; it must be the size of the domain."""
    counts_rows: bool
    """Whether a row that repeats another counts again."""


def read(manifest: Manifest) -> PublishedFrapp:
    """Read the parameters and the promise."""
    given, promise = manifest.parameters, manifest.promise
    try:
        domain = read_domain(given["domains"])
        law = FrappLaw(k=Fraction(promise["k"]), gamma_f=Fraction(given["gamma_f"]), domain_size=domain.size)
        return PublishedFrapp(
            domain=domain,
            law=law,
            gamma=Fraction(promise["gamma"]),
            domain_size=int(given["domain_size"]),
            counts_rows=given["unit"] != "tuple",
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ReleaseCorrupt(f"the manifest's parameters cannot be read: {error}") from error
