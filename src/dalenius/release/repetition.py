"""Was this table published before? A second independent release is refused, with what it would tell.

Every promise is about one release. Two that were drawn independently from one table tell more together than
either may: what a person's two buckets share, two noisy values of one person, a tuple in two views. The
ledger knows a table by its records (a large one by how often each column has each value), and by its counts
of sensitive values: the same counts under another choice or recoding of the other columns are the same
people. A table with a few more or fewer records, or with other names, types or codes, is known by a sketch of
its records (`tables/sketch.py`).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dalenius.engines.base import OpenedTable
from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.base import Plan, Repeated
from dalenius.mechanisms.stages import mechanism_of
from dalenius.policy import Policy
from dalenius.release.folder import sha256
from dalenius.release.ledger import Entry, Ledger, Marks, Match, open_ledgers
from dalenius.release.manifest import FILE_NAME, Manifest
from dalenius.release.series import NextInSeries
from dalenius.tables.histogram import Histogram, write_cells
from dalenius.tables.sketch import BY_CELLS

_RARE = 1e-6
"""Counts that an unrelated table of the same shares would have with less than this chance are one table's."""
_FEW_PEOPLE = 0.02
"""So small a part of a table stands out by its difference from another one."""
_HINT = (
    "use the release that there is; to try a policy out, `--draft` (in Python `draft=True`). Releases that "
    "keep a promise together are planned so from the first one on: alpha-beta with `views`, or bucketize "
    'with [series] kind = "dates"'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A table that is about to be published, as one ledger knows it."""

    ledger: Ledger
    marks: Marks
    packed: bytes | None
    """The sketch as the ledger keeps it."""
    matches: tuple[Match, ...]
    """Releases so far about its people, except for the views of the series that the next one belongs to."""
    compared: frozenset[str] = frozenset()
    """The ids of all releases that were looked at for these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """A table that is about to be published, as the policy's ledger and the user's know it."""

    memories: tuple[Memory, ...]
    records: str | None
    """The fingerprint of its whole records, where it is one of a series of views."""

    @property
    def matches(self) -> tuple[Match, ...]:
        """Every release about its people once, whichever ledger knows it."""
        found = {match.entry.id: match for memory in self.memories for match in memory.matches}
        return tuple(found.values())

    def entries(self, manifest: Manifest, folder: Path, target: Path) -> tuple[Entry, ...]:
        """What each ledger remembers of a release, which is written to `folder` and will be at `target`."""
        series = manifest.series
        return tuple(
            Entry(
                id=manifest.id,
                manifest_sha256=sha256(folder / FILE_NAME),
                created=manifest.created,
                path=str(target.resolve()),
                mechanism=manifest.mechanism.kind,
                source_fingerprint=memory.marks.source,
                for_publication=manifest.for_publication,
                series_id=None if series is None else series.id,
                series_index=None if series is None else series.index,
                series_of=None if series is None else series.of,
                values_fingerprint=memory.marks.values,
                record_fingerprint=self.records,
                sketch=memory.packed,
            )
            for memory in self.memories
        )


@contextmanager
def ledger_transaction() -> Iterator[Callable[[KnownTable, Sequence[Entry]], None]]:
    """A way to record in the ledgers what is about to appear; it is taken back if that does not come to be.

    The ledgers are first: a release that they do not know would be one too many in the end.
    """
    recorded: list[tuple[Ledger, Entry]] = []

    def remember(known: KnownTable, entries: Sequence[Entry]) -> None:
        for memory, entry in zip(known.memories, entries, strict=True):
            same_series = memory.ledger.series(entry.series_id) if entry.series_id else ()
            seen = {match.entry.id for match in known.matches} | {other.id for other in same_series}
            seen |= memory.compared
            memory.ledger.record(entry, memory.marks if entry.for_publication else None, seen)
            recorded.append((memory.ledger, entry))

    try:
        yield remember
    except BaseException:
        for ledger, entry in recorded:
            if not _has_appeared(entry):
                ledger.take_back(entry)
        raise


def _has_appeared(entry: Entry) -> bool:
    """Whether the release is there all the same: a run can be stopped just after its last step."""
    manifest = Path(entry.path) / FILE_NAME
    return manifest.is_file() and sha256(manifest) == entry.manifest_sha256


def expect(policy: Policy, scan: OpenedTable) -> None:
    """The ledgers will be asked soon: an engine that can starts on what they know the table by."""
    for ledger in open_ledgers(policy.ledger):
        scan.expect_fingerprint(ledger.key())


def look_up(
    policy: Policy, scan: OpenedTable, next_one: NextInSeries | None, *, is_trial: bool = False
) -> KnownTable:
    """What the ledgers know of the table; the user's is not told of trials."""
    # views and dates of a series come in view of each other; batches are of different people, or repetitions
    same_series = next_one.place.id if next_one is not None and next_one.kind != "batches" else None
    ledgers = open_ledgers(policy.ledger, own_only=is_trial)
    memories = []
    for ledger in ledgers:
        key = ledger.key()
        values = None
        if policy.columns.sensitive:
            values = values_fingerprint(scan.histogram(policy.columns.sensitive), key)
        source, sketch = scan.fingerprint(key), None if is_trial else scan.sketch(key)
        is_earlier = source.startswith(BY_CELLS) and ledger.expects_earlier(scan.n_rows())
        earlier = scan.earlier_fingerprint(key) if is_earlier else None
        marks = Marks(source=source, values=values, sketch=sketch, earlier=earlier)
        found, compared = ledger.about(marks)
        matches = tuple(match for match in found if not same_series or match.entry.series_id != same_series)
        packed = None if marks.sketch is None else marks.sketch.pack(key)
        memories.append(Memory(ledger=ledger, marks=marks, packed=packed, matches=matches, compared=compared))
    return KnownTable(memories=tuple(memories), records=None if next_one is None else next_one.records)


def refuse_repetition(policy: Policy, plan: Plan, known: KnownTable) -> None:
    """Refuse another independent release about the same people, with the posterior that it would give."""
    if not known.matches:
        return
    what = f"{_who(known.matches)} ({_where([match.entry for match in known.matches])})"
    raise PromiseNotMet(f"{what}: {_tell(policy, plan, known)}", hint=_HINT)


def _who(matches: Sequence[Match]) -> str:
    """What was published before, from the surest sign."""
    if any(match.how == "records" for match in matches):
        return "this table was published before"
    overlaps = [match.overlap for match in matches if match.overlap is not None]
    if not overlaps:
        return (
            "a table with exactly these counts of sensitive values, so about the same people, was published "
            "before"
        )
    most = max(overlaps, key=lambda overlap: overlap.people)
    who = "the same people were" if most.people == most.rows == most.earlier_rows else "these people were"
    return f"{who} published before, about {most.people:,} of the {most.rows:,} in this table"


def repetition(policy: Policy, plan: Plan, known: KnownTable) -> Repeated | None:
    """What this release will tell together with the earlier ones by the same mechanism; None without any.

    None also for a table that is published again and again: its buckets are of several plans.
    """
    if policy.series == "dates":
        return None
    times = 1 + sum(match.entry.mechanism == policy.mechanism.kind for match in known.matches)
    return None if times == 1 else mechanism_of(policy).repeat(policy, plan, times)


def values_fingerprint(histogram: Histogram, key: bytes) -> str | None:
    """A keyed digest of the counts of the values; None where other tables may well have the same counts.

    The chance of exactly these counts, for a table of the same size whose rows are drawn with these shares,
    is multinomial.
    """
    n, counts = histogram.n_rows, histogram.counts
    log_chance = math.lgamma(n + 1) + sum(o * math.log(o / n) - math.lgamma(o + 1) for o in counts)
    if log_chance > math.log(_RARE):
        return None
    cells = [list(write_cells(value)) for value in histogram.values]
    described = json.dumps(sorted(zip(cells, counts, strict=True), key=str)).encode()
    return hmac.new(key, b"values" + described, hashlib.sha256).hexdigest()


def _tell(policy: Policy, plan: Plan, known: KnownTable) -> str:
    found = repetition(policy, plan, known)
    if found is None:
        kinds = ", ".join(sorted({match.entry.mechanism for match in known.matches}))
        return (
            f"by {kinds}, and now by {policy.mechanism.kind}; each promises for itself, and what both tell "
            f"together is more and was not computed{_tell_few(known)}"
        )
    others = len(known.matches) + 1 - found.times
    more = f", and {others} more by another mechanism are not counted" if others else ""
    return found.sentence() + more + _tell_few(known)


def _tell_few(known: KnownTable) -> str:
    """Who is in one of two releases only stands out between them."""
    overlaps = [match.overlap for match in known.matches if match.overlap is not None]
    apart = [abs(overlap.rows - overlap.earlier_rows) for overlap in overlaps]
    apart = [n for n, overlap in zip(apart, overlaps, strict=True) if 0 < n <= _FEW_PEOPLE * overlap.rows]
    if not apart:
        return ""
    who = "one person is" if min(apart) == 1 else f"{min(apart)} people are"
    return f"; at least {who} in only one of them, and the difference of the two tells their values"


def _where(earlier: Sequence[Entry]) -> str:
    last = earlier[-1]
    times = "" if len(earlier) == 1 else f"{len(earlier)} times, last "
    gone = "" if Path(last.path).exists() else ", where it no longer is"
    return f"{times}on {last.created} to {last.path}{gone}"
