"""Damaged policies: fields of good ones changed, and bytes of their texts; now and then one is planned."""

from __future__ import annotations

import copy
import datetime
import json
import random
import shutil
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from pyarrow import csv

import dalenius
from dalenius import Policy
from dalenius.policy import open_source_of
from dalenius.tables.source import Source, open_source
from tests.fuzz.cases import SECRET, Case, Edit, Finding, attempt
from tests.fuzz.mutations import edit_bytes, edit_json, places

N_ROWS = 80
_RELEASE = "out"
_ILL = ["cold", "flu", f"{SECRET}gout", f"{SECRET}hiv", f"{SECRET}none"]
_COLUMNS = {"quasi": ["age", "sex"], "sensitive": ["ill"], "identifiers": ["name"], "dropped": ["day"]}
_SHORT = {"quasi": ["age", "sex"], "sensitive": ["ill"], "dropped": ["day", "name"]}
_DOMAINS = {"age": "30..41", "sex": ["F", "M"], "ill": _ILL}
_DIVERSE = {"kind": "l-diversity", "l": 2}
_HIDDEN = {"kind": "d-gamma-privacy", "d": "1/20", "gamma": "1/4"}
STARTS: dict[str, dict[str, Any]] = {
    "buckets": {
        "columns": {**_COLUMNS, "unit": "name", "identifiers": [], "k": 2},
        "recode": {"age": [{"bins": [0, 35, 120]}, {"map": "map.csv"}], "sex": {"prefix": 1}},
        "promise": {
            "kind": "f-privacy",
            "default": {"times": 8, "plus": 0.02, "cap": 0.5},
            "values": {"cold": 1.0, "flu": "1/2"},
            "groups": {"short": {"values": ["cold", "flu"], "at_most": 0.9}},
        },
        "mechanism": {"kind": "bucketize", "method": "optimal", "max_bucket": 20},
        "outright": "allowed",
    },
    "fakes": {
        "columns": _COLUMNS,
        "promise": _DIVERSE,
        "mechanism": {"kind": "bucketize", "method": "anatomy", "fakes": 0},
        "ledger": {"path": "ledger"},
    },
    "batches": {
        "columns": _COLUMNS,
        "recode": {"age": {"round": 5}},
        "promise": {"kind": "f-privacy", "default": 0.5},
        "mechanism": {"kind": "bucketize", "regions": False},
        "series": {"kind": "batches"},
    },
    "safe": {"columns": _COLUMNS, "promise": {**_DIVERSE, "l": 3}, "suppress": {"method": "safe"}},
    "days": {
        "columns": {"quasi": ["day", "age"], "sensitive": ["ill"], "dropped": ["sex", "name"]},
        "recode": {"day": {"date": "year"}, "age": [{"top": 40}, {"bottom": 31}]},
        "promise": _DIVERSE,
    },
    "perturb": {
        "columns": _COLUMNS,
        "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"},
        "mechanism": {"kind": "perturb", "method": "uniform"},
    },
    "view": {
        "columns": _SHORT,
        "domains": _DOMAINS,
        "promise": _HIDDEN,
        "mechanism": {"kind": "alpha-beta", "duplicates": "distinct", "views": 1},
    },
    "copies": {
        "columns": _SHORT,
        "promise": {"kind": "d-gamma-privacy", "k": 3, "gamma": 0.25},
        "mechanism": {"kind": "alpha-beta", "method": "frapp", "domains": "active"},
    },
}
_STRANGE: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 50, 10**6, 2**63, 10**40),
    *(
        0.5,
        0.0,
        -0.0,
        1.0,
        1e-30,
        1e300,
        {"$float": "nan"},
        {"$float": "inf"},
        {"$float": "1e999999999"},
        {"$day": "2026-01-31"},
    ),
    *(
        "",
        "0",
        "1",
        "1/2",
        "1/0",
        "-3/4",
        "3/2",
        "max",
        "0.25",
        "1e9",
        "9" * 400,
        "9" * 5000,
        "١/٢",
        "½",
        "1 / 2",
    ),
    *("age", "sex", "ill", "name", "day", "Age", "bucket", "count", "weight", "NULL", "cold", "nobody"),
    *("bucketize", "perturb", "alpha-beta", "frapp", "anatomy", "optimal", "two-size", "multi-size", "best"),
    *("l-diversity", "f-privacy", "rho-privacy", "d-gamma-privacy", "safe", "exact", "randomized", "paper"),
    *("active", "distinct", "copies", "batches", "views", "allowed", "refused", "year", "weekday"),
    *(
        "30..41",
        "41..30",
        "a..b",
        "1..99999999999",
        f"1..{'9' * 5000}",
        "..",
        "file.csv",
        "../x",
        "/dev/null",
        "a\x00b",
    ),
    *("\x1b[2J", "\u202e", "\ud800", "<b>", "=1+1", "'; DROP TABLE t; --", '"', "a" * 5000),
    *([], {}, [[]], [{}], [None], ["age"], ["age", "age"], [1, 2, 3], [3, 2, 1], [0, 0], ["cold", "flu"]),
    *(
        {"bins": [0, 10]},
        {"bins": "equal"},
        {"bins": [10**30, 10**31]},
        {"round": 0},
        {"top": 5, "bottom": 9},
    ),
    *({"map": {"F": "x"}}, {"map": "nowhere.csv"}, {"prefix": -1}, {"rare": 2}, {"date": "century"}),
    *({"age_at": "2026-13-01"}, {"kind": "l-diversity", "l": 2}, {"times": -1}, {"values": [], "at_most": 2}),
    *({"quasi": [], "sensitive": []}, {"values": ["cold"], "at_most": 0.5}, {"path": 3}, {"k": 10, "d": 1}),
    *([{"ill": "cold", "at_most": 0.5}], [{"round": 5}, {"bins": [0, 1]}], {"quantiles": 3}, {"noise": "x"}),
)


def people() -> pa.Table:
    """A small table; some of its sensitive cells no policy names."""
    rng = np.random.default_rng(5)
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, N_ROWS)
    return pa.table(
        {
            "age": rng.integers(30, 42, N_ROWS),
            "sex": rng.choice(["F", "M"], N_ROWS),
            "ill": rng.choice(_ILL, N_ROWS, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
            "name": [f"person {i}" for i in range(N_ROWS)],
            "day": pa.array(days.astype("datetime64[D]")),
        }
    )


class Policies:
    """Policies of every mechanism, on one small table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = people()
        self.source = open_source(self.table)
        self.listed = {name: list(places(policy)) for name, policy in STARTS.items()}
        self.texts = {name: to_toml(policy).encode() for name, policy in STARTS.items()}
        csv.write_csv(self.table, folder / "people.csv")
        (folder / "map.csv").write_text("from,to\n0-34,young\n35-120,old\n")

    def draw(self, kind: str, number: int) -> Case:
        """Case number n, always the same one."""
        rng = random.Random(f"{kind} {number}")  # noqa: S311  (no secret)
        name = rng.choice(sorted(STARTS))
        if rng.random() < 0.1:
            edits = _draw_text_edits(len(self.texts[name]), rng)
        else:
            edits = [self._draw_edit(name, rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
        return Case(kind=kind, start=name, edits=edits)

    def _draw_edit(self, name: str, rng: random.Random) -> Edit:
        path = list(rng.choice(self.listed[name]))
        how = rng.choice(("set", "set", "set", "set", "remove", "copy", "near", "rename", "put"))
        if how == "copy":
            other = rng.choice(sorted(STARTS))
            return ["set", path[:1], STARTS[other].get(path[0])]  # a section of another policy
        if how == "near":
            return ["near", path, rng.choice((-1, 1, -2, 2, 10))]
        if how == "rename":
            return ["rename", path, rng.choice(("x", "", "kind", "method", "age", "ill", "at_most", "plus"))]
        if how == "put":
            return ["put", path, [rng.choice(("k", "gamma", "d", "l", "x", "fakes")), rng.choice(_STRANGE)]]
        return [how, path, rng.choice(_STRANGE) if how == "set" else None]

    def run(self, case: Case, number: int = 0) -> Iterator[Finding]:
        """Read it; plan one in 50, publish one in 400."""
        found: list[Policy] = []
        yield from attempt("policy", lambda: found.append(self._read(case)))
        if found and number % 50 == 0:
            yield from attempt("plan", lambda: dalenius.plan(found[0]))
        if found and number % 400 == 0 and found[0].release is not None:
            yield from attempt("publish", lambda: dalenius.publish(found[0], seed=1, yes=True))
            shutil.rmtree(self.folder / _RELEASE, ignore_errors=True)
            left = [path.name for path in self.folder.iterdir() if path.name.startswith(".")]
            if left:
                yield Finding(command="publish", what=f"left behind: {left}")

    def _read(self, case: Case) -> Policy:
        with (
            mock.patch("dalenius.policy.open_source_of", self._open),
            mock.patch("dalenius.mechanisms.registry.entry_points", _no_entry_points),
        ):
            return self._read_text(case) if _is_of_text(case) else self._read_values(case)

    def _read_text(self, case: Case) -> Policy:
        path = self.folder / "policy.toml"
        path.write_bytes(edit_bytes(self.texts[case.start], [[e[0], "", *e[1:]] for e in case.edits]))
        return Policy.from_file(path)

    def _read_values(self, case: Case) -> Policy:
        data = edit_json({"source": None, **copy.deepcopy(STARTS[case.start])}, case.edits)
        if data.get("source") is None:
            data["source"] = self.table
        data.setdefault("release", _RELEASE)
        read = {key: _as_toml_reads(value) for key, value in data.items()}
        return Policy.from_dict(read, self.folder)

    def _open(self, spec: Any, base: Path) -> Source:
        """The table is opened once: that costs more than all else."""
        return self.source if spec is self.table or spec == "people.csv" else open_source_of(spec, base)


def _no_entry_points(**_: str) -> tuple[()]:
    """Looking at all installed packages for an unknown name takes 4 ms."""
    return ()


def _is_of_text(case: Case) -> bool:
    return bool(case.edits) and isinstance(case.edits[0][1], int)


def _draw_text_edits(size: int, rng: random.Random) -> list[Edit]:
    strange = (0, 10, 34, 39, 44, 61, 91, 93, 123, 125, 255, rng.randrange(256))
    return [
        [rng.choice(("flip", "byte", "byte", "cut", "insert")), rng.randrange(size), rng.choice(strange)]
        for _ in range(rng.choice((1, 2, 3)))
    ]


def _as_toml_reads(value: Any) -> Any:
    """Decimals for floats, and what JSON has no word for."""
    if isinstance(value, Mapping):
        if "$float" in value:
            return Decimal(value["$float"])
        if "$day" in value:
            return datetime.date.fromisoformat(value["$day"])
        return {key: _as_toml_reads(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_as_toml_reads(inner) for inner in value]
    return Decimal(repr(value)) if isinstance(value, float) else value


def to_toml(policy: Mapping[str, Any]) -> str:
    """A policy as a file: its sections, with inline tables in them."""
    top = ['source = "people.csv"', f'release = "{_RELEASE}"']
    sections = []
    for name, section in policy.items():
        if isinstance(section, Mapping):
            lines = [f"{json.dumps(key)} = {_inline(value)}" for key, value in section.items()]
            sections.append("\n".join([f"[{name}]", *lines]))
        else:
            top.append(f"{name} = {_inline(section)}")
    return "\n".join([*top, *sections]) + "\n"


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)
