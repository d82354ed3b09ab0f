"""What reaches the operating system is tested with both of its sides."""

from __future__ import annotations

import pytest

from tests.system.swapped import SIDES, swap_in_windows

ON_BOTH_SIDES = {"test_folder", "test_ledger", "test_draft"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.module.__name__.rpartition(".")[2] in ON_BOTH_SIDES:
        metafunc.fixturenames.append("side")
        metafunc.parametrize("side", SIDES, indirect=True)


@pytest.fixture
def side(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The operating system's side; Windows' with its rule for open files."""
    if request.param == "windows":
        swap_in_windows(monkeypatch)
    chosen: str = request.param
    return chosen
