"""Attacks on αβ views: one tuple, correlated tuples, sets of which one is in the table, several views."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from dalenius.attacks.interval import FALSE_ALARM, clopper_pearson
from dalenius.attacks.original import code_column, combine, read_table
from dalenius.attacks.result import AttackResult, computed
from dalenius.attacks.threat import Threat
from dalenius.errors import InputError
from dalenius.mechanisms.alphabeta.law import ViewLaw, usual_decay
from dalenius.release.reader import StoredRelease

_NOISIER = "publish with parameters for the number of views that there will be"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewCase:
    """What the manifest states, and how many tuples of the table and of the noise a view shows."""

    law: ViewLaw
    d: Fraction
    gamma: Fraction
    domain_size: int
    n_table: int
    n_shown: int
    """Of the table's tuples."""
    n_noise: int

    @classmethod
    def load(cls, release: StoredRelease, original: pa.Table) -> ViewCase:
        """Compare a view's rows with the table's distinct ones."""
        stated = release.manifest["parameters"]
        if stated.get("noise_shares") is not None or stated.get("method", "alpha-beta") != "alpha-beta":
            raise InputError("only views with uniform noise can be audited")
        names = (*release.columns("quasi"), *release.columns("sensitive"))
        (table,) = [entry["name"] for entry in release.manifest["tables"]]
        view = read_table(release, table, names)
        own, shown = combine([code_column(name, (original, view)) for name in names])
        own, shown = np.unique(own), np.unique(shown)
        n_shown = int(np.isin(shown, own).sum())
        beta = Fraction(stated["beta"])
        return cls(
            law=ViewLaw(
                retention=Fraction(stated["alpha"]) + beta,
                beta=beta,
                views=int(stated["views"]),
                decay=Fraction(stated["decay"]),
            ),
            d=Fraction(stated["d"]),
            gamma=Fraction(stated["gamma"]),
            domain_size=int(stated["domain_size"]),
            n_table=len(own),
            n_shown=n_shown,
            n_noise=len(shown) - n_shown,
        )


def attack_one_tuple(case: ViewCase) -> AttackResult:
    """The posterior of a tuple of prior d that the view shows, from how many it really shows."""
    outside = case.domain_size - case.n_table
    low = _posterior(case, *_rates(case, 0.95)[0])
    high = _posterior(case, *_rates(case, 0.95)[1])
    doubtless = _posterior(case, *_rates(case, 1 - FALSE_ALARM)[0])
    holds = doubtless <= float(case.gamma)
    return computed(
        "linking",
        Threat(
            knows=f"a tuple that is in the table with probability {float(case.d):.3g}, whatever others are",
            wants="whether it is, having seen it in the view",
            covered=True,
        ),
        posterior=_posterior(case, case.n_shown / max(case.n_table, 1), case.n_noise / max(outside, 1)),
        interval=(low, high),
        baseline=float(case.d),
        bound=float(case.gamma),
        holds=holds,
        n_trials=case.n_shown + case.n_noise,
        detail={
            "kept": case.n_shown / max(case.n_table, 1),
            "kept_stated": float(case.law.retention),
            "inserted": case.n_noise / max(outside, 1),
            "inserted_stated": float(case.law.beta),
        },
        recommendation="more is kept or less inserted than stated: publish again",
    )


def attack_correlated_tuples(case: ViewCase) -> AttackResult:
    """Two brothers (theorem 6.1): tuples that are in the table together or not at all, both in the view."""
    ratio = case.law.retention / case.law.beta
    posterior = _bayes(case.d, ratio * ratio)
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
        recommendation="the promise is for independent tuples: a smaller gamma leaves less to be learnt"
        if posterior > case.gamma
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
        recommendation="[mechanism] exclusive = true plans against such sets (positive leakage only)"
        if factor < case.d / case.gamma
        else None,
    )


def attack_views(case: ViewCase, n_views: int | None = None) -> AttackResult:
    """The largest posterior over all patterns of appearance in the views that are or will be published.

    With `n_views` beyond what was planned nothing is promised, but what was planned for fewer is no defence.
    """
    views = case.law.views if n_views is None else max(n_views, case.law.views)
    law = ViewLaw(
        retention=case.law.retention,
        beta=case.law.beta,
        views=views,
        decay=case.law.decay if views == case.law.views else usual_decay(views),
    )
    posterior = law.worst_posterior(case.d)
    return _exact(
        "several views",
        Threat(
            knows=f"all {views} view(s) of the table, and a tuple of prior {float(case.d):.3g}",
            wants="whether the tuple is in the table",
            covered=views == case.law.views,
        ),
        posterior=posterior,
        baseline=case.d,
        bound=case.gamma,
        recommendation=_NOISIER,
    )


def _rates(case: ViewCase, confidence: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """(kept, inserted) that make the posterior least, and largest."""
    kept = clopper_pearson(case.n_shown, case.n_table, confidence)
    inserted = clopper_pearson(case.n_noise, case.domain_size - case.n_table, confidence)
    return (kept[0], inserted[1]), (kept[1], inserted[0])


def _posterior(case: ViewCase, kept: float, inserted: float) -> float:
    d = float(case.d)
    return d * kept / max(d * kept + (1 - d) * inserted, 1e-300)


def _bayes(prior: Fraction, ratio: Fraction) -> Fraction:
    odds = ratio * prior / (1 - prior)
    return odds / (1 + odds)


def _exact(
    name: str,
    threat: Threat,
    *,
    posterior: Fraction,
    baseline: Fraction,
    bound: Fraction | None,
    recommendation: str | None,
) -> AttackResult:
    return computed(
        name,
        threat,
        posterior=float(posterior),
        baseline=float(baseline),
        bound=None if bound is None else float(bound),
        holds=None if bound is None else posterior <= bound,
        recommendation=recommendation,
    )
