"""One machine: DuckDB scans, sorts and spills; kernels see Arrow batches of a fixed size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from dalenius.engines.base import Progress
from dalenius.engines.local.errors import engine_errors
from dalenius.engines.local.scan import LocalScan
from dalenius.engines.local.source import Background, find_relation, prepare
from dalenius.engines.preparing import count_outside, refuse_outside, refuse_types, refuse_units
from dalenius.policy import Policy
from dalenius.sql import connect, count, identifier, one_row


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Publishes on this machine."""

    name = "local"

    @contextmanager
    def open(self, policy: Policy, spill: Path | None, progress: Progress) -> Iterator[LocalScan]:
        """Open the source, recode it, and refuse what no promise could cover."""
        with engine_errors(), connect(spill) as connection, Background(connection) as background:
            relation = find_relation(connection, policy, spill)
            _check_recodes(connection, policy, relation)
            _check_units(connection, policy, relation)
            helper = background if spill is not None and background.sees(policy.source) else None
            source = prepare(connection, helper, policy, relation, progress)
            yield LocalScan(source=source, spill=spill)


def _check_recodes(connection: duckdb.DuckDBPyConnection, policy: Policy, relation: str) -> None:
    if not policy.recode and policy.columns.weight is None:
        return
    described = connection.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()
    refuse_types(policy, {name: kind for name, kind, *_ in described})
    if policy.recode:
        refuse_outside(policy.recode, one_row(connection, count_outside(policy.recode, relation)))


def _check_units(connection: duckdb.DuckDBPyConnection, policy: Policy, relation: str) -> None:
    if policy.columns.unit is None:
        return
    unit = identifier(policy.columns.unit)
    unknown = count(connection, f"SELECT count(*) FROM {relation} WHERE {unit} IS NULL")
    repeated = count(
        connection,
        f"SELECT count(*) FROM (SELECT {unit} FROM {relation} GROUP BY {unit} HAVING count(*) > 1)",
    )
    refuse_units(policy.columns.unit, unknown, repeated)
