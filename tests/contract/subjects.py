"""The mechanisms that must pass the contract suite, found in the folders of their tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from tests.contract.subject import Subject

_TESTS = Path(__file__).parent.parent


def _collected() -> Iterator[Subject]:
    """What every file of this name, but for this one, lists as its SUBJECTS."""
    for path in sorted(_TESTS.rglob(Path(__file__).name)):
        if path != Path(__file__):
            module = ".".join(path.relative_to(_TESTS.parent).with_suffix("").parts)
            yield from import_module(module).SUBJECTS


def _on_spark(how: str) -> list[Subject]:
    return [
        replace(subject, name=f"{subject.name}, on Spark", engine="spark")
        for subject in SUBJECTS
        if subject.spark == how
    ]


SUBJECTS = list(_collected())
BUILT_IN = [subject for subject in SUBJECTS if subject.package is None]
SPARK_SUBJECTS = _on_spark("contract")
ALSO_ON_SPARK = _on_spark("connect")
