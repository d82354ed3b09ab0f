"""How sure an attacker may become: of anything, which is what promises are compared by, and of each value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.plain import Stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The largest probability that may be inferred, and of what."""

    largest: Fraction
    symbol: str
    """What the promise calls it, e.g. `1/l`."""
    meaning: str
    smallest: Fraction | None = None
    """The bound of the value that is protected most, where values have bounds of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """What a manifest's `promise` lets each value have; values are cells as manifests write them.

    >>> Thresholds.of({"kind": "l-diversity", "l": 4}).of_value(("Flu",))
    Fraction(1, 4)
    >>> named = Thresholds.of({"kind": "f-privacy", "thresholds": [{"value": ["HIV"], "at_most": "1/20"}]})
    >>> named.of_value(("HIV",)), named.of_value(("Flu",))
    (Fraction(1, 20), None)
    """

    common: Fraction | None
    """Of every value that is not listed; None: nothing is promised about it."""
    listed: Mapping[tuple[str | None, ...], Fraction]
    having: tuple[Fraction, ...] | None = None
    """Of people with several values: the threshold of each column that is true, and at the end of none."""

    @classmethod
    def of(cls, promise: Mapping[str, Any]) -> Thresholds:
        """Of l-diversity, f-privacy, or proximity, where a value is near itself."""
        given = Stated.of(promise, "promise")
        common = Fraction(1, given["l"].integer(at_least=1)) if promise["kind"] == "l-diversity" else None
        if promise["kind"] == "proximity":
            common = given["at_most"].fraction(at_least=0, at_most=1)
        if promise["kind"] == "sets":
            limits = [entry["at_most"].fraction(at_least=0, at_most=1) for entry in given["having"].entries()]
            return cls(common=None, listed={}, having=tuple(limits))
        return cls(common=common, listed={} if "thresholds" not in promise else _read(given["thresholds"]))

    def of_value(self, cells: tuple[str | None, ...]) -> Fraction | None:
        """The threshold of a value."""
        if self.having is not None:
            if not set(cells) <= {"true", "false"}:  # neither says whether the person has the value
                return None
            yes = [limit for cell, limit in zip(cells, self.having, strict=False) if cell == "true"]
            return min(yes, default=self.having[-1] if self.having else Fraction(0))
        return self.listed.get(cells, self.common)


def link_at_most(value: str, limit: str) -> str:
    """What thresholds promise, in plain words."""
    return (
        "Nobody who uses the release to find out in which bucket a person is, and knows nothing else, can "
        f"link that person to {value} with more certainty than {limit}"
    )


def _read(stated: Stated) -> dict[tuple[str | None, ...], Fraction]:
    """The thresholds of the values that are listed: of many values few are different, and read once."""
    limits: dict[str, Fraction] = {}
    listed: dict[tuple[str | None, ...], Fraction] = {}
    if not isinstance(stated.value, list | tuple):
        stated.entries()  # says what is wrong
    for number, item in enumerate(stated.value):
        match item:
            case {"value": [str() as cell], "at_most": str() as written} if written in limits:
                listed[(cell,)] = limits[written]
            case _:
                entry = Stated(value=item, place=f"{stated.place}[{number}]")
                limit = entry["at_most"].fraction(at_least=0, at_most=1)
                listed[entry["value"].cells()] = limits[str(entry["at_most"].value)] = limit
    return listed
