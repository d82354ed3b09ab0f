"""Promises in plain words: every number that a manifest states, and nothing that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from dalenius.promises import PROMISES

ONE_IN_FIVE = {"kind": "l-diversity", "l": 5}
LIMITS = [
    {"value": ["HIV"], "at_most": "1/20"},
    {"value": ["Flu"], "at_most": "1"},
    {"value": [None], "at_most": "1/3"},
    {"value": ["Cold"], "at_most": "1/2"},
    {"value": ["Cough"], "at_most": "1/4"},
]
RHO = {"kind": "rho-privacy", "rho1": "1/13", "rho2": "1/6"}
D_GAMMA = {"kind": "d-gamma-privacy", "gamma": "1/5", "k": None, "d": "1/50", "adversary": "independent"}
SAID = [
    (ONE_IN_FIVE, ["any value of “disease” with more certainty than 1 in 5 (20 %)"]),
    (
        {"kind": "f-privacy", "thresholds": LIMITS},
        [
            "a value of “disease”",
            "strictest limits: HIV at most 5 %; Cough at most 25 %; NULL at most 33.3 %.",
        ],
    ),
    (
        {"kind": "proximity", "within": "10%", "at_most": "1/5"},
        ["within 10 % of the person's true “disease” with more certainty than 20 %."],
    ),
    (
        RHO,
        ["surer of it than 16.7 %", "It holds for every value that at most 7.7 % of the people have."],
    ),
    ({**RHO, "rho1": "max"}, ["It holds for every value."]),
    (
        {**RHO, "prior": "any", "prior_at_most": "1/13"},
        ["independent", "before seeing the person's published value, believes it with at most 16.7 %"],
    ),
    (
        D_GAMMA,
        [
            "independent of each other",
            "at most 2 % likely",
            "at most 20 % likely after seeing the published rows.",
        ],
    ),
    ({**D_GAMMA, "views": 3}, ["after seeing all 3 views that may ever be published."]),
]


@pytest.mark.parametrize(("promise", "said"), SAID)
def test_a_promise_says_its_numbers(promise: dict[str, Any], said: list[str]) -> None:
    words = PROMISES[promise["kind"]].in_words(promise, "“disease”")
    assert all(part in words for part in said), words
    assert words.endswith(".")


def test_a_value_without_a_limit_is_no_example() -> None:
    unlimited = {"kind": "f-privacy", "thresholds": [{"value": ["Flu"], "at_most": "1"}]}
    assert "strictest" not in PROMISES["f-privacy"].in_words(unlimited, "“disease”")


def test_a_value_cannot_turn_the_sentence_around() -> None:
    turned = {"kind": "f-privacy", "thresholds": [{"value": ["a\u202eb"], "at_most": "1/2"}]}
    assert "a\\u202eb at most 50 %" in PROMISES["f-privacy"].in_words(turned, "“disease”")
