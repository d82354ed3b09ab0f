"""Shared fixtures: small tables, policies, and where the real microdata is."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings

from dalenius.demo_data import hospital

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


@pytest.fixture(scope="session")
def patients() -> pa.Table:
    """A small synthetic hospital."""
    return hospital(3_000)
