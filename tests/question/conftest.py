"""The table of patients and its releases, which questions are asked of elsewhere too."""

from __future__ import annotations

from tests.ask.conftest import clear_release, regions, release, table

__all__ = ["clear_release", "regions", "release", "table"]
