"""Values as JSON data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dalenius.plain import Plain, plain, plain_fields


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    n_cells: int = field(metadata={"json": "cells"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree(Plain):
    leaves: tuple[Leaf, ...]
    hidden: str = field(metadata={"json": None})
    age: float | None = None

    @property
    def height(self) -> int:
        return len(self.leaves)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wood:
    trees: dict[str, Tree | int]

    def to_dict(self) -> dict[str, int]:
        return {"size": len(self.trees)}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Fraction(1, 13), "1/13"),
        (Decimal("0.10"), "0.10"),
        (date(2026, 1, 2), "2026-01-02"),
        (Path("a") / "b", "a/b"),
        (Colour.RED, "red"),
        (b"xy", "b'xy'"),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.arange(3), [0, 1, 2]),
        ((1, (2, None)), [1, [2, None]]),
        (frozenset([True]), [True]),
        ({"a": (Fraction(3),)}, {"a": ["3"]}),
    ],
)
def test_every_kind_of_value_becomes_json(value: object, expected: object) -> None:
    found = plain(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == expected


def test_fields_are_renamed_left_out_and_kept_in_order() -> None:
    tree = Tree(leaves=(Leaf(n_cells=2), Leaf(n_cells=5)), hidden="s")
    assert json.dumps(tree.to_dict()) == '{"leaves": [{"cells": 2}, {"cells": 5}], "age": null}'
    assert plain_fields(tree, "height", "age") == {"height": 2, "age": None}


def test_a_class_with_its_own_form_keeps_it_wherever_it_stands() -> None:
    assert plain([Wood(trees={"oak": 1})]) == [{"size": 1}]
    assert plain_fields(Wood(trees={"oak": 1})) == {"trees": {"oak": 1}}
