"""The outcome of a comparison, from standings whose numbers are made up."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dalenius.evaluate.compare import Comparison, Standing
from dalenius.evaluate.contender import Contender
from dalenius.evaluate.frontier import Frame, label_span
from dalenius.evaluate.measures import MEASURES
from dalenius.evaluate.metrics import Spread
from dalenius.promises.bounds import Bound

LOWER, HIGHER = MEASURES["relative-error"], MEASURES["retention"]


def standing(
    name: str,
    bound: str,
    values: list[float],
    *,
    is_baseline: bool = False,
    smallest: str | None = None,
    reason: str | None = None,
) -> Standing:
    promised = Bound(
        largest=Fraction(bound),
        symbol="1/l",
        meaning="a value",
        smallest=None if smallest is None else Fraction(smallest),
    )
    contender = Contender(
        name=name, kind="bucketize", method="optimal", bound=promised, is_baseline=is_baseline
    )
    spreads = {measure.name: Spread.of(values) for measure in (LOWER, HIGHER) if values}
    return Standing(contender=contender, spreads=spreads, reason=reason)


def compare(*standings: Standing, measure: str = "relative-error") -> Comparison:
    return Comparison(
        workload="own",
        n_questions=1,
        n_cells=1,
        n_seeds=2,
        measures=(MEASURES[measure],),
        standings=standings,
    )


def names(standings: tuple[Standing, ...]) -> list[str]:
    return [one.contender.name for one in standings]


STRICT, LOOSE = standing("strict", "1/5", [0.4, 0.6]), standing("loose", "1/2", [0.1, 0.1])
BEATEN = standing("beaten", "1/2", [0.3, 0.3])


def test_the_frontier_of_three_by_hand() -> None:
    """`beaten` promises as much as `loose` and errs more; `strict` promises more."""
    assert names(compare(LOOSE, BEATEN, STRICT).frontier) == ["strict", "loose"]
    # the other way round where more is better: 0.1 is then the worst at 1/2
    assert names(compare(LOOSE, BEATEN, STRICT, measure="retention").frontier) == ["strict"]


def test_two_that_are_alike_are_both_on_the_frontier() -> None:
    twin = standing("twin", "1/5", [0.4, 0.6])
    assert sorted(names(compare(STRICT, twin).frontier)) == ["strict", "twin"]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_the_frontier_is_that_of_a_slow_twin(points: list[tuple[int, int]]) -> None:
    found = compare(*(standing(str(i), f"{b}/10", [float(e)]) for i, (b, e) in enumerate(points)))
    slow = {
        str(i)
        for i, (b, e) in enumerate(points)
        if not any(x <= b and y <= e and (x, y) != (b, e) for x, y in points)
    }
    assert set(names(found.frontier)) == slow
    errors = [one.value(LOWER) or 0.0 for one in found.frontier]
    assert all(a >= b for a, b in pairwise(errors))  # who promises less must err less, or not be there


def test_the_best_at_each_bound_and_why() -> None:
    strict, loose = compare(STRICT, LOOSE, BEATEN).best
    assert (strict.bound, strict.policy) == (0.2, "strict")
    assert strict.reason == "its relative-error is 0.5 ± 0.14; no other policy promises as much"
    assert (loose.bound, loose.policy) == (0.5, "loose")
    assert loose.reason == "its relative-error is 0.1 ± 0; the next policy beaten has 0.3 ± 0"


def test_a_difference_within_the_noise_of_the_draws_is_called_none() -> None:
    """Means 0.5 and 0.6 whose standard errors are 0.1 each: within 2·√0.02 = 0.28."""
    near = standing("near", "1/5", [0.5, 0.7])
    (best,) = compare(STRICT, near).best
    assert best.policy == "strict"
    assert "near has 0.6 ± 0.14 (no clear difference: within two standard errors)" in best.reason
    far = standing("far", "1/5", [0.9, 0.9])
    (best,) = compare(STRICT, far).best
    assert "far has 0.9 ± 0" in best.reason
    assert "no clear difference" not in best.reason


def test_a_baseline_that_errs_less_is_named_with_what_it_does_not_keep() -> None:
    own = standing("own", "1/2", [0.5], smallest="1/20")
    baseline = standing("Anatomy", "1/2", [0.2], is_baseline=True)
    weaker = standing("UP", "3/5", [0.1], is_baseline=True)
    (best,) = compare(own, baseline, weaker).best
    assert "but the baseline Anatomy has 0.2" in best.reason
    assert "UP" not in best.reason  # it promises less
    assert best.reason.endswith("no baseline keeps its lower thresholds, down to 0.05")


def test_what_has_no_value_is_not_ranked_but_listed() -> None:
    impossible = standing("impossible", "1/9", [], reason="no release can keep it")
    endless = standing("endless", "1/5", [math.inf])
    found = compare(impossible, endless, LOOSE)
    assert names(found.ranked) == ["loose"]
    assert found.is_feasible
    assert not compare(impossible).is_feasible
    assert compare(impossible).best == ()
    described = {row["policy"]: row for row in found.to_dict()["policies"]}
    assert described["impossible"]["reason"] == "no release can keep it"
    for fact in ("frontier", "best"):
        assert [name for name, row in described.items() if row[fact]] == ["loose"]


def test_the_json_of_a_comparison_by_hand() -> None:
    found = compare(STRICT, standing("suppress-all", "1/9", [], is_baseline=True)).to_dict()
    assert found["private"] is True
    assert found["workload"] == {"name": "own", "questions": 1, "cells": 1}
    assert (found["seeds"], found["ranked_by"]) == (2, "relative-error")
    strict, nothing = (row for row in found["results"] if row["metric"] == "relative-error")
    assert [row["metric"] for row in found["results"]] == ["relative-error", "outright"] * 2
    assert strict["value"] == pytest.approx(0.5)
    assert strict["spread"] == pytest.approx(math.sqrt(0.02))
    assert strict["values"] == pytest.approx([0.4, 0.6])
    assert nothing == {
        "policy": "suppress-all",
        "metric": "relative-error",
        "value": None,
        "spread": None,
        "values": [],
    }
    assert [row["policy"] for row in found["best"]] == ["strict"]
    (first, _) = found["policies"]
    assert {key: first[key] for key in ("bound", "bound_is", "bound_on", "mechanism", "method")} == {
        "bound": 0.2,
        "bound_is": "1/l",
        "bound_on": "a value",
        "mechanism": "bucketize",
        "method": "optimal",
    }


def placed(n: int, seed: int) -> tuple[Frame, list[dict[str, Any]]]:
    rng = np.random.default_rng(seed)
    standings = [
        standing(f"policy {i}", f"{int(bound)}/20", [value, value])
        for i, (bound, value) in enumerate(zip(rng.integers(1, 20, n), rng.random(n) + 0.01, strict=True))
    ]
    comparison = compare(*standings)
    frame = Frame.around(comparison)
    return frame, frame.points(comparison)


@pytest.mark.parametrize("is_log", [True, False])
def test_numbers_and_pixels_are_each_others_inverse(is_log: bool) -> None:
    frame = Frame(x_max=1.0, y_min=0.01 if is_log else 0.0, y_max=4.0, is_log=is_log, y_title=("y",))
    for value in (0.01, 0.2, 1.0, 4.0):
        assert frame.value(frame.pixel(value)) == pytest.approx(value)
    assert frame.pixel(4.0) == pytest.approx(360)
    assert frame.pixel(frame.y_min) == 0
    assert frame.pixel(-5.0) == 0  # below the axis is on it


def test_marks_are_1_2_and_5_on_a_log_and_even_steps_otherwise() -> None:
    log = Frame(x_max=1.0, y_min=0.03, y_max=2.0, is_log=True, y_title=("y",))
    assert log.ticks() == pytest.approx([0.05, 0.1, 0.2, 0.5, 1.0, 2.0])
    even = Frame(x_max=1.0, y_min=0.0, y_max=1.15, is_log=False, y_title=("y",))
    # an eighth of 1.15 is 0.14, rounded up to 0.2
    assert even.ticks() == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])


@pytest.mark.parametrize("seed", range(6))
def test_no_label_covers_another(seed: int) -> None:
    """Up to a dozen policies anywhere: labels of one height never overlap from side to side."""
    frame, points = placed(12, seed)
    spans = []
    for point in points:
        at = frame.across(point["bound"])
        spans.append((*label_span(point["side"], point, at), frame.pixel(point["label"])))
    for i, (left, right, height) in enumerate(spans):
        assert left >= 0
        for other_left, other_right, other in spans[:i]:
            assert right <= other_left or other_right <= left or abs(height - other) >= 14 - 1e-6
