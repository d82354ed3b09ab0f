"""F′-privacy: a threshold for each sensitive value (Wang, Wang, Fu, Wong: Inferential or Differential).

In every published bucket, value x_i makes up at most f′_i of the records, so an attacker who knows in
which bucket a person is, and nothing else, gives x_i a probability of at most f′_i. The same holds for sets
of values that have a threshold together (`groups.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import PolicyError, PromiseNotMet, ReleaseCorrupt, refuse_unknown_keys
from dalenius.exact import as_written, parse_fraction, percent, show
from dalenius.plain import Stated
from dalenius.promises.bounds import Bound, link_at_most
from dalenius.promises.groups import Group, check_laminar, parse_groups, read_groups
from dalenius.tables.histogram import Histogram, Value, label, label_cell, show_value, write_cells

CAP = Fraction(1, 2)
"""The most that a `default` lets anybody be sure of a value, unless the policy states another."""
_MOST_EXAMPLES = 3
_NOT_SENSITIVE = "a value that is no secret is named in `values` with 1, e.g. values = { Flu = 1.0 }"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearLimit:
    """The threshold max(f, min(cap, times · f + plus)) of a value with frequency f.

    No release can keep a value below its own share of the table, so that is the least.

    >>> rule = LinearLimit(times=Fraction(4), plus=Fraction(1, 50))
    >>> [str(rule.at(f)) for f in (Fraction(1, 100), Fraction(1, 5), Fraction(3, 5))]
    ['3/50', '1/2', '3/5']
    """

    times: Fraction
    plus: Fraction
    cap: Fraction = CAP

    def __post_init__(self) -> None:
        if self.times < 0 or self.plus < 0 or self.times + self.plus == 0:
            raise PolicyError(
                f"[promise] default: times ({show(self.times)}) and plus ({show(self.plus)}) must not be "
                "negative, nor both zero"
            )
        if not 0 < self.cap < 1:
            raise PolicyError(
                f"[promise] default: cap ({show(self.cap)}) must lie between 0 and 1, without them",
                hint=_NOT_SENSITIVE,
            )

    def at(self, frequency: Fraction) -> Fraction:
        """The threshold of a value with that frequency; 1 only for a value that everybody has."""
        return max(frequency, min(self.cap, self.times * frequency + self.plus))


@dataclass(frozen=True, slots=True, kw_only=True)
class FPrivacy:
    """A threshold per value: those named one by one, and a rule for the others.

    >>> double = LinearLimit(times=Fraction(2), plus=Fraction(0))
    >>> promise = FPrivacy(default=double, named=((("HIV",), Fraction(1, 2)),))
    >>> promise.thresholds(Histogram.of(("disease",), {("Flu",): 3, ("HIV",): 2, ("Cold",): 7}))
    (Fraction(7, 12), Fraction(1, 2), Fraction(1, 2))
    """

    default: LinearLimit | Fraction | None
    """For values that are not named; None: every value must be named."""
    named: tuple[tuple[tuple[str, ...], Fraction], ...] = ()
    """Labels of the cells of a value, and its threshold."""
    groups: tuple[Group, ...] = ()
    """Sets of values with a threshold of their own, nested or disjoint."""

    kind = "f-privacy"
    protects = "value"
    states = ("thresholds", "groups")

    def __post_init__(self) -> None:
        if isinstance(self.default, Fraction):
            check_threshold("default", self.default)
            if self.default == 1:
                raise PolicyError(
                    "[promise] default = 1 would protect no value that is not named", hint=_NOT_SENSITIVE
                )
        for cells, threshold in self.named:
            check_threshold(repr(" / ".join(cells)), threshold)
        check_laminar(self.groups)

    def thresholds(self, histogram: Histogram) -> tuple[Fraction, ...]:
        """f′_i of every value of the histogram, in its order."""
        named = dict(self.named)
        labels = [tuple(label_cell(cell) for cell in value) for value in histogram.values]
        _refuse_unknown_names(named, labels, histogram)
        n_unnamed = sum(cells not in named for cells in labels)
        if self.default is None and n_unnamed:
            raise PolicyError(
                f"[promise] {n_unnamed} values of {_names(histogram)} have no threshold",
                hint="set a default, e.g. default = { times = 4, plus = 0.02 }",
            )
        return tuple(
            named[cells] if cells in named else self._default_at(histogram, frequency)
            for cells, frequency in zip(labels, histogram.frequencies, strict=True)
        )

    def _default_at(self, histogram: Histogram, frequency: Fraction) -> Fraction:
        """The threshold of a value that is not named: never 1, which only the policy's own word can be."""
        if frequency == 1:
            raise PromiseNotMet(
                f"everybody in the table has the same value of {_names(histogram)}: every release tells it",
                hint="if it is no secret, make the column quasi; naming it with 1 in `values` means the same",
            )
        assert self.default is not None  # noqa: S101  (a value without a threshold was refused before)
        return self.default.at(frequency) if isinstance(self.default, LinearLimit) else self.default

    def bound(self, histogram: Histogram | None) -> Bound:
        """The largest threshold below 1; 1 where no value is sensitive."""
        assert histogram is not None  # noqa: S101  (thresholds are for the values of a sensitive column)
        below = [f for f in self.thresholds(histogram) if f < 1]
        return Bound(
            largest=max(below, default=Fraction(1)),
            symbol="largest f'",
            meaning="a person's sensitive value; others have thresholds of their own",
            smallest=min(below, default=None),
        )

    def is_named(self, value: Value) -> bool:
        """Whether the policy itself names the value, so that a message may too."""
        return any(cells == tuple(label_cell(cell) for cell in value) for cells, _ in self.named)

    def to_dict(self, histogram: Histogram) -> dict[str, Any]:
        """The promise as data, for the manifest."""
        return {
            "kind": self.kind,
            "thresholds": [
                {
                    "value": list(write_cells(value)),
                    "at_most": as_written(f),
                }
                for value, f in zip(histogram.values, self.thresholds(histogram), strict=True)
            ],
            **({"groups": [group.to_dict(histogram) for group in self.groups]} if self.groups else {}),
        }

    @staticmethod
    def in_words(promise: Mapping[str, Any], what: str) -> str:
        """The promise of a manifest in plain words, about values of `what`."""
        entries = Stated.of(promise, "promise")["thresholds"].entries()
        limits = [(entry["at_most"].fraction(), show_value(entry["value"].cells())) for entry in entries]
        strictest = [f"{name} at most {percent(f)}" for f, name in sorted(limits)[:_MOST_EXAMPLES] if f < 1]
        examples = f" The strictest limits: {'; '.join(strictest)}." if strictest else ""
        if "prior" in promise:
            return (
                "Whoever takes people's values as independent of each other, and believed a value of "
                f"{what} of a person with at most its share in the table (rounded up) before seeing the "
                "person's published value, believes it with at most the limit that was set for this value "
                f"afterwards.{examples}"
            )
        together = [
            f"{show_value([group.name])} ({len(group.values)} values) at most {percent(group.at_most)}"
            for group in read_groups(promise)
            if group.at_most < 1
        ]
        sets = f" Values that have a limit together, too: {'; '.join(together)}." if together else ""
        return link_at_most(f"a value of {what}", f"the limit that was set for this value.{examples}{sets}")

    @classmethod
    def from_manifest(cls, promise: Mapping[str, Any]) -> FPrivacy:
        """What a manifest states: every value is named, and once."""
        entries = Stated.of(promise, "promise")["thresholds"].entries()
        values = [entry["value"].cells() for entry in entries]
        if len(set(values)) < len(values):
            raise ReleaseCorrupt("the manifest states two thresholds of one value")
        limits = [entry["at_most"].fraction(at_least=0, at_most=1) for entry in entries]
        labels = [tuple(map(label_cell, value)) for value in values]
        return cls(default=None, named=tuple(zip(labels, limits, strict=True)), groups=read_groups(promise))

    @classmethod
    def from_policy(cls, section: Mapping[str, Any], sensitive: tuple[str, ...]) -> FPrivacy:
        """Read the `[promise]` section."""
        refuse_unknown_keys(section, ("kind", "default", "values", "groups"), "[promise] f-privacy")
        default = parse_default(section["default"]) if "default" in section else None
        named = _parse_named(section.get("values", {}), sensitive)
        if default is None and not named:
            raise PolicyError("[promise] f-privacy needs a default, values, or both")
        groups = parse_groups(section.get("groups", {}), sensitive)
        return cls(default=default, named=named, groups=groups)


def parse_default(spec: Any) -> LinearLimit | Fraction:
    """The rule of values that are not named: one number, or times, plus and cap."""
    if not isinstance(spec, Mapping):
        return parse_fraction(spec, "[promise] default")
    refuse_unknown_keys(spec, ("times", "plus", "cap"), "[promise] default")
    times = parse_fraction(spec.get("times", 0), "[promise] default.times")
    plus = parse_fraction(spec.get("plus", 0), "[promise] default.plus")
    cap = parse_fraction(spec.get("cap", CAP), "[promise] default.cap")
    return LinearLimit(times=times, plus=plus, cap=cap)


def _parse_named(spec: Any, sensitive: tuple[str, ...]) -> tuple[tuple[tuple[str, ...], Fraction], ...]:
    """`{ HIV = 0.05 }`; for several columns `[{ disease = "HIV", ward = "A", at_most = 0.05 }]`."""
    if isinstance(spec, Mapping):
        if len(sensitive) > 1 and spec:
            example = ", ".join(f'{name} = "…"' for name in sensitive)
            raise PolicyError(
                f"[promise] values: with {len(sensitive)} sensitive columns a value has a cell in each",
                hint=f"values = [{{ {example}, at_most = 0.05 }}]",
            )
        return tuple(((str(key),), parse_fraction(f, f"[promise] values.{key}")) for key, f in spec.items())
    if not isinstance(spec, list):
        raise PolicyError("[promise] values must be a table of thresholds, or a list of tables")
    return tuple(_parse_entry(entry, sensitive) for entry in spec)


def _parse_entry(entry: Any, sensitive: tuple[str, ...]) -> tuple[tuple[str, ...], Fraction]:
    expected = {*sensitive, "at_most"}
    if not isinstance(entry, Mapping) or set(entry) != expected:
        raise PolicyError(f"[promise] values: every entry must have exactly the keys {sorted(expected)}")
    cells = tuple(label_cell(entry[name]) for name in sensitive)
    return cells, parse_fraction(entry["at_most"], f"[promise] values {' / '.join(cells)}")


def check_threshold(what: str, threshold: Fraction) -> None:
    """Refuse what is no share of a bucket."""
    if not 0 < threshold <= 1:
        raise PolicyError(
            f"[promise] threshold of {what} ({show(threshold)}) is outside (0, 1]",
            hint="1 means: not sensitive; no release can keep 0 for a value that occurs",
        )


def _refuse_unknown_names(
    named: Mapping[tuple[str, ...], Fraction], labels: list[tuple[str, ...]], histogram: Histogram
) -> None:
    for cells in named:
        if cells not in labels:
            raise PolicyError(
                f"[promise] values: no row has {' / '.join(cells)!r} in {_names(histogram)}",
                hint="`dalenius inspect` lists the values; after [recode] the recoded ones count",
            )
    if len(set(labels)) < len(labels):
        twice = next(value for value in histogram.values if labels.count(tuple(map(label_cell, value))) > 1)
        raise PolicyError(f"{_names(histogram)} has NULL and the text {label(twice)!r}; recode one of them")


def _names(histogram: Histogram) -> str:
    return " × ".join(repr(name) for name in histogram.columns)
