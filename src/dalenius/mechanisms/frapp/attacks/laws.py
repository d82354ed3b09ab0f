"""Whether FRAPP kept and replaced records by the law that its manifest states, whatever their cells.

Which row a record became is not known. But of any set of tuples it is known how likely each record ends up in
it: a record of the set with γ_f + (1−γ_f)(|A|−1)/(m−1), any other with (1−γ_f)|A|/(m−1). So the rows in a set
are counted, for sets of the table's tuples and for sets of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dalenius.arrays import Floats
from dalenius.mechanisms.frapp.published import PublishedFrapp
from dalenius.mechanisms.tuples.attacks import KEEPING, NOISE, ComparedTuples, attack_order
from dalenius.mechanisms.tuples.domain import word_ids
from dalenius.release.folder import StoredRelease
from dalenius.threats.counts import Counts, judge_laws, summed
from dalenius.threats.facets import Facet
from dalenius.threats.result import AttackResult

_AGAIN = "records were not kept and replaced as the manifest states: publish again"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sets:
    """Sets of tuples: of how many records and tuples, and how many rows are in them."""

    view: PublishedFrapp
    n_records: float
    """Of the whole table."""

    def counts(self, facet: Facet, rows: Floats, records: Floats, size: Floats) -> Counts:
        """The rows of each set against the law."""
        keep, m = float(self.view.law.gamma_f), float(self.view.domain.size)
        inside = keep + (1 - keep) * np.maximum(size - 1, 0.0) / (m - 1)
        outside = (1 - keep) * size / (m - 1)
        others = self.n_records - records
        return Counts(
            name=facet.name,
            observed=rows,
            expected=records * inside + others * outside,
            variance=records * inside * (1 - inside) + others * outside * np.maximum(1 - outside, 0.0),
            trials=np.where(size > 0, self.n_records, 0.0),
            label=facet.label,
        )


def attack_laws(view: PublishedFrapp, release: StoredRelease, original: pa.Table) -> Iterator[AttackResult]:
    """The laws of what is kept, of what it is replaced by, and of the rows' order."""
    tuples = ComparedTuples.of(view.domain, original, release)
    if view.domain.size < 2:
        return
    yield judge_laws(
        "law of keeping",
        KEEPING,
        _keeping(view, tuples),
        n_things=len(tuples.position),
        n_failed=0,
        advice=_AGAIN,
    )
    yield judge_laws(
        "law of noise",
        NOISE,
        _replacing(view, tuples),
        n_things=int((~tuples.is_own).sum()),
        n_failed=0,
        advice=_AGAIN,
        certain=tuples.outside,
    )
    yield attack_order(tuples, len(release.files("view")))


def _keeping(view: PublishedFrapp, tuples: ComparedTuples) -> Iterator[Counts]:
    """Sets of the table's own tuples."""
    n_own = len(tuples.position)
    records = (tuples.n_records if view.counts_rows else np.ones(n_own)).astype(np.float64)
    sets = _Sets(view=view, n_records=float(records.sum()))
    ids = word_ids(np.concatenate([tuples.own_words, tuples.row_words[tuples.is_own]]))
    rows = summed(ids[n_own:], None, int(ids.max(initial=-1)) + 1)[ids[:n_own]]
    whole = Facet(name="kept", codes=np.zeros(n_own, dtype=np.int64), n_cells=1, label=lambda _: "all")
    for facet in (whole, *tuples.own_facets()):
        counts = (summed(facet.codes, what, facet.n_cells) for what in (rows, records, None))
        yield sets.counts(facet, *counts)


def _replacing(view: PublishedFrapp, tuples: ComparedTuples) -> Iterator[Counts]:
    """Sets of all other tuples."""
    n_records = tuples.n_records.sum() if view.counts_rows else len(tuples.position)
    sets = _Sets(view=view, n_records=float(n_records))
    even = [np.full(size, 1.0 / size) for size in view.domain.sizes]
    for facet in tuples.domain_facets():
        share, own = facet.share(even), facet.of(tuples.own)
        rows = facet.of(tuple(codes[~tuples.is_own] for codes in tuples.rows))
        size = share * float(view.domain.size) - summed(own.codes, None, len(share))
        nobody = np.zeros(len(share))
        yield sets.counts(rows, summed(rows.codes, None, len(share)), nobody, np.maximum(np.rint(size), 0.0))
    for column, n_near, n_found in tuples.nearby(~tuples.is_own, tuples.own_words[:0]):
        near = Facet(
            name=f"noise that is like the table but in {column}",
            codes=np.zeros(0, dtype=np.int64),
            n_cells=1,
            label=lambda _: "all",
        )
        yield sets.counts(near, np.array([float(n_found)]), np.zeros(1), np.array([float(n_near)]))
