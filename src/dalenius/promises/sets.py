"""Several sensitive values per person: a limit for each of them, whatever else the person has.

The sensitive columns are yes or no, one for each value. In every bucket at most f′_v of the people have v: an
attacker who knows in which bucket a person is, and nothing else, is at most so sure that the person has v.
Not to have a value is no secret; to have none of them is, as a value of its own, with at least 1/2.

A published column that says how many rows a person had says how many values the person can have: who has one
row is not the one with two values. People of a bucket are then to be alike in that column (`alike`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import PolicyError, refuse_unknown_keys
from dalenius.exact import as_written, parse_fraction, percent
from dalenius.plain import Stated
from dalenius.promises.bounds import Bound
from dalenius.promises.f_privacy import CAP, LinearLimit, check_threshold, parse_default
from dalenius.promises.groups import ShareLimit
from dalenius.tables.histogram import Histogram, Value, label_cell, show_value

NONE = "none of them"
_YES = "true"
_MOST_EXAMPLES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Having(ShareLimit):
    """The people who have one value, or none, and the share of a bucket that they may be.

    >>> hiv = Having(name="HIV", column=1, at_most=Fraction(1, 5))
    >>> hiv.has((False, True)), hiv.has(("true", "false"))
    (True, False)
    """

    name: str
    column: int | None
    """Of the sensitive ones; None: the people who have no value."""
    at_most: Fraction

    def has(self, value: Iterable[Any]) -> bool:
        """Whether a person with these cells is one of them; as a table or a manifest has the cells."""
        cells = [label_cell(cell) == _YES for cell in value]
        return not any(cells) if self.column is None else cells[self.column]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetPrivacy:
    """A limit per value, for people who can have several.

    >>> promise = SetPrivacy(columns=("Flu", "HIV"), default=Fraction(1, 2), named=(("HIV", Fraction(1, 4)),))
    >>> counted = Histogram.of(("Flu", "HIV"), {(True, False): 5, (True, True): 1, (False, False): 6})
    >>> [str(limit) for limit in promise.thresholds(counted)]
    ['1/2', '1/2', '1/4']
    """

    columns: tuple[str, ...]
    default: LinearLimit | Fraction | None
    named: tuple[tuple[str, Fraction], ...] = ()
    alike: tuple[str, ...] = ()
    """Quasi columns in which the people of a bucket do not differ."""
    none_at_least: Fraction = CAP
    """The limit of having no value, unless a larger share of all people has none."""

    kind = "sets"
    protects = "value"
    states = ("having", "alike")
    groups = ()

    def __post_init__(self) -> None:
        for name, threshold in self.named:
            check_threshold(repr(name), threshold)
            if name not in self.columns:
                raise PolicyError(
                    f"[promise] values: {name!r} is not among the sensitive columns",
                    hint=f"sensitive: {', '.join(self.columns)}",
                )
        if isinstance(self.default, Fraction):
            check_threshold("default", self.default)
        if isinstance(self.default, Fraction) and self.default == 1:
            raise PolicyError("[promise] default = 1 would protect no value that is not named")

    def having(self, histogram: Histogram) -> tuple[Having, ...]:
        """The limit of every value, and of having none."""
        named, found = dict(self.named), []
        for column, name in enumerate(self.columns):
            if name not in named and self.default is None:
                raise PolicyError(
                    f"[promise] {name!r} has no threshold", hint="set a default, or name it in values"
                )
            one = Having(name=name, column=column, at_most=Fraction(1))
            share = Fraction(one.count(histogram), histogram.n_rows)
            default = self.default.at(share) if isinstance(self.default, LinearLimit) else self.default
            limit = named.get(name, default)
            assert limit is not None  # noqa: S101  (refused above)
            found.append(Having(name=name, column=column, at_most=limit))
        nobody = Having(name=NONE, column=None, at_most=Fraction(1))
        share = Fraction(nobody.count(histogram), histogram.n_rows)
        return (*found, Having(name=NONE, column=None, at_most=max(self.none_at_least, share)))

    def thresholds(self, histogram: Histogram) -> tuple[Fraction, ...]:
        """Of every set that occurs: no more than of any value in it."""
        limits = self.having(histogram)
        return tuple(min(one.at_most for one in limits if one.has(value)) for value in histogram.values)

    def bound(self, histogram: Histogram | None) -> Bound:
        """The largest limit below 1."""
        assert histogram is not None  # noqa: S101  (limits are for the values of sensitive columns)
        below = [one.at_most for one in self.having(histogram) if one.at_most < 1 and one.column is not None]
        return Bound(
            largest=max(below, default=Fraction(1)),
            symbol="largest f'",
            meaning="that a person has a value; others have thresholds of their own",
            smallest=min(below, default=None),
        )

    def is_named(self, value: Value) -> bool:  # noqa: ARG002  (the protocol's signature)
        """The policy names values, not sets of them."""
        return False

    def to_dict(self, histogram: Histogram) -> dict[str, Any]:
        """The promise as data, for the manifest."""
        return {
            "kind": self.kind,
            "having": [
                {"column": None if one.column is None else one.name, "at_most": as_written(one.at_most)}
                for one in self.having(histogram)
            ],
            **({"alike": list(self.alike)} if self.alike else {}),
        }

    @staticmethod
    def in_words(promise: Mapping[str, Any], what: str) -> str:  # noqa: ARG004  (the columns are the values)
        """The promise of a manifest in plain words."""
        limits = [one for one in read_having(promise) if one.at_most < 1]
        strictest = sorted((one.at_most, one.name) for one in limits if one.column is not None)
        shown = "; ".join(
            f"{show_value([name])} at most {percent(f)}" for f, name in strictest[:_MOST_EXAMPLES]
        )
        return (
            "Nobody who uses the release to find out in which bucket a person is, and knows nothing else, "
            "can be surer that the person has a value than the limit that was set for it, whatever other "
            f"values the person has. The strictest limits: {shown}.{_say_alike(read_alike(promise))}"
        )

    @classmethod
    def from_manifest(cls, promise: Mapping[str, Any]) -> SetPrivacy:
        """What a manifest states: every value is named."""
        limits = [one for one in read_having(promise) if one.column is not None]
        names = tuple(one.name for one in limits)
        named = tuple((one.name, one.at_most) for one in limits)
        return cls(columns=names, default=None, named=named, alike=read_alike(promise))

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], sensitive: tuple[str, ...]) -> SetPrivacy:
        """Read the `[promise]` section."""
        refuse_unknown_keys(section, ("kind", "default", "values", "alike"), "[promise] sets")
        default = parse_default(section["default"]) if "default" in section else None
        spec = section.get("values", {})
        if not isinstance(spec, Mapping):
            raise PolicyError(
                "[promise] values must be a table of thresholds", hint="values = { HIV = 0.05 }"
            )
        named = tuple((str(key), parse_fraction(f, f"[promise] values.{key}")) for key, f in spec.items())
        alike = section.get("alike", [])
        if not isinstance(alike, list | tuple) or not all(isinstance(name, str) for name in alike):
            raise PolicyError("[promise] alike must be a list of quasi columns", hint='alike = ["visits"]')
        return cls(columns=sensitive, default=default, named=named, alike=tuple(alike))


def _say_alike(columns: tuple[str, ...]) -> str:
    if not columns:
        return ""
    return f" People share a bucket only with those who are alike in {show_value(columns)}."


def read_having(promise: Mapping[str, Any]) -> tuple[Having, ...]:
    """The limits that a manifest's `promise` lists, in the order of its sensitive columns."""
    found = []
    for number, entry in enumerate(Stated.of(promise, "promise")["having"].entries()):
        name, at_most = entry["column"], entry["at_most"].fraction(at_least=0, at_most=1)
        is_none = name.value is None
        found.append(
            Having(name=NONE if is_none else name.text(), column=None if is_none else number, at_most=at_most)
        )
    return tuple(found)


def read_alike(promise: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns in which the people of a bucket do not differ, as a manifest's `promise` lists them."""
    names = Stated.of(promise, "promise").get("alike")
    return () if names is None else tuple(name.text() for name in names.entries())
