"""Partitions and groups make the tables that one machine would make, by the same law."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dalenius import Policy
from dalenius.errors import InternalError
from dalenius.mechanisms.bucketize.apply import Layout
from dalenius.mechanisms.bucketize.plan.methods import BucketPlan
from dalenius.mechanisms.bucketize.shards import BucketGroups
from dalenius.mechanisms.sharding import quota_of_partition
from dalenius.randomness import Randomness
from tests.chance import FALSE_ALARM
from tests.contract.subject import Subject, people
from tests.contract.subjects import SUBJECTS
from tests.mechanisms.sharded import CutTable

SHARDED = [subject for subject in SUBJECTS if not subject.mechanism.get("regions")]
every_subject = pytest.mark.parametrize("subject", SHARDED, ids=lambda subject: subject.name)


@st.composite
def bucket_plans(draw: st.DrawFn) -> BucketPlan:
    """Any loads that fill the buckets."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(sorted))
    n_buckets = [draw(st.integers(1, 7)) for _ in sizes]
    n_values = draw(st.integers(1, 5))
    columns = []
    for size, b in zip(sizes, n_buckets, strict=True):
        cuts = sorted(draw(st.integers(0, size * b)) for _ in range(n_values - 1))
        columns.append(np.diff([0, *cuts, size * b]))
    loads = tuple(map(tuple, np.stack(columns, axis=1).tolist()))
    return BucketPlan(
        method="any", sizes=tuple(sizes), n_buckets=tuple(n_buckets), loads=loads, lower_bound=None
    )


def contents(layout: Layout) -> list[tuple[tuple[int, int], ...]]:
    """What each bucket holds, whatever its number."""
    found: dict[int, list[tuple[int, int]]] = {}
    for numbers, codes, counts in layout.contents():
        for number, code, count in zip(numbers.tolist(), codes.tolist(), counts.tolist(), strict=True):
            found.setdefault(number, []).append((code, count))
    return sorted(tuple(sorted(held)) for held in found.values())


@given(plan=bucket_plans(), n_groups=st.integers(1, 9), seed=st.integers(0, 99))
def test_groups_of_buckets_are_the_plan_in_pieces(plan: BucketPlan, n_groups: int, seed: int) -> None:
    """The brute-force twin: all buckets of the whole plan, and every bucket number once."""
    random = Randomness.seeded(seed)
    groups = BucketGroups.cut(plan, n_groups, random)
    layouts = [groups.layout(g) for g in range(n_groups) if groups.loads()[:, g].any()]
    whole = contents(Layout.shuffled(plan, random))
    assert sorted(itertools.chain(*(contents(layout) for layout in layouts))) == whole
    numbers = np.concatenate([layout.numbers for layout in layouts])
    assert sorted(numbers.tolist()) == list(range(1, sum(plan.n_buckets) + 1))
    np.testing.assert_array_equal(groups.loads().sum(axis=1), np.sum(plan.loads, axis=1))


@given(
    counts=st.lists(st.lists(st.integers(0, 6), min_size=2, max_size=2), min_size=1, max_size=6),
    n_destinations=st.integers(1, 4),
    seed=st.integers(0, 99),
)
def test_partitions_share_the_quotas_out(counts: list[list[int]], n_destinations: int, seed: int) -> None:
    """Each works its own part out, and together they are the whole."""
    held = np.array(counts, dtype=np.int64)
    random = Randomness.seeded(seed)
    total = np.stack(
        [random.stream("t").multinomial(n, [1 / n_destinations] * n_destinations) for n in held.sum(axis=0)]
    )
    quotas = [quota_of_partition(total, held, p, random.stream) for p in range(len(held))]
    np.testing.assert_array_equal(np.sum(quotas, axis=0), total)
    for quota, own in zip(quotas, held, strict=True):
        np.testing.assert_array_equal(quota.sum(axis=1), own)
        assert (quota >= 0).all()


def test_a_partition_that_was_not_counted_is_refused() -> None:
    with pytest.raises(InternalError, match="changed between two passes"):
        quota_of_partition(np.array([[1]]), np.array([[1]]), 1, Randomness.seeded(1).stream)


def tiny(release: Path) -> Policy:
    """Four people with x and two each with y and z, in buckets of two, in one file order."""
    return Policy.from_dict(
        {
            "source": pa.table({"uid": list(range(8)), "disease": list("xxxxyyzz")}),
            "release": str(release),
            "columns": {"quasi": ["uid"], "sensitive": ["disease"]},
            "promise": {"kind": "l-diversity", "l": 2},
        }
    )


def companions(table: CutTable, seed: int) -> tuple[int, ...]:
    """Who is in the bucket of each of the four people with x."""
    bucket: dict[int, int] = {}
    for piece in table.publish(seed, only="qit")["qit"]:
        bucket.update(zip(piece.rows["uid"].to_pylist(), piece.rows["bucket"].to_pylist(), strict=True))
    mate = {bucket[uid]: uid for uid in (4, 5, 6, 7)}
    return tuple(mate[bucket[uid]] for uid in (0, 1, 2, 3))


@pytest.mark.slow
def test_every_matching_of_records_and_places_is_equally_likely() -> None:
    """All 24 matchings, over partitions of 1, 2 and 5 rows and groups of four.

    The control, which every fourth time matches by position, is caught.
    """
    ways = {way: i for i, way in enumerate(itertools.permutations((4, 5, 6, 7)))}
    seen, control = np.zeros(len(ways)), np.zeros(len(ways))
    table = CutTable.of(tiny(Path("r")), [1, 3], 4)
    for seed in range(720):
        found = companions(table, seed)
        seen[ways[found]] += 1
        control[ways[tuple(sorted(found)) if seed % 4 == 0 else found]] += 1
    assert stats.chisquare(seen).pvalue > FALSE_ALARM
    assert stats.chisquare(control).pvalue < FALSE_ALARM


@every_subject
def test_groups_do_not_depend_on_the_order_in_which_rows_arrive(subject: Subject, tmp_path: Path) -> None:
    table = CutTable.of(subject.policy(people(240), tmp_path / "r"), [3, 3, 200], 90)
    first, again = (table.publish(5, shuffle) for shuffle in (1, 2))
    for name, pieces in first.items():
        assert all(a.rows.equals(b.rows) for a, b in zip(pieces, again[name], strict=True))


@pytest.mark.parametrize("name", ["bucketize optimal f-privacy", "perturb uniform"])
def test_every_record_is_published_once(name: str, tmp_path: Path) -> None:
    subject = next(subject for subject in SUBJECTS if subject.name == name)
    table = CutTable.of(subject.policy(people(500), tmp_path / "r"), [100, 101, 101, 480], 60)
    tables = table.publish(2)
    published = pa.concat_tables([piece.rows for piece in tables[subject.record_table]])
    assert sorted(published["uid"].to_pylist()) == list(range(500))


@pytest.mark.slow
def test_views_of_partitions_have_the_law_of_views(tmp_path: Path) -> None:
    """How often a tuple of the table, and one outside it, is shown: α+β and β, by exact binomial tests."""
    table = pa.table({"a": [0, 0, 1, 2, 2, 2, 3, 4], "b": [0, 1, 0, 1, 2, 2, 0, 3]})
    policy = Policy.from_dict(
        {
            "source": table,
            "release": str(tmp_path / "r"),
            "columns": {"quasi": ["a", "b"], "sensitive": []},
            "domains": {"a": "0..9", "b": "0..9"},
            "promise": {"kind": "d-gamma-privacy", "d": "1/10", "gamma": "1/2"},
            "mechanism": {"kind": "alpha-beta", "duplicates": "distinct"},
        }
    )
    cut = CutTable.of(policy, [2, 5], 8)
    law = cut.plan.law.law
    inside = {(a, b) for a, b in zip(table["a"].to_pylist(), table["b"].to_pylist(), strict=True)}
    n_runs, n_in, n_out = 400, 0, 0
    for seed in range(n_runs):
        pieces = cut.publish(seed)["view"]
        shown = [cell for piece in pieces for cell in zip(*piece.rows.to_pydict().values(), strict=True)]
        assert len(set(shown)) == len(shown)
        n_in += len(inside.intersection(shown))
        n_out += len(set(shown) - inside)
    trials_in, trials_out = n_runs * len(inside), n_runs * (100 - len(inside))
    for n_shown, trials, probability in (
        (n_in, trials_in, float(law.alpha + law.beta)),
        (n_out, trials_out, float(law.beta)),
    ):
        assert stats.binomtest(n_shown, trials, probability).pvalue > FALSE_ALARM
        assert stats.binomtest(n_shown, trials, probability * 0.85).pvalue < FALSE_ALARM
