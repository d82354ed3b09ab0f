"""What a manifest says about suppression, read back."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dalenius.plain import Stated
from dalenius.promises.l_diversity import LDiversity
from dalenius.release.manifest import Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPosterior:
    """How sure an attacker can be of the commonest value of the source."""

    value: float
    exact: Fraction | None
    """None: it is known as a decimal number only."""
    how: str

    @classmethod
    def of(cls, stated: Stated) -> StatedPosterior:
        """From the manifest's section."""
        exact = stated.get("exact")
        return cls(
            value=stated["value"].number(at_least=0, at_most=1),
            exact=None if exact is None else exact.fraction(at_least=0, at_most=1),
            how=stated["how"].text(),
        )

    def is_above(self, bound: Fraction) -> bool:
        """Whether it is above a bound, exactly where that can be said."""
        return self.value > float(bound) if self.exact is None else self.exact > bound


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedSuppression:
    """By what method records were withheld before a release, and what that promises."""

    l: int  # noqa: E741  (the papers' ℓ)
    method: str
    name: str
    """Of the method, in words."""
    attacker: str
    prior: str
    """Of the attacker for whom the posterior is stated."""
    bound: Fraction | None
    """None: the method has none, or nothing was withheld."""
    posterior: StatedPosterior | None
    """None: it was not computed."""


def read(manifest: Manifest) -> PublishedSuppression | None:
    """What was done to the table before; None where the policy did not ask for suppression."""
    stated = Stated.of(manifest.promise, "promise").get("suppression")
    if stated is None:
        return None
    posterior, bound = stated.get("posterior"), stated.get("bound")
    return PublishedSuppression(
        l=LDiversity.from_manifest(manifest.promise).l,
        method=stated["method"].text(),
        name=stated["name"].text(),
        attacker=stated["attacker"].text(),
        prior=stated["prior"].text(),
        bound=None if bound is None else bound.fraction(at_least=0, at_most=1),
        posterior=None if posterior is None else StatedPosterior.of(posterior),
    )
