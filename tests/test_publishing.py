"""Arrow's memory comes from the C library while a table is published, and only then."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dalenius.publishing import keep_memory


def test_the_usual_pool_is_back_after_all_ends() -> None:
    usual = pa.default_memory_pool().backend_name
    with keep_memory():
        assert pa.default_memory_pool().backend_name == "system"
    assert pa.default_memory_pool().backend_name == usual
    with pytest.raises(KeyError), keep_memory():
        raise KeyError
    assert pa.default_memory_pool().backend_name == usual


def test_tables_may_be_published_at_once() -> None:
    usual = pa.default_memory_pool().backend_name
    one, other = keep_memory(), keep_memory()
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert pa.default_memory_pool().backend_name == "system", "the other is not done"
    other.__exit__(None, None, None)
    assert pa.default_memory_pool().backend_name == usual
