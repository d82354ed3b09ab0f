"""What an attacker believes about the commonest value of a table, given what was published of it.

The attacker of the suppression paper knows the algorithm and n, and sees the kept counts. Her prior
is uniform over the labelled histograms of size n, all m values present, that break ℓ-eligibility;
Bayes runs over the algorithm's own coins, the random secret order of equal counts among them. Every
quantity is the same under any relabelling of the values, so tables and views are kept as sorted
tuples, and a belief is held per *count* in the view: values with equal counts are believed in equally.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from dalenius.mechanisms.suppress.d_suppression import Counts
from dalenius.mechanisms.suppress.law import Law, n_arrangements, violating_partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Posterior:
    """A posterior probability, with an interval that holds it and how it was found."""

    value: Fraction
    low: Fraction
    high: Fraction
    how: Literal["exact", "closed form", "simulated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beliefs:
    """The joint law of (sorted view, count of the truly commonest value in it)."""

    joint: Mapping[Counts, Mapping[int, Fraction]]

    def of_view(self, view: Sequence[int]) -> dict[int, Fraction]:
        """For each count in the view, Pr[a value with that count was the commonest | view]."""
        key = tuple(sorted(view, reverse=True))
        weights = self.joint[key]
        total = sum(weights.values())
        return {count: weights.get(count, Fraction(0)) / total / key.count(count) for count in set(key)}

    def worst_of(self, views: Iterable[Sequence[int]]) -> Fraction:
        """The largest posterior that any of the views gives to any value."""
        return max(max(self.of_view(view).values()) for view in views)

    def worst(self) -> Fraction:
        """The largest posterior over all views that can be published."""
        return self.worst_of(self.joint)

    def mass_above(self, bound: Fraction) -> Fraction:
        """How likely it is that what is published breaks the bound."""
        mass = {view: sum(weights.values(), Fraction(0)) for view, weights in self.joint.items()}
        broken = (mass[view] for view in mass if max(self.of_view(view).values()) > bound)
        return sum(broken, Fraction(0)) / sum(mass.values())


def beliefs_from(laws: Iterable[tuple[int | Fraction, Law]]) -> Beliefs:
    """The beliefs of one who gives each law, of one sorted table, the stated weight."""
    joint: dict[Counts, dict[int, Fraction]] = defaultdict(lambda: defaultdict(Fraction))
    for weight, law in laws:
        for kept, p in law.items():
            joint[tuple(sorted(kept, reverse=True))][kept[0]] += weight * p
    return Beliefs(joint=joint)


def beliefs_of_uniform_prior(
    n_rows: int, n_values: int, ell: int, law_of: Callable[[Counts, int], Law]
) -> Beliefs:
    """The attacker of the paper, by enumeration of every table she can think of.

    >>> from dalenius.mechanisms.suppress.r_suppression import RSuppression
    >>> beliefs = beliefs_of_uniform_prior(12, 4, 3, lambda table, ell: RSuppression(table, ell).law())
    >>> round(float(beliefs.worst()), 3)  # where 1/3 is printed
    0.541
    """
    tables = violating_partitions(n_rows, n_values, ell)
    return beliefs_from((n_arrangements(table), law_of(table, ell)) for table in tables)


def beliefs_if_histogram_is_known(law: Law) -> Beliefs:
    """One who knows the sorted counts of the table, but not which value has which."""
    return beliefs_from([(1, law)])


def safe_posterior(ranked: Sequence[int], ell: int) -> Posterior:
    """Safe D-suppression, for every prior that treats labels alike: one over the values left on top."""
    value = Fraction(1, sum(count >= ranked[ell - 1] for count in ranked))
    return Posterior(value=value, low=value, high=value, how="closed form")
