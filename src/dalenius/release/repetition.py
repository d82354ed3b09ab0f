"""Was this table published before? A second independent release is refused, with what it would tell.

Every promise is about one release. Two that were drawn independently from one table tell more together than
either may: what a person's two buckets share, two noisy values of one person, a tuple in two views. The
ledger knows a table by its records (a large one by how often each column has each value), and by its counts
of sensitive values: the same counts under another choice or recoding of the other columns are the same
people. A table with a few more or fewer records is another one to it, and so is one whose sensitive values
were recoded; nobody but the publisher can see that.
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
from dalenius.release.ledger import Entry, Ledger, open_ledger
from dalenius.release.manifest import FILE_NAME, Manifest
from dalenius.release.series import NextInSeries
from dalenius.tables.histogram import Histogram, write_cells

_RARE = 1e-6
"""Counts that an unrelated table of the same shares would have with less than this chance are one table's."""
_HINT = (
    "use the release that there is; to try a policy out, `--draft` (in Python `draft=True`); `--again` "
    "publishes all the same. Several views of one table that keep a promise together: alpha-beta with `views`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTable:
    """A table that is about to be published, as the ledger knows it."""

    ledger: Ledger
    source: str
    values: str | None
    records: str | None
    """Of its whole records, where it is one of a series of views."""
    earlier: tuple[Entry, ...]
    """Its releases so far, but for the views of the series that the next one belongs to."""

    def entry(self, manifest: Manifest, folder: Path, target: Path) -> Entry:
        """What the ledger remembers of a release, which is written to `folder` and will be at `target`."""
        series = manifest.series
        return Entry(
            id=manifest.id,
            manifest_sha256=sha256(folder / FILE_NAME),
            created=manifest.created,
            path=str(target.resolve()),
            mechanism=manifest.mechanism.kind,
            source_fingerprint=self.source,
            for_publication=manifest.for_publication,
            series_id=None if series is None else series.id,
            series_index=None if series is None else series.index,
            series_of=None if series is None else series.of,
            values_fingerprint=self.values,
            record_fingerprint=self.records,
        )


@contextmanager
def ledger_transaction() -> Iterator[Callable[[KnownTable, Entry], None]]:
    """A way to record in the ledger what is about to appear; it is taken back if that does not come to be.

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


def look_up(policy: Policy, scan: OpenedTable, next_one: NextInSeries | None) -> KnownTable:
    """What the ledger knows of the table."""
    ledger = open_ledger(policy.ledger) if next_one is None else next_one.ledger
    key = ledger.key()
    source = scan.fingerprint(key) if next_one is None else next_one.fingerprint
    values = None
    if policy.columns.sensitive:
        values = values_fingerprint(scan.histogram(policy.columns.sensitive), key)
    # views of a series are drawn in view of each other; batches are of different people, or repetitions
    same_series = next_one.place.id if next_one is not None and next_one.kind == "views" else None
    known = ledger.of_source(source, values)
    earlier = tuple(e for e in known if e.for_publication and (not same_series or e.series_id != same_series))
    records = None if next_one is None else next_one.records
    return KnownTable(ledger=ledger, source=source, values=values, records=records, earlier=earlier)


def refuse_repetition(policy: Policy, plan: Plan, known: KnownTable) -> None:
    """Refuse another independent release of a table, with the posterior that it would give."""
    if not known.earlier:
        return
    what = (
        "this table was published before"
        if any(entry.source_fingerprint == known.source for entry in known.earlier)
        else "a table with exactly these counts of sensitive values, so about the same people, was published "
        "before"
    )
    raise PromiseNotMet(f"{what} ({_where(known.earlier)}): {_tell(policy, plan, known)}", hint=_HINT)


def repetition(policy: Policy, plan: Plan, known: KnownTable) -> Repeated | None:
    """What this release will tell together with the earlier ones by the same mechanism; None without any."""
    times = 1 + sum(entry.mechanism == policy.mechanism.kind for entry in known.earlier)
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
        kinds = ", ".join(sorted({entry.mechanism for entry in known.earlier}))
        return (
            f"by {kinds}, and now by {policy.mechanism.kind}; each promises for itself, and what both tell "
            "together is more and was not computed"
        )
    others = len(known.earlier) + 1 - found.times
    more = f", and {others} more by another mechanism are not counted" if others else ""
    return found.sentence() + more


def _where(earlier: Sequence[Entry]) -> str:
    last = earlier[-1]
    times = "" if len(earlier) == 1 else f"{len(earlier)} times, last "
    gone = "" if Path(last.path).exists() else ", where it no longer is"
    return f"{times}on {last.created} to {last.path}{gone}"
