"""Roulette, as the contract suite publishes it."""

from __future__ import annotations

from tests.contract.subject import Subject

SUBJECTS = [
    Subject(
        name="roulette",
        promise={"kind": "rho-privacy", "rho1": "max", "rho2": "9/10"},
        mechanism={"kind": "roulette", "spin": "1/2"},
        record_table="data",
        allows_certainty=False,
        package=__package__,
        spark="contract",
    )
]
