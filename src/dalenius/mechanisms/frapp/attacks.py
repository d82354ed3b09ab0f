"""Attacks on FRAPP: how many records were kept, and what a tuple that is shown several times tells.

Whether FRAPP kept and replaced records by the law that its manifest states, whatever their cells.

Which row a record became is not known. But of any set of tuples it is known how likely each record ends up in
it: a record of the set with γ_f + (1−γ_f)(|A|−1)/(m−1), any other with (1−γ_f)|A|/(m−1). So the rows in a set
are counted, for sets of the table's tuples and for sets of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.arrays import Floats
from dalenius.mechanisms.frapp.published import PublishedFrapp, read
from dalenius.mechanisms.tuples.attacks import ComparedTuples, judge_tuples
from dalenius.mechanisms.tuples.domain import word_ids
from dalenius.threats.chance import SHARE, Chance, clopper_pearson, least_level, least_rate
from dalenius.threats.counts import Counts, sum_by
from dalenius.threats.facets import Facet
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult, Threat
from dalenius.threats.traces import attack_metadata


def attack(subject: Subject) -> Iterator[AttackResult]:
    """A record seen in its place, by how many the release really kept; and a tuple that it shows often."""
    release, original = subject.release, subject.original
    view = read(release.manifest)
    tuples = ComparedTuples.of(view.domain, original, release)
    n_rows, m = len(tuples.row_words) + tuples.n_outside, view.domain_size
    here, there = _records(view, tuples), _times_shown(tuples)
    n_same = int(np.minimum(here, there).sum())
    # replaced records that come to be a tuple of the table, which look as if they had been kept
    by_chance = (1 - float(view.law.gamma_f)) * n_rows * len(here) / m
    kept = _KeptRate(
        prior=float(view.law.k) / m,
        domain_size=m,
        n_rows=n_rows,
        n_kept=max(0.0, n_same - by_chance),
    )
    yield _attack_linking(kept, Chance(expected=by_chance, variance=by_chance), n_same, view.gamma)
    yield _attack_often(tuples, view.gamma, float(view.law.k) * n_rows / m)
    yield from attack_laws(view, tuples, len(release.files("view")))
    yield attack_metadata(subject, genuine=())  # a record may become any tuple of the domain


class _KeptRate:
    """How likely a record is its published tuple, at some rate of keeping."""

    def __init__(self, *, prior: float, domain_size: int, n_rows: int, n_kept: float) -> None:
        self.prior, self.domain_size, self.n_rows, self.n_kept = prior, domain_size, n_rows, n_kept

    def posterior(self, rate: float) -> float:
        """Bayes on one record that had the prior and is seen in its place."""
        other = (1 - rate) / max(self.domain_size - 1, 1)
        return self.prior * rate / max(self.prior * rate + (1 - self.prior) * other, 1e-300)


def _attack_linking(kept: _KeptRate, by_chance: Chance, n_same: int, gamma: Fraction) -> AttackResult:
    low, high = clopper_pearson(kept.n_kept, kept.n_rows)

    def is_broken(tail: float) -> bool:
        surely = n_same - by_chance.limit(tail)
        return kept.posterior(least_rate(surely, kept.n_rows, tail)) > float(gamma)

    p_value = least_level(is_broken)
    return AttackResult(
        name="linking",
        threat=Threat(
            knows=f"that a record is a tuple with probability {kept.prior:.3g}, and which row it became",
            wants="whether it is, having seen the tuple there",
            covered=True,
        ),
        success=kept.posterior(kept.n_kept / max(kept.n_rows, 1)),
        interval=(kept.posterior(low), kept.posterior(high)),
        baseline=kept.prior,
        bound=float(gamma),
        holds=p_value > SHARE,
        p_value=p_value,
        n_trials=kept.n_rows,
        detail={"kept": kept.n_kept / max(kept.n_rows, 1)},
        advice="more records are kept than stated: publish again",
    )


def _records(view: PublishedFrapp, tuples: ComparedTuples) -> Floats:
    """How many records each tuple of the table stands for, where they count."""
    return (tuples.n_records if view.counts_rows else np.ones(len(tuples.position))).astype(np.float64)


def _times_shown(tuples: ComparedTuples) -> Floats:
    """How many rows show each tuple of the table."""
    n_own = len(tuples.position)
    ids = word_ids(np.concatenate([tuples.own_words, tuples.row_words[tuples.is_own]]))
    return sum_by(ids[n_own:], None, int(ids.max(initial=-1)) + 1)[ids[:n_own]]


def _attack_often(tuples: ComparedTuples, gamma: Fraction, d: float) -> AttackResult:
    """Each of the j records that a tuple is shown for is it with γ: the promise is per record."""
    times = np.bincount(word_ids(tuples.row_words))
    j = int(times.max(initial=0))
    n_right = int((_times_shown(tuples) == j).sum())
    d = min(d, 1.0)  # the expected number of a tuple's records, at most which its probability is
    wants = "whether it is, having seen it in the release more often than any other"
    knows = f"a tuple that is in the table with probability {d:.3g}"
    return AttackResult(
        name="repeated tuples",
        threat=Threat(knows=knows, wants=wants, covered=False),
        success=1 - float(1 - gamma) ** j,
        baseline=d,
        detail={"times": j, "tuples": int((times == j).sum()), "in_the_table": n_right},
        advice='method = "alpha-beta" promises for a tuple, however often it occurs' if j > 1 else None,
    )


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


def attack_laws(view: PublishedFrapp, tuples: ComparedTuples, n_files: int) -> Iterator[AttackResult]:
    """The laws of what is kept, of what it is replaced by, and of the rows' order."""
    if view.domain.size < 2:
        return
    yield from judge_tuples(
        tuples,
        n_files,
        keeping=_test_keeping(view, tuples),
        noise=_test_replacing(view, tuples),
        n_noise=int((~tuples.is_own).sum()),
        advice=_AGAIN,
    )


def _test_keeping(view: PublishedFrapp, tuples: ComparedTuples) -> Iterator[Counts]:
    """Sets of the table's own tuples."""
    n_own = len(tuples.position)
    records, rows = _records(view, tuples), _times_shown(tuples)
    sets = _Sets(view=view, n_records=float(records.sum()))
    whole = Facet(name="kept", codes=np.zeros(n_own, dtype=np.int64), n_cells=1, label=lambda _: "all")
    for facet in (whole, *tuples.own_facets()):
        counts = (sum_by(facet.codes, what, facet.n_cells) for what in (rows, records, None))
        yield sets.counts(facet, *counts)


def _test_replacing(view: PublishedFrapp, tuples: ComparedTuples) -> Iterator[Counts]:
    """Sets of all other tuples."""
    sets = _Sets(view=view, n_records=float(_records(view, tuples).sum()))
    noise = tuples.rows_of(~tuples.is_own)
    even = [np.full(size, 1.0 / size) for size in view.domain.sizes]
    for facet in tuples.domain_facets():
        share, own = facet.share(even), facet.of(tuples.own)
        rows = facet.of(noise)
        size = share * float(view.domain.size) - sum_by(own.codes, None, len(share))
        nobody = np.zeros(len(share))
        yield sets.counts(rows, sum_by(rows.codes, None, len(share)), nobody, np.maximum(np.rint(size), 0.0))
    for column, n_near, n_found in tuples.nearby(~tuples.is_own, tuples.own_words[:0]):
        near = Facet(
            name=f"noise that is like the table but in {column}",
            codes=np.zeros(0, dtype=np.int64),
            n_cells=1,
            label=lambda _: "all",
        )
        yield sets.counts(near, np.array([float(n_found)]), np.zeros(1), np.array([float(n_near)]))
