"""(ρ1,ρ2)-privacy: a value believed with at most ρ1 before the release is believed with at most ρ2 after it.

The restricted form of "Small Domain Randomization" (section 3.2): the bound is on the posterior of every
single value x with prior ≤ ρ1. Such values are SA′, the protected values; nothing is promised for a value
that is commoner than ρ1. With ρ1 = "max" (the largest frequency) every value is protected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import InputError, PolicyError, refuse_unknown_keys
from dalenius.exact import parse_fraction, percent
from dalenius.plain import Stated
from dalenius.promises.bounds import Bound
from dalenius.tables.histogram import Histogram


def amplification_limit(rho1: Fraction, rho2: Fraction) -> Fraction:
    """The largest γ = ρ2(1−ρ1)/(ρ1(1−ρ2)) that takes no prior of ρ1 above ρ2 (equation 6).

    >>> amplification_limit(Fraction(1, 3), Fraction(2, 3))
    Fraction(4, 1)
    """
    return rho2 * (1 - rho1) / (rho1 * (1 - rho2))


def frequency_behind(gamma: Fraction, rho2: Fraction) -> Fraction:
    """The ρ1 whose largest γ this is: `amplification_limit` backwards.

    >>> frequency_behind(Fraction(4), Fraction(2, 3))
    Fraction(1, 3)
    """
    return rho2 / (rho2 + gamma * (1 - rho2))


@dataclass(frozen=True, slots=True, kw_only=True)
class RhoPrivacy:
    """Prior ≤ ρ1 implies posterior ≤ ρ2. `rho1 = None` is "max", the largest frequency of the table.

    >>> RhoPrivacy(rho1=Fraction(1, 13), rho2=Fraction(1, 6)).to_dict()
    {'kind': 'rho-privacy', 'rho1': '1/13', 'rho2': '1/6'}
    """

    rho1: Fraction | None
    rho2: Fraction

    kind = "rho-privacy"
    protects = "value"
    states = ("rho1", "rho2", "prior_at_most")

    def __post_init__(self) -> None:
        if not 0 < self.rho2 < 1:
            raise InputError(f"rho2 ({self.rho2}) must lie between 0 and 1, both excluded")
        if self.rho1 is None:
            return
        if not 0 < self.rho1 < 1:
            raise InputError(f"rho1 ({self.rho1}) must lie between 0 and 1, both excluded")
        if self.rho1 >= self.rho2:
            raise InputError(
                f"rho1 ({self.rho1}) must be below rho2 ({self.rho2})",
                hint="rho1 bounds the belief before the release, rho2 the belief after it",
            )

    @staticmethod
    def in_words(promise: Mapping[str, Any], what: str) -> str:
        """The promise of a manifest in plain words, about values of `what`; of every prior, or a part's."""
        given = Stated.of(promise, "promise")
        rho2 = percent(given["rho2"].fraction())
        if "prior_at_most" in promise:
            before = percent(given["prior_at_most"].fraction())
            return (
                "Whoever takes people's values as independent of each other, and believed a value of "
                f"{what} of a person with at most {before} before seeing the person's published value, "
                f"believes it with at most {rho2} afterwards."
            )
        whom = (
            "every value"
            if promise["rho1"] == "max"
            else f"every value that at most {percent(given['rho1'].fraction())} of the people have"
        )
        return (
            f"Whoever expects a value of {what} of a person exactly as often as it occurs in the person's "
            f"part of the table cannot become surer of it than {rho2} by seeing the person's published "
            f"value. It holds for {whom}."
        )

    @classmethod
    def from_manifest(cls, promise: Mapping[str, Any]) -> RhoPrivacy:
        """What a manifest states."""
        given = Stated.of(promise, "promise")
        rho1 = None if given["rho1"].value == "max" else given["rho1"].fraction()
        return cls(rho1=rho1, rho2=given["rho2"].fraction())

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], sensitive: tuple[str, ...]) -> RhoPrivacy:  # noqa: ARG003
        """Read the `[promise]` section: decimals as written, fractions in quotes."""
        refuse_unknown_keys(section, ("kind", "rho1", "rho2"), "[promise] rho-privacy")
        missing = {"rho1", "rho2"} - section.keys()
        if missing:
            raise PolicyError(f"[promise] {cls.kind} needs {' and '.join(sorted(missing))}")
        is_largest = section["rho1"] == "max"
        rho1 = None if is_largest else parse_fraction(section["rho1"], "[promise] rho1")
        return cls(rho1=rho1, rho2=parse_fraction(section["rho2"], "[promise] rho2"))

    def prior_limit(self, counts: Sequence[int]) -> Fraction:
        """The ρ1 of a table with these counts: the one given, or the largest frequency."""
        return Fraction(max(counts), sum(counts)) if self.rho1 is None else self.rho1

    def bound(self, histogram: Histogram | None) -> Bound:  # noqa: ARG002
        """ρ2."""
        return Bound(largest=self.rho2, symbol="rho2", meaning="a person's sensitive value")

    def protected(self, counts: Sequence[int]) -> tuple[int, ...]:
        """SA′: the codes of the occurring values whose frequency is at most ρ1, exactly compared.

        >>> RhoPrivacy(rho1=Fraction(1, 4), rho2=Fraction(1, 2)).protected([2, 1, 0, 1, 4])
        (0, 1, 3)
        """
        limit, total = self.prior_limit(counts), sum(counts)
        highest = limit.numerator * total // limit.denominator  # o/n ≤ ρ1 iff o ≤ ⌊ρ1·n⌋
        return tuple(code for code, count in enumerate(counts) if 0 < count <= highest)

    def amplification(self, frequency: Fraction) -> Fraction:
        """The largest γ with which a value of that frequency stays at or below ρ2."""
        return amplification_limit(frequency, self.rho2)

    def to_dict(self) -> dict[str, str]:
        """The promise as the manifest records it."""
        return {
            "kind": self.kind,
            "rho1": "max" if self.rho1 is None else str(self.rho1),
            "rho2": str(self.rho2),
        }
