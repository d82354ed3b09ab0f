"""Which (d,γ) a table allows, and what each would cost, before a policy is written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dalenius.errors import PromiseNotMet
from dalenius.mechanisms.alphabeta.plan.law import alphabeta_rho, choose_law
from dalenius.mechanisms.feasible import Finding, Proposal, TableFacts, TextTable, Wish, one_limit
from dalenius.mechanisms.tuples.plan import warn_of_impossibility
from dalenius.promises.d_gamma_privacy import DGammaPrivacy

KS = (Fraction(2), Fraction(10), Fraction(100))
GAMMA = Fraction(1, 5)
_MISS = 0.05
_USEFUL = 0.1
_HEADINGS = ("k", "d = k·n/m", "rho at gamma = 0.2", "error of a count", "gamma for an error below 10 %")


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """What is possible for attackers who think a tuple k times as likely as chance does."""

    k: Fraction
    d: Fraction
    """k·n/m; no γ below it can be kept."""
    rho: float | None
    """Of the law that keeps γ = 0.2; None: not possible."""
    error_rows: float | None
    """One count is then within this many rows, with probability 0.95."""
    useful_gamma: Fraction | None
    """The smallest γ, in hundredths, that leaves counts within a tenth of the rows; None: there is none."""
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """As `inspect --json` prints it."""
        return {
            "k": int(self.k),
            "d": float(self.d),
            "gamma": float(GAMMA),
            "rho": self.rho,
            "error_rows": self.error_rows,
            "useful_gamma": None if self.useful_gamma is None else float(self.useful_gamma),
            "warnings": list(self.warnings),
        }


def find(facts: TableFacts) -> Finding:
    """Which (d,γ) a view of the columns whose values repeat could keep, and at which error."""
    columns = [column for column in facts.columns if column.n_distinct < max(facts.n_rows, 2)]
    domain_size = math.prod(column.n_distinct for column in columns)
    region = feasible_region(facts.n_rows, domain_size) if facts.n_rows and columns else ()
    data = {
        "columns": [column.name for column in columns],
        "domain_size": domain_size,
        "region": [one.to_dict() for one in region],
    }
    heading = (
        f"\nd-gamma-privacy of whole rows, {len(columns)} columns, {domain_size:,} possible rows (with "
        "declared domains there are more, which helps):"
    )
    warnings = dict.fromkeys(f"warning: {text}" for one in region for text in one.warnings)
    table = TextTable(headings=_HEADINGS, rows=tuple(map(_row, region)))
    return Finding(data={"d_gamma": data}, text=(heading, table, *warnings) if region else ())


def _row(one: Feasible) -> tuple[str, ...]:
    return (
        f"{float(one.k):g}",
        f"{float(one.d):.3g}",
        "–" if one.rho is None else f"{one.rho:.3g}",
        "not possible" if one.error_rows is None else f"±{one.error_rows:,.0f}",
        "none" if one.useful_gamma is None else f"{float(one.useful_gamma):g}",
    )


_SECTIONS = """\
[promise]                     # a row that an attacker gave k times its chance becomes at most gamma likely
kind  = "d-gamma-privacy"
k     = {k}
gamma = {gamma}

[mechanism]
kind       = "alpha-beta"
views      = {views}                # how many views of this table will ever be published
# duplicates = "distinct"     # where rows repeat: answers count different rows; or "copies"
# domains    = "active"       # tells which values occur; better: list the possible ones under [domains]
"""
_GAMMAS = {"colleagues": "0.5", "researchers": "0.3", "public": "0.2"}


def propose(facts: TableFacts, wish: Wish) -> Proposal | None:  # noqa: ARG001  (the domain is not declared yet)
    """Views, where being in the table is itself a secret, or the same people are published again."""
    if wish.hide != "presence" and wish.again != "same":
        return None
    why = (
        "that somebody is in the table must not be known, and every published row may be made up"
        if wish.hide == "presence"
        else "the same people are published again, and only views are made to be seen together"
    )
    reasons = [f"alpha-beta: {why}", f"gamma = {_GAMMAS[wish.recipients]}, by who gets it"]
    if wish.again == "same":
        reasons.append("views = 2: say now how many there will ever be; together they keep the promise")
    if wish.questions == "records":
        reasons.append("rows of a view are not people: single records cannot be read from it")
    views = 2 if wish.again == "same" else 1
    text = _SECTIONS.format(k=int(KS[1]), gamma=_GAMMAS[wish.recipients], views=views)
    return Proposal(sections=text, reasons=tuple(reasons))


def feasible_region(n_rows: int, domain_size: int) -> tuple[Feasible, ...]:
    """For some k: what is possible for a table of `n_rows` different rows.

    >>> [one.rho is not None for one in feasible_region(30_162, 648_023_040)]
    [True, True, True]
    """
    return tuple(_feasible(k, n_rows, domain_size) for k in KS)


def _feasible(k: Fraction, n_rows: int, domain_size: int) -> Feasible:
    rho = _rho(k, GAMMA, n_rows, domain_size)
    d = k * n_rows / domain_size
    low, high = 0, 100
    while high - low > 1:  # more allowed, less error
        middle = (low + high) // 2
        found = _rho(k, Fraction(middle, 100), n_rows, domain_size)
        if found is not None and found * math.sqrt(n_rows) <= _USEFUL * n_rows:
            high = middle
        else:
            low = middle
    return Feasible(
        k=k,
        d=d,
        rho=rho,
        error_rows=None if rho is None else rho * math.sqrt(n_rows),
        useful_gamma=Fraction(high, 100) if high < 100 else None,
        warnings=() if rho is None else warn_of_impossibility(d, domain_size, n_rows, rho, _MISS),
    )


def _rho(k: Fraction, gamma: Fraction, n_rows: int, domain_size: int) -> float | None:
    """The (ρ,ε)-usefulness of the law that keeps (d,γ); None: there is no such law."""
    promise = DGammaPrivacy(gamma=gamma, k=k)
    try:
        law = choose_law(promise.prior_bound(n_rows, Fraction(1, domain_size)), gamma)
    except PromiseNotMet:
        return None
    s = law.retention
    return alphabeta_rho(
        alpha=law.alpha,
        kept_variance=float(s * (1 - s)),
        noise_variance=float(law.beta * domain_size),
        n_rows=n_rows,
        miss=_MISS,
    )


def match(facts: TableFacts, promise: Mapping[str, Any]) -> dict[str, Any] | None:  # noqa: ARG001
    """The nearest promise about whole rows: γ is the strictest limit, k = 10 as in the paper."""
    is_own = promise.get("kind") == DGammaPrivacy.kind
    nearest = {"kind": DGammaPrivacy.kind, "k": 10, "gamma": str(one_limit(promise))}
    return {
        "promise": dict(promise) if is_own else nearest,
        "mechanism": {"kind": "alpha-beta", "domains": "active", "duplicates": "distinct"},
    }
