"""A plan of suppression: how many records of each value are kept, decided before bucketization.

What each method promises about Pr[a value was the commonest of the whole table | what is published]:

- ``safe``: at most 1/ℓ, for every prior that treats the values' names alike, also against one who
  knows the sorted counts.
- ``randomized``: R-suppression as printed. No bound: `SuppressPlan.worst_posterior` says what it is.
- ``exact``: at most 1/ℓ, for the uniform prior over the violating histograms of size n; not against
  one who knows the sorted counts.

All of them assume that equal counts were ranked in secret (`draw` does it), that the records to
withhold are a uniformly random choice within each value, that the attacker does not know the
commonest value beforehand, and that the method was chosen without looking at the counts or at a
draw: trying a second method because of what the first one withheld is information, and so is
redrawing. That a table needed suppression at all is not hidden: fewer rows are published than n.

After a view is published, how sure an attacker can be of the commonest value is a function of what she sees
(the view, n, ℓ and the method), so a manifest can state it (`view_posterior`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dalenius.errors import InputError, InternalError, did_you_mean
from dalenius.mechanisms.suppress.d_suppression import (
    Counts,
    CutPosterior,
    Law,
    check_counts,
    draw_from,
    expect_suppressed,
    is_eligible,
    minimal_suppression,
    safe_d,
    safe_posterior,
    secret_ranks,
    suppress_all,
    unsafe_d,
)
from dalenius.mechanisms.suppress.exact import exact_law, exact_posterior, exact_view_posterior
from dalenius.mechanisms.suppress.r_posterior import (
    MOST_WORK,
    largest,
    r_posteriors,
    work_of,
    worst_r_posterior,
)
from dalenius.mechanisms.suppress.r_suppression import RSuppression
from dalenius.randomness import Randomness
from dalenius.tables.histogram import Counted

N_LISTED = 10_000
"""A law with more outcomes than this is not listed in the plan."""
N_JUDGED = 40
"""Of a law with more outcomes than this, so many are judged for the worst posterior."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressPlan(Counted):
    """What a method will do to a table, before any coin is tossed. It holds private counts."""

    method: str
    l: int  # noqa: E741  (the policy's own name)
    counts: Counts
    law: tuple[tuple[Counts, Fraction], ...] | None
    """Each outcome and its probability; counts in descending order of the table's counts, equal ones
    in secret order. None where there are too many to list."""
    expected_suppressed: Fraction
    worst_posterior: CutPosterior | None
    """The largest over all outcomes; None for a table that is eligible as it is, or if it is not known."""
    probability_of_no_release: Fraction
    """How likely it is that nothing is kept, and then there is no release."""
    safe_suppressed: int
    """What safe D-suppression would withhold instead."""

    @property
    def is_needed(self) -> bool:
        """Whether the table breaks ℓ-eligibility, so that something must be withheld."""
        return not is_eligible(self.counts, self.l)

    def draw(self, stream: np.random.Generator) -> Counts:
        """How many records of each value to keep, in the order of `counts`. To be called once."""
        ranks = secret_ranks(self.counts, stream)
        if self.law is not None:
            kept = draw_from(dict(self.law), stream)
        else:
            kept = RSuppression([self.counts[value] for value in ranks], self.l).draw(stream)
        by_value = dict(zip(ranks, kept, strict=True))
        return tuple(by_value[value] for value in range(len(self.counts)))

    def __str__(self) -> str:
        expected = float(self.expected_suppressed)
        lines = [
            f"suppress, method {self.method}, l = {self.l}",
            f"  rows                    {self.n_rows}",
            f"  withheld (expected)     {expected:.1f} ({expected / self.n_rows:.2%})",
            f"  withheld by safe        {self.safe_suppressed} ({self.safe_suppressed / self.n_rows:.2%})",
        ]
        if self.is_needed:
            worst = self.worst_posterior
            found = "not computed" if worst is None else f"{float(worst.value):.4f} ({worst.how})"
            lines.append(f"  worst posterior         {found}")
        else:
            lines.append("  no value is too common: nothing will be withheld")
        return "\n".join(lines)


def plan_suppression(counts: Sequence[int], l: int, method: str = "safe") -> SuppressPlan:  # noqa: E741
    """The plan of a method for a table with these counts of its sensitive values.

    >>> plan = plan_suppression((2, 1, 10, 4, 1), 3, "safe")
    >>> plan.expected_suppressed, plan.worst_posterior.value
    (Fraction(10, 1), Fraction(1, 3))
    >>> plan.draw(Randomness.seeded(1).stream("suppress"))
    (2, 1, 2, 2, 1)
    """
    check_counts(counts, l)
    if method not in METHODS:
        raise InputError(f"no method of suppression is called {method!r}; {did_you_mean(method, METHODS)}")
    if is_eligible(counts, l):
        return _plan_without_suppression(tuple(counts), l, method)
    return METHODS[method](tuple(counts), l)


def expect_costs(counts: Sequence[int], l: int) -> dict[str, Fraction]:  # noqa: E741
    """What each method withholds on average, with three baselines that are not for publishing.

    >>> {name: str(cost) for name, cost in expect_costs((10, 4, 2, 1, 1), 3).items()}
    {'minimal': '6', 'lower bound': '6', 'exact': '6', 'randomized': '71/9', 'safe': '10', 'all': '18'}
    """
    check_counts(counts, l)
    if is_eligible(counts, l):
        names = ("minimal", "lower bound", "exact", "randomized", "safe")
        return {name: Fraction(0) for name in names} | {"all": Fraction(sum(counts))}
    ranked, n_rows = _rank(counts), sum(counts)
    return {
        "minimal": Fraction(n_rows - sum(minimal_suppression(ranked, l))),
        "lower bound": Fraction(n_rows - sum(unsafe_d(ranked, l))),
        "exact": expect_suppressed(exact_law(ranked, l), n_rows),
        "randomized": RSuppression(ranked, l).expected_suppressed(),
        "safe": Fraction(n_rows - sum(safe_d(ranked, l))),
        "all": Fraction(n_rows - sum(suppress_all(ranked))),
    }


def _rank(counts: Sequence[int]) -> Counts:
    """The counts in rank order; which of equal counts comes first does not matter to a law."""
    return tuple(sorted(counts, reverse=True))


def _plan_without_suppression(counts: Counts, ell: int, method: str) -> SuppressPlan:
    return SuppressPlan(
        method=method,
        l=ell,
        counts=counts,
        law=((_rank(counts), Fraction(1)),),
        expected_suppressed=Fraction(0),
        worst_posterior=None,
        probability_of_no_release=Fraction(0),
        safe_suppressed=0,
    )


def _plan_from_law(counts: Counts, ell: int, method: str, law: Law, worst: CutPosterior) -> SuppressPlan:
    return SuppressPlan(
        method=method,
        l=ell,
        counts=counts,
        law=tuple(law.items()),
        expected_suppressed=expect_suppressed(law, sum(counts)),
        worst_posterior=worst,
        probability_of_no_release=law.get(suppress_all(counts), Fraction(0)),
        safe_suppressed=sum(counts) - sum(safe_d(_rank(counts), ell)),
    )


def _plan_safe(counts: Counts, ell: int) -> SuppressPlan:
    ranked = _rank(counts)
    law = {safe_d(ranked, ell): Fraction(1)}
    return _plan_from_law(counts, ell, "safe", law, safe_posterior(ranked, ell))


def _plan_exact(counts: Counts, ell: int) -> SuppressPlan:
    ranked = _rank(counts)
    return _plan_from_law(counts, ell, "exact", exact_law(ranked, ell), exact_posterior(ranked, ell))


def _plan_randomized(counts: Counts, ell: int) -> SuppressPlan:
    ranked = _rank(counts)
    table = RSuppression(ranked, ell)
    # The simulation is no secret and its stream is fixed, so that planning is repeatable.
    worst = worst_r_posterior(table, N_JUDGED, Randomness.seeded(0).stream("posterior"))
    return SuppressPlan(
        method="randomized",
        l=ell,
        counts=counts,
        law=tuple(table.law().items()) if table.n_outcomes() <= N_LISTED else None,
        expected_suppressed=table.expected_suppressed(),
        worst_posterior=worst,
        probability_of_no_release=Fraction(0) if any(table.outcome(0)) else table.probability_of_level(0),
        safe_suppressed=sum(counts) - sum(safe_d(ranked, ell)),
    )


METHODS: dict[str, Callable[[Counts, int], SuppressPlan]] = {
    "safe": _plan_safe,
    "randomized": _plan_randomized,
    "exact": _plan_exact,
}


def view_posterior(method: str, view: Sequence[int], n_rows: int, ell: int) -> CutPosterior | None:
    """The largest posterior that a view of a table of n rows gives to any value.

    None if nothing was withheld, or if there is too much to compute.

    >>> str(view_posterior("safe", (2, 2, 2, 1, 1), 18, 3).value)
    '1/3'
    >>> round(float(view_posterior("randomized", (4, 4, 2, 1, 1), 18, 3).value), 3)
    0.467
    """
    if sum(view) == n_rows:
        return None
    ranked = sorted(view, reverse=True)
    if method == "safe":
        return safe_posterior(ranked, ell)
    if method == "exact":
        return exact_view_posterior(ranked, n_rows, ell)
    if method == "randomized":
        # The simulation is no secret and its stream is fixed, so that everybody finds the same number.
        stream = Randomness.seeded(0).stream("posterior")
        if work_of(ranked, n_rows, ell) > MOST_WORK:
            return None
        return largest(r_posteriors(ranked, n_rows, ell, stream).values())
    raise InternalError(f"no posterior is known for method {method!r}")
