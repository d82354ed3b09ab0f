"""From a policy to a plan, and from a plan to a release."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dalenius.engines.base import Engine, OpenedTable, Progress, silent
from dalenius.engines.local import LocalEngine, engine_errors
from dalenius.errors import InternalError, PolicyError
from dalenius.mechanisms.base import Draft, Mechanism, Plan
from dalenius.mechanisms.registry import MECHANISMS
from dalenius.policy import Policy
from dalenius.randomness import Randomness
from dalenius.release.manifest import build_manifest, describe_file
from dalenius.release.reader import StoredRelease
from dalenius.release.verify import check_promise
from dalenius.release.writer import SPILL, new_release, refuse_existing, write_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What `publish` did."""

    release: StoredRelease
    n_rows: int
    n_published: int
    n_suppressed: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As `publish --json` prints it."""
        return {
            "release": str(self.release.path),
            "rows": self.n_rows,
            "published": self.n_published,
            "suppressed": self.n_suppressed,
            "posterior": None,
            "seconds": round(self.seconds, 3),
        }


def make_plan(policy: Policy, *, engine: Engine | None = None, progress: Progress = silent) -> Plan:
    """What would be published; nothing is written."""
    with (engine or LocalEngine()).open(policy, None, progress) as scan:
        return _mechanism(policy).plan(policy, scan)


def write_release(
    policy: Policy, *, seed: int | None = None, engine: Engine | None = None, progress: Progress = silent
) -> Published:
    """Plan, draw, write, check what was written, and only then let it appear under its name."""
    started = time.monotonic()
    if policy.release is None:
        raise PolicyError(
            "the policy does not say where the release goes", hint='release = "patients.release"'
        )
    refuse_existing(policy.release)
    randomness = Randomness.fresh() if seed is None else Randomness.seeded(seed)
    mechanism = _mechanism(policy)
    with engine_errors(), new_release(policy.release) as folder:
        with (engine or LocalEngine()).open(policy, folder / SPILL, progress) as scan:
            plan = mechanism.plan(policy, scan)
            draft = mechanism.draft(policy, plan, randomness)
            _write_tables(policy, draft, scan, folder, is_seeded=randomness.is_seeded)
        _recheck(folder)
    return Published(
        release=StoredRelease.open(policy.release),
        n_rows=plan.n_rows,
        n_published=draft.n_published,
        n_suppressed=draft.n_suppressed,
        seconds=time.monotonic() - started,
    )


def _mechanism(policy: Policy) -> Mechanism:
    return MECHANISMS[policy.mechanism.kind]


def _write_tables(policy: Policy, draft: Draft, scan: OpenedTable, folder: Path, *, is_seeded: bool) -> None:
    tables = []
    for table in draft.tables:
        path = folder / f"{table.name}.parquet"
        tables.append(describe_file(path, table.name, scan.write(table, path)))
    write_manifest(folder, build_manifest(policy, draft, scan.schema, tables, is_seeded=is_seeded))


def _recheck(folder: Path) -> None:
    """The promise, checked on what was really written, before anybody can see it."""
    failed = [check for check in check_promise(StoredRelease.open(folder)) if not check.ok]
    if failed:
        raise InternalError(
            f"what was written does not keep the promise ({failed[0].detail}); it was removed",
            hint="this is a bug in Dalenius: please report it",
        )
