"""(ρ1,ρ2)-privacy: a value believed with at most ρ1 before the release is believed with at most ρ2 after it.

The restricted form of "Small Domain Randomization" (section 3.2): the bound is on the posterior of every
single value x with prior ≤ ρ1. Such values are SA′, the protected values; nothing is promised for a value
that is commoner than ρ1. With ρ1 = "max" (the largest frequency) every value is protected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from dalenius.errors import InputError, PolicyError

KIND = "rho-privacy"


def amplification_limit(rho1: Fraction, rho2: Fraction) -> Fraction:
    """The largest γ = ρ2(1−ρ1)/(ρ1(1−ρ2)) that takes no prior of ρ1 above ρ2 (equation 6).

    >>> amplification_limit(Fraction(1, 3), Fraction(2, 3))
    Fraction(4, 1)
    """
    return rho2 * (1 - rho1) / (rho1 * (1 - rho2))


@dataclass(frozen=True, slots=True, kw_only=True)
class RhoPrivacy:
    """Prior ≤ ρ1 implies posterior ≤ ρ2. `rho1 = None` is "max", the largest frequency of the table.

    >>> RhoPrivacy(rho1=Fraction(1, 13), rho2=Fraction(1, 6)).to_dict()
    {'kind': 'rho-privacy', 'rho1': '1/13', 'rho2': '1/6'}
    """

    rho1: Fraction | None
    rho2: Fraction

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

    @classmethod
    def from_policy(cls, promise: Mapping[str, object]) -> RhoPrivacy:
        """Read the `[promise]` table of a policy: decimals as written, fractions in quotes."""
        missing = {"rho1", "rho2"} - promise.keys()
        if missing:
            raise PolicyError(f"the promise {KIND} needs {' and '.join(sorted(missing))}")
        rho1 = None if promise["rho1"] == "max" else _exact(promise["rho1"], "rho1")
        return cls(rho1=rho1, rho2=_exact(promise["rho2"], "rho2"))

    def prior_limit(self, counts: Sequence[int]) -> Fraction:
        """The ρ1 of a table with these counts: the one given, or the largest frequency."""
        return Fraction(max(counts), sum(counts)) if self.rho1 is None else self.rho1

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
            "kind": KIND,
            "rho1": "max" if self.rho1 is None else str(self.rho1),
            "rho2": str(self.rho2),
        }


def _exact(value: object, name: str) -> Fraction:
    if isinstance(value, str | Decimal | int | Fraction) and not isinstance(value, bool):
        try:
            return Fraction(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            pass
    raise PolicyError(
        f"{name} ({value!r}) is not an exact number",
        hint=f'write {name} = 0.125 or {name} = "1/8"',
    )
