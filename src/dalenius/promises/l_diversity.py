"""ℓ-diversity, strictly: every value makes up at most 1/ℓ of every bucket (F′-privacy, f′_i = 1/ℓ)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.exact import parse_integer, percent
from dalenius.plain import Stated
from dalenius.promises.bounds import Bound, link_at_most
from dalenius.tables.histogram import Histogram, Value


@dataclass(frozen=True, slots=True, kw_only=True)
class LDiversity:
    """One threshold, 1/ℓ, for all values.

    >>> LDiversity(l=4).thresholds(Histogram.of(("x",), {("a",): 1, ("b",): 1}))
    (Fraction(1, 4), Fraction(1, 4))
    """

    l: int  # noqa: E741  (the papers' ℓ, and the policy's key)

    kind = "l-diversity"
    protects = "value"
    states = ("l",)
    groups = ()

    def thresholds(self, histogram: Histogram) -> tuple[Fraction, ...]:
        """1/ℓ for every value."""
        return (Fraction(1, self.l),) * len(histogram)

    def bound(self, histogram: Histogram | None) -> Bound:  # noqa: ARG002
        """1/ℓ."""
        return Bound(largest=Fraction(1, self.l), symbol="1/l", meaning="a person's sensitive value")

    def is_named(self, value: Value) -> bool:  # noqa: ARG002  (the protocol's signature)
        """The policy names no value."""
        return False

    def to_dict(self, histogram: Histogram) -> dict[str, Any]:  # noqa: ARG002
        """The promise as data, for the manifest."""
        return {"kind": self.kind, "l": self.l}

    @staticmethod
    def in_words(promise: Mapping[str, Any], what: str) -> str:
        """The promise of a manifest in plain words, about values of `what`."""
        ell = LDiversity.from_manifest(promise).l
        return link_at_most(f"any value of {what}", f"1 in {ell} ({percent(Fraction(1, ell))}).")

    @classmethod
    def from_manifest(cls, promise: Mapping[str, Any]) -> LDiversity:
        """What a manifest states."""
        return cls(l=Stated.of(promise, "promise")["l"].integer(at_least=1))

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], sensitive: tuple[str, ...]) -> LDiversity:  # noqa: ARG003
        """Read the `[promise]` section."""
        refuse_unknown_keys(section, ("kind", "l"), "[promise] l-diversity")
        if "l" not in section:
            raise PolicyError(
                "[promise] l-diversity needs l", hint="e.g. l = 5: no value above one fifth of a bucket"
            )
        return cls(l=parse_integer(section["l"], "[promise] l", at_least=2))
