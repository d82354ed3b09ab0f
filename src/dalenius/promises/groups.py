"""Sets of sensitive values that have a threshold together: any cancer, whichever it is.

The sets of a promise are nested or disjoint. Values can then be put in an order in which every set is a run,
and to deal records in that order round-robin gives every bucket its even share of every set.

With several sensitive columns a value of a set may leave cells open: `{ disease = "HIV" }` is everybody with
HIV, on whichever ward. Which values these are is known with the table's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

from dalenius.errors import PolicyError, ReleaseCorrupt, refuse_unknown_keys
from dalenius.exact import as_written, parse_fraction, show
from dalenius.plain import Stated
from dalenius.tables.histogram import Histogram, label_cell, write_cells

Labels = tuple[str | None, ...]
"""A value as policies write it, cell by cell; None: whatever the cell is."""
_EXAMPLE = 'groups = { cancer = { values = ["Breast cancer", "Prostate cancer"], at_most = 0.2 } }'


class ShareLimit:
    """Some values, and the share of a bucket that they may make up together."""

    __slots__ = ()
    at_most: Fraction

    def has(self, value: Iterable[Any]) -> bool:
        """Whether a value is one of them; its cells as a table has them, or as a manifest writes them."""
        raise NotImplementedError

    def most(self, size: int) -> int:
        """How many of a bucket's records may have such a value, ⌊f′·size⌋, exact."""
        return self.at_most.numerator * size // self.at_most.denominator

    def count(self, histogram: Histogram) -> int:
        """How many records have such a value."""
        pairs = zip(histogram.values, histogram.counts, strict=True)
        return sum(n for value, n in pairs if self.has(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(ShareLimit):
    """Values that may make up at most a share of a bucket together.

    >>> cancer = Group(name="cancer", values=(("Breast",), ("Lung",)), at_most=Fraction(1, 5))
    >>> cancer.has(("Lung",)), cancer.has((None,))
    (True, False)
    >>> Group(name="hiv", values=(("HIV", None),), at_most=Fraction(1, 5)).has(("HIV", "ward A"))
    True
    """

    name: str
    values: tuple[Labels, ...]
    at_most: Fraction

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) < len(self.values):
            raise PolicyError(f"[promise] groups.{self.name}: values must be listed, each of them once")
        if not 0 < self.at_most <= 1:
            raise PolicyError(
                f"[promise] groups.{self.name}: at_most ({show(self.at_most)}) is outside (0, 1]",
                hint="1 means: no limit",
            )

    @property
    def is_open(self) -> bool:
        """Whether some of its values leave cells open."""
        return any(None in value for value in self.values)

    def has(self, value: Iterable[Any]) -> bool:
        """Whether a value is of the group; its cells as a table has them, or as a manifest writes them."""
        labels = tuple(map(label_cell, value))
        return labels in self.values or (self.is_open and any(_fits(own, labels) for own in self.values))

    def list_values(self, histogram: Histogram) -> Group:
        """The same with the table's values in the place of those that leave cells open."""
        if not self.is_open:
            return self
        known = [tuple(map(label_cell, value)) for value in histogram.values]
        found: dict[Labels, None] = {}
        for own in self.values:
            matching: list[Labels] = [value for value in known if _fits(own, value)] if None in own else [own]
            if not matching:
                written = " / ".join("…" if cell is None else cell for cell in own)
                raise PolicyError(f"[promise] groups.{self.name}: no value of the table is {written}")
            found |= dict.fromkeys(matching)
        return replace(self, values=tuple(found))

    def to_dict(self, histogram: Histogram) -> dict[str, Any]:
        """The group as data, for the manifest."""
        written: dict[Labels, Sequence[str | None]] = {
            tuple(map(label_cell, value)): write_cells(value) for value in histogram.values
        }
        return {
            "name": self.name,
            "values": [list(written.get(value, value)) for value in self.list_values(histogram).values],
            "at_most": as_written(self.at_most),
        }


def _fits(pattern: Labels, value: Sequence[str | None]) -> bool:
    return all(cell is None or cell == other for cell, other in zip(pattern, value, strict=True))


def check_laminar(groups: Sequence[Group]) -> None:
    """Refuse groups that are neither nested nor disjoint; with open cells, once their values are known."""
    for one, other in combinations([group for group in groups if not group.is_open], 2):
        shared = set(one.values) & set(other.values)
        if shared and len(shared) < min(len(one.values), len(other.values)):
            example = " / ".join(map(str, min(shared)))
            raise PolicyError(
                f"[promise] groups {one.name!r} and {other.name!r} overlap ({example!r} is in both), and "
                "neither is part of the other",
                hint="groups must be nested or disjoint",
            )


def arrange(groups: Sequence[Group], histogram: Histogram) -> Histogram:
    """The histogram in an order in which the values of every group stand together.

    >>> both = (("b",), ("d",))
    >>> counted = Histogram.of(("x",), {(x,): 1 for x in "abcd"})
    >>> [x for x, in arrange((Group(name="g", values=both, at_most=Fraction(1, 2)),), counted).values]
    ['a', 'c', 'b', 'd']
    """
    outer_first = sorted(groups, key=lambda group: -len(group.values))
    # sorted by the path from the outermost group inwards, what shares a beginning of it stands together
    paths = [[k for k, group in enumerate(outer_first) if group.has(value)] for value in histogram.values]
    return histogram.in_order(sorted(range(len(histogram)), key=paths.__getitem__))


def read_groups(promise: Mapping[str, Any]) -> tuple[Group, ...]:
    """The groups that a manifest's `promise` lists; releases without groups list none."""
    listed = Stated.of(promise, "promise").get("groups")
    try:
        return tuple(map(_read_group, [] if listed is None else listed.entries()))
    except PolicyError as error:
        raise ReleaseCorrupt(f"the manifest states a group that cannot be: {error}") from error


def _read_group(entry: Stated) -> Group:
    return Group(
        name=entry["name"].text(),
        values=tuple(tuple(map(label_cell, value.cells())) for value in entry["values"].entries()),
        at_most=entry["at_most"].fraction(at_least=0, at_most=1),
    )


def parse_groups(spec: Any, sensitive: tuple[str, ...]) -> tuple[Group, ...]:
    """`{ cancer = { values = [...], at_most = 0.2 } }`; for several columns a value is a table of cells."""
    if not isinstance(spec, Mapping):
        raise PolicyError("[promise] groups must be a table of groups by their names", hint=_EXAMPLE)
    return tuple(_parse_group(str(name), group, sensitive) for name, group in spec.items())


def _parse_group(name: str, group: Any, sensitive: tuple[str, ...]) -> Group:
    where = f"[promise] groups.{name}"
    if not isinstance(group, Mapping) or not isinstance(group.get("values"), list) or "at_most" not in group:
        raise PolicyError(f"{where} needs a list of values, and at_most", hint=_EXAMPLE)
    refuse_unknown_keys(group, ("values", "at_most"), where)
    return Group(
        name=name,
        values=tuple(_parse_value(value, sensitive, where) for value in group["values"]),
        at_most=parse_fraction(group["at_most"], f"{where}.at_most"),
    )


def _parse_value(value: Any, sensitive: tuple[str, ...], where: str) -> Labels:
    if isinstance(value, Mapping):
        if not value or not set(value) <= set(sensitive):
            raise PolicyError(
                f"{where}: the cells of a value are those of {sorted(sensitive)}",
                hint="a column that is left out may have any value",
            )
        return tuple(label_cell(value[name]) if name in value else None for name in sensitive)
    if len(sensitive) > 1 or isinstance(value, list):
        example = ", ".join(f'{column} = "…"' for column in sensitive)
        raise PolicyError(
            f"{where}: {len(sensitive)} sensitive columns, so a value has as many cells",
            hint=f"values = [{{ {example} }}]",
        )
    return (label_cell(value),)
