"""What a release tells about its own suppression, checked on the published tables in exact integers."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.suppress.d_suppression import is_candidate_for_l
from dalenius.mechanisms.suppress.limits import fewest_alike
from dalenius.mechanisms.suppress.published import PublishedSuppression, read
from dalenius.mechanisms.suppress.statement import METHODS
from dalenius.promises.bounds import Thresholds
from dalenius.release.manifest import Manifest
from dalenius.tables.histogram import Histogram, write_cells


def check_stage(manifest: Manifest, counting: Callable[[], Histogram | None]) -> Check:
    """Whether what was withheld fits the method that the manifest names.

    Args:
        manifest: what the release says.
        counting: how many published records have each value, where it matters; None: the tables do not tell.
    """
    stated, withheld = read(manifest), manifest.rows.suppressed
    problem = None
    if stated is not None and stated.l is None:
        problem = _problem_of_limits(manifest, stated, counting())
    elif withheld:
        counted = counting()
        problem = _problem(manifest, sorted(() if counted is None else counted.counts, reverse=True))
    if problem is None and stated is not None:
        problem = _problem_of_words(stated, is_withheld=bool(withheld))
    fine = f"{withheld} records were withheld, and the counts fit the method" if withheld else "none withheld"
    return Check.of("suppression", problem, fine)


def _problem_of_words(stated: PublishedSuppression, *, is_withheld: bool) -> str | None:
    """What is said of the method's bound must be what was checked."""
    if stated.method not in METHODS:
        return f"the manifest names a method that there is not: {stated.method!a}"
    if not is_withheld or (stated.l is not None and not METHODS[stated.method].is_bounded):
        bound = None
    elif stated.l is not None:
        bound = Fraction(1, stated.l)
    else:
        bound = max(stated.limits, key=lambda limit: 1 / (limit.alike * limit.at_most)).at_most
    if stated.bound != bound:
        return f"the stated bound is {stated.bound}, and what was withheld gives {bound or 'none'}"
    posterior = stated.posterior
    if posterior is not None and posterior.exact is not None and posterior.value != float(posterior.exact):
        return f"the stated posterior {posterior.value} is not {posterior.exact}"
    return None


def _problem(manifest: Manifest, counts: list[int]) -> str | None:
    withheld, stated = manifest.rows.suppressed or 0, read(manifest)
    if stated is None or stated.l is None:
        return f"{withheld} records were withheld, and the manifest names no method"
    ell, posterior = stated.l, stated.posterior
    n_rows, padded = sum(counts) + withheld, counts + [0] * ell
    if not is_candidate_for_l(padded, n_rows, ell):
        return f"fewer than {ell} values can have been the commonest of the source (l-candidacy)"
    if stated.bound is not None and posterior is not None and posterior.is_above(Fraction(1, ell)):
        return f"the stated posterior {posterior.value:.4f} is above its bound 1/{ell}"
    if stated.method != "safe":
        return None
    n_highest = counts.count(counts[0])
    if n_highest < ell:
        return f"safe suppression leaves at least {ell} values equally common; {n_highest} are"
    if posterior is None or posterior.exact != Fraction(1, n_highest):
        return f"the stated posterior is not 1/{n_highest}"
    return None


def _problem_of_limits(
    manifest: Manifest, stated: PublishedSuppression, counted: Histogram | None
) -> str | None:
    """Of every limit that was passed, enough values look the same, and those that are said."""
    if bool(manifest.rows.suppressed) != bool(stated.limits):
        return (
            f"{manifest.rows.suppressed} records were withheld, and {len(stated.limits)} limits were passed"
        )
    for limit in stated.limits:
        if limit.alike < fewest_alike(limit.at_most, is_strict=False):
            return f"{limit.alike} values look the same: fewer than the limit {limit.at_most} needs"
    posterior = stated.posterior
    if posterior is not None and posterior.exact not in {Fraction(1, one.alike) for one in stated.limits}:
        return "the stated posterior is not one over the number of values that look the same"
    if counted is None or not stated.limits:
        return None
    thresholds = Thresholds.of(manifest.promise)
    pairs = [
        (thresholds.of_value(write_cells(value)), count)
        for value, count in zip(counted.values, counted.counts, strict=True)
    ]
    for limit in stated.limits:
        own = [count for at_most, count in pairs if at_most == limit.at_most]
        if own.count(max(own, default=0)) != limit.alike:
            return f"{limit.alike} values with the limit {limit.at_most} should look the same, and do not"
    return None
