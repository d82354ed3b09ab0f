"""FRAPP, as the contract suite publishes it."""

from __future__ import annotations

from tests.mechanisms.tuples.views import view

SUBJECTS = [
    view("frapp", {"d": 0.01}, {"method": "frapp", "domains": "active"}, fewest_rows=2, spark="connect"),
]
