"""Which limits coins could keep, before a policy is written."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dalenius.errors import DaleniusError
from dalenius.exact import percent
from dalenius.mechanisms.feasible import Finding, Proposal, TableFacts, Wish, one_limit
from dalenius.mechanisms.perturb.config import PerturbConfig
from dalenius.mechanisms.perturb.plan.methods import plan_for_release
from dalenius.promises.rho_privacy import RhoPrivacy

_LIMITS = {
    "colleagues": ("1/2", "2/3", "3/4", "9/10"),
    "researchers": ("1/2", "2/3", "3/4", "9/10"),
    "public": ("1/3", "1/2", "2/3", "3/4", "9/10"),
}
"""ρ2 that are tried in turn, by who gets the release."""
_RARE = ("19/20", "49/50", "99/100", "199/200", "999/1000")
"""Where one value is so common that none of them can be kept."""
_SECTIONS = """\
[promise]                     # a belief of at most rho1 in a value becomes at most rho2
kind = "rho-privacy"
rho1 = "max"                  # the share of the commonest value: all values are protected
rho2 = "{rho2}"

[mechanism]
kind   = "perturb"
method = "small-domain"       # small-domain | uniform
"""


def find(facts: TableFacts) -> Finding:
    """The limit that no release can keep: the share of the commonest value."""
    histogram = facts.histogram
    share = None if histogram is None else max(histogram.counts) / histogram.n_rows
    return Finding(data={"rho2_above": share})


def propose(facts: TableFacts, wish: Wish) -> Proposal | None:
    """Coins, where other programs read single records; the same people's coins cannot be tossed twice."""
    if wish.hide != "value" or wish.questions != "records" or wish.again != "no":
        return None
    rho2, why = _least_limit(facts, _LIMITS[wish.recipients])
    return Proposal(
        sections=_SECTIONS.format(rho2=rho2),
        reasons=(
            "perturb: every record keeps its columns, and its sensitive value is its own or one drawn at "
            "random, so that programs that read records can read the release",
            f"rho2 = {rho2}: {why}",
        ),
    )


def _least_limit(facts: TableFacts, limits: tuple[str, ...]) -> tuple[str, str]:
    """The strictest of the limits that the table allows, and why this one."""
    if facts.histogram is None:
        return limits[0], "`dalenius plan` says whether the table allows it"
    share = Fraction(max(facts.histogram.counts), facts.n_rows)
    usual = "the strictest of the usual limits that this table allows"
    rarely = (
        f"the commonest value makes up {percent(share)} of the table, and nobody can be kept from guessing "
        "it; no stricter limit was found that coins can keep"
    )
    for limit in (*limits, *_RARE):
        promise = RhoPrivacy(rho1=None, rho2=Fraction(limit))
        try:
            plan_for_release(facts.histogram.counts, promise, "small-domain")
        except DaleniusError:
            continue
        return limit, usual if limit in limits else rarely
    return limits[-1], (
        f"NO limit was found that coins can keep: the commonest value makes up {percent(share)} of the "
        "table, which everybody can guess"
    )


def match(facts: TableFacts, promise: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same promise, or of one about all values or rows alike the nearest."""
    kind = promise.get("kind")
    # coins of single values say nothing about near numbers, about sets, or about groups together
    if facts.histogram is None or kind in ("proximity", "sets") or "groups" in promise:
        return None
    nearest = {"kind": "rho-privacy", "rho1": "max", "rho2": str(one_limit(promise))}
    return {
        "promise": dict(promise) if kind in PerturbConfig.promises else nearest,
        "mechanism": {"kind": "perturb"},
    }
