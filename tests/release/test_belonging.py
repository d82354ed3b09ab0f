"""People with several rows, and households: who finds all of their rows looks for what all buckets hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import PromiseNotMet
from dalenius.publishing import preview
from dalenius.release.belonging import find_belonging

DISEASES = np.array(["HIV", "Diabetes", "Hypertension", "Asthma", "Depression", "Gout"])
QUASI = ["age", "sex", "zip"]


@cache
def visits(n_people: int = 240, n_rows: int = 3, spelt: bool = False) -> pa.Table:
    """Chronically ill people, who are there several times; the rows are mixed."""
    rng = np.random.default_rng(3)
    own = {
        "age": rng.integers(18, 95, n_people),
        "sex": rng.choice(["F", "M"], n_people),
        "zip": rng.choice(["20095", "20097", "22041", "22043"], n_people),
        "disease": rng.choice(DISEASES, n_people, p=[0.04, 0.26, 0.3, 0.2, 0.1, 0.1]),
    }
    who = np.repeat(np.arange(n_people), n_rows)
    ways = ("P{:04d}", "p{:04d}", " P{:04d} ") if spelt else ("P{:04d}",)
    patient = [ways[row % len(ways)].format(one) for row, one in enumerate(who)]
    columns = {"case": np.arange(len(who)), "patient": patient, **{k: v[who] for k, v in own.items()}}
    return pa.table(columns).take(pa.array(rng.permutation(len(who))))


def policy(table: pa.Table, path: Path, **columns: Any) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": table,
            "release": str(path),
            "columns": {"quasi": QUASI, "sensitive": ["disease"], **columns},
            "promise": {"kind": "f-privacy", "default": {"times": 4, "plus": 0.02}},
        }
    )


def certain(path: Path, table: pa.Table) -> int:
    """The attacker: people alone with their columns, whose buckets have one value in common."""
    published = {name: pq.read_table(path / f"{name}.parquet").to_pylist() for name in ("qit", "st")}
    held: dict[int, set[str]] = {}
    for row in published["st"]:
        held.setdefault(row["bucket"], set()).add(row["disease"])
    people: dict[tuple[Any, ...], set[str]] = {}
    for row in table.to_pylist():
        people.setdefault(tuple(row[name] for name in QUASI), set()).add(row["patient"].strip().upper())
    found: dict[tuple[Any, ...], set[str]] = {}
    for row in published["qit"]:
        key = tuple(row[name] for name in QUASI)
        found[key] = found.get(key, held[row["bucket"]]) & held[row["bucket"]]
    return sum(len(found[key]) == 1 for key, own in people.items() if len(own) == 1)


@pytest.mark.parametrize(
    ("spelt", "columns", "told"),
    [
        (False, {"unit": "case", "identifiers": ["patient"]}, "'patient' stand in several rows, 720 in all"),
        (True, {"unit": "patient", "dropped": ["case"]}, "the units of 240 people are written in several"),
        (True, {"identifiers": ["case", "patient"]}, "240 cells of 'patient' stand in several rows, 720 in"),
    ],
    ids=["a case number as unit", "units in several spellings", "identifiers in several spellings"],
)
def test_people_with_several_rows_are_not_published_by_accident(
    tmp_path: Path, spelt: bool, columns: dict[str, Any], told: str
) -> None:
    table, path = visits(spelt=spelt), tmp_path / "r"
    one = policy(table, path, **columns)
    with pytest.raises(PromiseNotMet, match="no promise holds for") as refusal:
        dalenius.publish(one)
    assert told in str(refusal.value)
    assert "P0" not in str(refusal.value)
    assert any(told in line for line in preview(one).exposures.lines())
    assert not [*preview(one).exposures.notes()]
    dalenius.publish(one, yes=True)
    assert certain(path, table) > 20, "what it would have told"


FIRST = np.array(["Ann", "Bob", "Cem", "Dan", "Eva", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea"])


def named(table: pa.Table, name: Any) -> pa.Table:
    """With first and last names instead of the number of a patient."""
    who = np.array([int(one[1:]) for one in table["patient"].to_pylist()])
    first, last = name(who)
    return table.append_column("first", pa.array(first)).append_column("last", pa.array(last))


def test_people_whose_name_is_in_two_columns_are_not_published_several_times_by_accident(
    tmp_path: Path,
) -> None:
    """Neither first nor last names tell who somebody is, and rows of one name were told of as in doubt."""
    table = named(visits(), lambda who: (FIRST[who % 12], np.char.add("L", (who // 12).astype(str))))
    one = policy(table, tmp_path / "r", identifiers=["case", "first", "last"], dropped=["patient"])
    with pytest.raises(PromiseNotMet, match="no promise holds for several rows of a person") as refusal:
        dalenius.publish(one)
    assert "240 cells of 'first' and 'last' together stand in several rows, 720 in all" in str(refusal.value)
    assert "a column that numbers people, as `unit`" in str(refusal.value.hint)
    pair = preview(one).exposures.to_dict()["shared_identifiers"][-1]
    assert (pair["column"], pair["beside"], pair["is_person"]) == ("first", "last", True)
    dalenius.publish(one, yes=True)
    assert certain(tmp_path / "r", table) > 20, "what it would have told"


def test_namesakes_and_twins_are_not_taken_for_one_person() -> None:
    """Two columns tell what each tells: sex by the first name, age by the day, postcode by the house."""
    rng, n = np.random.default_rng(8), 4000
    sex = rng.choice(["F", "M"], n)
    house = rng.integers(n // 3, size=n)
    born = rng.integers(365 * 60, size=n)
    twins = rng.choice(n, 400, replace=False)
    born[twins[:200]], house[twins[:200]] = born[twins[200:]], house[twins[200:]]
    table = pa.table(
        {
            "first": np.char.add(sex, rng.integers(20, size=n).astype(str)),
            "last": rng.integers(40, size=n),
            "born": born,
            "house": house,
            "sex": sex,
            "age": born // 365,
            "zip": house % 50,
            "disease": rng.choice(DISEASES, n),
        }
    )
    quasi = ["sex", "age", "zip"]
    for pair in (["first", "last"], ["born", "house"]):
        apart = [find_belonging(table, [one], quasi, ["disease"]) for one in pair]
        assert not find_belonging(table, pair, quasi, ["disease"], apart).is_person
    assert find_belonging(table, ["born", "house"], quasi, ["disease"]).is_person, "without what each tells"


def test_people_who_stand_there_once_are_published_under_any_unit(tmp_path: Path) -> None:
    table = visits(n_rows=1)
    for number, columns in enumerate(
        ({"unit": "case", "identifiers": ["patient"]}, {"unit": "patient", "dropped": ["case"]})
    ):
        one = policy(table, tmp_path / str(number), **columns)
        assert not [*preview(one).exposures.lines()]
        dalenius.publish(one, again=True)


@pytest.mark.parametrize("shared", [0.9, 0.0])
def test_people_who_belong_together_and_share_the_value_are_told_of(tmp_path: Path, shared: float) -> None:
    """Three people a house, of which most, or none, are ill in common."""
    rng, n = np.random.default_rng(5), 600
    house = np.repeat(np.arange(n // 3), 3)
    ill = np.where(rng.random(n) < shared, rng.choice(DISEASES, n // 3)[house], rng.choice(DISEASES, n))
    table = pa.table(
        {
            "patient": [f"P{i}" for i in range(n)],
            "house": [f"Main Street {i}" for i in house],
            "age": rng.integers(18, 95, n),
            "sex": rng.choice(["F", "M"], n),
            "zip": rng.integers(20, size=n // 3)[house],
            "disease": ill,
        }
    )
    one = policy(table, tmp_path / "r", unit="patient", identifiers=["house"])
    found = preview(one).exposures
    notes = [*found.notes()]
    assert not [*found.reasons()]
    assert bool(notes) == (shared > 0)
    if notes:
        assert "of the people who share a cell of 'house' share 'disease' too" in notes[0]
    dalenius.publish(one)


def test_people_of_one_name_are_not_taken_for_one_person() -> None:
    """Their rows agree in sex, and in nothing else: not even where hardly anything else is published."""
    rng = np.random.default_rng(7)
    sex = rng.choice(["F", "M"], 2000)
    table = pa.table(
        {
            "name": [f"{one}{rng.integers(300)}" for one in sex],
            "sex": sex,
            "age": rng.integers(18, 90, 2000),
            "smokes": rng.choice(["yes", "no"], 2000),
            "disease": rng.choice(DISEASES, 2000),
        }
    )
    for quasi in (["sex"], ["sex", "smokes"], ["age", "sex"], ["age", "sex", "smokes"]):
        found = find_belonging(table, ["name"], quasi, ["disease"])
        assert not found.is_person
        assert found.sharing is None
