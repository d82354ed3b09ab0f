"""Secret numbers from the policy to the release: published, verified, attacked, asked, refused."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dalenius
from dalenius.cli.main import run
from dalenius.errors import PolicyError, PromiseNotMet, ReleaseCorrupt
from dalenius.mechanisms.bucketize.apply import mix_contents
from dalenius.mechanisms.bucketize.plan.problem import Together
from dalenius.mechanisms.bucketize.plan.windows import keeps_windows, mix
from dalenius.mechanisms.bucketize.repeated import RepeatedContents, repeat_buckets, repeat_table
from dalenius.mechanisms.bucketize.table_plan import BucketizePlan, plan_counts
from dalenius.policy import Policy
from dalenius.promises import read_promise
from dalenius.promises.proximity import Distance, Proximity
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Histogram
from tests.mechanisms.bucketize.plan.filling import dealt

SALARIES = [20_000 + 137 * i + (9_000 if i % 4 == 0 else 0) for i in range(240)]
SMALL = (2, 4, 5, 6, 9)
PROMISE: dict[str, Any] = {"kind": "proximity", "within": "5%", "at_most": "1/4"}


def policy(path: Path | None = None, numbers: Any = None, **sections: Any) -> Policy:
    held = SALARIES if numbers is None else numbers
    promise = sections.pop("promise", {})
    rows = {"age": [18 + 7 * row % 70 for row in range(len(held))], "row": list(range(len(held)))}
    return Policy.from_dict(
        {
            "source": pa.table({**rows, "salary": held}),
            **({} if path is None else {"release": str(path)}),
            "columns": {"quasi": ["age", "row"], "sensitive": ["salary"]},
            "promise": promise if "kind" in promise else {**PROMISE, **promise},
            **sections,
        }
    )


def buckets_of(release: Path) -> list[list[Any]]:
    found: dict[int, list[Any]] = {}
    for row in pq.read_table(release / "st.parquet").to_pylist():
        found.setdefault(row["bucket"], []).extend([row["salary"]] * row["count"])
    return list(found.values())


def largest_hit(values: list[Any], near: Any) -> Fraction:
    """The largest share of a bucket that one guess can hit, tried at every lower end of what is near."""
    numbers = [Fraction(str(v)) for v in values]
    ends = [(x - near(x), x + near(x)) for x in numbers]
    hits = (sum(low <= guess <= high for low, high in ends) for guess, _ in ends)
    return Fraction(max(hits), len(values))


def test_no_guess_hits_more_of_a_bucket_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    held = buckets_of(path)
    assert sorted(v for bucket in held for v in bucket) == sorted(SALARIES)
    assert max(largest_hit(bucket, lambda x: x / 20) for bucket in held) == Fraction(1, 4)
    report = dalenius.verify(path)
    assert [check.ok for check in report.checks if check.name == "promise on near numbers"] == [True]
    stated = dalenius.open_release(path).manifest
    assert stated["promise"] == {"kind": "proximity", "within": "5%", "at_most": "1/4"}
    assert any("farther off" in text for text in stated["not_covered"])


def plan_of(values: Iterable[int], counts: Iterable[int], **promise: Any) -> BucketizePlan:
    """The plan of a table with so many people of each salary, in this order."""
    occur = [(value, count) for value, count in zip(values, counts, strict=True) if count]
    histogram = Histogram(
        columns=("salary",), values=tuple((v,) for v, _ in occur), counts=tuple(c for _, c in occur)
    )
    asked: Any = policy(promise=promise)
    return plan_counts(asked, histogram, pa.schema([("salary", pa.int64())]))


def contents_of(plan: BucketizePlan) -> Iterator[list[int]]:
    """What is in each bucket, as it is published."""
    values = [v for (v,) in plan.histogram.values]
    if plan.proximity:
        for of_size in mix_contents(plan.buckets, plan.problem, Randomness.seeded(plan.n_rows)):
            yield from ([values[code] for code in bucket] for bucket in of_size.tolist())
        return
    for held in dealt(plan.buckets):
        yield [v for v, k in zip(values, held.tolist(), strict=True) for _ in range(k)]


def test_every_guess_about_every_small_table_is_bayes_within_the_limit() -> None:
    """All tables of up to 6 people with salaries 2, 4, 5, 6, 9, every guess in halves, by all matchings."""
    n_tables = n_guesses = n_broken_twins = 0
    half = Fraction(1, 2)
    for counts in product(range(4), repeat=5):
        if not 2 <= sum(counts) <= 6:
            continue
        try:
            plan = plan_of(SMALL, counts, within=1, at_most="1/2")
        except PromiseNotMet:
            continue
        n_tables += 1
        for bucket in contents_of(plan):
            worlds = set(permutations(bucket))
            for guess, person in product([Fraction(k, 2) for k in range(2, 22)], range(len(bucket))):
                posterior = Fraction(sum(abs(w[person] - guess) <= 1 for w in worlds), len(worlds))
                assert posterior <= half
                n_guesses += 1
        # the twin deals salaries in no order of theirs, as other promises may
        mixed = [(v, counts[SMALL.index(v)]) for v in (5, 9, 4, 2, 6)]
        twin = plan_of(*zip(*mixed, strict=True), kind="f-privacy", default="1/2")
        n_broken_twins += any(largest_hit(bucket, lambda _: 1) > half for bucket in contents_of(twin))
    assert (n_tables, n_guesses) == (88, 8_960)
    assert n_broken_twins > 10, "the control: a guess does hit more"


def test_a_release_that_keeps_values_but_not_what_is_near_is_caught(tmp_path: Path) -> None:
    """The twin: planned for single values, published, and then said to keep what is near."""
    path = tmp_path / "r"
    shuffled = [SALARIES[(i * 89) % len(SALARIES)] // 5_000 * 5_000 + i % 3 for i in range(len(SALARIES))]
    one = policy(path, shuffled, promise={"within": 0})
    dalenius.publish(one, seed=1)
    assert dalenius.verify(path).ok
    file = path / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["promise"]["within"] = "30%"
    file.write_text(json.dumps(manifest), encoding="utf-8")
    assert [check.name for check in dalenius.verify(path).checks if not check.ok] == [
        "promise on near numbers"
    ]
    attacks = {attack.name: attack for attack in dalenius.audit(path, one).attacks}
    assert attacks["linking"].holds
    assert attacks["near numbers"].holds is False


def test_an_honest_release_withstands_the_attack(tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    found = next(a for a in dalenius.audit(path, policy()).attacks if a.name == "near numbers")
    assert found.holds
    assert found.bound == 0.25
    assert found.success == pytest.approx(found.detail["largest_posterior"], abs=0.05)
    assert found.detail["guesses_above_limit"] == 0
    assert found.control is not None
    assert found.control < found.success


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([None, 1.5, -2.25, 1e300, float("nan"), float("inf"), float("-inf"), 0.0] * 6, pa.float64()),
        (
            [Decimal("-10.00"), Decimal("-9.50"), Decimal("0.00"), Decimal("7.25"), None] * 4,
            pa.decimal128(9, 2),
        ),
        ([0, 255, 17, 18, 19, 100] * 3, pa.uint8()),
    ],
)
def test_numbers_of_all_kinds_are_kept(numbers: list[Any], kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "r"
    dalenius.publish(policy(path, pa.array(numbers, kind), promise={"at_most": "1/2"}), seed=2)
    assert dalenius.verify(path).ok
    held = buckets_of(path)
    assert sum(map(len, held)) == len(numbers)
    for bucket in held:
        finite = [v for v in bucket if v is not None and isfinite(v)]
        n_hit = largest_hit(finite, lambda x: abs(x) / 20) * len(finite) if finite else 0
        assert 2 * n_hit <= len(bucket)


def test_a_guess_that_may_be_farther_off_hits_more(tmp_path: Path) -> None:
    """What is not covered: a bucket can be near one number in a wider sense."""
    path = tmp_path / "r"
    dalenius.publish(policy(path), seed=1)
    assert max(largest_hit(bucket, lambda x: x / 3) for bucket in buckets_of(path)) > Fraction(1, 2)


def test_a_share_of_a_negative_number_is_of_its_amount() -> None:
    promise = Proximity(within=Distance.parse("10%"), at_most=Fraction(1, 2))
    # -100 is near guesses from -110 to -90, and -85 from -93.5 to -76.5: both are near -92
    assert promise.reach(["-100", "-85", "-1", "0", "1", "85", "100"]) == (2, 2, 3, 4, 5, 7, 7)
    assert promise.reach([None, "-inf", "5", "inf", "nan"]) == (1, 2, 3, 4, 5)


def test_a_limit_below_the_fullest_window_says_the_lowest(tmp_path: Path) -> None:
    with pytest.raises(PromiseNotMet, match=r"within 50 %.*lowest") as refused:
        dalenius.plan(policy(tmp_path / "r", promise={"within": "50%"}))
    assert not any(str(salary) in str(refused.value) for salary in SALARIES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"promise": {"within": "100%"}}, "within"),
        ({"promise": {"within": -1}}, "within"),
        ({"promise": {"within": "near"}}, "not a number"),
        ({"promise": {"at_most": 1}}, "at_most"),
        ({"promise": {"default": 0.5}}, "default"),
        ({"mechanism": {"kind": "bucketize", "fakes": 1}}, "fakes"),
        ({"mechanism": {"kind": "bucketize", "regions": True}}, "regions"),
        ({"mechanism": {"kind": "perturb"}}, "does not keep proximity"),
        ({"suppress": {"method": "safe"}}, "suppress"),
        ({"columns": {"quasi": ["age"], "sensitive": ["row", "salary"]}}, "one column"),
    ],
)
def test_what_would_not_keep_it_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        policy(**changes)


def test_texts_are_no_numbers() -> None:
    with pytest.raises(PolicyError, match="'salary' is string"):
        dalenius.plan(policy(numbers=["1", "2", "3", "x"]))


@pytest.mark.parametrize("within", ["100%", "x", "-1"])
def test_a_manifest_with_a_distance_that_cannot_be_is_damaged(within: str) -> None:
    with pytest.raises(ReleaseCorrupt):
        read_promise({"kind": "proximity", "within": within, "at_most": "1/2"})


def test_several_releases_are_judged_by_what_is_near() -> None:
    """Two buckets of one person usually share one salary, or few that are near each other."""
    plan = plan_of(range(18), [1 + v % 3 for v in range(18)], within=1, at_most="1/4")
    found = repeat_table(plan, 2)
    assert (found.how, found.promised) == ("simulated", 0.25)
    assert found.posterior > 0.9
    runs = [one.own for one in plan.problem.together()]
    assert runs == [slice(v, v + 3) for v in range(16)]
    ring = RepeatedContents(  # two salaries that are near each other, in every bucket of four
        real=np.eye(4)[[0, 1, 2, 3]] + np.eye(4)[[1, 2, 3, 0]],
        believed=np.zeros((4, 4)),
        weight=np.ones(4),
        counts=np.full(4, 2.0),
        is_complete=True,
    )
    pair = (Together(own=slice(0, 2), threshold=Fraction(1, 2)),)
    alone = repeat_buckets([ring], [Fraction(1)] * 4, 2)
    both = repeat_buckets([ring], [Fraction(1)] * 4, 2, pair)
    assert (alone.promised, both.promised, both.posterior) == (1.0, 0.5, 1.0)


def test_contents_are_mixed_to_all_that_keep_the_windows_equally() -> None:
    """Two buckets of two people, salaries 0, 1, 4, 5, near within one: {0,4}{1,5} or {0,5}{1,4}, as often."""
    plan = plan_of((0, 1, 4, 5), (1, 1, 1, 1), within=1, at_most="1/2")
    start, keeps = np.array([[0, 2], [1, 3]]), keeps_windows(plan.problem, 2)
    stream, n_first, n_times = np.random.default_rng(5), 0, 400
    for _ in range(n_times):
        ended = {tuple(row) for row in mix(start, keeps, stream, rounds=9).tolist()}
        assert ended in ({(0, 2), (1, 3)}, {(0, 3), (1, 2)})
        n_first += (0, 2) in ended
    # a fair coin is farther off with less than 1e-6; one that never trades gives 400
    assert abs(n_first - n_times / 2) < 5 * (n_times / 4) ** 0.5
    every = [list(row) for row in product(range(4), repeat=2) if row[0] <= row[1]]
    kept = keeps(np.array(every)).tolist()
    assert [row for row, ok in zip(every, kept, strict=True) if ok] == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_the_command_line_plans_publishes_and_explains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = "\n".join(f"{18 + i % 50},{salary}" for i, salary in enumerate(SALARIES))
    (tmp_path / "t.csv").write_text(f"age,salary\n{lines}\n", encoding="utf-8")
    (tmp_path / "p.toml").write_text(
        'source = "t.csv"\nrelease = "r"\n[columns]\nquasi = ["age"]\nsensitive = ["salary"]\n'
        '[promise]\nkind = "proximity"\nwithin = "5%"\nat_most = 0.25\n',
        encoding="utf-8",
    )
    assert run(["plan", str(tmp_path / "p.toml")]) == 0
    assert "names nobody's number to within 5 % with more than 25 in 100" in capsys.readouterr().out
    assert run(["publish", str(tmp_path / "p.toml")]) == 0
    assert run(["verify", str(tmp_path / "r")]) == 0
    capsys.readouterr()
    assert run(["report", str(tmp_path / "r"), "--format", "text"]) in (0, 2)
    assert run(["ask", str(tmp_path / "r"), "SELECT SUM(salary), AVG(salary) FROM t WHERE age < 40"]) == 0


def test_adult_ages_are_published_to_within_three_years(real_data: Path, tmp_path: Path) -> None:
    table = pyarrow.csv.read_csv(real_data / "adult.csv")
    release = dalenius.publish(
        Policy.from_dict(
            {
                "source": table,
                "release": str(tmp_path / "r"),
                "columns": {
                    "quasi": [name for name in table.column_names if name != "age"],
                    "sensitive": ["age"],
                },
                "promise": {"kind": "proximity", "within": 3, "at_most": "1/4"},
            }
        )
    )
    assert release.verify(strict=True).ok
    st = pq.read_table(tmp_path / "r" / "st.parquet").to_pydict()
    held: dict[int, list[int]] = {}
    for bucket, age, count in zip(st["bucket"], st["age"], st["count"], strict=True):
        held.setdefault(bucket, []).extend([age] * count)
    assert max(largest_hit(ages, lambda _: 3) for ages in held.values()) == Fraction(1, 4)
