"""From a policy to a plan, and from a plan to a release."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import pyarrow as pa

from dalenius.arrays import Ints
from dalenius.demo_data import is_hospital
from dalenius.engines.base import Engine, OpenedTable, Progress, silent
from dalenius.engines.local.errors import engine_errors
from dalenius.engines.registry import engine_for
from dalenius.errors import InternalError, PolicyError, PromiseNotMet
from dalenius.mechanisms.base import Draft, Plan, Repeated
from dalenius.mechanisms.registry import stage_room, stage_rooms
from dalenius.mechanisms.stages import (
    check_release,
    count_outright,
    dated_mechanism,
    kept_counts,
    mechanism_of,
    serial_mechanism,
)
from dalenius.plain import plain_fields
from dalenius.policy import Policy
from dalenius.prefetch import meanwhile
from dalenius.randomness import Randomness
from dalenius.release.admission import trust
from dalenius.release.exposure import Exposures, find_exposures, refuse_exposures
from dalenius.release.folder import (
    SPILL,
    StoredRelease,
    build_manifest,
    draft_of,
    earlier_draft_aside,
    flush,
    new_release,
    refuse_existing,
)
from dalenius.release.ledger import open_ledger
from dalenius.release.manifest import Manifest, write_manifest
from dalenius.release.repetition import expect, ledger_transaction, look_up, refuse_repetition, repetition
from dalenius.release.series import (
    Kind,
    NextInSeries,
    as_batch,
    next_batch,
    next_date,
    next_folder,
    next_view,
    published_counts,
    rehearse_first,
    series_folder,
)
from dalenius.release.signing import Signer
from dalenius.release.verify import check_k, check_outright, tell_outright
from dalenius.tables.uniqueness import FEW, Uniqueness

_NEXT = {"batches": next_batch, "dates": next_date, "views": next_view}
"""By the kind of a series: what its next release is to be."""

_pool_lock = Lock()
_usual_pool: list[pa.MemoryPool] = []
"""The pool before, once for every table that is being published: other threads may publish too."""


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
    outright: int
    """How many people's sensitive value the release tells for certain."""
    exposures: Exposures = field(metadata={"json": None})
    """Who is exposed though the promise is kept, which was accepted or is only rehearsed."""
    draft: bool
    """Whether it is a rehearsal."""
    synthetic: bool
    """Whether the table is the bundled one, whose people never lived and which the ledger passes over."""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As `publish --json` prints it."""
        return {
            "release": str(self.release.path),
            **plain_fields(self),
            **self.exposures.to_dict(),
            "seconds": round(self.seconds, 3),
        }

    def warnings(self) -> Iterator[str]:
        """What was accepted, or only its publisher can judge."""
        if self.outright:
            yield tell_outright(self.outright, self.release.columns("sensitive"))
        for line in (*self.exposures.lines(), *self.exposures.notes()):
            yield f"warning: {line}"
        if self.repeated is not None:
            yield f"published again: {self.repeated.sentence()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would be published, and who is rare with what. Private: it is made from counts."""

    plan: Plan | PromiseNotMet
    """Or why there is none."""
    uniqueness: Uniqueness | None
    """None: the mechanism publishes nobody's quasi-identifiers as they are."""
    exposures: Exposures = field(default_factory=Exposures)
    """Who would be exposed though the plan keeps its promise."""
    series: Told | None = None
    """What the next batch would tell together with those before, where records are withheld."""

    def findings(self) -> dict[str, Any]:
        """What was found beside the plan, as `plan --json` prints it."""
        found = {"uniqueness": self.uniqueness, "series": self.series}
        told = {name: one.to_dict() for name, one in found.items() if one is not None}
        return {**told, **self.exposures.to_dict()}

    def lines(self) -> Iterator[str]:
        """The same in words."""
        for line in self.exposures.lines():
            yield f"warning: {line}; publish wants --yes"
        for line in self.exposures.notes():
            yield f"warning: {line}"
        if self.series is not None:
            yield self.series.sentence()
        if self.uniqueness is not None:
            yield from self.uniqueness.paragraph()


def make_plan(policy: Policy, *, engine: Engine | None = None, progress: Progress = silent) -> Plan:
    """What would be published; nothing is written."""
    with (engine or engine_for(policy)).open(policy, None, progress) as scan:
        _refuse_rare(policy, scan)
        return _plan(policy, scan)


def _plan(policy: Policy, scan: OpenedTable, next_one: NextInSeries | None = None) -> Plan:
    """By the mechanism; of a table that is published again, in view of who was published before."""
    if policy.series != "dates":
        return mechanism_of(policy).plan(policy, scan)
    found = (next_one or next_date(policy, scan)).date
    assert found is not None  # noqa: S101  (a series of dates has one)
    return dated_mechanism(policy).plan_date(policy, scan.schema, found.kept)


def _find_exposures(policy: Policy, scan: OpenedTable, next_one: NextInSeries | None) -> Exposures:
    """Of the table, and of a date beside those before."""
    found, date = find_exposures(policy, scan), None if next_one is None else next_one.date
    return found if date is None else replace(found, renumbered=date.renumbered)


def preview(policy: Policy, *, engine: Engine | None = None, progress: Progress = silent) -> Preview:
    """The plan, or why there is none, and how many people are rare with what is published of them."""
    with (engine or engine_for(policy)).open(policy, None, progress) as scan:
        found = _study_people(policy, scan) if policy.mechanism.publishes_quasi else None
        try:
            if found is not None and policy.columns.k is not None and found.rarity.n_few:
                raise refuse_rare(found)
            next_one = next_date(policy, scan) if policy.series == "dates" else None
            plan = _plan(policy, scan, next_one)
            exposures = _find_exposures(policy, scan, next_one)
        except PromiseNotMet as error:
            return Preview(plan=error, uniqueness=found)
    return Preview(
        plan=plan,
        uniqueness=found,
        exposures=exposures,
        series=_tell_series(policy, plan),
    )


class Told(Protocol):
    """A finding that says itself."""

    def sentence(self) -> str:
        """In words."""

    def to_dict(self) -> dict[str, Any]:
        """As data."""


def _tell_series(policy: Policy, plan: Plan) -> Told | None:
    """Every batch is thinned by itself; who sees all of them knows more."""
    kept = kept_counts(plan)
    is_safe = policy.promise.kind == "l-diversity" and policy.suppress and policy.suppress.method == "safe"
    if policy.series != "batches" or kept is None or not is_safe:
        return None
    earlier = published_counts(policy)
    believed: Told = stage_room("suppress", "published").believe_in_one([*earlier, kept])
    return believed if earlier else None


def _study_people(policy: Policy, scan: OpenedTable) -> Uniqueness:
    columns, fixed = policy.columns, [name for name, _ in policy.recode]
    return scan.uniqueness(columns.quasi, columns.k or FEW, fixed, seek=columns.k is not None)


def _refuse_rare(policy: Policy, scan: OpenedTable) -> None:
    """The policy's k: a condition on the quasi-identifiers that are published."""
    if policy.columns.k is not None and scan.count_rare(policy.columns.quasi, policy.columns.k).n_few:
        raise refuse_rare(_study_people(policy, scan))


def refuse_rare(found: Uniqueness) -> PromiseNotMet:
    """Somebody shares the published quasi-identifiers with fewer people than the policy's k."""
    return PromiseNotMet(f"[columns] k = {found.fewer_than}: {found.sentence()}", hint=found.reaching())


def write_release(
    policy: Policy,
    *,
    seed: int | None = None,
    again: bool = False,
    yes: bool = False,
    is_draft: bool = False,
    engine: Engine | None = None,
    sign: Path | None = None,
    progress: Progress = silent,
) -> Published:
    """Plan, draw, write, check what was written, and only then let it appear under its name.

    Args:
        policy: What to publish.
        seed: Makes the run repeatable and the release unfit for publication; the ledger is left alone.
        again: Publish even if the ledger knows another release of the table.
        yes: Publish even if the release tells some people's sensitive value for certain.
        is_draft: A rehearsal, outside the ledger, in place of an earlier one; it says how many people it
            would publish outright, and does not ask.
        engine: Where to run; None: on this machine, or where the PySpark data frame is that is published.
        sign: A private key to sign the manifest with, as a PEM file.
        progress: Told of rows read.
    """
    started = time.monotonic()
    if policy.release is None:
        raise PolicyError(
            "the policy does not say where the release goes", hint='release = "patients.release"'
        )
    signer = None if sign is None else Signer.load(sign)
    kind: Kind | None = policy.series or ("views" if policy.mechanism.views > 1 else None)
    target = _target(policy.release, kind, is_draft=is_draft)
    randomness = Randomness.seeded(seed) if seed is not None else _randomness(is_draft=is_draft)
    with (
        engine_errors(),
        keep_memory(),
        earlier_draft_aside(target) if is_draft else series_folder(policy.release, target),
        ledger_transaction() as remember,
        ExitStack() as remembering,
        new_release(target) as folder,
    ):
        with (engine or engine_for(policy)).open(policy, folder / SPILL, progress) as scan:
            next_one = None if kind is None else _next_one(policy, kind, scan, is_draft=is_draft)
            is_synthetic = is_hospital(policy.source)
            if next_one is None and not randomness.is_seeded and not is_synthetic:
                expect(policy, scan)
            _refuse_rare(policy, scan)
            plan = _plan(policy, scan, next_one)
            # a repeatable run is for trying out, unless it is one of a series, whose order it would upset
            is_trial = randomness.is_seeded or is_synthetic
            known = None
            if not is_draft and not (is_trial and next_one is None):
                known = look_up(policy, scan, next_one, is_trial=is_trial)
            if known is not None and not randomness.is_seeded and not again:
                refuse_repetition(policy, plan, known)
            draft, buckets = _draft(policy, plan, randomness, next_one)
            exposures = _find_exposures(policy, scan, next_one)
            if not (yes or is_draft):  # a seeded release is for nobody: what it would expose is told only
                refuse_exposures(policy, draft.outright, Exposures() if seed is not None else exposures)
            series = None if next_one is None else next_one.entry()
            tables = scan.write(draft.tables, folder)
            manifest = build_manifest(
                policy,
                draft,
                scan.schema,
                tables,
                is_seeded=randomness.is_seeded,
                series=series,
                is_draft=is_draft,
                signer=None if signer is None else signer.public,
            )
            write_manifest(folder, manifest)
            if signer is not None:
                signer.sign(folder)
        with meanwhile(partial(flush, folder)):
            checked = _recheck(folder)  # read for the last time: with its name it is published, come what may
        if buckets is not None and next_one is not None and next_one.date is not None and not is_draft:
            remembering.enter_context(next_one.date.remember(buckets, leaves=policy.changed == "leaves"))
        if known is not None:
            remember(known, known.entries(manifest, folder, target))
    return Published(
        release=replace(checked, path=target),
        n_rows=plan.n_rows,
        n_published=manifest.rows.published or 0,
        n_suppressed=manifest.rows.suppressed,
        posterior=_posterior(manifest),
        repeated=None if known is None else repetition(policy, plan, known),
        outright=draft.outright,
        exposures=exposures,
        draft=is_draft,
        synthetic=is_synthetic,
        seconds=time.monotonic() - started,
    )


def _target(release: Path, kind: Kind | None, *, is_draft: bool) -> Path:
    """The folder to write, which must not be there yet, except for a draft."""
    if is_draft:
        return draft_of(release)
    target = release if kind is None else next_folder(kind, release)
    refuse_existing(target)
    return target


def _randomness(*, is_draft: bool) -> Randomness:
    return Randomness.rehearsing() if is_draft else Randomness.fresh()


def _next_one(policy: Policy, kind: Kind, scan: OpenedTable, *, is_draft: bool) -> NextInSeries:
    if not is_draft or kind == "dates":
        return _NEXT[kind](policy, scan)
    of = policy.mechanism.views if kind == "views" else None
    return rehearse_first(kind, of, open_ledger(policy.ledger))


def _posterior(manifest: Manifest) -> float | None:
    stated = (stage.read(manifest) for stage in stage_rooms("published"))
    found = [stage.posterior.value for stage in stated if stage is not None and stage.posterior is not None]
    return found[0] if found else None


def _draft(
    policy: Policy, plan: Plan, randomness: Randomness, next_one: NextInSeries | None
) -> tuple[Draft, Ints | None]:
    """The draft and, of a table that is published again, where everybody is."""
    if next_one is not None and next_one.kind == "dates":
        return dated_mechanism(policy).draft_date(policy, plan, randomness)
    if next_one is None or next_one.kind == "batches":
        draft = mechanism_of(policy).draft(policy, plan, randomness)
        return draft if next_one is None else as_batch(draft), None
    draft = serial_mechanism(policy).draft_at(policy, plan, randomness, next_one.place)
    next_one.refuse_other_parameters(draft.statement)
    return draft, None


def _recheck(folder: Path) -> StoredRelease:
    """The promise, checked on what was really written, before anybody can see it."""
    written = StoredRelease.open(folder)
    with written.connect() as connection:
        checks = [*check_k(written), *check_release(connection, written.manifest)]
        checks.append(check_outright(written.manifest, count_outright(connection, written.manifest)))
    failed = [check for check in checks if not check.ok]
    if failed:
        raise InternalError(
            f"what was written does not keep the promise ({failed[0].detail}); it was removed",
            hint="this is a bug in Dalenius: please report it",
        )
    trust(written)
    return written


@contextmanager
def keep_memory() -> Iterator[None]:
    """Arrow takes its memory from the C library, which keeps what is freed for the next batch.

    Its own allocator gives pages back and has the kernel clear new ones: a quarter of the processor time of
    a table of a million rows.
    """
    with _pool_lock:
        _usual_pool.append(_usual_pool[-1] if _usual_pool else pa.default_memory_pool())
        pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        with _pool_lock:
            usual = _usual_pool.pop()
            if not _usual_pool:
                pa.set_memory_pool(usual)
