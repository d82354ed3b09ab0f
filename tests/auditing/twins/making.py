"""What twins are, and the real releases that they are made from."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dalenius
from dalenius.policy import Policy
from dalenius.release.manifest import Manifest
from tests.auditing.releases import sign

Array = np.ndarray[Any, Any]
Rng = np.random.Generator
Made = tuple[Path, pa.Table]
"""A release and its original."""
_MADE: dict[str, Path] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A release with one flaw."""

    name: str
    caught_by: str
    """The attack that must see it; others may, too."""
    make: Callable[[Path], Made]
    """From a folder."""


def twin(name: str, caught_by: str, make: Callable[..., Made], *given: Any, **more: Any) -> Twin:
    """With what its maker needs besides the folder."""
    return Twin(name=name, caught_by=caught_by, make=lambda folder: partial(make, folder)(*given, **more))


def publish(
    folder: Path,
    table: pa.Table,
    promise: dict[str, Any],
    mechanism: dict[str, Any],
    *,
    suppress: str | None = None,
    sensitive: str = "disease",
    domains: dict[str, Any] | None = None,
) -> Path:
    """A real release of the table, to be changed; it is made once and copied."""
    key = json.dumps([promise, mechanism, suppress, table.num_rows, table.column_names])
    if key not in _MADE:
        target = Path(tempfile.mkdtemp()) / "r"
        quasi = [name for name in table.column_names if name != sensitive]
        policy = Policy.from_dict(
            {
                "source": table,
                "release": str(target),
                "columns": {"quasi": quasi, "sensitive": [sensitive]},
                "promise": promise,
                "mechanism": mechanism,
                **({"suppress": {"method": suppress}} if suppress else {}),
                **({"domains": domains} if domains else {}),
            }
        )
        _MADE[key] = dalenius.publish(policy, seed=3).path
    shutil.copytree(_MADE[key], folder / "r")
    return folder / "r"


def manifest_of(path: Path) -> Manifest:
    return dalenius.open_release(path).stored.manifest


def write(path: Path, name: str, table: pa.Table) -> None:
    """Another table in place of one of the release."""
    before = pq.read_schema(path / f"{name}.parquet")
    pq.write_table(table.select(before.names).cast(before), path / f"{name}.parquet", store_schema=False)
    sign(path)


def has(table: pa.Table, column: str, cell: str) -> Array:
    """Whose cell it is."""
    return np.asarray(np.array(table[column].to_pylist()) == cell)
