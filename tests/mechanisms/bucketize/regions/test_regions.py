"""Regions: cut by quasi-identifiers only, only where it is sure, and every threshold kept in every bucket."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dalenius
from dalenius import Policy
from dalenius.errors import PolicyError, ReleaseCorrupt
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.mechanisms.bucketize.plan.problem import BucketProblem
from dalenius.mechanisms.bucketize.published import PublishedRegions
from dalenius.mechanisms.bucketize.regions import plan as region_plan
from dalenius.mechanisms.bucketize.regions.cut import CutRule, NumberCells, TextCells, first_cells, least_rows
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan
from dalenius.mechanisms.stages import mechanism_of
from dalenius.plain import Stated
from dalenius.publishing import make_plan
from dalenius.randomness import Randomness
from dalenius.release.verify import check_promise
from tests.mechanisms.bucketize.memory_scan import grown

METHODS = ("optimal", "two-size", "multi-size")
VALUES = ("a", "b", "c")


def rule(thresholds: tuple[Fraction, ...], max_bucket: int) -> CutRule:
    none = np.zeros(1, dtype=np.int64)
    return CutRule(
        thresholds=thresholds, max_bucket=max_bucket, least_rows=1, offsets=none, spread=np.zeros(0)
    )


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    values=st.lists(st.integers(1, 6), min_size=2, max_size=4),
    shares=st.lists(st.fractions("1/3", 1, max_denominator=12), min_size=4, max_size=4),
    max_bucket=st.integers(2, 9),
    data=st.data(),
)
def test_what_is_sure_can_be_published_however_the_values_fall(
    values: list[int], shares: list[Fraction], max_bucket: int, data: st.DataObject
) -> None:
    rows = data.draw(st.integers(1, sum(values)))
    thresholds = tuple(shares[: len(values)])
    assume(rule(thresholds, max_bucket).is_sure(np.array(values), rows))  # one in eight
    for half in product(*(range(n + 1) for n in values)):
        if sum(half) == rows:
            used = [i for i, n in enumerate(half) if n]
            problem = BucketProblem(
                counts=tuple(half[i] for i in used),
                thresholds=tuple(thresholds[i] for i in used),
                max_bucket=max_bucket,
            )
            for method in METHODS:
                plan_buckets(problem, method).check(problem)


def test_a_cut_is_not_sure_where_one_half_could_hold_too_many() -> None:
    half = rule((Fraction(1, 2), Fraction(1)), 4)
    assert half.is_sure(np.array([2, 6]), 4)
    assert not half.is_sure(np.array([3, 5]), 4)
    # 0.58 · 50 is 29, not 28
    assert rule((Fraction("0.58"), Fraction(1)), 50).is_sure(np.array([58, 100]), 100)
    assert not rule((Fraction("0.58"), Fraction(1)), 50).is_sure(np.array([59, 100]), 100)


tables = st.integers(16, 40).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "age": st.lists(st.integers(0, 9), min_size=n, max_size=n),
            "sex": st.lists(st.sampled_from(["f", "m", None]), min_size=n, max_size=n),
            "value": st.lists(st.sampled_from(VALUES), min_size=n, max_size=n),
        }
    )
)
HALF = dict.fromkeys(VALUES, Fraction(3, 4))


@settings(max_examples=60, deadline=None)
@given(cells=tables, seed=st.integers(0, 1000))
def test_regions_can_be_computed_from_what_is_published(cells: dict[str, list[Any]], seed: int) -> None:
    """Any other table with the same quasi-identifiers and the same counts in each region has its regions."""
    table = pa.table(cells, schema=pa.schema([("age", "int64"), ("sex", "string"), ("value", "string")]))
    tree, counts = grown(table, HALF, least=4)
    region = tree.regions(table.to_batches()[0])
    rng = np.random.default_rng(seed)
    order = np.arange(len(table))
    for number in range(tree.n_regions):
        own = np.flatnonzero(region == number)
        order[own] = rng.permutation(own)
    other = table.set_column(2, "value", table["value"].take(order))
    again, same = grown(other, HALF, least=4)
    assert again.conditions() == tree.conditions()
    assert (again.cuts, same.tolist()) == (tree.cuts, counts.tolist())
    assert np.bincount(region, minlength=tree.n_regions).min() >= min(4, len(table))


def holds(row: dict[str, Any], condition: dict[str, Any]) -> bool:
    cell = row[condition["column"]]
    if "in" in condition:
        return cell in condition["in"]
    if cell is None:
        return bool(condition["null"])
    return bool(condition.get("above", -np.inf) < cell <= condition.get("at_most", np.inf))


def published(release: dalenius.Release, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pa.concat_tables(
        [pq.read_table(file) for file in release.stored.files(name)]
    ).to_pylist()
    return rows


def policy(table: Any, release: Path, **mechanism: Any) -> Policy:
    quasi = [name for name in table.column_names if name != "value"]
    return Policy.from_dict(
        {
            "source": table,
            "release": str(release),
            "columns": {"quasi": quasi, "sensitive": ["value"]},
            "promise": {"kind": "f-privacy", "default": {"times": 3, "plus": "0.05"}},
            "mechanism": {"kind": "bucketize", "max_bucket": 20, "regions": 40, **mechanism},
        }
    )


def people(n: int = 600, seed: int = 5) -> pa.Table:
    """Values that go with age and sex, and NULLs among the quasi-identifiers."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 80, n), rng.integers(0, 2, n)
    value = (age // 9 + 3 * sex + rng.integers(0, 5, n)) % 8
    hidden = rng.random(n) < 0.05
    return pa.table(
        {
            "age": pa.array(age, mask=hidden),
            "sex": pa.array(np.array(["f", "m"])[sex]),
            "height": rng.normal(170, 9, n).round(1),
            "value": pa.array(value).cast(pa.string()),
        }
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_bucket_keeps_every_threshold_and_is_in_one_region(method: str, tmp_path: Path) -> None:
    table = people()
    release = dalenius.publish(policy(table, tmp_path / "r", method=method), seed=1)
    regions = release.manifest["parameters"]["regions"]
    limits = {e["value"][0]: Fraction(e["at_most"]) for e in release.manifest["promise"]["thresholds"]}
    frequency = {v: Fraction(table["value"].to_pylist().count(v), len(table)) for v in limits}
    assert limits == {v: min(Fraction(1, 2), 3 * f + Fraction("0.05")) for v, f in frequency.items()}
    entries, rows = published(release, "st"), published(release, "qit")
    assert len(regions) > 3
    for region in regions:
        inside = [row for row in rows if all(holds(row, condition) for condition in region["where"])]
        buckets = {row["bucket"] for row in inside}
        assert (len(inside), len(buckets)) == (region["rows"], region["buckets"])
        assert len(inside) == sum(row["bucket"] in buckets for row in rows) >= 40
    assert sum(region["rows"] for region in regions) == len(rows)
    sizes = {row["bucket"]: 0 for row in rows}
    for row in rows:
        sizes[row["bucket"]] += 1
    assert all(Fraction(e["count"], sizes[e["bucket"]]) <= limits[e["value"]] for e in entries)
    assert release.verify().ok


def test_two_releases_are_joined_region_by_region(tmp_path: Path) -> None:
    """A person's two buckets are two of the region: all pairs of them, from what is published."""
    asked = policy(people(), tmp_path / "r")
    release = dalenius.publish(asked, seed=1)
    limits = {e["value"][0]: float(Fraction(e["at_most"])) for e in release.manifest["promise"]["thresholds"]}
    entries, rows = published(release, "st"), published(release, "qit")
    worst, right = dict.fromkeys(limits, 0.0), 0.0
    for region in release.manifest["parameters"]["regions"]:
        inside = [row for row in rows if all(holds(row, condition) for condition in region["where"])]
        buckets = {row["bucket"]: dict.fromkeys(limits, 0) for row in inside}
        for entry in entries:
            if entry["bucket"] in buckets:
                buckets[entry["bucket"]][entry["value"]] = entry["count"]
        total = {value: sum(bucket[value] for bucket in buckets.values()) for value in limits}
        for one, other in product(buckets.values(), repeat=2):
            joint = {value: one[value] * other[value] / total[value] for value in limits if total[value]}
            right += max(joint.values()) / len(rows)
            for value, weight in joint.items():
                worst[value] = max(worst[value], weight / sum(joint.values()) if weight else 0.0)
    found = mechanism_of(asked).repeat(asked, make_plan(asked), 2)
    broken = {
        value: worst[value] / max(1 - worst[value], 1e-12) * (1 - limits[value]) / limits[value]
        for value in limits
    }
    assert found.how == "exact"
    assert found.posterior == pytest.approx(
        max(worst[v] for v in limits if broken[v] == max(broken.values()))
    )
    assert found.success == pytest.approx(right)


def read(listed: list[dict[str, Any]]) -> PublishedRegions:
    return PublishedRegions.of(Stated.of(listed, "parameters.regions"), ("uid", "age", "sex", "height"))


def test_verify_finds_a_record_in_a_bucket_of_another_region(tmp_path: Path) -> None:
    release = dalenius.publish(policy(people(), tmp_path / "r"), seed=1)
    (file,) = release.stored.files("qit")
    rows = pq.read_table(file)
    bucket = rows["bucket"].to_numpy().copy()
    region = read(release.manifest["parameters"]["regions"]).of_rows(rows)
    other = int(np.flatnonzero(region != region[0])[0])
    bucket[[0, other]] = bucket[[other, 0]]
    pq.write_table(rows.set_column(rows.schema.get_field_index("bucket"), "bucket", pa.array(bucket)), file)
    failed = [check.name for check in check_promise(release.stored) if not check.ok]
    assert failed == ["regions"]


def test_buckets_outside_the_stated_regions_are_refused() -> None:
    rows = pa.table({"sex": ["F", "M"]})
    stated = [
        {"rows": 1, "buckets": 1, "where": [{"column": "sex", "in": [cell]}]} for cell in ("F", "M", "X")
    ]
    home = np.array([0, 1])
    assert read(stated[:2]).of_buckets(rows, home, 2).tolist() == [0, 1]
    for wrong in (stated[:1], stated):
        with pytest.raises(ReleaseCorrupt, match="not in the regions"):
            read(wrong).of_buckets(rows, home, 2)


def test_a_plan_shows_its_regions_and_what_they_cost(tmp_path: Path) -> None:
    plan = dalenius.plan(policy(people(), tmp_path / "r"))
    shown, summary = str(plan), plan.to_dict()["regions"]
    assert f"{summary['count']} regions of {min(summary['rows'])} to {max(summary['rows'])} rows" in shown
    assert sum(summary["rows"]) == 600
    assert min(summary["rows"]) >= summary["least_rows"] == 40
    without = dalenius.plan(policy(people(), tmp_path / "r", regions=False)).to_dict()
    assert summary["mse_without"] == without["mse"] <= plan.to_dict()["mse"]
    assert "regions" not in without


def test_where_no_cut_is_sure_the_table_is_one_region(tmp_path: Path) -> None:
    table = people().select(["age", "value"])
    plan = dalenius.plan(policy(table, tmp_path / "r", regions=400))
    assert plan.to_dict()["regions"]["count"] == 1
    assert "1 region: no cut is sure" in str(plan)
    assert (
        plan.to_dict()["buckets"]
        == dalenius.plan(policy(table, tmp_path / "r", regions=False)).to_dict()["buckets"]
    )
    nobody_known = table.select(["value"])
    assert dalenius.publish(policy(nobody_known, tmp_path / "r"), seed=1).verify().ok


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        ({"fakes": 1}, "do not go with fakes"),
        ({"method": "anatomy"}, "do not go with method 'anatomy'"),
        ({"regions": "yes"}, "'yes' must be true, false, or the least number of rows"),
        ({"regions": 0}, "0 must be true, false, or the least number of rows"),
        ({"regions": 2.5}, "2.5 must be true, false"),
    ],
)
def test_what_regions_do_not_go_with(mechanism: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(people(), tmp_path / "r", **mechanism)


def test_regions_do_not_go_with_suppression(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="does not go with regions"):
        Policy.from_dict(
            {
                "source": people(),
                "release": str(tmp_path / "r"),
                "columns": {"quasi": ["age", "sex", "height"], "sensitive": ["value"]},
                "promise": {"kind": "l-diversity", "l": 3},
                "mechanism": {"regions": True},
                "suppress": {"method": "safe"},
            }
        )


def test_cells_of_numbers_are_ranges_with_about_as_many_people() -> None:
    numbers = pa.array([*range(1000), None])
    cells = first_cells("n", numbers)
    assert isinstance(cells, NumberCells)
    assert cells.n_cells <= 258
    counts = np.bincount(cells.encode(numbers), minlength=cells.n_cells)
    few = cells.ordered(counts)
    found = np.bincount(few.encode(numbers), minlength=few.n_cells)
    assert (found[0], found.sum()) == (1, 1001)
    assert 40 <= found[1:-1].min() <= found[1:].max() <= 90
    assert few.condition(0, 0) == {"column": "n", "in": [None]}
    assert few.condition(0, few.n_cells - 1) == {}
    strange = first_cells("x", pa.array([1.5, 2.5, float("inf"), float("nan")]))
    assert strange is not None
    assert strange.encode(pa.array([1.0, 1.5, 2.0, float("inf"), float("nan")])).tolist() == [1, 1, 2, 3, 3]


def test_cells_of_texts_are_values_the_commonest_first() -> None:
    cells = first_cells("t", pa.array(["a", "b", "c", None]))
    assert isinstance(cells, TextCells)
    ordered = cells.ordered(np.array([2, 5, 5, 9]))
    assert ordered.encode(pa.array(["a", None, "b", "c"])).tolist() == [3, 0, 1, 2]
    assert ordered.condition(0, 1) == {"column": "t", "in": ["b", None]}
    assert first_cells("t", pa.array([str(i) for i in range(257)])) is None


def test_there_are_at_most_200_regions() -> None:
    assert least_rows(10**7, 50) == 50_000
    assert least_rows(100, 10) == 40


@pytest.mark.parametrize("batch", [1, 7, 20_000])
def test_contents_are_the_places_in_order(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(region_plan, "BUCKETS_PER_BATCH", batch)
    plan = dalenius.plan(policy(people(200), tmp_path / "r", regions=50))
    assert isinstance(plan, BucketizePlan)
    assert plan.regions is not None
    layout = region_plan.RegionLayout.shuffled(plan.regions, Randomness.seeded(1))
    n_values = plan.regions.counts.shape[1]
    placed = Counter(
        (bucket, code % n_values)
        for code in range(len(layout.n_places))
        for bucket in layout.places(code).tolist()
    )
    entries = [entry for part in layout.contents() for entry in zip(*(c.tolist() for c in part), strict=True)]
    assert entries == [(bucket, code, n) for (bucket, code), n in sorted(placed.items())]
    assert {bucket for bucket, _, _ in entries} == set(range(1, layout.n_buckets + 1))


def test_who_is_certain_is_told_by_the_value_that_they_have() -> None:
    """A region lacks a value, so that its plan numbers the others from there on."""
    half = Fraction(1, 2)
    problem = BucketProblem(counts=(3, 3, 8), thresholds=(half, half, Fraction(1)), max_bucket=4)
    counts = np.array([[3, 3, 2], [0, 0, 6]])
    whole = plan_buckets(problem, "optimal")
    tree: Any = None  # only who is in which region is asked of it
    found = region_plan.plan_regions(tree, counts, problem, whole, 1)
    assert len({len(plan.certain) for plan in found.plans}) == 2
    assert found.certain.tolist() == [0, 0, sum(plan.count_certain() for plan in found.plans)]
    assert found.certain[2] >= 6
