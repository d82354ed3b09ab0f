"""The picture: it is drawn in every format, and no label covers another."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import pytest

from dalenius.errors import InputError
from dalenius.evaluate.compare import Comparison, Standing
from dalenius.evaluate.contender import Contender
from dalenius.evaluate.frontier import Frame, draw_frontier, label_span
from dalenius.evaluate.measures import MEASURES
from dalenius.evaluate.metrics import Spread
from dalenius.promises.bounds import Bound


def standing(name: str, kind: str, bound: str, value: float, *, is_baseline: bool = False) -> Standing:
    contender = Contender(
        name=name,
        kind=kind,
        method="",
        bound=Bound(largest=Fraction(bound), symbol="", meaning=""),
        is_baseline=is_baseline,
    )
    spreads = {"relative-error": Spread.of([0.9 * value, 1.1 * value])}
    return Standing(contender=contender, spreads=spreads if value >= 0 else {})


def comparison(*standings: Standing) -> Comparison:
    measures = (MEASURES["relative-error"],)
    return Comparison(
        workload="anatomy", n_questions=9, n_cells=9, n_seeds=2, measures=measures, standings=standings
    )


CROWDED = comparison(
    *(standing(f"policy {i}", "bucketize", "1/4", 0.1 + i / 1000) for i in range(6)),
    standing("perturbed", "perturb", "1/3", 0.5),
    standing("Laplace", "laplace", "1/4", 2.0, is_baseline=True),
    standing("suppress-all", "nothing", "1/5", 1.0, is_baseline=True),
)


@pytest.mark.parametrize("suffix", [".svg", ".png", ".html"])
def test_the_frontier_is_drawn_in_every_format(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"frontier{suffix}"
    draw_frontier(CROWDED, path)
    content = path.read_bytes()
    assert len(content) > 5_000
    if suffix == ".svg":
        assert b"policy 0 (best)" in content
        assert b"largest probability that may be inferred" in content
        assert b"lower is better" in content
    if suffix == ".html":
        assert b"<script src=" not in content


def test_no_label_covers_another_and_each_is_near_its_mark() -> None:
    frame = Frame.around(CROWDED)
    points = frame.points(CROWDED)
    boxes = []
    for point in points:
        at = frame.across(point["bound"])
        boxes.append((*label_span(point["side"], point, at), frame.pixel(point["label"])))
        assert abs(frame.pixel(point["label"]) - frame.pixel(point["value"])) <= 3 * 14
    for (a, b, level), (c, d, other) in combinations(boxes, 2):
        assert b <= c or d <= a or abs(level - other) > 13
    alone = [p for p in points if p["name"] in ("perturbed", "Laplace", "suppress-all")]
    assert all(p["label"] == pytest.approx(p["value"]) for p in alone)
    assert json.dumps(points)


def test_probability_ends_at_one() -> None:
    assert Frame.around(comparison(standing("open", "bucketize", "9/10", 0.2))).x_max == 1
    assert Frame.around(comparison(standing("strict", "bucketize", "1/5", 0.2))).x_max == pytest.approx(0.25)


def test_what_is_zero_is_drawn_on_a_linear_axis(tmp_path: Path) -> None:
    exact = comparison(standing("exact", "bucketize", "1/4", 0.0), standing("b", "perturb", "1/4", 0.3))
    assert not Frame.around(exact).is_log
    draw_frontier(exact, tmp_path / "frontier.svg")
    with pytest.raises(InputError, match="nothing to draw"):
        draw_frontier(comparison(standing("none", "bucketize", "1/4", -1.0)), tmp_path / "none.svg")
    with pytest.raises(InputError, match=r"\.svg, \.png or \.html"):
        draw_frontier(exact, tmp_path / "frontier.pdf")
