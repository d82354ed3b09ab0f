"""What the manifest of a view states, read back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.errors import InputError, ReleaseCorrupt
from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, ViewLaw
from dalenius.mechanisms.tuples.domain import Domain
from dalenius.mechanisms.tuples.noise import NoiseLaw
from dalenius.mechanisms.tuples.plan import read_domain
from dalenius.plain import Stated
from dalenius.promises import read_promise
from dalenius.promises.d_gamma_privacy import Adversary, DGammaPrivacy
from dalenius.release.manifest import MOST_VIEWS, Manifest


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
    given, promise = Stated.of(manifest.parameters, "parameters"), Stated.of(manifest.promise, "promise")
    domain, stated = read_domain(given["domains"], manifest), read_promise(manifest.promise)
    if not isinstance(stated, DGammaPrivacy):
        raise ReleaseCorrupt(f"the manifest's promise is {stated.kind}, which views do not keep")
    shares = given.get("noise_shares")
    if promise["unit"].text() != given["unit"].text():
        raise ReleaseCorrupt("the manifest promises something of other units than it counts")
    try:
        return PublishedView(
            domain=domain,
            law=_read_law(given),
            noise=None if shares is None else NoiseLaw.of(domain, _read_shares(shares)),
            d=_between(promise["d"]),
            gamma=_between(promise["gamma"]),
            adversary=stated.adversary,
            promised_views=1 if promise.get("views") is None else promise["views"].integer(at_least=1),
            may_change=promise.is_set("changing"),
            domain_size=given["domain_size"].integer(),
            index=manifest.index,
            counts_rows=given["unit"].text() != "tuple",
        )
    except InputError as error:
        raise ReleaseCorrupt(f"the manifest states a law that cannot be: {error}") from error


def _between(stated: Stated) -> Fraction:
    """A probability that is neither 0 nor 1."""
    found = stated.fraction(at_least=0, at_most=1)
    if found in (0, 1):
        raise ReleaseCorrupt(f"the manifest's {stated.place} is {found}, not between 0 and 1")
    return found


def _read_shares(stated: Stated) -> dict[str, list[Fraction]]:
    return {
        name: [share.fraction(at_least=0, at_most=1) for share in stated[name].entries()]
        for name in stated.section()
    }


def marginal_law(law: ViewLaw, index: int) -> ViewLaw:
    """The law of view i by itself, whatever the views before it have shown.

    For a tuple that is in the table at all dates up to then, or at none.
    """
    return ViewLaw(retention=law.retention, beta=law.noise_rate(index))


def _read_law(given: Stated) -> ViewLaw:
    alpha, beta = given["alpha"].fraction(at_most=1), given["beta"].fraction(at_most=1)
    kind = ChangingLaw if given.is_set("changing") else ViewLaw
    return kind(
        retention=alpha + beta,
        beta=beta,
        views=given["views"].integer(at_least=1, at_most=MOST_VIEWS),
        decay=given["decay"].fraction(at_least=0, at_most=1),
    )


def tables(manifest: Manifest) -> dict[str, tuple[str, ...]]:
    """The columns of the one table: those of the domain."""
    return {"view": read(manifest).domain.names}
