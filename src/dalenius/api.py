"""The words of the command line, in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dalenius.ask.answer import Answer
from dalenius.ask.asking import ask, ask_many
from dalenius.attacks.auditing import audit_release
from dalenius.attacks.result import Audit
from dalenius.engines.base import Engine
from dalenius.engines.choosing import engine_named
from dalenius.export import Exported, export_release
from dalenius.mechanisms.base import Plan
from dalenius.policy import Policy
from dalenius.publishing import make_plan, write_release
from dalenius.release import series
from dalenius.release.reader import StoredRelease
from dalenius.release.verify import Verdict, verify_release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Release:
    """A release that can be asked and verified; it needs nothing but its folder."""

    stored: StoredRelease

    @property
    def path(self) -> Path:
        """The folder."""
        return self.stored.path

    @property
    def manifest(self) -> dict[str, Any]:
        """The release's description of itself."""
        return self.stored.manifest

    def ask(
        self,
        sql: str,
        *,
        confidence: float = 0.95,
        estimator: str | None = None,
        tables: Mapping[str, pa.Table] | None = None,
        consistent: bool = False,
    ) -> Answer:
        """Answer a question with its error bars, e.g. `SELECT COUNT(*) FROM t WHERE age > 60`."""
        return ask(
            self.stored, sql, confidence=confidence, estimator=estimator, tables=tables, consistent=consistent
        )

    def ask_many(
        self, sqls: Iterable[str], *, confidence: float = 0.95, estimator: str | None = None
    ) -> list[Answer]:
        """Answer many questions faster than one by one."""
        return ask_many(self.stored, list(sqls), confidence=confidence, estimator=estimator)

    def export(self, target: str | Path, *, name: str | None = None, columns: Sequence[str] = ()) -> Exported:
        """Write the tables and a view with weights to PostgreSQL, a `.duckdb` file, or a folder for CSV."""
        return export_release(self.stored, target, name=name, columns=columns)

    def verify(self, *, strict: bool = False) -> Verdict:
        """Check files, tables and promise."""
        return verify_release(self.stored, strict=strict)


def plan(policy: Policy | str | Path, *, engine: str | Engine | None = None) -> Plan:
    """What a policy would publish, from counts alone; raises PromiseNotMet where no release can exist."""
    return make_plan(_policy(policy), engine=_engine(engine))


def publish(
    policy: Policy | str | Path, *, seed: int | None = None, engine: str | Engine | None = None
) -> Release:
    """Publish a table. A seed makes the run repeatable, and the release unfit for publication.

    The engine is `"local"` or `"spark"`; if none is given, Spark publishes PySpark data frames.
    """
    return Release(stored=write_release(_policy(policy), seed=seed, engine=_engine(engine)).release)


def open_release(path: str | Path) -> Release:
    """Open a release folder, or a folder of the releases of one series."""
    return Release(stored=series.open_release(path))


def verify(path: str | Path, *, strict: bool = False) -> Verdict:
    """Check a release folder from itself alone."""
    return open_release(path).verify(strict=strict)


def audit(
    path: str | Path,
    original: Policy | str | Path | Any,
    *,
    also: Iterable[str | Path] = (),
    seed: int | None = None,
) -> Audit:
    """Attack a release folder with the original at hand: its table, or the policy that published it."""
    others = [StoredRelease.open(other) for other in also]
    return audit_release(StoredRelease.open(path), original, also=others, seed=seed)


def _engine(engine: str | Engine | None) -> Engine | None:
    return engine_named(engine) if isinstance(engine, str) else engine


def _policy(policy: Policy | str | Path) -> Policy:
    return policy if isinstance(policy, Policy) else Policy.from_file(policy)
