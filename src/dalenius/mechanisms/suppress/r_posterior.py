"""The posterior after R-suppression on one table, for sizes at which not all tables can be listed.

A view w of a table of n rows was left by tables that agree with it except where records were
withheld. If S_1 = i, then T_i = w_i + what the others did not lose, and of the others only those that
w shows at its top level L, or just below it (a level that was not finished), can have lost any. Sorted
by how many of them lost some, these tables fall into strata of C(n - |w|, t) each: a small stratum is
summed exactly, a large one is sampled.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import comb, factorial, prod, sqrt
from typing import Literal

import numpy as np

from dalenius.mechanisms.dealing import distinct_integers
from dalenius.mechanisms.suppress.d_suppression import Counts, CutPosterior, is_candidate_for_l
from dalenius.mechanisms.suppress.r_suppression import RSuppression

N_LISTED = 2_000
"""Strata of up to this many tables are summed exactly."""
N_SAMPLED = 200
"""How many tables are drawn from a larger stratum."""
MOST_WORK = 5_000_000
"""No more than so many tables times values are looked at (about ten seconds)."""
_Z = 3.29  # of the intervals: 99.9 % for each sampled stratum
_NO_HIT = 7  # e^-7 < 0.001: a mean of more than 7/N shows up in N draws of [0, 1] weights


@dataclass(frozen=True, slots=True, kw_only=True)
class _Weight:
    """How much of the prior lies behind one hypothesis, with an interval."""

    value: Fraction
    low: Fraction
    high: Fraction

    def __add__(self, other: _Weight) -> _Weight:
        return _Weight(value=self.value + other.value, low=self.low + other.low, high=self.high + other.high)

    def __mul__(self, factor: int) -> _Weight:
        return _Weight(value=self.value * factor, low=self.low * factor, high=self.high * factor)


_NOTHING = _Weight(value=Fraction(0), low=Fraction(0), high=Fraction(0))


def work_of(view: Sequence[int], n_rows: int, ell: int) -> int:
    """How much there is to do for the posteriors of a view: tables to look at, times their values."""
    sorted_view = tuple(sorted(view, reverse=True))
    strata = (stratum for count in set(sorted_view) for stratum in _strata(sorted_view, count, n_rows, ell))
    sizes = (comb(stratum.n_withheld, len(stratum.cut)) for stratum in strata)
    return len(view) * sum(size if size <= N_LISTED else N_SAMPLED for size in sizes)


def r_posteriors(
    view: Sequence[int], n_rows: int, ell: int, stream: np.random.Generator
) -> dict[int, CutPosterior]:
    """For each count in the view, the posterior of a value with that count, after R-suppression."""
    sorted_view = tuple(sorted(view, reverse=True))
    times = Counter(sorted_view)
    how: set[str] = set()
    weights = {
        count: sum(
            (
                _stratum_weight(stratum, stream, how) * stratum.n_alike
                for stratum in _strata(sorted_view, count, n_rows, ell)
            ),
            _NOTHING,
        )
        for count in times
    }
    everything = sum((weights[count] * times[count] for count in times), _NOTHING)
    return {count: _normalise(weights[count], times[count], everything, how) for count in times}


def worst_r_posterior(table: RSuppression, n_views: int, stream: np.random.Generator) -> CutPosterior | None:
    """The largest posterior over what R-suppression may publish of the table.

    Where there are more than `n_views` outcomes, so many are looked at, spread over the levels of
    step 1, and fewer where they are laborious; the value is then only what was found, and the interval
    reaches up to 1. None if not one was looked at.
    """
    judged, budget = 0, MOST_WORK
    found: list[CutPosterior] = []
    views = _spread_views(table, n_views)
    for view in views:
        work = work_of(view, table.n_rows, table.ell)
        if work <= budget:
            found += r_posteriors(view, table.n_rows, table.ell, stream).values()
            judged, budget = judged + 1, budget - work
    if not judged:
        return None
    worst = largest(found)
    if judged == len(views) and table.n_outcomes() <= n_views:
        return worst
    return replace(worst, high=Fraction(1), how="simulated")


def largest(posteriors: Collection[CutPosterior]) -> CutPosterior:
    """The largest of some posteriors, no surer than the least sure of them."""
    return CutPosterior(
        value=max(posterior.value for posterior in posteriors),
        low=max(posterior.low for posterior in posteriors),
        high=max(posterior.high for posterior in posteriors),
        how=_least_sure({posterior.how for posterior in posteriors}),
    )


def _spread_views(table: RSuppression, n_views: int) -> list[Counts]:
    highest, n_levels = table.unsafe[0], table.n_outcomes()
    if n_levels <= n_views:
        return list(table.law())
    return [table.outcome(highest - step * (n_levels - 1) // (n_views - 1)) for step in range(n_views)]


def _least_sure(hows: Collection[str]) -> Literal["exact", "closed form", "simulated"]:
    if "simulated" in hows:
        return "simulated"
    return "exact" if "exact" in hows else "closed form"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stratum:
    """The tables with S_1 at `suspect` in which the values `cut` lost records, each at least one."""

    cut: tuple[int, ...]
    n_alike: int
    """How many choices of values are the same as `cut` up to relabelling."""
    view: Counts
    suspect: int
    n_rows: int
    ell: int

    @property
    def n_withheld(self) -> int:
        return self.n_rows - sum(self.view)

    def table(self, sums: Sequence[int]) -> list[int]:
        """The table in which the first j cut values lost the j-th of these rising sums in all."""
        table = list(self.view)
        for value, low, high in zip(self.cut, (0, *sums), sums, strict=False):
            table[value] += high - low
        table[self.suspect] += self.n_withheld - (sums[-1] if sums else 0)
        return table


def _strata(view: Counts, count: int, n_rows: int, ell: int) -> Iterator[_Stratum]:
    suspect, top = view.index(count), view[0]
    if suspect >= ell:  # S_1 is cut to F_{ℓ+1} or more, which fewer than ℓ other values exceed
        return
    at_top = [value for value, kept in enumerate(view) if kept == top and value != suspect]
    just_below = [value for value, kept in enumerate(view) if kept == top - 1 and value != suspect]
    for n_top, n_below in product(range(len(at_top) + 1), range(len(just_below) + 1)):
        stratum = _Stratum(
            view=view,
            suspect=suspect,
            cut=(*at_top[:n_top], *just_below[:n_below]),
            n_alike=comb(len(at_top), n_top) * comb(len(just_below), n_below),
            n_rows=n_rows,
            ell=ell,
        )
        if _can_have_stopped(stratum, n_below):
            yield stratum


def _can_have_stopped(stratum: _Stratum, n_below: int) -> bool:
    """Whether D-suppression may have gone past the last start of a level before this view.

    It goes on only while P-eligibility or ℓ-candidacy fails, so a stratum whose tables all pass through
    a state that has both is empty.
    """
    if not stratum.cut:
        return True
    if n_below:
        return not _both_hold(stratum, stratum.cut[len(stratum.cut) - n_below :])
    if not _both_hold(stratum, stratum.cut):
        return True
    suspect_on_top = stratum.view[stratum.suspect] == stratum.view[0]
    return suspect_on_top and not _both_hold(stratum, (*stratum.cut, stratum.suspect))


def _both_hold(stratum: _Stratum, raised: Sequence[int]) -> bool:
    state = [kept + (value in raised) for value, kept in enumerate(stratum.view)]
    is_eligible = max(state) * stratum.ell <= sum(state)
    return is_eligible and is_candidate_for_l(state, stratum.n_rows, stratum.ell)


def _stratum_weight(stratum: _Stratum, stream: np.random.Generator, how: set[str]) -> _Weight:
    n_tables, n_cut = comb(stratum.n_withheld, len(stratum.cut)), len(stratum.cut)
    if n_tables <= N_LISTED:
        how.add("exact" if n_cut else "closed form")
        # combinations() copies its input, which is as long as the table where nothing else was cut.
        choices = combinations(range(1, stratum.n_withheld + 1), n_cut) if n_cut else [()]
        total = sum((_likelihood(stratum, sums) for sums in choices), Fraction(0))
        return _Weight(value=total, low=total, high=total)
    how.add("simulated")
    draws = (distinct_integers(stratum.n_withheld, n_cut, stream) + 1 for _ in range(N_SAMPLED))
    seen = np.array([float(_likelihood(stratum, tuple(int(x) for x in draw))) for draw in draws])
    mean = Fraction(float(seen.mean()))
    if not mean:
        return _Weight(value=mean, low=mean, high=Fraction(_NO_HIT * n_tables, N_SAMPLED))
    spread = Fraction(_Z * sqrt(seen.var(ddof=1) / N_SAMPLED))
    return _Weight(value=mean, low=max(Fraction(0), mean - spread), high=mean + spread) * n_tables


def _likelihood(stratum: _Stratum, sums: Sequence[int]) -> Fraction:
    """Pr[S_1 is the suspect and the view is left | table], ties broken at random."""
    table, view, suspect = stratum.table(sums), stratum.view, stratum.suspect
    highest = table[suspect]
    if min(table) < 1 or max(table) > highest or highest * stratum.ell <= stratum.n_rows:
        return Fraction(0)
    others = sorted((value for value in range(len(table)) if value != suspect), key=lambda v: -table[v])
    method = RSuppression([highest, *(table[value] for value in others)], stratum.ell)
    kept = method.outcome(view[suspect])
    if kept[0] != view[suspect]:
        return Fraction(0)
    if kept[0] == method.unsafe[0]:
        reached = method.probability_of_levels(kept[0], highest)
    else:
        reached = method.probability_of_level(kept[0])
    return reached * _chance_of_order(table, view, others, kept[1:]) / table.count(highest)


def _chance_of_order(
    table: Sequence[int], view: Counts, others: Sequence[int], kept: Sequence[int]
) -> Fraction:
    """Pr[the random order of equal counts gives each value what the view shows of it]."""
    ranks_of: dict[int, list[int]] = defaultdict(list)
    for rank, value in enumerate(others):
        ranks_of[table[value]].append(rank)
    chance = Fraction(1)
    for ranks in ranks_of.values():
        given = Counter(kept[rank] for rank in ranks)
        if given != Counter(view[others[rank]] for rank in ranks):
            return Fraction(0)
        chance *= Fraction(prod(factorial(times) for times in given.values()), factorial(len(ranks)))
    return chance


def _normalise(mine: _Weight, n_alike: int, everything: _Weight, how: set[str]) -> CutPosterior:
    """The posterior of one of so many values with this weight each."""
    rest = everything + mine * -n_alike
    total = everything.value
    highest, lowest = mine.high * n_alike + rest.low, mine.low * n_alike + rest.high
    return CutPosterior(
        value=mine.value / total if total else Fraction(0),
        low=mine.low / lowest if lowest else Fraction(0),
        high=mine.high / highest if highest else Fraction(1),
        how=_least_sure(how),
    )
