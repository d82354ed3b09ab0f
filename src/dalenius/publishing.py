"""From a policy to a plan, and from a plan to a release."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dalenius.arrow_memory import kept_memory
from dalenius.engines.base import Engine, OpenedTable, Progress, silent
from dalenius.engines.local.errors import engine_errors
from dalenius.engines.registry import engine_for
from dalenius.errors import InternalError, PolicyError
from dalenius.mechanisms.base import Draft, Plan
from dalenius.mechanisms.repeated import Repeated
from dalenius.mechanisms.stages import mechanism_of, serial_mechanism
from dalenius.plain import plain_fields
from dalenius.policy import Policy
from dalenius.randomness import Randomness
from dalenius.release.batches import as_batch, batch_folder, next_batch
from dalenius.release.build import build_manifest
from dalenius.release.folder import SPILL, StoredRelease, new_release, refuse_existing
from dalenius.release.ledger import Entry, Ledger, open_ledger
from dalenius.release.manifest import Manifest, SeriesEntry, write_manifest
from dalenius.release.repetition import KnownTable, look_up, refuse_repetition, repetition
from dalenius.release.series import NextInSeries, next_folder, next_view
from dalenius.release.verify import check_promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What `publish` did."""

    release: StoredRelease = field(metadata={"json": None})
    n_rows: int = field(metadata={"json": "rows"})
    n_published: int = field(metadata={"json": "published"})
    n_suppressed: int | None = field(metadata={"json": "suppressed"})
    posterior: float | None
    """How sure an attacker can be of the commonest value of the source; None without suppression."""
    repeated: Repeated | None
    """What it tells together with earlier independent releases of the table; None if there are none."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As `publish --json` prints it."""
        return {
            "release": str(self.release.path),
            **plain_fields(self),
            "seconds": round(self.seconds, 3),
        }


def make_plan(policy: Policy, *, engine: Engine | None = None, progress: Progress = silent) -> Plan:
    """What would be published; nothing is written."""
    with (engine or engine_for(policy)).open(policy, None, progress) as scan:
        return mechanism_of(policy).plan(policy, scan)


def write_release(
    policy: Policy,
    *,
    seed: int | None = None,
    again: bool = False,
    engine: Engine | None = None,
    progress: Progress = silent,
) -> Published:
    """Plan, draw, write, check what was written, and only then let it appear under its name.

    Args:
        policy: What to publish.
        seed: Makes the run repeatable and the release unfit for publication; the ledger is left alone.
        again: Publish even if the ledger knows another release of the table.
        engine: Where to run; None: on this machine, or where the PySpark data frame is that is published.
        progress: Told of rows read.
    """
    started = time.monotonic()
    if policy.release is None:
        raise PolicyError(
            "the policy does not say where the release goes", hint='release = "patients.release"'
        )
    target = batch_folder(policy.release) if policy.series == "batches" else next_folder(policy)
    refuse_existing(target)
    randomness = Randomness.fresh() if seed is None else Randomness.seeded(seed)
    with (
        engine_errors(),
        kept_memory(),
        _series_folder(policy, target),
        _memory() as remember,
        new_release(target) as folder,
    ):
        with (engine or engine_for(policy)).open(policy, folder / SPILL, progress) as scan:
            view = next_batch(policy, scan) if policy.series == "batches" else next_view(policy, scan)
            if view is None and not randomness.is_seeded:
                scan.expect_fingerprint(open_ledger(policy.ledger).key())
            plan = mechanism_of(policy).plan(policy, scan)
            # a repeatable run is for trying out, unless it is one of a series, whose order it would upset
            known = None if randomness.is_seeded and view is None else look_up(policy, scan, view)
            if known is not None and not randomness.is_seeded and not again:
                refuse_repetition(policy, plan, known)
            draft = _draft(policy, plan, randomness, view)
            series = None if view is None else view.entry()
            manifest = _write_tables(
                policy, draft, scan, folder, is_seeded=randomness.is_seeded, series=series
            )
        _recheck(folder)
        if known is not None:
            remember(known, known.entry(manifest, folder, target))
    return Published(
        release=StoredRelease.open(target),
        n_rows=plan.n_rows,
        n_published=manifest.rows.published or 0,
        n_suppressed=manifest.rows.suppressed,
        posterior=_posterior(manifest),
        repeated=None if known is None else repetition(policy, plan, known),
        seconds=time.monotonic() - started,
    )


def _posterior(manifest: Manifest) -> float | None:
    found = (manifest.promise.get("suppression") or {}).get("posterior")
    return None if found is None else float(found["value"])


@contextmanager
def _series_folder(policy: Policy, target: Path) -> Iterator[None]:
    """The folder of a series, made for its first release and removed if that does not come to be."""
    is_new = target != policy.release and not target.parent.exists() and target.parent.parent.is_dir()
    if is_new:
        target.parent.mkdir()
    try:
        yield
    except BaseException:
        if is_new:
            target.parent.rmdir()
        raise


@contextmanager
def _memory() -> Iterator[Callable[[KnownTable, Entry], None]]:
    """Records in the ledger what is about to appear, and takes it back if it does not.

    The ledger is first: a release that it does not know would be one too many in the end.
    """
    recorded: list[tuple[Ledger, Entry]] = []

    def remember(known: KnownTable, entry: Entry) -> None:
        same_series = known.ledger.series(entry.series_id) if entry.series_id else ()
        seen = {other.id for other in (*known.earlier, *same_series)}
        known.ledger.record(entry, seen if entry.for_publication else None)
        recorded.append((known.ledger, entry))

    try:
        yield remember
    except BaseException:
        for ledger, entry in recorded:
            ledger.forget(entry)
        raise


def _draft(policy: Policy, plan: Plan, randomness: Randomness, view: NextInSeries | None) -> Draft:
    if view is None or view.kind == "batches":
        draft = mechanism_of(policy).draft(policy, plan, randomness)
        return draft if view is None else as_batch(draft)
    draft = serial_mechanism(policy).draft_at(policy, plan, randomness, view.place)
    view.refuse_other_parameters(draft.statement)
    return draft


def _write_tables(
    policy: Policy,
    draft: Draft,
    scan: OpenedTable,
    folder: Path,
    *,
    is_seeded: bool,
    series: SeriesEntry | None,
) -> Manifest:
    tables = scan.write(draft.tables, folder)
    manifest = build_manifest(policy, draft, scan.schema, tables, is_seeded=is_seeded, series=series)
    write_manifest(folder, manifest)
    return manifest


def _recheck(folder: Path) -> None:
    """The promise, checked on what was really written, before anybody can see it."""
    failed = [check for check in check_promise(StoredRelease.open(folder)) if not check.ok]
    if failed:
        raise InternalError(
            f"what was written does not keep the promise ({failed[0].detail}); it was removed",
            hint="this is a bug in Dalenius: please report it",
        )
