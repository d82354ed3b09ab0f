"""Attacks on FRAPP: how many records were kept, and what a tuple that is shown several times tells."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dalenius.mechanisms.frapp.attacks.laws import attack_laws
from dalenius.mechanisms.frapp.published import read
from dalenius.mechanisms.tuples.attacks import code_tuples
from dalenius.threats.chance import SHARE, Chance, least_level
from dalenius.threats.interval import clopper_pearson, least_rate
from dalenius.threats.original import Subject
from dalenius.threats.result import AttackResult, Threat
from dalenius.threats.traces import attack_metadata


def attack(subject: Subject) -> Iterator[AttackResult]:
    """A record seen in its place, by how many the release really kept; and a tuple that it shows often."""
    release, original = subject.release, subject.original
    view = read(release.manifest)
    own, shown = code_tuples(original, [release], view.domain)
    if not view.counts_rows:
        own = np.unique(own)
    m = view.domain_size
    n_codes = int(max(own.max(), shown.max())) + 1
    here, there = np.bincount(own, minlength=n_codes), np.bincount(shown, minlength=n_codes)
    n_same = int(np.minimum(here, there).sum())
    # replaced records that come to be a tuple of the table, which look as if they had been kept
    by_chance = (1 - float(view.law.gamma_f)) * len(shown) * int((here > 0).sum()) / m
    kept = _KeptRate(
        prior=float(view.law.k) / m,
        domain_size=m,
        n_rows=len(shown),
        n_kept=max(0.0, n_same - by_chance),
    )
    yield _linking(kept, Chance(expected=by_chance, variance=by_chance), n_same, view.gamma)
    yield _often(there, here, view.gamma, float(view.law.k) * len(shown) / m)
    yield from attack_laws(view, release, original)
    yield attack_metadata(subject, genuine=())  # a record may become any tuple of the domain


class _KeptRate:
    """How likely a record is its published tuple, at some rate of keeping."""

    def __init__(self, *, prior: float, domain_size: int, n_rows: int, n_kept: float) -> None:
        self.prior, self.domain_size, self.n_rows, self.n_kept = prior, domain_size, n_rows, n_kept

    def posterior(self, rate: float) -> float:
        """Bayes on one record that had the prior and is seen in its place."""
        other = (1 - rate) / max(self.domain_size - 1, 1)
        return self.prior * rate / max(self.prior * rate + (1 - self.prior) * other, 1e-300)


def _linking(kept: _KeptRate, by_chance: Chance, n_same: int, gamma: Fraction) -> AttackResult:
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


def _often(there: np.ndarray, here: np.ndarray, gamma: Fraction, d: float) -> AttackResult:
    """Each of the j records that a tuple is shown for is it with γ: the promise is per record."""
    j = int(there.max())
    n_right = int(((there == j) & (here > 0)).sum())
    d = min(d, 1.0)  # the expected number of a tuple's records, at most which its probability is
    return AttackResult(
        name="repeated tuples",
        threat=Threat(
            knows=f"a tuple that is in the table with probability {d:.3g}",
            wants="whether it is, having seen it in the release more often than any other",
            covered=False,
        ),
        success=1 - float(1 - gamma) ** j,
        baseline=d,
        detail={"times": j, "tuples": int((there == j).sum()), "in_the_table": n_right},
        advice='method = "alpha-beta" promises for a tuple, however often it occurs' if j > 1 else None,
    )
