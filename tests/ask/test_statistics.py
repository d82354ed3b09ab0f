"""Quantiles, ends and numbers of different values: intervals hold, and what is not known is not said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import dalenius
from dalenius.ask import ask, statistics
from dalenius.evaluate.sql_workload import answer_truly
from dalenius.mechanisms.bucketize import answer
from dalenius.mechanisms.bucketize.estimate import numbers, possible
from dalenius.mechanisms.bucketize.estimate.buckets import ScoreSums
from dalenius.question.sql import parse
from dalenius.question.targets import Range, Targets
from dalenius.release.folder import StoredRelease
from tests.ask.conftest import SENSITIVE, coded, patients
from tests.ask.releases import deal, write_release

QUESTIONS = [
    "SELECT disease, MEDIAN(age) AS m, QUANTILE_DISC(weight, 0.8) AS q FROM t GROUP BY disease",
    "SELECT sex, MEDIAN(severity) AS m, QUANTILE_DISC(severity, 0.3) AS q FROM t GROUP BY sex",
    "SELECT zip, STDDEV(severity) AS s, CORR(age, severity) AS c, VAR_POP(severity) AS v FROM t GROUP BY zip",
    "SELECT sex, STDDEV(age) AS s, CORR(age, weight) AS c FROM t WHERE disease = 'Flu' GROUP BY sex",
]


def held(release: StoredRelease, table: pa.Table, question: str, confidence: float) -> list[bool]:
    """Whether each interval holds the truth."""
    truth = answer_truly(parse(question, table.column_names), table).cells
    found = {
        (tuple(cell for _, cell in row.group), row.column): row
        for row in ask(release, question, confidence=confidence).rows
    }
    inside = []
    for key, number in truth.items():
        row = found[key]
        assert row.low is not None
        assert row.high is not None
        inside.append(row.low - 1e-9 <= number <= row.high + 1e-9)
    return inside


def test_intervals_hold_over_many_assignments(tmp_path: Path) -> None:
    """Each of another table."""
    inside = []
    for seed in range(4):
        table = patients(600, seed)
        bucket = deal(coded(table, SENSITIVE), {4: 75, 6: 50}, np.random.default_rng(seed))
        release = write_release(tmp_path, table, SENSITIVE, bucket, name=f"r{seed}")
        inside += [one for question in QUESTIONS for one in held(release, table, question, 0.95)]
    assert len(inside) == 100
    assert np.mean(inside) > 0.9


def test_perturbed_medians_hold(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    inside = []
    for seed in range(4):
        table = pa.table({"sex": rng.choice(["F", "M"], 1_500), "grade": rng.integers(1, 9, 1_500)})
        policy = {
            "source": table,
            "release": str(tmp_path / f"r{seed}"),
            "columns": {"quasi": ["sex"], "sensitive": ["grade"]},
            "promise": {"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"},
            "mechanism": {"kind": "perturb"},
        }
        release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=seed).stored
        question = "SELECT sex, MEDIAN(grade) AS m, QUANTILE_DISC(grade, 0.2) AS q FROM t GROUP BY sex"
        inside += held(release, table, question, 0.99)
    assert np.mean(inside) > 0.9


GROUPED = {
    "buckets": ({"kind": "f-privacy", "default": 0.6}, {"kind": "bucketize"}),
    "perturb": ({"kind": "rho-privacy", "rho1": "max", "rho2": "1/2"}, {"kind": "perturb"}),
    "views": (
        {"kind": "d-gamma-privacy", "d": "1/10", "gamma": "1/2"},
        {"kind": "alpha-beta", "duplicates": "distinct", "domains": "active"},
    ),
}


@pytest.mark.parametrize("name", GROUPED)
def test_all_groups_are_answered_as_each_by_itself(tmp_path: Path, name: str) -> None:
    """And near the truth: the estimate is where the counts pass, not the first number that there is."""
    rng = np.random.default_rng(8)
    grade = rng.integers(5, size=600)
    age = 20 + 5 * grade + rng.integers(40, size=600)
    table = pa.table({"age": age, "zip": rng.integers(30, size=600), "grade": grade})
    promise, mechanism = GROUPED[name]
    policy = {
        "source": table,
        "release": str(tmp_path / "r"),
        "columns": {"quasi": ["age", "zip"], "sensitive": ["grade"]},
        "promise": promise,
        "mechanism": mechanism,
    }
    release = dalenius.publish(dalenius.Policy.from_dict(policy), seed=1).stored
    select = "MEDIAN(age) AS m, QUANTILE_DISC(age, 0.8) AS q, MIN(age) AS least FROM t"
    together = ask(release, f"SELECT grade, {select} GROUP BY grade").rows
    for value in (0, 3):
        alone = ask(release, f"SELECT {select} WHERE grade = {value}").rows
        own = [row for row in together if dict(row.group) == {"grade": value}]
        assert len(own) == len(alone) == 3
        for one, two in zip(own, alone, strict=True):
            assert (one.column, one.status) == (two.column, two.status)
            assert (one.estimate, one.low, one.high) == pytest.approx((two.estimate, two.low, two.high))
        assert own[0].estimate == pytest.approx(np.median(age[grade == value]), abs=12)


def test_one_interval_is_of_one_piece(release: StoredRelease) -> None:
    for question in QUESTIONS:
        for row in ask(release, question).rows:
            if row.estimate is not None:
                assert row.low is not None
                assert row.high is not None
                assert row.std_error is not None
                assert row.low <= row.estimate <= row.high
                assert (row.std_error == 0) == (row.low == row.high) or row.status == "estimate"


def test_ends_that_are_not_known_are_a_range(release: StoredRelease, table: pa.Table) -> None:
    question = (
        "SELECT MIN(severity) AS low, MAX(age) AS top, COUNT(DISTINCT age) AS n FROM t WHERE sex = 'F' AND "
        "disease = 'Flu' AND zip = '10115'"
    )
    rows = {row.column: row for row in ask(release, question).rows}
    truth = {
        name: cell
        for (_, name), cell in answer_truly(parse(question, table.column_names), table).cells.items()
    }
    assert rows["top"].estimate is None
    assert rows["top"].status == rows["n"].status == "undetermined"
    for name in ("low", "top", "n"):
        low, high = rows[name].low, rows[name].high
        assert low is not None
        assert high is not None
        assert low <= truth[name] <= high
    older = ask(release, f"{question} AND age > 50")
    ends = next(row for row in older.rows if row.column == "top")
    assert (ends.low or 0) > 50  # nobody younger is asked about
    assert older.sentence.endswith("the range is all that is possible, whatever the secret")
    known = ask(release, "SELECT MIN(age), MAX(age), COUNT(DISTINCT age) FROM t WHERE sex = 'F'").rows
    ages = [a for a, s in zip(*(table[c].to_pylist() for c in ("age", "sex")), strict=True) if s == "F"]
    assert [row.estimate for row in known] == [min(ages), max(ages), len(set(ages))]
    assert {row.status for row in known} == {"exact"}


def test_a_median_whose_interval_is_one_number_is_not_called_certain(tmp_path: Path) -> None:
    """The numbers are few: the interval ends where it begins, and another median is possible."""
    rng = np.random.default_rng(2)
    table = pa.table(
        {"sex": rng.choice(["F", "M"], 400), "grade": rng.choice([1, 2, 3], 400, p=[0.3, 0.4, 0.3])}
    )
    release = write_release(tmp_path, table, ["grade"], deal(coded(table, ["grade"]), {4: 100}, rng))
    answer = ask(release, "SELECT sex, MEDIAN(grade) FROM t GROUP BY sex")
    assert [(row.low, row.estimate, row.high) for row in answer.rows] == [(2.0, 2.0, 2.0)] * 2
    assert {row.status for row in answer.rows} == {"estimate"}
    assert answer.sentence.startswith("about 95 %")
    (whole,) = ask(release, "SELECT MEDIAN(grade) FROM t").rows
    assert (whole.estimate, whole.status) == (2.0, "exact")


def test_numbers_that_are_all_the_same_do_not_deviate(tmp_path: Path) -> None:
    """What rounding leaves of squares was a deviation of a millionth, and called certain."""
    table = pa.table({"x": [0.1] * 300, "y": [*range(150)] * 2, "d": ["a", "b", "c"] * 100})
    release = write_release(tmp_path, table, ["d"], np.arange(300) // 3)
    question = "SELECT d, STDDEV(x), VAR_POP(x), VAR_SAMP(x) FILTER (WHERE y > 999) FROM t GROUP BY d"
    for *found, nobody in zip(*[iter(ask(release, question).rows)] * 3, strict=True):
        assert [(row.estimate, row.std_error, row.low, row.high) for row in found] == [(0.0,) * 4] * 2
        assert (nobody.estimate, nobody.status) == (None, "exact")


def test_ends_of_many_groups_are_in_their_ranges(tmp_path: Path) -> None:
    """Not every threshold is tried in each of so many groups."""
    rng = np.random.default_rng(4)
    table = pa.table({"x": rng.permutation(1_200) / 10, "d": np.arange(1_200) % 600})
    release = write_release(tmp_path, table, ["d"], np.arange(1_200) // 2)
    x, d = (table[name].to_numpy() for name in ("x", "d"))
    for row in ask(release, "SELECT d, MIN(x), MAX(x) FROM t GROUP BY d").rows:
        own = x[d == row.group[0][1]]
        truth = own.min() if "MIN" in row.column else own.max()
        assert row.low is not None
        assert row.high is not None
        assert row.low <= truth <= row.high


@pytest.mark.parametrize("fraction", [0.0, 0.37, 1.0])
def test_thresholds_are_found_among_many_numbers(tmp_path: Path, fraction: float) -> None:
    """More numbers than are tried at first: the search ends at the very one."""
    rng = np.random.default_rng(6)
    table = pa.table({"x": rng.permutation(3_000) / 7, "d": rng.choice(["a", "b"], 3_000)})
    release = write_release(tmp_path, table, ["d"], np.arange(3_000) // 2)
    (row,) = ask(release, f"SELECT QUANTILE_CONT(x, {fraction}) FROM t").rows
    assert row.estimate == pytest.approx(np.quantile(table["x"].to_numpy(), fraction))
    assert row.status == "exact"


def test_thresholds_of_many_numbers_are_asked_about_in_pieces() -> None:
    """A hundred thousand salaries in eight groups took more than a gigabyte."""
    search = object.__new__(statistics._QuantileSearch)
    search.numbers = np.arange(100_000.0)
    wanted = {k: {0, 1} if k % 3 else {0} for k in range(97)}
    pieces = list(search._pieces(wanted))
    assert [k for piece in pieces for k in piece] == list(range(97))
    weighed = [sum(len(wanted[k]) for k in piece) * len(search.numbers) for piece in pieces]
    assert max(weighed) <= statistics._WEIGHTS_AT_ONCE + 2 * len(search.numbers)
    search.numbers = np.arange(10_000_000.0)
    assert list(search._pieces({3: {0}, 5: {0, 1}})) == [[3], [5]]


def salaries(folder: Path, n: int) -> StoredRelease:
    """Distinct numbers in three groups, in buckets of 8."""
    rng = np.random.default_rng(11)
    group = rng.integers(3, size=n)
    numbers = np.exp(10 + 0.2 * group + 0.4 * rng.normal(size=n)) + np.arange(n) * 1e-6
    table = pa.table({"department": group, "age": rng.integers(20, 60, n), "salary": numbers})
    return write_release(folder, table, ["salary"], rng.permutation(n) // 8)


@pytest.mark.parametrize(
    "sql", ["MEDIAN(salary)", "QUANTILE_CONT(salary, 0.9)", "QUANTILE_DISC(salary, 0.2)"]
)
def test_few_thresholds_find_what_all_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    """The very medians, and the very ends, of a search that tries every number."""
    release, tried = salaries(tmp_path, 4_000), list[int]()
    own = statistics._QuantileSearch._try

    def count(search: statistics._QuantileSearch, wanted: list[int], groups: dict[int, set[int]]) -> None:
        tried.extend(len(groups[k]) for k in wanted)
        own(search, wanted, groups)

    monkeypatch.setattr(statistics._QuantileSearch, "_try", count)
    question = f"SELECT department, {sql} AS q FROM t GROUP BY department"
    quick = [(row.estimate, row.low, row.high) for row in ask(release, question).rows]
    assert sum(tried) < 50 * 3
    monkeypatch.setattr(statistics, "_FIRST", 4_000)
    slow = [(row.estimate, row.low, row.high) for row in ask(release, question).rows]
    assert quick == slow


def test_what_is_possible_is_worked_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release, times = salaries(tmp_path, 2_000), list[int]()
    own = possible.possible_range

    def count(sums: ScoreSums, targets: Targets) -> Range:
        times.append(targets.n_targets)
        return own(sums, targets)

    for module in (answer, numbers):
        monkeypatch.setattr(module, "possible_range", count, raising=False)
    ask(release, "SELECT COUNT(*) FROM t WHERE age > 30 AND salary > 30000")
    assert times == [1]
