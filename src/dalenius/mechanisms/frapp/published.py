"""What the manifest of a FRAPP view states, read back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import ReleaseCorrupt
from dalenius.mechanisms.frapp.plan import FrappLaw
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.plan import read_domain
from dalenius.plain import Stated
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
    given, promise = Stated.of(manifest.parameters, "parameters"), Stated.of(manifest.promise, "promise")
    domain = read_domain(given["domains"], manifest)
    law = FrappLaw(
        k=promise["k"].fraction(at_least=0, at_most=domain.size),
        gamma_f=given["gamma_f"].fraction(at_least=0, at_most=1),
        domain_size=domain.size,
    )
    is_as_stated = promise["d"].fraction() == law.prior and promise["adversary"].value == "independent"
    if not is_as_stated or promise["views"].value != 1 or promise["unit"].value != "record":
        raise ReleaseCorrupt("the manifest promises what holds for one record, at most k/m likely, otherwise")
    if promise.is_set("changing"):
        raise ReleaseCorrupt("the manifest promises of a table that may change, which FRAPP does not keep")
    if domain.size < 2 or not 0 < law.k < domain.size or not 0 < law.slope < 1:
        raise ReleaseCorrupt("the manifest states a law by which no record is both kept and changed")
    return PublishedFrapp(
        domain=domain,
        law=law,
        gamma=promise["gamma"].fraction(at_least=0, at_most=1),
        domain_size=given["domain_size"].integer(),
        counts_rows=given["unit"].text() != "tuple",
    )


def tables(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """The columns of the one table: those of the domain."""
    return {"view": read(manifest).domain.names}
