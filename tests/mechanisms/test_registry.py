"""Mechanisms are found by their names, those of other packages too."""

from __future__ import annotations

from pathlib import Path

import pytest

from dalenius.errors import InternalError
from dalenius.mechanisms import registry


def test_every_mechanism_has_the_room_that_publishes() -> None:
    for kind in registry.kinds():
        for method in (None, *registry.methods(kind)):
            assert registry.room(kind, method, "mechanism").MECHANISM.kind == kind


def test_a_method_without_rooms_of_its_own_has_those_of_its_kind() -> None:
    assert registry.room("alpha-beta", "frapp", "mechanism").__name__ == "dalenius.mechanisms.frapp.mechanism"
    assert registry.room("alpha-beta", "alpha-beta", "mechanism") is registry.room(
        "alpha-beta", None, "mechanism"
    )


def test_what_nobody_knows_is_not_found() -> None:
    assert registry.package_of("unheard") is None
    assert registry.find_room("unheard", None, "mechanism") is None
    assert registry.find_room("perturb", None, "unheard") is None
    with pytest.raises(InternalError, match="no room 'unheard'"):
        registry.room("perturb", None, "unheard")


def test_a_mechanism_joins_while_the_block_lasts() -> None:
    with registry.register("joined", "dalenius.mechanisms.perturb"):
        assert registry.room("joined", None, "mechanism").MECHANISM.kind == "perturb"
        assert "joined" in registry.kinds()
    assert registry.package_of("joined") is None


def test_an_installed_package_joins_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[dalenius.mechanisms]\ntheirs = their_rooms\n")
    (tmp_path / "their_rooms").mkdir()
    (tmp_path / "their_rooms" / "__init__.py").touch()
    (tmp_path / "their_rooms" / "config.py").write_text("CONFIG = 'theirs'\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert list(registry.kinds()) == ["bucketize", "perturb", "alpha-beta", "theirs"]
    assert registry.room("theirs", "any", "config").CONFIG == "theirs"
    assert registry.find_room("theirs", "any", "answer") is None
