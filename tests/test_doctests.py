"""Every example in a docstring runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pyarrow as pa
import pytest

import dalenius

NAMES = [module.name for module in pkgutil.walk_packages(dalenius.__path__, "dalenius.")]


@pytest.mark.parametrize("name", NAMES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"pa": pa}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0
