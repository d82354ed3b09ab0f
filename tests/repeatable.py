"""Keys that differ from draw to draw but repeat from run to run: no test fails by chance in one run only.

What a test or fixture publishes without a seed is keyed with its own name and a count, whatever order the
tests run in. Only keys from the operating system are replaced; streams, mechanisms and files are real.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from dalenius.randomness import Randomness


class RepeatableKeys:
    """A pytest plugin: the keys of whatever test or fixture is running."""

    def __init__(self) -> None:
        self._owners = [("", count())]

    def key(self) -> bytes:
        name, counter = self._owners[-1]
        return hashlib.sha256(f"test key {next(counter)} of {name}".encode()).digest()

    @contextmanager
    def _owned_by(self, name: str) -> Iterator[None]:
        self._owners.append((name, count()))
        try:
            yield
        finally:
            self._owners.pop()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        param = getattr(request, "param_index", 0)
        scope = request.node.nodeid if fixturedef.scope == "function" else fixturedef.baseid
        with self._owned_by(f"{scope} {fixturedef.argname} {param}"):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[Any]:
        with self._owned_by(item.nodeid):
            return (yield)


def install(config: pytest.Config) -> None:
    """From now on `Randomness.fresh` gives repeatable keys in this process."""
    keys = RepeatableKeys()
    config.pluginmanager.register(keys)
    Randomness.fresh = classmethod(lambda cls: cls(key=keys.key()))  # type: ignore[assignment,method-assign]
