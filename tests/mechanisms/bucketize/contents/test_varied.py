"""Buckets that trade after they were dealt: thresholds hold, nothing is told, and contents differ."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dalenius
from dalenius.errors import DaleniusError, InternalError, PolicyError, ReleaseCorrupt
from dalenius.mechanisms.bucketize.apply import Layout
from dalenius.mechanisms.bucketize.contents import varied
from dalenius.mechanisms.bucketize.contents.varied import VariedLayout
from dalenius.mechanisms.bucketize.mechanism import Bucketize
from dalenius.mechanisms.bucketize.plan.bucket_plan import BucketPlan
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.repeated import repeat_table, varied_contents
from dalenius.randomness import Randomness
from tests.mechanisms.bucketize.problems import problems

Held = dict[int, Counter[int]]
COUNTS = (81, 81, 80, 80, 79, 65, 40, 33, 28, 27, 20, 18, 12, 9)
OCCUPATIONS = BucketProblem(
    counts=COUNTS,
    thresholds=tuple(2 * Fraction(count, sum(COUNTS)) + Fraction(1, 50) for count in COUNTS),
    max_bucket=50,
)
"""About Adult's: without trades most buckets list the same four."""


def planned(problem: BucketProblem) -> BucketPlan | None:
    try:
        return plan_buckets(problem, "optimal")
    except DaleniusError:
        return None


def held_by(layout: Layout | VariedLayout) -> Held:
    """What each bucket lists."""
    held: Held = defaultdict(Counter)
    for batch in layout.contents():
        rows = list(zip(*(column.tolist() for column in batch), strict=True))
        assert rows == sorted(rows)
        for bucket, code, count in rows:
            held[bucket][code] += count
    return held


def lay_out(problem: BucketProblem, seed: int) -> VariedLayout:
    plan = planned(problem)
    assert plan is not None
    return VariedLayout(plan, problem, Randomness.seeded(seed))


def keeps_everything(problem: BucketProblem, plan: BucketPlan, layout: VariedLayout) -> None:
    held = held_by(layout)
    assert sorted(held) == list(range(1, sum(plan.n_buckets) + 1))
    sizes = Counter(own.total() for own in held.values())
    assert sizes == dict(zip(plan.sizes, plan.n_buckets, strict=True))
    for own in held.values():
        for code, count in own.items():
            assert Fraction(count, own.total()) <= problem.thresholds[code]
    for code, count in enumerate(problem.counts):
        homes = Counter(layout.places(code).tolist())
        assert homes == {bucket: own[code] for bucket, own in held.items() if own[code]}
        assert homes.total() == layout.n_places[code] == count
    alone = sum(own.total() for own in held.values() if len(own) == 1)
    assert alone <= plan.count_certain()


@given(problems(max_rows=25), st.integers(0, 9))
def test_any_plan_keeps_its_sizes_counts_and_thresholds(problem: BucketProblem, seed: int) -> None:
    plan = planned(problem)
    assume(plan is not None)
    assert plan is not None
    keeps_everything(problem, plan, VariedLayout(plan, problem, Randomness.seeded(seed)))


@pytest.mark.parametrize(("classes", "cells"), [(1024, 2**21), (5, 2**21), (14, 90), (1, 2)])
def test_blocks_and_classes_of_values_keep_them_too(
    classes: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(varied, "_CLASSES", classes)
    monkeypatch.setattr(varied, "_CELLS", cells)
    monkeypatch.setattr(varied, "_SORTED_AT_ONCE", 40)
    monkeypatch.setattr(varied, "_LISTED_AT_ONCE", 7)
    plan = planned(OCCUPATIONS)
    assert plan is not None
    keeps_everything(OCCUPATIONS, plan, lay_out(OCCUPATIONS, 1))


def test_contents_differ_and_depend_on_the_coins() -> None:
    plan = planned(OCCUPATIONS)
    assert plan is not None

    def kinds(layout: Layout | VariedLayout) -> Counter[tuple[tuple[int, int], ...]]:
        return Counter(tuple(sorted(own.items())) for own in held_by(layout).values())

    even = kinds(Layout.shuffled(plan, Randomness.seeded(1)))
    one, two = kinds(lay_out(OCCUPATIONS, 1)), kinds(lay_out(OCCUPATIONS, 2))
    assert max(one.values()) < max(even.values()) / 2
    assert one != two
    assert one == kinds(lay_out(OCCUPATIONS, 1))


class Careless(varied._Room):
    """The broken twin: whatever a bucket lists already, one more fits."""

    def in_trade(self, codes: Any, size_of: Any) -> Any:
        return np.full(len(codes), 99)


def test_trades_that_pass_a_threshold_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(varied, "_Room", Careless)
    with pytest.raises(InternalError, match="passes a threshold"):
        lay_out(OCCUPATIONS, 1)


N_PEOPLE, N_SEEDS = 6, 4
Table = tuple[int, ...]


@cache
def places(counts: tuple[int, ...], limits: tuple[Fraction, ...], seed: int) -> Any:
    """The places of each value and what buckets list, by the counts and coins alone; None: refused."""
    codes = [code for code, count in enumerate(counts) if count]
    problem = BucketProblem(
        counts=tuple(counts[code] for code in codes),
        thresholds=tuple(limits[code] for code in codes),
        max_bucket=N_PEOPLE,
    )
    if planned(problem) is None:
        return None
    layout = lay_out(problem, seed)
    told = tuple(
        (bucket, tuple(sorted((codes[code], n) for code, n in own.items())))
        for bucket, own in held_by(layout).items()
    )
    return {codes[k]: tuple(layout.places(k).tolist()) for k in range(len(codes))}, told


def worst_beliefs(
    limits: tuple[Fraction, ...], prior: tuple[int, ...], coins: Callable[[Table, int], int]
) -> tuple[int, list[Fraction]]:
    """How many tables' counts have several contents, and how sure of each value exact Bayes is at most."""
    total: dict[Any, int] = defaultdict(int)
    having: dict[Any, int] = defaultdict(int)
    several: dict[Any, set[Any]] = defaultdict(set)
    for table in product(range(len(limits)), repeat=N_PEOPLE):
        weight = int(np.prod([prior[value] for value in table]))
        counts = tuple(table.count(value) for value in range(len(limits)))
        for seed in range(N_SEEDS):
            found = places(counts, limits, coins(table, seed))
            if found is None:
                continue
            own, told = found
            several[counts].add(tuple(sorted(listed for _, listed in told)))
            ways = list(product(*(permutations(own[value]) for value in own)))
            # every table has as many coins in all: 720 is a multiple of every number of ways
            share = weight * (720 // len(ways))
            for dealt in ways:
                left = {value: iter(given) for value, given in zip(own, dealt, strict=True)}
                seen = (tuple(next(left[value]) for value in table), told)
                total[seen] += share
                for person, value in enumerate(table):
                    having[seen, person, value] += share
    surest = [
        max(Fraction(n, total[seen]) for (seen, _, v), n in having.items() if v == value)
        for value in range(len(limits))
    ]
    return sum(len(contents) > 1 for contents in several.values()), surest


HALVES = (Fraction(1, 2),) * 4
UNEQUAL = (Fraction(2, 3), Fraction(1, 2), Fraction(1, 2), Fraction(1, 3))


@pytest.mark.parametrize(("limits", "prior"), [(HALVES, (1, 1, 1, 1)), (UNEQUAL, (5, 1, 2, 3))])
def test_nobodys_value_is_surer_than_promised(limits: tuple[Fraction, ...], prior: tuple[int, ...]) -> None:
    n_several, beliefs = worst_beliefs(limits, prior, lambda _, seed: seed)
    assert n_several > 5
    assert all(belief <= limit for belief, limit in zip(beliefs, limits, strict=True))


def test_coins_that_look_at_people_tell_more() -> None:
    """The broken twin: which contents are chosen goes by somebody's value."""
    _, beliefs = worst_beliefs(HALVES, (1, 1, 1, 1), lambda table, seed: seed if table[0] else N_SEEDS)
    assert max(beliefs) > Fraction(1, 2)


def people(n: int = 900) -> pa.Table:
    """Trades that go with sex and age."""
    rng = np.random.default_rng(3)
    sex = rng.integers(2, size=n)
    trade = (rng.geometric(0.25, size=n) + 3 * sex) % 12
    return pa.table(
        {
            "age": 20 + (trade * 3 + rng.integers(20, size=n)) % 50,
            "sex": np.where(sex == 1, "f", "m"),
            "trade": [f"trade {k}" for k in trade.tolist()],
        }
    )


def policy(path: Path | None = None, **mechanism: Any) -> dalenius.Policy:
    return dalenius.Policy.from_dict(
        {
            "source": people(),
            **({"release": str(path)} if path else {}),
            "columns": {"quasi": ["age", "sex"], "sensitive": ["trade"]},
            "promise": {"kind": "f-privacy", "default": {"times": 2, "plus": "0.05"}},
            "mechanism": {"kind": "bucketize", **mechanism},
        }
    )


def test_a_release_states_verifies_and_answers(tmp_path: Path) -> None:
    even = dalenius.publish(policy(tmp_path / "even"), seed=1)
    own = policy(tmp_path / "varied", contents="varied")
    release = dalenius.publish(own, seed=1)
    assert "contents" not in even.manifest["parameters"]
    assert release.manifest["parameters"]["contents"] == "varied"
    assert release.manifest["parameters"]["buckets"] == even.manifest["parameters"]["buckets"]
    assert dalenius.verify(tmp_path / "varied").ok
    lists = [
        {tuple(sorted(own)) for own in contents(tmp_path / name).values()} for name in ("even", "varied")
    ]
    assert len(lists[1]) > len(lists[0])
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE trade = 'trade 1'").rows
    assert row.estimate == people()["trade"].to_pylist().count("trade 1")
    assert all(attack.holds is not False for attack in dalenius.audit(tmp_path / "varied", own).attacks)


def test_batches_of_a_series_trade_each_by_itself(tmp_path: Path) -> None:
    table = people()
    half = table.num_rows // 2
    for batch in (table.slice(0, half), table.slice(half)):
        rules = {
            "source": batch,
            "release": str(tmp_path / "months"),
            "columns": {"quasi": ["age", "sex"], "sensitive": ["trade"]},
            "promise": {"kind": "f-privacy", "default": {"times": 2, "plus": "0.05"}},
            "mechanism": {"kind": "bucketize", "contents": "varied"},
            "series": {"kind": "batches"},
            "ledger": {"path": str(tmp_path / "ledger")},
        }
        dalenius.publish(dalenius.Policy.from_dict(rules), seed=1)
    assert dalenius.verify(tmp_path / "months").ok
    release = dalenius.open_release(tmp_path / "months")
    assert release.ask("SELECT COUNT(*) FROM t").rows[0].estimate == table.num_rows
    (row,) = release.ask("SELECT COUNT(*) FROM t WHERE trade = 'trade 5' AND sex = 'f'").rows
    assert row.low is not None
    assert row.high is not None
    assert row.low < row.high


def test_a_manifest_that_says_what_no_policy_has_is_refused(tmp_path: Path) -> None:
    dalenius.publish(policy(tmp_path / "r", contents="varied"), seed=1)
    file = tmp_path / "r" / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    for more in ({"contents": "odd"}, {"regions": [{"rows": 900, "buckets": 9, "where": []}]}):
        changed = {**manifest, "parameters": {**manifest["parameters"], **more}}
        file.write_text(json.dumps(changed), encoding="utf-8")
        with pytest.raises(ReleaseCorrupt, match=r"no release says|no policy has together"):
            dalenius.verify(tmp_path / "r")


def test_one_machine_makes_such_tables() -> None:
    """A cluster has no numbers of all buckets, and says so."""
    for contents, is_sharded in (("even", True), ("varied", False)):
        own = policy(contents=contents)
        plan: Any = dalenius.plan(own)
        tables = Bucketize().draft(own, plan, Randomness.seeded(1)).tables  # type: ignore[arg-type]
        assert {table.shards is not None for table in tables} == {is_sharded}


def contents(path: Path) -> dict[int, list[tuple[str, int]]]:
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for row in pq.read_table(path / "st.parquet").to_pylist():
        found[row["bucket"]].append((row["trade"], row["count"]))
    return found


def test_a_plan_says_that_contents_differ_and_what_two_releases_tell() -> None:
    plan: Any = dalenius.plan(policy(contents="varied"))
    assert plan.to_dict()["contents"] == "varied"
    assert "contents" not in dalenius.plan(policy()).to_dict()
    found = varied_contents(plan.buckets, plan.problem)
    assert (found.weight @ found.real).tolist() == list(plan.problem.counts)
    repeated = repeat_table(plan, 2)
    assert repeated.how == "simulated"
    assert repeated.posterior > repeated.promised


def test_a_plan_counts_people_among_near_numbers_as_they_come_to_be() -> None:
    """Values 0 and 1 are near each other, 2 and 3 too: dealt in order no bucket has such a pair."""
    problem = BucketProblem(counts=(40,) * 4, thresholds=(Fraction(1, 2),) * 4, max_bucket=2)
    plan = planned(problem)
    assert plan is not None
    numbers = np.array([100.0, 101.0, 500.0, 505.0])
    assert plan.count_near(numbers, 0.1) == 0
    assert 0 < varied.count_near(plan, problem, numbers, 0.1) < 160


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"mechanism": {"contents": "odd"}}, 'must be "even" or "varied"'),
        ({"mechanism": {"fakes": 1}}, "does not go with fakes"),
        ({"mechanism": {"regions": True}}, "does not go with regions"),
        ({"promise": {"kind": "l-diversity", "l": 3}, "suppress": {"method": "safe"}}, "dealt evenly"),
        ({"promise": {"kind": "proximity", "within": 2, "at_most": "1/2"}}, "does not go with"),
        ({"promise": {"kind": "sets", "default": "1/2"}}, "does not go with"),
        (
            {"promise": {"groups": {"some": {"values": ["trade 1", "trade 2"], "at_most": "0.9"}}}},
            "groups do not go with",
        ),
        ({"columns": {"quasi": ["sex"], "sensitive": ["age", "trade"]}}, "for one sensitive column"),
        (
            {
                "columns": {"quasi": ["sex"], "unit": "age", "sensitive": ["trade"]},
                "promise": {"kind": "f-privacy", "default": "1/2"},
                "series": {"kind": "dates", "changed": "stays"},
            },
            "dates do not go with",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(more: dict[str, Any], reason: str) -> None:
    rules: dict[str, Any] = {
        "source": people(),
        "release": "r",
        "columns": {"quasi": ["age", "sex"], "sensitive": ["trade"]},
        "promise": {"kind": "f-privacy", "default": {"times": 2, "plus": "0.05"}},
        "mechanism": {"kind": "bucketize", "contents": "varied"},
    }
    merged = {key: own | more.get(key, {}) if isinstance(own, dict) else own for key, own in rules.items()}
    if "kind" in more.get("promise", {}):
        merged["promise"] = more["promise"]
    if "columns" in more:
        merged["columns"] = more["columns"]
    with pytest.raises(PolicyError, match=reason):
        dalenius.plan(dalenius.Policy.from_dict({**more, **merged}))
