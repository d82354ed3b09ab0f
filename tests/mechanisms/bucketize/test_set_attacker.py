"""Exact Bayes about people with several rows: does a person have a value?

All tables of three and four people, each with one or two rows and any set of two values that fits into them;
all coins by which people find their places, and several by which buckets trade. The attacker knows the
mechanism, everybody's published columns and how likely every history is, and sees the whole release.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.errors import PolicyError, PromiseNotMet
from dalenius.mechanisms.bucketize.config import BucketizeConfig
from dalenius.mechanisms.bucketize.mechanism import _lay_out
from dalenius.mechanisms.bucketize.table_plan import plan_among_alike, plan_counts
from dalenius.promises.sets import SetPrivacy
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram

VALUES = ("Flu", "HIV")
SCHEMA = pa.schema([("visits", pa.int64()), *((name, pa.bool_()) for name in VALUES)])
Set = tuple[bool, ...]
History = tuple[Set, int]
"""What a person has, and in how many rows it stands."""
SETS = tuple(product((False, True), repeat=2))
HISTORIES: tuple[History, ...] = tuple((own, rows) for rows in (1, 2) for own in SETS if sum(own) <= rows)
NONE = -1
EVEN, SKEWED = (1,) * 7, (5, 1, 3, 2, 1, 4, 1)
Release = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class SmallTable:
    """A table as a plan sees it."""

    people: tuple[History, ...]
    schema = SCHEMA

    def histogram(self, columns: tuple[str, ...]) -> Histogram:
        counted: dict[tuple[Any, ...], int] = defaultdict(int)
        for own, rows in self.people:
            cells = {"visits": rows, **dict(zip(VALUES, own, strict=True))}
            counted[tuple(cells[name] for name in columns)] += 1
        return Histogram.of(columns, dict(counted))


@cache
def lay_out(counted: tuple[tuple[History, int], ...], limits: tuple[str, ...], seed: int, alike: bool) -> Any:
    """The places of every history and what buckets list, or None; a function of the counts alone."""
    people = tuple(history for history, count in counted for _ in range(count))
    promise = SetPrivacy(
        columns=VALUES,
        default=None,
        named=tuple(zip(VALUES, map(Fraction, limits), strict=True)),
        alike=("visits",) if alike else (),
    )
    policy: Any = SimpleNamespace(mechanism=BucketizeConfig(), promise=promise)
    table: Any = SmallTable(people=people)
    try:
        plan = plan_counts(policy, table.histogram(VALUES), SCHEMA)
        plan = plan_among_alike(policy, plan, table)
    except PromiseNotMet:
        return None
    layout = _lay_out(plan, Randomness.seeded(seed))
    places: dict[Any, tuple[int, ...]] = {}
    for code in range(len(layout.n_places)):
        region, value = divmod(code, len(plan.histogram))
        key = (plan.histogram.values[value], region + 1 if plan.regions and alike else None)
        places[key] = tuple(layout.places(code).tolist())
    listed = [np.stack(batch, axis=1).tolist() for batch in layout.contents()]
    told = tuple((b, plan.histogram.values[v], n) for batch in listed for b, v, n in batch)
    return places, (told, plan.having[-1].at_most)


def releases(
    people: tuple[History, ...], limits: tuple[str, ...], seed: int, alike: bool
) -> Iterator[Release]:
    """Every release that the coins can give, all equally likely."""
    known = tuple((own, rows if alike else 0) for own, rows in people)
    counted = tuple(sorted((history, people.count(history)) for history in set(people)))
    if not alike:  # the number of rows decides nothing
        counted = tuple(
            sorted(((own, 2), sum(one[0] == own for one in people)) for own in {o for o, _ in people})
        )
    found = lay_out(counted, limits, seed, alike)
    if found is None:
        return
    places, listed = found
    ranks = sorted({rows for _, rows in people})
    keys = sorted(set(known))
    own_places = [places[own, ranks.index(rows) + 1 if alike else None] for own, rows in keys]
    for dealt in product(*map(permutations, own_places)):
        places_left = {key: iter(own) for key, own in zip(keys, dealt, strict=True)}
        yield tuple(next(places_left[one]) for one in known), listed


def worst_beliefs(
    n_people: int, limits: tuple[str, ...], prior: tuple[int, ...], *, told: bool, alike: bool
) -> tuple[int, list[Fraction]]:
    """How many tables are published, and the surest belief in each value that any release gives.

    Last, how far a belief in having none passes the limit that its release states.
    """
    total: dict[Release, Fraction] = defaultdict(Fraction)
    having: dict[tuple[Release, int, int], Fraction] = defaultdict(Fraction)
    n_tables = 0
    for people in product(HISTORIES, repeat=n_people):
        weight = int(np.prod([prior[HISTORIES.index(one)] for one in people]))
        for seed in (0, 1):
            found = list(releases(people, limits, seed, alike))
            n_tables += bool(found) and not seed
            for release in found:
                seen = (*release, tuple(rows for _, rows in people) if told else None)
                share = Fraction(weight, len(found))
                total[seen] += share
                for person, (own, _) in enumerate(people):
                    for value in [v for v in (0, 1) if own[v]] or [NONE]:
                        having[seen, person, value] += share
    surest = [
        max(having[seen, who, v] / total[seen] for seen, who, v in having if v == value) for value in (0, 1)
    ]
    above = [having[seen, who, v] / total[seen] - seen[1][1] for seen, who, v in having if v == NONE]
    return n_tables, [*surest, max(above)]


LIMITS = (("2/3", "1/2"), ("1/2", "1/3"))


@pytest.mark.parametrize(
    ("limits", "n_tables", "prior"),
    [(LIMITS[0], 1448, EVEN), (LIMITS[0], 1448, SKEWED), (LIMITS[1], 752, EVEN)],
)
def test_who_is_not_told_how_many_rows_people_have_keeps_within_the_limits(
    limits: tuple[str, ...], n_tables: int, prior: tuple[int, ...]
) -> None:
    for n_people, n_published in ((3, None), (4, n_tables)):
        found, beliefs = worst_beliefs(n_people, limits, prior, told=False, alike=False)
        assert n_published in (None, found)
        assert all(belief <= Fraction(limit) for belief, limit in zip(beliefs, (*limits, "0"), strict=True))


@pytest.mark.parametrize("limits", LIMITS)
def test_numbers_of_rows_beside_mixed_buckets_make_values_certain(limits: tuple[str, ...]) -> None:
    """The twin that is refused: of two people with {Flu, HIV} and {} who has one row has not both."""
    *certain, above = worst_beliefs(3, limits, EVEN, told=True, alike=False)[1]
    assert certain == [1, 1]
    assert above > 0


@pytest.mark.parametrize(("limits", "prior"), [(LIMITS[0], SKEWED), (LIMITS[1], EVEN)])
def test_numbers_of_rows_may_be_told_where_a_buckets_people_have_as_many(
    limits: tuple[str, ...], prior: tuple[int, ...]
) -> None:
    n_tables, beliefs = worst_beliefs(4, limits, prior, told=True, alike=True)
    assert n_tables > 100
    assert all(belief <= Fraction(limit) for belief, limit in zip(beliefs, (*limits, "0"), strict=True))


def visits(n_rows: Any = lambda person: 1 + person % 3) -> pa.Table:
    """180 people with up to three rows: every fifth has HIV, every second Flu."""
    rows = []
    for person in range(180):
        own = [v for v, every in (("Flu", 2), ("HIV", 5)) if (person * 7) % (every * 3) < 3]
        least = max(1, len(own))
        rows += [
            (person, 20 + person % 50, own[place % len(own)] if own else None)
            for place in range(max(least, n_rows(person)))
        ]
    return pa.table(dict(zip(("patient", "age", "disease"), map(list, zip(*rows, strict=True)), strict=True)))


def policy(
    table: pa.Table, path: Path | None = None, quasi: tuple[str, ...] = ("age", "visits"), **promise: Any
) -> dalenius.Policy:
    given = {
        "source": table,
        **({"release": str(path)} if path else {}),
        "columns": {
            "quasi": list(quasi),
            "identifiers": ["patient"],
            "sensitive": list(VALUES),
            "dropped": [name for name in ("visits",) if name in table.column_names and name not in quasi],
        },
        "promise": {"kind": "sets", "default": "2/3", "values": {"HIV": "1/2"}, **promise},
    }
    return dalenius.Policy.from_dict(given)


def gathered(**given: Any) -> pa.Table:
    return dalenius.gather_persons(visits(**given), unit="patient", values="disease", count="visits")


def test_a_number_of_rows_is_published_only_among_people_who_have_as_many(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="'visits' says how many rows a person has"):
        policy(gathered())
    with pytest.raises(PolicyError, match="'rows' is not a quasi column"):
        policy(gathered(), alike=["rows"])
    path = tmp_path / "r"
    one = policy(gathered(), path, alike=["visits"])
    release = dalenius.publish(one, seed=1)
    assert "alike" in [check.name for check in dalenius.verify(path).checks if check.ok]
    told = SetPrivacy.in_words(release.manifest["promise"], "values")
    assert told.endswith("People share a bucket only with those who are alike in visits.")
    buckets = pq.read_table(path / "qit.parquet").group_by("bucket").aggregate([("visits", "count_distinct")])
    assert set(buckets.column("visits_count_distinct").to_pylist()) == {1}
    assert all(attack.holds is not False for attack in dalenius.audit(path, one).attacks)
    (by_visits,) = release.ask("SELECT COUNT(*) FROM t WHERE HIV AND visits = 2").rows
    table = gathered().to_pylist()
    assert by_visits.estimate == sum(row["HIV"] and row["visits"] == 2 for row in table)
    assert by_visits.status == "exact"


def test_verify_sees_people_of_one_bucket_who_differ(tmp_path: Path) -> None:
    """A release of mixed buckets that says otherwise."""
    path = tmp_path / "r"
    forgetful = gathered().replace_schema_metadata(None)
    dalenius.publish(policy(forgetful, path), seed=1)
    file = path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["promise"]["alike"] = ["visits"]
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert "alike" in [check.name for check in dalenius.verify(path).checks if not check.ok]


def test_a_value_too_common_among_people_with_as_many_rows_is_refused() -> None:
    """Who has two rows here has both values: no limit but 1 would do, and nobody is told to set that."""
    with pytest.raises(PromiseNotMet, match=r"share \(1\) among some of the people who are alike") as refusal:
        dalenius.plan(policy(gathered(n_rows=lambda _: 1), alike=["visits"]))
    assert "raise" not in (refusal.value.hint or "")


def test_a_hidden_number_of_rows_leaves_no_trace_in_a_release(tmp_path: Path) -> None:
    """The same people with other numbers of rows: the same bytes, and the same words in the manifest."""
    found = []
    for path, more in ((tmp_path / "one", 1), (tmp_path / "two", 9)):
        table = dalenius.gather_persons(
            visits(n_rows=lambda person, m=more: 1 + person % m), unit="patient", values="disease"
        )
        dalenius.publish(policy(table, path, quasi=("age",)), seed=1)
        manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
        manifest.pop("id")
        found.append([manifest, *((path / f"{name}.parquet").read_bytes() for name in ("qit", "st"))])
    assert found[0] == found[1]


def test_having_none_may_be_as_common_as_among_people_with_as_many_rows(tmp_path: Path) -> None:
    """Two thirds of the people with one row have no value: no policy names that limit, so it is that."""
    people = [(None, 1)] * 40 + [("Flu", 1)] * 20 + [("Flu", 2)] * 15 + [("HIV", 2)] * 15 + [(None, 2)] * 30
    rows = [(who, 30 + who % 5, ill) for who, (ill, n_rows) in enumerate(people) for _ in range(n_rows)]
    columns = dict(zip(("patient", "age", "disease"), map(list, zip(*rows, strict=True)), strict=True))
    table = dalenius.gather_persons(pa.table(columns), unit="patient", values="disease", count="visits")
    path = tmp_path / "r"
    release = dalenius.publish(policy(table, path, alike=["visits"]), seed=1)
    assert release.manifest["promise"]["having"][-1] == {"column": None, "at_most": "2/3"}
    assert dalenius.verify(path).ok


def test_people_with_other_numbers_of_rows_have_no_looser_limit_of_having_none(tmp_path: Path) -> None:
    """Who has one row has none here, and nobody else pays for it: no bucket of two rows tells it."""
    people = [(None, 1)] * 20 + [("Flu", 2)] * 20 + [("HIV", 2)] * 8 + [(None, 2)] * 22
    rows = [(who, 30 + who % 5, ill) for who, (ill, n_rows) in enumerate(people) for _ in range(n_rows)]
    columns = dict(zip(("patient", "age", "disease"), map(list, zip(*rows, strict=True)), strict=True))
    table = dalenius.gather_persons(pa.table(columns), unit="patient", values="disease", count="visits")
    path = tmp_path / "r"
    dalenius.publish(policy(table, path, alike=["visits"]), yes=True)
    found = {row["bucket"]: row["visits"] for row in pq.read_table(path / "qit.parquet").to_pylist()}
    without_any: dict[int, int] = defaultdict(int)
    size: dict[int, int] = defaultdict(int)
    for row in pq.read_table(path / "st.parquet").to_pylist():
        size[row["bucket"]] += row["count"]
        without_any[row["bucket"]] += row["count"] * (not row["Flu"] and not row["HIV"])
    assert all(2 * without_any[b] <= size[b] for b, n_rows in found.items() if n_rows == 2)
