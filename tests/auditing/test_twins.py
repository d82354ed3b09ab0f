"""Every broken twin is caught by the attack that is meant for it, and honest releases are not accused."""

from __future__ import annotations

from pathlib import Path

import pytest

import dalenius
from dalenius.mechanisms.registry import find_room
from dalenius.randomness import Randomness
from dalenius.release.folder import StoredRelease
from dalenius.threats.chance import FALSE_ALARM, SHARE, SHARES
from dalenius.threats.original import Subject
from dalenius.threats.result import Audit
from tests.auditing.twins import HONEST, TWINS, Twin
from tests.auditing.twins.buckets import buckets
from tests.auditing.twins.making import Made
from tests.auditing.twins.perturbed import perturbed
from tests.auditing.twins.views import honest_frapp, honest_view, viewed

EXACT = {"metadata", "eligibility", "another prior", "several views", "two releases"}
"""Attacks with a bound that leave nothing to chance."""


def broken(audit: Audit) -> set[str]:
    return {attack.name for attack in audit.attacks if attack.holds is False}


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.name)
def test_a_broken_twin_is_caught(twin: Twin, tmp_path: Path) -> None:
    release, table = twin.make(tmp_path)
    audit = dalenius.audit(release, table, seed=1)
    assert twin.caught_by in broken(audit)
    found = audit.named(twin.caught_by)
    assert found.recommendation


def test_there_are_enough_twins_and_each_law_has_some() -> None:
    assert len(TWINS) >= 40
    assert len({twin.name for twin in TWINS}) == len(TWINS)
    laws = {
        "dealing",
        "numbers",
        "places",
        "fakes",
        "withholding",
        "values",
        "parts",
        "order",
        "keeping",
        "noise",
    }
    assert {f"law of {law}" for law in laws} <= {twin.caught_by for twin in TWINS}


@pytest.mark.parametrize("twin", HONEST, ids=lambda twin: twin.name)
def test_what_is_made_the_same_way_without_a_flaw_is_not_accused(twin: Twin, tmp_path: Path) -> None:
    """And whatever is judged by chance has its share of the false alarm of the audit."""
    release, table = twin.make(tmp_path)
    audit = dalenius.audit(release, table, seed=1)
    assert not broken(audit), [audit.named(name).detail for name in broken(audit)]
    judged = [attack for attack in audit.attacks if attack.p_value is not None]
    assert all((attack.p_value or 0.0) > SHARE for attack in judged)
    assert len(judged) * SHARE <= FALSE_ALARM
    assert len(judged) <= SHARES
    others = {attack.name for attack in audit.attacks if attack.holds is not None and attack.p_value is None}
    assert others <= EXACT


def _honest(kind: str, folder: Path, seed: int) -> Made:
    if kind == "buckets":
        return buckets(folder, n_rows=100 + 100 * (seed % 4), seed=seed)
    if kind == "view":
        return viewed(folder, honest_view, n_tuples=1_000, seed=seed)
    if kind == "frapp":
        return viewed(folder, honest_frapp, n_tuples=1_000, method="frapp", seed=seed)
    if kind == "parts":
        return perturbed(folder, method="small-domain", seed=seed)
    return perturbed(folder, seed=seed, n_rows=600)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "times"), [("buckets", 150), ("uniform", 170), ("parts", 50), ("view", 60), ("frapp", 70)]
)
def test_five_hundred_honest_audits_are_silent(kind: str, times: int, tmp_path: Path) -> None:
    """The attacks of an audit without what comes before them: the tables are small, and made here."""
    for seed in range(times):
        folder = tmp_path / str(seed)
        folder.mkdir()
        release, table = _honest(kind, folder, seed)
        stored = StoredRelease.open(release)
        room = find_room(stored.mechanism, stored.method, "attacks")
        assert room is not None
        subject = Subject(release=stored, original=table, also=(), randomness=Randomness.seeded(seed))
        audit = Audit.of(room.attack(subject))
        assert audit.ok, (seed, broken(audit))
