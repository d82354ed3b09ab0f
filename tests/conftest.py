"""Shared fixtures: small tables, policies, and where the real microdata is."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings

from dalenius.demo_data import hospital

_LEDGERS = tempfile.TemporaryDirectory()
os.environ["DALENIUS_LEDGER"] = str(Path(_LEDGERS.name) / "ledger")  # also for what modules copy on import

settings.register_profile("dalenius", deadline=None, derandomize=True)
settings.load_profile("dalenius")

PROJECT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real microdata, which a clone does not have."""
    folder = Path(os.environ.get("DALENIUS_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real microdata at {folder}; set DALENIUS_DATA to its folder")
    return folder


def _new_ledger(factory: pytest.TempPathFactory) -> Path:
    return factory.getbasetemp() / "ledgers" / secrets.token_hex(8)


@pytest.fixture(scope="module", autouse=True)
def ledger_of_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fixtures that several tests share do not write to the user's ledger."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DALENIUS_LEDGER", str(_new_ledger(tmp_path_factory)))
        yield


@pytest.fixture(autouse=True)
def ledger_of_test(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nor do tests; each has a ledger of its own, made when it is needed."""
    path = _new_ledger(tmp_path_factory)
    monkeypatch.setenv("DALENIUS_LEDGER", str(path))
    return path


@pytest.fixture(scope="session")
def patients() -> pa.Table:
    """A small synthetic hospital."""
    return hospital(3_000)
