"""What a manifest says about suppression, read back.

What the batches of a series tell together about the value that was too common.

Safe suppression hides it among the values that are equally common in what is published, batch by batch. Who
takes it to be the same value every day intersects these sets. By symmetry (exchange two values that are on
top every day: what is published stays as it is, and so does any prior that treats names alike) every value
that is on top of all batches is equally likely, and no other one is possible. That is the exact posterior of
such an attacker. No rule for one day can bound it: the values that are tied on a day follow from that day's
counts, and to tie the same ones every day all of them would have to be cut to the rarest of them; on a day
when another value is the commonest, that would show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dalenius.plain import Plain, Stated
from dalenius.promises.l_diversity import LDiversity
from dalenius.release.manifest import MOST_ROWS, Manifest
from dalenius.tables.histogram import Histogram


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

    l: int | None  # noqa: E741  (the papers' ℓ)
    """None: values have limits of their own."""
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
    limits: tuple[StatedLimit, ...] = ()
    """Of values with limits of their own, those limits that some value was above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedLimit:
    """A limit that some value was above."""

    at_most: Fraction
    alike: int
    """How many of the values with this limit look the same."""

    @classmethod
    def of(cls, stated: Stated) -> StatedLimit:
        """From the manifest's section."""
        return cls(
            at_most=stated["at_most"].fraction(at_least=0, at_most=1),
            alike=stated["alike"].integer(at_least=1, at_most=MOST_ROWS),
        )


def read(manifest: Manifest) -> PublishedSuppression | None:
    """What was done to the table before; None where the policy did not ask for suppression."""
    stated = Stated.of(manifest.promise, "promise").get("suppression")
    if stated is None:
        return None
    posterior, bound, limits = stated.get("posterior"), stated.get("bound"), stated.get("limits")
    return PublishedSuppression(
        l=LDiversity.from_manifest(manifest.promise).l if limits is None else None,
        method=stated["method"].text(),
        name=stated["name"].text(),
        attacker=stated["attacker"].text(),
        prior=stated["prior"].text(),
        bound=None if bound is None else bound.fraction(at_least=0, at_most=1),
        posterior=None if posterior is None else StatedPosterior.of(posterior),
        limits=() if limits is None else tuple(map(StatedLimit.of, limits.entries())),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesBelief(Plain):
    """How sure somebody can be who sees all batches and takes the commonest value to be the same in all."""

    batches: int
    candidates: int
    """How many values are among the commonest of every batch."""
    posterior: float | None
    """None: there is none, so the commonest value was not the same in all."""

    def sentence(self) -> str:
        """For a plan."""
        if self.posterior is None:
            return (
                f"together with the {self.batches - 1} batches before: no value can have been the commonest "
                "of all, so it was not the same every day, and whoever sees all batches knows that"
            )
        return (
            f"together with the {self.batches - 1} batches before, whoever takes the commonest value to be "
            f"the same every day finds it with {self.posterior:.4f} ({self.candidates} values can be it)"
        )


def believe_in_one(published: Sequence[Histogram]) -> SeriesBelief:
    """From the counts of what each batch publishes.

    >>> one = Histogram.of(("d",), {("a",): 3, ("b",): 3, ("c",): 1})
    >>> two = Histogram.of(("d",), {("a",): 4, ("c",): 4, ("b",): 2})
    >>> believe_in_one([one, two]).candidates
    1
    """
    tops = [
        {value for value, count in zip(one.values, one.counts, strict=True) if count == max(one.counts)}
        for one in published
    ]
    shared = set.intersection(*tops)
    return SeriesBelief(
        batches=len(tops), candidates=len(shared), posterior=1 / len(shared) if shared else None
    )
