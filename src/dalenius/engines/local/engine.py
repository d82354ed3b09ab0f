"""One machine: DuckDB scans, sorts and spills; kernels see Arrow batches of a fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dalenius.engines.base import Progress
from dalenius.engines.local.errors import engine_errors
from dalenius.engines.local.scan import LocalScan
from dalenius.engines.local.source import Background, open_source
from dalenius.policy import Policy
from dalenius.sql import connect


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Publishes on this machine."""

    name = "local"

    @contextmanager
    def open(self, policy: Policy, spill: Path | None, progress: Progress) -> Iterator[LocalScan]:
        """Open the source, recode it, and refuse what no promise could cover."""
        with engine_errors(), connect(spill) as connection, Background(connection) as background:
            yield LocalScan(source=open_source(connection, background, policy, spill, progress), spill=spill)
