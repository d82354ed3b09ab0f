"""What holds around publishing: where Arrow's memory comes from, and what may fail when it is done."""

from __future__ import annotations

import errno
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dalenius
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


def test_a_release_that_has_its_name_is_not_called_unpublished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files cannot be read there: it is published all the same, and in the ledger."""
    target, usual = tmp_path / "r", io.open

    def refuse(file: Any, *options: Any, **named: Any) -> Any:
        if isinstance(file, Path) and file.parent == target:
            raise OSError(errno.EIO, "Input/output error")
        return usual(file, *options, **named)

    table = pa.table({"age": [30, 40, 50, 60], "disease": ["flu", "cold", "flu", "cold"]})
    promise = {"kind": "l-diversity", "l": 2}
    columns = {"quasi": ["age"], "sensitive": ["disease"]}
    policy = {"source": table, "release": str(target), "columns": columns, "promise": promise}
    with monkeypatch.context() as patched:
        patched.setattr(io, "open", refuse)
        published = dalenius.publish(dalenius.Policy.from_dict(policy), yes=True)
        with pytest.raises(OSError, match="Input/output"):
            (target / "manifest.json").read_bytes()
    assert published.path == target
    assert published.manifest == dalenius.open_release(target).manifest
