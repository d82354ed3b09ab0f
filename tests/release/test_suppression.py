"""`verify` sees a suppression that does not fit what is published, and numbers that do not add up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dalenius
from tests.mechanisms.suppress.test_stage import EXAMPLE, policy_of
from tests.release.test_verify import edit_manifest, failed


def suppression(manifest: dict[str, Any]) -> dict[str, Any]:
    return dict(manifest["promise"])["suppression"]  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("safe", lambda m: m["promise"].pop("suppression")),
        ("safe", lambda m: m["rows"].update(suppressed=1)),  # too few for l values to be candidates
        ("safe", lambda m: suppression(m)["posterior"].update(exact="1/4", value=0.25)),
        ("exact", lambda m: suppression(m)["posterior"].update(exact="1/2", value=0.5)),
        ("exact", lambda m: suppression(m)["posterior"].update(exact=None, value=0.4)),
        ("exact", lambda m: suppression(m).update(method="safe")),  # two values on top, not three
    ],
)
def test_what_does_not_fit_the_method_is_seen(
    method: str, change: Callable[[dict[str, Any]], Any], tmp_path: Path
) -> None:
    release = dalenius.publish(policy_of(EXAMPLE, method, release=tmp_path / "r"))
    assert failed(release) == []
    edit_manifest(release, change)
    assert failed(release) == ["suppression"]


def test_a_wrong_number_of_published_records_is_seen(tmp_path: Path) -> None:
    release = dalenius.publish(policy_of(EXAMPLE, "safe", release=tmp_path / "r"))
    edit_manifest(release, lambda manifest: manifest["rows"].update(published=9))
    assert failed(release) == ["records"]
