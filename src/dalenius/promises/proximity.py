"""Proximity: how sure an attacker may become of a secret number, give or take a distance.

For every number y, at most a share f′ of the records of a published bucket have a value x with
|x − y| ≤ r(x): an attacker who knows in which bucket a person is, and nothing else, names no number that is
within r of the person's own with more certainty than f′. The distance r is a number, or a share of the true
value.

The values that one guess y hits are a run of the ascending values, since x − r(x) and x + r(x) ascend with x.
NULL, NaN and the infinities are near nothing but themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import pyarrow as pa

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.exact import as_written, parse_fraction, percent, show
from dalenius.plain import Stated
from dalenius.promises.bounds import Bound
from dalenius.tables.histogram import Histogram, Value

_EXAMPLE = (
    'within = "10%", at_most = 0.2: nobody names a salary within 10 % of the true one with more than 1/5'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distance:
    """How near to a true value a guess counts as right: a number, or a share of the true value.

    >>> Distance(amount=Fraction(1, 10), is_share=True).around("200")
    (Fraction(180, 1), Fraction(220, 1))
    """

    amount: Fraction
    is_share: bool

    def __post_init__(self) -> None:
        if self.amount < 0 or (self.is_share and self.amount >= 1):
            raise PolicyError(
                f"[promise] within ({self}) must not be negative, nor a share of 100 % or more",
                hint='e.g. within = 5000, or within = "10%" of the true value',
            )

    def around(self, cell: str | None) -> tuple[Fraction, Fraction] | None:
        """The least and the largest guess that are near a value, which is a text; None: nothing else is."""
        if cell is None or not isfinite(float(cell)):
            return None
        value = Fraction(cell)
        near = abs(value) * self.amount if self.is_share else self.amount
        return value - near, value + near

    def __str__(self) -> str:
        return percent(self.amount) if self.is_share else show(self.amount)

    def to_text(self) -> str:
        """As policies and manifests write it."""
        return f"{as_written(100 * self.amount)}%" if self.is_share else as_written(self.amount)

    @classmethod
    def parse(cls, value: Any) -> Distance:
        """`5000`, `"10%"`.

        >>> Distance.parse("10%").to_text(), Distance.parse(2.5).to_text()
        ('10%', '5/2')
        """
        if isinstance(value, str) and value.strip().endswith("%"):
            hundredths = parse_fraction(value.strip()[:-1].strip(), "[promise] within")
            return cls(amount=hundredths / 100, is_share=True)
        return cls(amount=parse_fraction(value, "[promise] within"), is_share=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proximity:
    """One limit for all numbers that lie near one guess.

    >>> promise = Proximity(within=Distance.parse(1), at_most=Fraction(1, 2))
    >>> promise.reach(["10", "12", "13", "20"])
    (2, 3, 3, 4)
    """

    within: Distance
    at_most: Fraction

    kind = "proximity"
    protects = "value"
    states = ("within", "at_most")
    groups = ()

    def __post_init__(self) -> None:
        if not 0 < self.at_most < 1:
            raise PolicyError(
                f"[promise] at_most ({show(self.at_most)}) must lie between 0 and 1, without them",
                hint=_EXAMPLE,
            )

    def reach(self, cells: Sequence[str | None]) -> tuple[int, ...]:
        """For each of ascending values, as texts, where those end that one guess can hit together with it."""
        around = [self.within.around(cell) for cell in cells]
        ends, end = [], 0
        for begin, own in enumerate(around):
            end = max(end, begin + 1)
            while own is not None and end < len(around):
                other = around[end]
                if other is None or other[0] > own[1]:
                    break
                end += 1
            ends.append(end)
        return tuple(ends)

    def thresholds(self, histogram: Histogram) -> tuple[Fraction, ...]:
        """The same for every value: it lies near itself."""
        return (self.at_most,) * len(histogram)

    def bound(self, histogram: Histogram | None) -> Bound:  # noqa: ARG002
        """The limit of every guess."""
        meaning = f"a number that is within {self.within} of a person's own"
        return Bound(largest=self.at_most, symbol="at most", meaning=meaning)

    def is_named(self, value: Value) -> bool:  # noqa: ARG002  (the protocol's signature)
        """The policy names no value."""
        return False

    def to_dict(self, histogram: Histogram) -> dict[str, Any]:  # noqa: ARG002
        """The promise as data, for the manifest."""
        return {"kind": self.kind, "within": self.within.to_text(), "at_most": as_written(self.at_most)}

    @staticmethod
    def in_words(promise: Mapping[str, Any], what: str) -> str:
        """The promise of a manifest in plain words, about values of `what`."""
        stated = Proximity.from_manifest(promise)
        return (
            "Nobody who uses the release to find out in which bucket a person is, and knows nothing else, "
            f"can name a number that is within {stated.within} of the person's true {what} with more "
            f"certainty than {percent(stated.at_most)}."
        )

    @classmethod
    def from_manifest(cls, promise: Mapping[str, Any]) -> Proximity:
        """What a manifest states."""
        given = Stated.of(promise, "promise")
        return cls(
            within=Distance.parse(given["within"].text()),
            at_most=given["at_most"].fraction(at_least=0, at_most=1),
        )

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], sensitive: tuple[str, ...]) -> Proximity:
        """Read the `[promise]` section."""
        refuse_unknown_keys(section, ("kind", "within", "at_most"), "[promise] proximity")
        if "within" not in section or "at_most" not in section:
            raise PolicyError("[promise] proximity needs within and at_most", hint=_EXAMPLE)
        if len(sensitive) != 1:
            raise PolicyError(
                f"[promise] proximity is about one column of numbers; {len(sensitive)} columns are sensitive",
                hint="keep one of them sensitive, and the others quasi or left out",
            )
        at_most = parse_fraction(section["at_most"], "[promise] at_most")
        return cls(within=Distance.parse(section["within"]), at_most=at_most)


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of that type holds numbers."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def ascending(cells: Iterable[str | None]) -> list[int]:
    """The order of values, as texts, by number: NULL first, NaN last.

    >>> ascending(["10", None, "9", "nan"])
    [1, 2, 0, 3]
    """

    def place(item: tuple[int, str | None]) -> tuple[int, Fraction | int]:
        cell = item[1]
        number = None if cell is None else float(cell)
        if cell is None or number is None:
            return 0, 0
        if isfinite(number):
            return 2, Fraction(cell)
        return (1 if number < 0 else 3 if number > 0 else 4), 0

    return [index for index, _ in sorted(enumerate(cells), key=place)]
