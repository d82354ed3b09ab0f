"""Attacks on αβ views: one tuple, correlated tuples, sets of which one is in the table, several views.

They see a view beside its original as counts: how much of the table and of the noise it really shows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dalenius.mechanisms.alphabeta.plan.law import ChangingLaw, ViewLaw, usual_decay
from dalenius.mechanisms.alphabeta.published import PublishedView, marginal_law
from dalenius.mechanisms.base import repeat_evidence
from dalenius.mechanisms.tuples.attacks import ComparedTuples, find_rows
from dalenius.mechanisms.tuples.domain import are_among, distinct_words
from dalenius.release.folder import StoredRelease
from dalenius.threats.chance import SHARE, clopper_pearson, largest_rate, least_level, least_rate
from dalenius.threats.original import shared_coins
from dalenius.threats.result import AttackResult, Threat, make_result

_MOST_ROWS = 2**18
"""Of more rows of a view a random choice is looked at."""
_NOISIER = "publish with parameters for the number of views that there will be"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCase:
    """What the manifest states, and how many tuples of the table and of the noise a view shows."""

    law: ViewLaw
    """Of all views of the series."""
    d: Fraction
    gamma: Fraction
    domain_size: int
    n_table: int
    n_shown: int
    """Of the table's tuples."""
    n_noise: int
    index: int = 1
    """Which view of its series it is."""
    kept_stated: float | None = None
    """How many of the table's tuples should be shown, where noise is not uniform; None: it is."""
    noise_stated: float | None = None
    """How many others should be, where noise is not uniform."""

    @classmethod
    def of(cls, view: PublishedView, tuples: ComparedTuples) -> ViewCase:
        """Count a view's rows and the table's distinct ones."""
        n_shown = int(tuples.is_shown.sum())
        n_rows = len(distinct_words(tuples.row_words)) + tuples.n_outside
        kept, noise = _expect_shaped(view, tuples)
        return cls(
            law=view.law,
            d=view.d,
            gamma=view.gamma,
            domain_size=view.domain_size,
            n_table=len(tuples.own_words),
            n_shown=n_shown,
            n_noise=n_rows - n_shown,
            index=view.index,
            kept_stated=kept,
            noise_stated=noise,
        )

    @property
    def is_changing(self) -> bool:
        """Whether the views are of a table that changes."""
        return isinstance(self.law, ChangingLaw)

    @property
    def own_law(self) -> ViewLaw:
        """The law of this view by itself: noise that earlier views have shown comes again more often."""
        return self.law if self.index == 1 else marginal_law(self.law, self.index)

    @property
    def outside(self) -> int:
        """How many tuples of the domain are not in the table."""
        return self.domain_size - self.n_table

    @property
    def kept_scale(self) -> float:
        """From the share of the table that is shown to the rate at the tuple that gets the most noise."""
        return 1.0 if self.kept_stated is None else self._retention * self.n_table / self.kept_stated

    @property
    def noise_scale(self) -> float:
        """The same for the share of all other tuples that is shown."""
        beta = float(self.own_law.beta)
        return 1.0 if self.noise_stated is None else beta * self.outside / self.noise_stated

    @property
    def _retention(self) -> float:
        return float(self.own_law.retention)


def _expect_shaped(view: PublishedView, tuples: ComparedTuples) -> tuple[float | None, float | None]:
    """How many tuples of the table, and of all others, noise by a declared distribution should show."""
    if view.noise is None:
        return None, None
    share = view.noise.relative(tuples.own)
    inserted = float(view.law.beta) * float(share.sum())
    kept = float(view.law.alpha) * len(share) + inserted
    return kept, float(view.noise_rows) - inserted


def attack_one_tuple(case: ViewCase) -> AttackResult:
    """The posterior of a tuple of prior d that the view shows, from how many it really shows."""
    kept = case.kept_scale * case.n_shown / max(case.n_table, 1)
    inserted = case.noise_scale * case.n_noise / max(case.outside, 1)
    return _judge(
        case,
        "linking",
        threat=Threat(
            knows=f"a tuple that is in the table with probability {float(case.d):.3g}, whatever others are",
            wants="whether it is, having seen it in the view",
            covered=True,
        ),
        success=_posterior(case, kept, inserted),
        detail={
            "kept": kept,
            "kept_stated": float(case.own_law.retention),
            "inserted": inserted,
            "inserted_stated": float(case.own_law.beta),
            "view": case.index,
        },
        advice="more is kept or less inserted than stated: publish again",
    )


def _judge(
    case: ViewCase, name: str, *, threat: Threat, success: float, detail: dict[str, Any], advice: str
) -> AttackResult:
    """The belief in a tuple that is shown, against the promise, from how many are shown."""
    p_value = _p_value(case)
    return AttackResult(
        name=name,
        threat=threat,
        success=success,
        interval=_interval(case),
        baseline=float(case.d),
        bound=float(case.gamma),
        holds=p_value > SHARE,
        p_value=p_value,
        n_trials=case.n_shown + case.n_noise,
        detail=detail,
        advice=advice,
    )


def attack_correlated_tuples(case: ViewCase) -> AttackResult:
    """Two brothers (theorem 6.1): tuples that are in the table together or not at all, both in the view."""
    ratio = case.law.retention / case.law.beta
    posterior = repeat_evidence(case.d, ratio, 2)
    return _exact(
        "correlated tuples",
        Threat(
            knows="two tuples that are in the table both or neither, with the prior of one",
            wants="whether they are, having seen both in the view",
            covered=False,
        ),
        posterior=posterior,
        baseline=case.d,
        bound=None,
        advice="the promise is for independent tuples: a smaller gamma leaves less to be learnt"
        if posterior > case.gamma
        else None,
    )


def attack_likely_tuples(case: ViewCase, tuples: ComparedTuples) -> AttackResult:
    """Who learns from the view how often each column has each value thinks tuples of common values likely.

    With columns taken as independent, a tuple has the prior n·Π f_j, and by the law of the view a posterior;
    the attacker names the rows for which that is at least 1/2.
    """
    rng, law, size = np.random.default_rng(0), case.own_law, float(case.domain_size)
    n_rows = len(tuples.row_words)
    chosen = np.zeros(n_rows, dtype=np.bool_)
    chosen[rng.choice(n_rows, min(n_rows, _MOST_ROWS), replace=False)] = True
    alpha, beta, retention = float(law.alpha), float(law.beta), float(law.retention)
    n_table = max((n_rows - beta * size) / alpha, 1.0) if alpha else 1.0
    prior = np.full(int(chosen.sum()), np.log(n_table))
    for codes, n_values in zip(tuples.rows_of(chosen), tuples.domain.sizes, strict=True):
        seen = np.bincount(codes, minlength=n_values) * (n_rows / max(len(prior), 1))
        own = np.maximum(seen - beta * size / n_values, 1.0)
        prior += np.log(own / own.sum())[codes]
    share = np.minimum(np.exp(prior), 0.99)
    named = share * retention >= (1 - share) * beta
    right = tuples.is_own[chosen]
    success = float(right[named].mean()) if named.any() else 0.0
    return make_result(
        "likely tuples",
        Threat(
            knows="how often each column has each value, from the view, and nothing else",
            wants="rows of the view that are in the table",
            covered=False,
        ),
        successes=int(right[named].sum()),
        trials=int(named.sum()),
        baseline=float(right.mean()) if len(right) else None,
        detail={"named": float(named.mean()) if len(named) else 0.0},
        advice="nothing is promised about tuples that are likelier than d: leave out columns in which one "
        "value is common, or use a smaller gamma"
        if success > case.gamma
        else None,
    )


def attack_exclusive_set(case: ViewCase) -> AttackResult:
    """Negative leakage (example 6.4): of a set of 1/d tuples exactly one is in the table; one is in the view.

    What is left of the prior of a tuple that the view does not show: the factor by which belief falls, which
    the promise bounds by d/γ for independent tuples. The result is the belief that is lost.
    """
    n = max(2, int(1 / case.d))
    s, beta = case.law.retention, case.law.beta
    unseen = (1 - s) / (1 - beta)
    factor = n * unseen / ((n - 1) * unseen + s / beta)
    return _exact(
        "negative leakage",
        Threat(
            knows=f"a set of {n:,} tuples of which exactly one is in the table; the view shows one of them",
            wants="to rule out another one",
            covered=False,
        ),
        posterior=1 - factor,
        baseline=Fraction(0),
        bound=None,
        advice="[mechanism] exclusive = true plans against such sets (positive leakage only)"
        if factor < case.d / case.gamma
        else None,
    )


def attack_views(case: ViewCase, n_views: int | None = None) -> AttackResult:
    """The largest posterior over all patterns of appearance in the views that are or will be published.

    With `n_views` beyond what was planned nothing is promised, but what was planned for fewer is no defence.
    """
    views = case.law.views if n_views is None else max(n_views, case.law.views)
    decay = case.law.decay if views == case.law.views else usual_decay(views)
    law = replace(case.law, views=views, decay=decay)
    posterior = law.worst_posterior(case.d)
    return _exact(
        "several views",
        Threat(
            knows=f"all {views} view(s) of the table, and a tuple of prior {float(case.d):.3g}",
            wants="whether the tuple is in the table"
            + (" at any of their dates, whenever it may have come and gone" if case.is_changing else ""),
            covered=views == case.law.views,
        ),
        posterior=posterior,
        baseline=case.d,
        bound=case.gamma,
        advice=_NOISIER,
    )


def attack_independent_views(case: ViewCase, others: int) -> AttackResult:
    """A tuple that independent views, which were not planned together, all show: ratios multiply."""
    posterior = repeat_evidence(case.d, case.law.largest_ratio(), 1 + others)
    return _exact(
        "two releases",
        Threat(
            knows=f"{1 + others} independent releases of the table, and a tuple of prior {float(case.d):.3g}",
            wants="whether the tuple is in the table",
            covered=False,
        ),
        posterior=posterior,
        baseline=case.d,
        bound=case.gamma,
        advice=_NOISIER,
    )


def attack_all_views(case: ViewCase, tuples: ComparedTuples, earlier: list[StoredRelease]) -> AttackResult:
    """The posterior of a tuple that all views of a series so far show, from how many they really show."""
    always = distinct_words(tuples.row_words)
    for view in earlier:
        always = always[are_among(always, find_rows(tuples.domain, view)[0])]
    n_kept = int(are_among(always, tuples.own_words).sum())
    both = replace(case, n_shown=n_kept, n_noise=len(always) - n_kept)
    return _judge(
        both,
        "every view",
        threat=Threat(
            knows=f"{1 + len(earlier)} views of the table, and a tuple of prior {float(case.d):.3g}",
            wants="whether the tuple, which every one of them shows, is in the table",
            covered=True,
        ),
        success=_posterior(both, n_kept / max(case.n_table, 1), both.n_noise / max(case.outside, 1)),
        detail={"shown_by_all": len(always), "of_the_table": n_kept},
        advice="noise does not come again as often as it should: was each view drawn in view of the "
        "earlier ones?",
    )


def attack_shared_noise(case: ViewCase, tuples: ComparedTuples, other: StoredRelease) -> AttackResult:
    """Independent views show the same noise only by chance."""
    noise = distinct_words(tuples.row_words[~tuples.is_own])
    second = distinct_words(find_rows(tuples.domain, other)[0])
    hits = int(are_among(noise, second).sum())
    expected = case.n_noise * (len(second) / max(case.domain_size, 1))
    return shared_coins(hits, expected, case.n_noise)


def _interval(case: ViewCase) -> tuple[float, float]:
    kept = clopper_pearson(case.n_shown, case.n_table)
    inserted = clopper_pearson(case.n_noise, case.outside)
    return _at_rates(case, kept[0], inserted[1]), _at_rates(case, kept[1], inserted[0])


def _p_value(case: ViewCase) -> float:
    """Of a posterior above what is promised, at the least that may be kept and the most that is inserted."""

    def is_broken(tail: float) -> bool:
        kept = least_rate(case.n_shown, case.n_table, tail)
        return _at_rates(case, kept, largest_rate(case.n_noise, case.outside, tail)) > float(case.gamma)

    return least_level(is_broken)


def _at_rates(case: ViewCase, kept: float, inserted: float) -> float:
    """The posterior if these shares of the table and of all other tuples are shown."""
    # of tuples with different rates the sum varies less than a binomial one with the same mean
    return _posterior(case, case.kept_scale * kept, case.noise_scale * inserted)


def _posterior(case: ViewCase, kept: float, inserted: float) -> float:
    d = float(case.d)
    return d * kept / max(d * kept + (1 - d) * inserted, 1e-300)


def _exact(
    name: str,
    threat: Threat,
    *,
    posterior: Fraction,
    baseline: Fraction,
    bound: Fraction | None,
    advice: str | None,
) -> AttackResult:
    return AttackResult(
        name=name,
        threat=threat,
        success=float(posterior),
        baseline=float(baseline),
        bound=None if bound is None else float(bound),
        holds=None if bound is None else posterior <= bound,
        advice=advice,
    )
