"""Figure 5's arithmetic by hand: measures, the control of one bucket, and what is said of the differences."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from dalenius.evaluate.metrics import Spread
from dalenius.evaluate.original import CountQuestion, Original
from dalenius.evaluate.workload import Cells
from dalenius.mechanisms.bucketize.plan.methods import plan_buckets
from dalenius.randomness import Randomness
from dalenius.reproduce import bucketization_errors as module
from dalenius.reproduce.answers import Bucketized, TrueCounts, anatomy_pool, pool_of
from dalenius.reproduce.bucketization import METHODS, THETAS, linear_problem
from dalenius.reproduce.bucketization_errors import (
    LINKED,
    MEAN,
    MEASURES,
    MEDIAN,
    SETTINGS,
    WHOLE,
    Measured,
    answers,
    measure_errors,
    one_bucket,
    with_repeats,
)
from dalenius.reproduce.census import in_stated_shape, kdd, sensitive_codes, value_counts
from dalenius.reproduce.experiment import Row

PEOPLE = pa.table({"age": [1, 1, 2, 2, 2, 3], "sex": list("fmfmfm"), "ill": list("aabbac")})
ORIGINAL = Original.of(PEOPLE, ["ill"])


def question(**conditions: tuple[int, ...]) -> CountQuestion:
    return CountQuestion(conditions=tuple(conditions.items()))


def code(column: str, cell: object) -> int:
    return list(ORIGINAL.cells[column]).index(cell)


def test_the_measures_are_their_definitions() -> None:
    """Errors of 1 on 10, 5 on 20 and 30 on 1,000, of 10,000 records; a count of 0 has no relative error."""
    cells = Cells(
        truth=np.array([10.0, 20.0, 1_000.0, 0.0]),
        estimate=np.array([11.0, 15.0, 1_030.0, 7.0]),
        scale=np.full(4, 10_000.0),
    )
    assert MEASURES[MEAN](cells) == pytest.approx((0.1 + 0.25 + 0.03) / 3)
    assert MEASURES[MEDIAN](cells) == pytest.approx(0.1)
    # 0.1 % of 10,000 are 10 records: all three count; 1 % are 100: the last one
    assert MEASURES["mean RE, counts of 0.1 % or more"](cells) == pytest.approx((0.1 + 0.25 + 0.03) / 3)
    assert MEASURES["mean RE, counts of 1 % or more"](cells) == pytest.approx(0.03)
    assert MEASURES["Σ |act − est| / Σ act"](cells) == pytest.approx((1 + 5 + 30 + 7) / 1_030)


def test_one_bucket_answers_as_if_columns_were_independent() -> None:
    codes, counts = sensitive_codes(ORIGINAL), value_counts(ORIGINAL)
    plan = one_bucket(counts)
    assert (plan.sizes, plan.n_buckets, plan.n_rows) == ((6,), (1,), 6)
    release = Bucketized.of(plan, codes, Randomness.seeded(1))
    rows = [np.array([0, 1]), np.array([2, 3, 4])]
    found = release.by_value(rows)
    assert found == pytest.approx(np.outer(counts, [2 / 6, 3 / 6]))


def test_a_pool_counts_the_sensitive_values_that_a_query_asks_for() -> None:
    """Women of 2 or 3 years with a or c: the fifth person. Men with b: the fourth."""
    queries = [
        question(
            sex=(code("sex", "f"),),
            age=(code("age", 2), code("age", 3)),
            ill=(code("ill", "a"), code("ill", "c")),
        ),
        question(sex=(code("sex", "m"),), ill=(code("ill", "b"),)),
    ]
    pool = pool_of(ORIGINAL, queries)
    assert [rows.tolist() for rows in pool.conditions] == [[2, 4], [1, 3, 5]]
    truth = TrueCounts(sensitive=sensitive_codes(ORIGINAL), n_values=3)
    cells = pool.cells(truth)
    assert cells.truth.tolist() == [1.0, 1.0]
    assert cells.estimate.tolist() == [1.0, 1.0]
    assert cells.scale.tolist() == [6.0, 6.0]
    plan = one_bucket(value_counts(ORIGINAL))
    whole = pool.cells(Bucketized.of(plan, sensitive_codes(ORIGINAL), Randomness.seeded(1)))
    # two women of that age times 4 of 6 with a or c; three men times 2 of 6 with b
    assert whole.estimate == pytest.approx([2 * 4 / 6, 3 * 2 / 6])


def test_values_drawn_with_replacement_leave_no_more_than_were_chosen() -> None:
    stream = np.random.default_rng(1)
    asked = question(age=(0, 1, 2), ill=(1,))
    for _ in range(50):
        fewer = dict(with_repeats(asked, ORIGINAL, stream).conditions)
        assert set(fewer["age"]) <= {0, 1, 2}
        assert 1 <= len(fewer["age"]) == len(set(fewer["age"]))
        assert fewer["ill"] == (1,)


@pytest.mark.usefixtures("made_up")
def test_every_setting_is_answered_by_its_own_plan() -> None:
    original = in_stated_shape("EDU", 2_000, Randomness.seeded(1).stream("rows"))
    pool = anatomy_pool(original, 20, Randomness.seeded(1).stream("queries"))
    settings = [(8, "TwoSize"), (8, WHOLE), (8, "Optimal")]
    found = dict(answers(pool, Randomness.seeded(1), settings))
    assert list(found) == settings
    codes, counts = sensitive_codes(original), value_counts(original)
    plan = plan_buckets(linear_problem(counts, 8), METHODS["Optimal"])
    by_hand = pool.cells(Bucketized.of(plan, codes, Randomness.seeded(1)))
    assert found[8, "Optimal"].estimate == pytest.approx(by_hand.estimate)
    whole = pool.cells(Bucketized.of(one_bucket(counts), codes, Randomness.seeded(1)))
    assert found[8, WHOLE].estimate == pytest.approx(whole.estimate)
    assert (found[8, "TwoSize"].truth == found[8, WHOLE].truth).all()


@pytest.mark.usefixtures("made_up")
def test_errors_are_in_per_cent_one_for_each_seed() -> None:
    settings = [(8, "TwoSize"), (8, WHOLE)]
    table = partial(in_stated_shape, "EDU", 1_500)
    found = measure_errors(table, settings, n_queries=20, n_seeds=3)
    assert set(found) == {(setting, name) for setting in settings for name in MEASURES}
    assert all(len(spread.values) == 3 for spread in found.values())
    randomness = Randomness.seeded(2)  # the second seed, by hand
    original = table(randomness.stream("rows"))
    pool = anatomy_pool(original, 20, randomness.stream("queries"))
    cells = dict(answers(pool, randomness, settings))[8, "TwoSize"]
    assert found[(8, "TwoSize"), MEAN].values[1] == pytest.approx(100 * MEASURES[MEAN](cells))


@pytest.mark.usefixtures("made_up")
def test_tables_are_two_in_the_stated_shape_and_two_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "N_ROWS", 900)
    drawn = {name: table(Randomness.seeded(1).stream("rows")) for name, table in module.tables().items()}
    assert {name: original.n_rows for name, original in drawn.items()} == {
        "OCC, stated shape": 900,
        "EDU, stated shape": 900,
        "OCC, KDD": 300,
        "EDU, KDD": 300,
    }
    assert drawn["EDU, KDD"] is kdd("EDU")


def spreads(value_of: dict[tuple[int, str], float]) -> Measured:
    """Each setting's mean as given and a median of half of it, from two seeds that differ by 2."""
    return {
        (setting, name): Spread.of([factor * (value_of[setting] - 1), factor * (value_of[setting] + 1)])
        for setting in SETTINGS
        for name, factor in ((MEAN, 1.0), (MEDIAN, 0.5))
    }


LADDER = {
    (theta, method): {"TwoSize": 20.0, "MultiSize": 18.0, "Optimal": 17.0, WHOLE: 40.0}[method] - theta / 4
    for theta, method in SETTINGS
}


def test_what_is_said_of_the_differences_is_what_was_measured() -> None:
    """TwoSize from 20 − 2/4 down to 20 − 32/4, two points above MultiSize, which is one above Optimal."""
    said = module._summary(spreads(LADDER))
    assert said.startswith("mean 9.0 to 19.5 %, median 4.5 to 9.8 %")
    assert "TwoSize − MultiSize +2.0 to +2.0 points" in said
    assert "MultiSize − Optimal +1.0 to +1.0" in said
    assert "(one bucket for all: mean 39.5 %)" in said
    assert THETAS[0] == 2


def test_figure_5_has_a_row_for_each_setting_of_each_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measured_tables", lambda: {"one": spreads(LADDER), "two": spreads(LADDER)})
    outcome = module.compare_errors()
    assert len(outcome.rows) == 2 * len(SETTINGS)
    row = next(row for row in outcome.rows if row[:3] == ("two", 8, "MultiSize"))
    # 18 − 8/4 = 16, of two seeds 15 and 17: standard error 1; the median half of both
    assert row[3:] == pytest.approx((16.0, 1.0, 8.0, 0.5))
    assert outcome.differs.startswith("one: mean 9.0 to 19.5 %")
    assert "; two: mean 9.0 to 19.5 %" in outcome.differs


def test_readings_are_listed_table_by_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "measured_tables", lambda: {"one": spreads(LADDER), "two": spreads(LADDER)})
    monkeypatch.setattr(module, "tables", lambda: {"one": None, "two": None})
    monkeypatch.setattr(module, "measure_errors", lambda *_: spreads(LADDER))
    outcome = module.compare_readings()
    assert [row[:2] for row in outcome.rows] == [
        (table, reading) for table in ("one", "two") for reading in (MEAN, MEDIAN, module.REPEATS)
    ]
    # TwoSize at 2 and 8, Optimal at 8 and 32, and the control at 2
    assert outcome.rows[0][2:] == ("19.5 ± 1.0", "18.0 ± 1.0", "15.0 ± 1.0", "9.0 ± 1.0", "39.5 ± 1.0")
    assert outcome.columns[2:] == (
        "TwoSize, θ = 2",
        "TwoSize, θ = 8",
        "Optimal, θ = 8",
        "Optimal, θ = 32",
        WHOLE,
    )


def linked_rows(errors: dict[float, float]) -> list[Row]:
    """Both tables and both θ; OCC errs twice as much as EDU; the control errs 99 % everywhere."""
    rows: list[Row] = []
    for source, factor in (("OCC", 2.0), ("EDU", 1.0)):
        for theta in (2, 8):
            for linked in LINKED:
                panel = f"{source}, θ = {theta}"
                rows.append((panel, 100 * linked, "TwoSize", factor * errors[linked], 0.1))
                rows.append((panel, 100 * linked, "Optimal", factor * errors[linked] / 2, 0.1))
                rows.append((panel, 100 * linked, WHOLE, 99.0, 0.1))
    return rows


def test_how_far_errors_stay_below_ten_per_cent_is_told_panel_by_panel() -> None:
    errors = dict(zip(LINKED, (2.0, 4.0, 6.0, 9.0, 11.0), strict=True))
    rows = linked_rows(errors)
    told = module._below_ten(rows)
    # OCC: 4, 8, 12, …: up to 25 % linked; EDU: 2, 4, 6, 9, 11: up to 75 %
    assert told.count("up to 25 % linked") == 2
    assert told.count("up to 75 % linked") == 2
    assert "OCC, θ = 2: all methods are below 10 % up to 25 % linked" in told
    largest = module._largest(rows)
    assert largest.startswith("4.0 % for OCC and 2.0 % for EDU at 0%")
    assert largest.endswith("22.0 % for OCC and 11.0 % for EDU at 100%")


def test_an_error_that_falls_below_ten_again_does_not_count() -> None:
    errors = dict(zip(LINKED, (1.0, 6.0, 1.0, 1.0, 1.0), strict=True))
    told = module._below_ten(linked_rows(errors))
    assert "OCC, θ = 2: all methods are below 10 % up to 0 % linked" in told
    assert "EDU, θ = 2: all methods are below 10 % up to 100 % linked" in told


@pytest.mark.usefixtures("made_up")
def test_the_figure_by_links_varies_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, float]] = []

    def measured(table: partial[Original], settings: list[tuple[int, str]]) -> Measured:
        seen.append((table.args[0], table.keywords["linked"]))
        return {(setting, MEAN): Spread.of([5.0, 7.0]) for setting in settings}

    monkeypatch.setattr(module, "measure_errors", measured)
    outcome = module.compare_links()
    assert seen == [(source, linked) for source in ("OCC", "EDU") for linked in LINKED]
    assert len(outcome.rows) == 2 * len(LINKED) * 2 * 4
    assert outcome.rows[0] == ("OCC, θ = 2", 0.0, "TwoSize", 6.0, 1.0)
