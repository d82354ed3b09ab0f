"""What a release tells about its own suppression, checked on the published tables in exact integers."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from dalenius.mechanisms.base import Check
from dalenius.mechanisms.suppress.d_suppression import is_candidate_for_l
from dalenius.mechanisms.suppress.published import read
from dalenius.release.manifest import Manifest


def check_stage(manifest: Manifest, counts: Iterable[int]) -> Check:
    """Whether what was withheld fits the method that the manifest names.

    Args:
        manifest: what the release says.
        counts: how many published records have each value.
    """
    problem = _problem(manifest, sorted(counts, reverse=True))
    withheld = manifest.rows.suppressed
    fine = f"{withheld} records were withheld, and the counts fit the method" if withheld else "none withheld"
    return Check(name="suppression", ok=problem is None, detail=problem or fine)


def _problem(manifest: Manifest, counts: list[int]) -> str | None:
    withheld = manifest.rows.suppressed
    if not withheld:
        return None
    stated = read(manifest)
    if stated is None:
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
