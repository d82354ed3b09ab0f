"""What the subjects of the contract suite need."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def started(request: pytest.FixtureRequest) -> None:
    """Spark, for the subjects that need it."""
    if "subject" in request.fixturenames and request.getfixturevalue("subject").engine == "spark":
        request.getfixturevalue("spark")
