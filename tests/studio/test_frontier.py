"""The picture on the page of choices: every mark has its name, and screen readers get the numbers."""

from __future__ import annotations

import pytest

from dalenius.studio.frontier import draw_frontier
from dalenius.studio.steps.choose import card
from dalenius.web.page import to_text, unpack
from tests.evaluate.test_frontier_chart import CROWDED, comparison, standing

LETTER = 6
"""Pixels, about."""


@pytest.mark.parametrize("kind", ["wide", "narrow"])
def test_every_mark_has_its_name_and_the_numbers_are_told(kind: str) -> None:
    (figure,) = unpack([draw_frontier(CROWDED)])
    svg = figure.find(f"svg[@class='{kind}']")
    assert svg is not None
    texts = svg.findall("text[@class='name']")
    names = {text.text for text in texts}
    assert len(svg.findall("circle")) == len(CROWDED.ranked) == len(names)
    assert "policy 0 (best)" in names
    assert "Laplace: at most 0.25, off by 2" in svg.attrib["aria-label"]
    steps = svg.find("path")
    assert steps is not None
    assert steps.attrib["d"].startswith("M")
    width = float(svg.attrib["viewBox"].split()[2])
    assert width <= (800 if kind == "wide" else 360)
    for text in texts:
        at, length = float(text.attrib["x"]), LETTER * len(text.text or "")
        begin = at - length if text.attrib["text-anchor"] == "end" else at
        assert begin >= 0
        assert begin + length <= width


def test_without_anything_safe_there_is_no_frontier_to_draw() -> None:
    from dataclasses import replace

    open_one = replace(standing("open", "bucketize", "1/2", 0.1), outright=3)
    assert "<path" not in draw_frontier(comparison(open_one))


def test_a_card_says_the_worst_case_and_what_is_not_stopped() -> None:
    found = {
        "feasible": True,
        "best": True,
        "bound": 0.05,
        "bound_on": "a person's sensitive value",
        "outright": 7,
        "published": 1998,
        "not_covered": ["whether a person is in the table"],
        "relative-error": 0.12,
    }
    policy = {"promise": {"kind": "l-diversity", "l": 20}}
    asked = {"kind": "f-privacy", "values": {"HIV": "1/30"}}
    shown = to_text(card("secret", "bucketize", policy, found, is_chosen=False, asked=asked))
    for text in (
        "Choosing it gives up yours: f-privacy; HIV at most 1/30.",
        "becomes at most 5 in 100 sure of a person's sensitive value.",
        "1,998",
        "7 people's value would be certain",
        "What it does not stop",
        "whether a person is in the table",
        "12",
    ):
        assert text in shown
    same = to_text(card("secret", "bucketize", policy, found, is_chosen=False, asked=policy["promise"]))
    assert "gives up yours" not in same
