"""The views that the contract suite publishes."""

from __future__ import annotations

from tests.mechanisms.tuples.views import view

SUBJECTS = [
    view(
        "distinct, declared",
        {"d": 0.01},
        {"duplicates": "distinct"},
        declares_domains=True,
        spark="contract",
    ),
    view("distinct, active", {"k": 0.25}, {"duplicates": "distinct", "domains": "active"}, fewest_rows=2),
    view("copies", {"d": 0.01}, {"duplicates": "copies", "domains": "active"}, spark="connect"),
]
